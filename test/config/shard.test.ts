import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ownerOf, toCoreSettings } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { loadWell, problemsOf, SECRETS, shardSecrets } from './fixture.ts';

const KEYS = shardSecrets();
const MARKETS = Array.from({ length: 10_000 }, (_, index) => `M${index}_USDT`);

function load(
  shard: object,
  env: Record<string, string> = {},
  markets: readonly string[] = MARKETS.slice(0, 40),
) {
  const exchange = { baseUrls: ['https://exchange.example'], nonce: 'window' };
  return loadWell(JSON.stringify({ exchange, markets, shard, liveness: { mode: 'none' } }), {
    ...KEYS,
    ...env,
  });
}
const namesOf = (markets: readonly { readonly market: string }[]) => markets.map(({ market }) => market);
const environment = (more: Record<string, string>) => ({
  ...KEYS,
  KILLSWITCHD_BASE_URL: 'https://exchange.example',
  KILLSWITCHD_MARKETS: 'BTC_USDT,ETH_USDT',
  KILLSWITCHD_LIVENESS_MODE: 'none',
  ...more,
});

describe('the owner of a market', () => {
  it('is the same in every version, or a rolling update would leave markets without one', () => {
    const owners = ['BTC_USDT', 'ETH_USDT', 'SOL_USDT', 'XRP_USDT', 'DOGE_BTC'].map((market) =>
      [2, 3, 4, 10].map((count) => ownerOf(market, count)),
    );
    expect(owners).toEqual([
      [1, 1, 3, 4],
      [1, 2, 2, 5],
      [1, 1, 1, 1],
      [1, 2, 2, 2],
      [0, 0, 0, 7],
    ]);
  });

  it.each([2, 3, 4, 10, 50])('is spread evenly over %i shards', (count) => {
    const sizes = Array.from({ length: count }, () => 0);
    for (const market of MARKETS) sizes[ownerOf(market, count)] = (sizes[ownerOf(market, count)] ?? 0) + 1;
    const fair = MARKETS.length / count;
    // Five standard deviations of a fair draw.
    for (const size of sizes) expect(Math.abs(size - fair)).toBeLessThan(5 * Math.sqrt(fair));
  });

  it.each([1, 2, 3, 7])('changes from %i shards to one more only for what the new shard gets', (count) => {
    const moved = MARKETS.filter((market) => ownerOf(market, count) !== ownerOf(market, count + 1));
    expect(moved.every((market) => ownerOf(market, count + 1) === count)).toBe(true);
    expect(moved.length / MARKETS.length).toBeCloseTo(1 / (count + 1), 1);
  });
});

