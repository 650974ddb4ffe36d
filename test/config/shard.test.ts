import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ownerOf, toCoreSettings } from '../../src/config/config.ts';
import { ENVIRONMENT, load, loadWell, problemsOf, shardSecrets } from './fixture.ts';

const MARKETS = Array.from({ length: 10_000 }, (_, index) => `M${index}_USDT`);
const SOME = MARKETS.slice(0, 40);

function configOf(shard: object, env: Record<string, string> = {}) {
  const exchange = { baseUrls: ['https://exchange.example'], nonce: 'window' };
  const text = JSON.stringify({ exchange, markets: SOME, shard, liveness: { mode: 'none' } });
  return loadWell(text, { ...shardSecrets(), ...env });
}
const namesOf = (markets: readonly { readonly market: string }[]) => markets.map(({ market }) => market);
const { KILLSWITCHD_API_KEY: _key, ...WITHOUT_KEY } = ENVIRONMENT;

describe('the owner of a market', () => {
  it('is the same in every version, or a rolling update would leave markets without one', () => {
    const owners = ['BTC_USDT', 'ETH_USDT', 'SOL_USDT', 'XRP_USDT', 'DOGE_BTC'].map((market) =>
      [2, 3, 4, 10].map((count) => ownerOf(market, count)).join(' '),
    );
    expect(owners).toEqual(['1 1 3 4', '1 2 2 5', '1 1 1 1', '1 2 2 2', '0 0 0 7']);
  });

  it.each([2, 3, 10, 50])('is spread evenly over %i shards, and one more takes its part alone', (count) => {
    const sizes = Array.from({ length: count }, () => 0);
    for (const market of MARKETS) sizes[ownerOf(market, count)] = (sizes[ownerOf(market, count)] ?? 0) + 1;
    const fair = MARKETS.length / count;
    // Five standard deviations of a fair draw.
    for (const size of sizes) expect(Math.abs(size - fair)).toBeLessThan(5 * Math.sqrt(fair));
    const moved = MARKETS.filter((market) => ownerOf(market, count) !== ownerOf(market, count + 1));
    expect(moved.every((market) => ownerOf(market, count + 1) === count)).toBe(true);
    expect(moved.length / MARKETS.length).toBeCloseTo(1 / (count + 1), 1);
  });
});

describe('a shard', () => {
  it('has its part of the markets, tells the core which the others have, and all together have each once', () => {
    const configs = [0, 1, 2].map((index) => configOf({ index, count: 3 }).config);
    expect(configs.flatMap(({ markets }) => namesOf(markets)).sort()).toEqual(SOME.toSorted());
    for (const config of configs) {
      expect(namesOf(config.fleet)).toEqual(SOME);
      const { elsewhere, markets } = toCoreSettings(config, []);
      expect([...namesOf(elsewhere), ...namesOf(markets)].sort()).toEqual(SOME.toSorted());
    }
  });

  it('has a part of the budget, unless it has an address and a key of its own', () => {
    const budget = (shard: object) => toCoreSettings(configOf(shard).config, []).budget.requests;
    expect(budget({ index: 0, count: 4 })).toBe(1250);
    expect(budget({ index: 0, count: 4, budget: 'own' })).toBe(5000);
  });

  it.each([
    [{ shard: '1/3' }, {}],
    [{ shard: 'killswitchd-1/3' }, {}],
    [{}, { KILLSWITCHD_SHARD: '1/3' }],
    [{}, { KILLSWITCHD_SHARD_INDEX: 'maker-2-1', KILLSWITCHD_SHARD_COUNT: '3' }],
  ])('is given by the flags %j and the variables %j', (flags, env) => {
    const { config } = loadWell(null, { ...WITHOUT_KEY, ...shardSecrets(), ...env }, flags);
    expect(config.shard).toMatchObject({ index: 1, count: 3 });
  });

  it('takes its number from the environment and the count from the file, and says where it guards nothing', () => {
    const { config } = configOf({ count: 4 }, { KILLSWITCHD_SHARD_INDEX: 'killswitchd-3' });
    expect(config.shard).toMatchObject({ index: 3, count: 4 });
    const waits = configOf({ index: 3, count: 3 });
    expect(waits.config.markets).toEqual([]);
    const says = 'shard 3 of 3 guards no market; it waits for a shard.count above 3';
    expect(waits.warnings.join()).toContain(says);
  });

  // Or two daemons make each other's nonces stale.
  it.each([
    ['2', false],
    ['11', false],
    ['shard-1', true],
    ['killswitchd@01.service', true],
  ])('needs a key of its own: with a file below %s it is allowed: %s', (name, allowed) => {
    const folder = mkdtempSync(join(tmpdir(), 'killswitchd-key-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    // What mkdtemp adds may have a number in it.
    const path = folder.replace(/\d/g, 'x');
    renameSync(folder, path);
    mkdirSync(join(path, name));
    writeFileSync(join(path, name, 'api-key'), 'key-of-the-test', { mode: 0o400 });
    const file = { KILLSWITCHD_API_KEY_FILE: join(path, name, 'api-key') };
    const problems = problemsOf(load(null, { ...WITHOUT_KEY, ...file, KILLSWITCHD_SHARD: '1/3' }));
    expect(problems).toMatch(allowed ? /^$/ : /each shard needs a key of its own/);
    renameSync(path, folder);
  });
});