describe('a shard', () => {
  it('has its part of the markets, and all shards together have each market once', () => {
    const parts = [0, 1, 2].map((index) => namesOf(load({ index, count: 3 }).config.markets));
    expect(parts.flat().sort()).toEqual(MARKETS.slice(0, 40).sort());
    expect(namesOf(load({ index: 1, count: 3 }).config.fleet)).toEqual(MARKETS.slice(0, 40));
  });

  it('has a part of the budget, unless it has an address and a key of its own', () => {
    const budget = (shard: object) => toCoreSettings(load(shard).config, []).budget.requests;
    expect(budget({ index: 0, count: 4 })).toBe(1250);
    expect(budget({ index: 0, count: 4, budget: 'own' })).toBe(5000);
  });

  it('tells the core which markets the others have', () => {
    const settings = toCoreSettings(load({ index: 2, count: 3 }).config, []);
    expect([...settings.movedAway, ...namesOf(settings.markets)].sort()).toEqual(MARKETS.slice(0, 40).sort());
  });

  it.each([
    [{ shard: '1/3' }, {}],
    [{ shard: 'killswitchd-1/3' }, {}],
    [{}, { KILLSWITCHD_SHARD: '1/3' }],
    [{}, { KILLSWITCHD_SHARD_INDEX: '1', KILLSWITCHD_SHARD_COUNT: '3' }],
    [{}, { KILLSWITCHD_SHARD_INDEX: 'maker-2-1', KILLSWITCHD_SHARD_COUNT: '3' }],
  ])('is given by the flags %j and the variables %j', (flags, env) => {
    const loaded = loadConfig({ env: environment(env), flags });
    expect(loaded.kind === 'ok' && loaded.config.shard).toMatchObject({ index: 1, count: 3 });
  });

  it('takes its number from the environment and the count from the file, which a reload changes', () => {
    const { config } = load({ count: 4 }, { KILLSWITCHD_SHARD_INDEX: 'killswitchd-3' });
    expect(config.shard).toMatchObject({ index: 3, count: 4 });
  });

  it.each<[object, string, string]>([
    [
      { SHARD: '4/4' },
      'SHARD',
      'allowed: I/N with I from 0 to N - 1, such as 2/4: shards are counted from 0, and the last of 4 is 3/4',
    ],
    [{ SHARD: '0' }, 'SHARD', 'found "0"; allowed: I/N'],
    [{ SHARD: '0/0' }, 'SHARD', 'found "0/0"; allowed: I/N'],
    [{ SHARD: '-1/4' }, 'SHARD', 'found "-1/4"; allowed: I/N'],
    [{ SHARD: '1/2000' }, 'SHARD', 'found 2000; allowed: a whole number from 1 to 1000'],
    [
      { SHARD_INDEX: 'killswitchd' },
      'SHARD_INDEX',
      'found "killswitchd"; allowed: a whole number from 0 to 999, or a name',
    ],
    [{ SHARD_INDEX: '-1' }, 'SHARD_INDEX', 'found "-1"; allowed: a whole number'],
    [{ SHARD_INDEX: 'killswitchd-1000' }, 'SHARD_INDEX', 'found "killswitchd-1000"; allowed: a whole number'],
    [
      { SHARD: '1/3', SHARD_INDEX: '2' },
      'SHARD',
      'found beside KILLSWITCHD_SHARD_INDEX, which says the same; allowed: one of the two',
    ],
    [
      { SHARD: '1/3', SHARD_COUNT: '2' },
      'SHARD',
      'found beside KILLSWITCHD_SHARD_COUNT, which says the same; allowed: one of the two',
    ],
  ])('is refused as %j, under the name of %s', (given, name, says) => {
    const env = Object.fromEntries(Object.entries(given).map(([key, text]) => [`KILLSWITCHD_${key}`, text]));
    const [first, ...others] = problemsOf(loadConfig({ env: environment(env), flags: {} })).split('\n');
    expect([first?.startsWith(`KILLSWITCHD_${name}: `), others]).toEqual([true, []]);
    expect(first).toContain(says);
  });

  it('guards nothing and says so where its number is not below the count: it waits to be needed', () => {
    const { config, warnings } = load({ index: 3, count: 3 });
    expect(config.markets).toEqual([]);
    expect(warnings.join()).toContain('shard 3 of 3 guards no market; it waits for a shard.count above 3');
  });

  describe('needs a key of its own, or two daemons make each other’s nonces stale', () => {
    const why =
      "each shard needs a key of its own, since daemons that share one make each other's nonces stale";
    const fixed = { ...environment({}), KILLSWITCHD_SHARD: '1/3' };

    it('is refused with a key in the environment, and says what to write', () => {
      const { KILLSWITCHD_API_KEY_FILE: _file, ...env } = fixed;
      const loaded = loadConfig({ env: { ...env, ...SECRETS }, flags: {} });
      expect(problemsOf(loaded)).toBe(
        `KILLSWITCHD_API_KEY: found a key in the environment; ${why}; allowed: KILLSWITCHD_API_KEY_FILE with the number 1 in the path, such as /run/secrets/killswitchd-1.api-key`,
      );
    });

    it.each([
      ['2', false],
      ['11', false],
      ['shard-1', true],
      ['killswitchd@01.service', true],
    ])('with a file below %s: allowed is %s', (name, allowed) => {
      const folder = mkdtempSync(join(tmpdir(), 'killswitchd-key-'));
      onTestFinished(() => rmSync(folder, { recursive: true }));
      // What mkdtemp adds may have a number in it.
      const path = folder.replace(/\d/g, 'x');
      renameSync(folder, path);
      mkdirSync(join(path, name));
      writeFileSync(join(path, name, 'api-key'), 'key-of-the-test', { mode: 0o400 });
      const env = { ...fixed, KILLSWITCHD_API_KEY_FILE: join(path, name, 'api-key') };
      expect(problemsOf(loadConfig({ env, flags: {} }))).toMatch(allowed ? /^$/ : new RegExp(why));
      renameSync(path, folder);
    });
  });
});
