import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { diffConfig, hashOf, ownerOf, toCoreSettings } from '../../src/config/config.ts';
import type { Flags } from '../../src/config/environment.ts';
import { FileSchema, type SchemaNode } from '../../src/config/schema.ts';
import { createInForce, createReloading, type Running } from '../../src/daemon/reloading.ts';
import { folderFor } from '../liveness/started.ts';
import { ENVIRONMENT, fileOf, load, loadWell, problemsOf, shardSecrets } from './fixture.ts';

const NOTHING = { refusals: [], added: [], removed: [], moved: [], changed: [] };

const BASE = {
  exchange: { baseUrls: ['https://exchange.example'] },
  markets: ['BTC_USDT', { market: 'ETH_USDT', timeoutSeconds: 30, types: ['spot', 'margin'] }] as unknown[],
  liveness: { mode: 'file', file: '/run/bot.alive' },
};

type Sections = Readonly<Record<string, unknown>>;

/** One key of the base with another value, as sections for `diff`: `log.level`, `onLapse`. */
function withKey(path: string, value: unknown): Record<string, unknown> {
  const [section = '', key] = path.split('.');
  if (key === undefined) return { [section]: value };
  return { [section]: { ...((BASE as Sections)[section] as object | undefined), [key]: value } };
}

/** Keys that may change while the daemon runs, each with another value than in the base. */
const CHANGEABLE = new Map<string, unknown>([
  ...examplesOf('shard.handoverSeconds reload.allowRemoval reload.pollSeconds'),
  ...examplesOf('liveness.url liveness.probeEverySeconds liveness.startupGraceSeconds liveness.onStale'),
  ...examplesOf('onLapse shutdown.policy shutdown.budgetSeconds ping.everySeconds log.level'),
  ...examplesOf('notify.format notify.name notify.pingEverySeconds'),
  ['liveness.file', '/run/other.alive'],
  ['liveness.ttlSeconds', 20],
]);

/** Keys that may not, with another value. */
const FIXED = new Map<string, unknown>([
  ...examplesOf('exchange.allowPlainHttp exchange.sameAccount exchange.nonce exchange.budgetShare'),
  ...examplesOf('exchange.connections exchange.cancellationDelaySeconds exchange.requestLifetimeSeconds'),
  ...examplesOf('shard.budget control.access log.format'),
  ['exchange.baseUrls', ['https://eu.exchange.example', 'https://exchange.example']],
  ['liveness.mode', 'none'],
  ['web.listen', []],
  ['control.listen', ['unix:/run/a.sock', '127.0.0.1:1']],
]);

function nodeAt(path: string): SchemaNode {
  return path.split('.').reduce<SchemaNode>((at, key) => at.properties?.[key] ?? {}, FileSchema);
}

function examplesOf(paths: string): [string, unknown][] {
  return paths.split(' ').map((path) => [path, nodeAt(path).examples?.[0]]);
}

/** What changes from the base to the base with these sections written over it. */
function diff(change: Record<string, unknown>, env: Record<string, string> = {}, flags: Flags = {}) {
  const next = loadWell(JSON.stringify({ ...BASE, ...change }), env, flags);
  return diffConfig(loadWell(JSON.stringify(BASE)).config, next.config);
}

it('equal files have one hash and are no change, wherever they lie', () => {
  const [here, there] = [BASE, BASE].map((base) => loadWell(JSON.stringify(base)).config);
  expect(here?.file).not.toBe(there?.file);
  expect(here && hashOf(here)).toBe(there && hashOf(there));
  expect(diff({})).toEqual({ ...NOTHING, same: true });
});

const ETH = BASE.markets[1];
const ofBitcoin = (more: object) => ({ markets: [{ market: 'BTC_USDT', ...more }, ETH] });
const BY_BOT = { liveness: { mode: 'file', file: '/run/{bot}.alive' } };
const OTHERS = ['SOL_USDT', { market: 'ETH_USDT', timeoutSeconds: 20, types: ['spot', 'margin'] }];
const SAME = [
  { market: 'ETH_USDT', types: ['margin', 'spot'], timeoutSeconds: 30, bot: 'default' },
  { market: 'BTC_USDT', timeoutSeconds: 60 },
];
const REWRITTEN = { markets: SAME, defaults: { timeoutSeconds: 50 } };
const CHANGED = { changed: ['BTC_USDT'] };
const REPLACED = { added: ['SOL_USDT'], removed: ['BTC_USDT'], changed: ['ETH_USDT'] };
it.each<[string, Record<string, unknown>, object]>([
  ['are added, removed and changed', { markets: OTHERS }, REPLACED],
  ['change with their timeout', ofBitcoin({ timeoutSeconds: 30 }), CHANGED],
  ['change with their types', ofBitcoin({ types: ['spot'] }), CHANGED],
  ['change with their cadence', ofBitcoin({ renewEverySeconds: 5 }), CHANGED],
  ['change with their bot', { ...ofBitcoin({ bot: 'maker' }), ...BY_BOT }, CHANGED],
  ['change with a default that they inherit', { defaults: { timeoutSeconds: 40 } }, CHANGED],
  ['stay the same where it is written otherwise', REWRITTEN, { same: true }],
])('the markets of a reload %s', (_what, change, found) => {
  expect(diff(change)).toEqual({ ...NOTHING, same: false, ...found });
});

const MARKETS = Array.from({ length: 40 }, (_, index) => `M${index}_USDT`);
const shardOf = (index: number, count: number, markets: readonly unknown[] = MARKETS) =>
  loadWell(JSON.stringify({ ...BASE, markets, shard: { index, count } }), shardSecrets()).config;
const without = (gone: string) => MARKETS.filter((market) => market !== gone);

it('a larger count moves markets to the new shard and adds none', () => {
  const { refusals, added, removed, moved } = diffConfig(shardOf(1, 3), shardOf(1, 4));
  expect([...refusals, ...added, ...removed]).toEqual([]);
  expect(moved.length).toBeGreaterThan(0);
  expect(shardOf(3, 4).markets.map(({ market }) => market)).toEqual(expect.arrayContaining([...moved]));
});

it('a smaller count brings the markets of the last shard to the others, and takes all from that one', () => {
  const left = diffConfig(shardOf(3, 4), shardOf(3, 3));
  expect(left.moved).toHaveLength(shardOf(3, 4).markets.length);
  const taken = [0, 1, 2].flatMap((index) => diffConfig(shardOf(index, 4), shardOf(index, 3)).added);
  expect(taken.sort()).toEqual(left.moved.toSorted());
});

it('a market of another shard that changes is taken over: it may still be guarded here as well', () => {
  const [elsewhere = ''] = shardOf(1, 2).markets.map(({ market }) => market);
  const shorter = MARKETS.map((market) => (market === elsewhere ? { market, timeoutSeconds: 30 } : market));
  const takenOver = { ...NOTHING, same: false };
  expect(diffConfig(shardOf(0, 2), shardOf(0, 2, shorter))).toMatchObject(takenOver);
  // The last of two waits for a larger count, and guards what went to the first one meanwhile.
  expect(diffConfig(shardOf(1, 1), shardOf(1, 1, without(elsewhere)))).toMatchObject(takenOver);
  expect(diffConfig(shardOf(0, 2), shardOf(0, 2, MARKETS.toReversed()))).toMatchObject({ same: true });
});

it('a market that no shard has any more is removed, and not moved', () => {
  const [gone = ''] = shardOf(0, 2).markets.map(({ market }) => market);
  const found = diffConfig(shardOf(0, 2), shardOf(0, 2, without(gone)));
  expect(found).toMatchObject({ removed: [gone], moved: [], changed: [] });
});

it('another index needs a restart', () => {
  const says = 'shard.index: runs with 0, found 1; restart to change it';
  expect(diffConfig(shardOf(0, 2), shardOf(1, 2)).refusals).toEqual([says]);
});

describe('what may change while the daemon runs', () => {
  it.each([...CHANGEABLE])('is %s', (path, value) => {
    expect(diff(withKey(path, value))).toEqual({ ...NOTHING, same: false });
  });

  it.each(['KILLSWITCHD_API_KEY', 'KILLSWITCHD_API_SECRET'])('is %s, which is not shown', (name) => {
    expect(diff({}, { [name]: 'another-secret-of-the-test' })).toEqual({ ...NOTHING, same: false });
  });

  it.each([
    ['notify', 'urlFile', 'https://hooks.example/one', 'https://hooks.example/two'],
    ['notify', 'pingUrlFile', 'https://hooks.example/one', 'https://hooks.example/two'],
    ['control', 'tokenFile', 'a-token-of-the-test', 'another-token-of-the-test'],
  ])('is what the file holds that %s.%s names', (section, key, one, other) => {
    const file = fileOf(one, 0o600);
    const text = JSON.stringify({ ...BASE, [section]: { [key]: file } });
    const running = loadWell(text).config;
    expect(diffConfig(running, loadWell(text).config).same).toBe(true);
    writeFileSync(file, other);
    expect(diffConfig(running, loadWell(text).config)).toEqual({ ...NOTHING, same: false });
    expect(diffConfig(running, loadWell(JSON.stringify(BASE)).config).same).toBe(false);
  });
});

describe('what cannot change while the daemon runs', () => {
  it.each([...FIXED])('is %s, named with both values', (path, value) => {
    const [section = '', key = ''] = path.split('.');
    const was = ((BASE as Sections)[section] as Sections | undefined)?.[key] ?? nodeAt(path).default;
    const show = (one: unknown) => String(Array.isArray(one) ? one.join(', ') || 'none' : one);
    const sentence = `${path}: runs with ${show(was)}, found ${show(value)}; restart to change it`;
    expect(diff(withKey(path, value))).toEqual({ ...NOTHING, refusals: [sentence], same: false });
  });

  it('is named all at once, in the order of the file, beside the changes of markets', () => {
    const found = diff({ markets: ['BTC_USDT'], log: { format: 'text' }, web: { listen: ['127.0.0.1:1'] } });
    expect(found.refusals.map((sentence) => sentence.split(':')[0])).toEqual(['web.listen', 'log.format']);
    expect(found.removed).toEqual(['ETH_USDT']);
  });

  it('is the name of the token file, and neither token is shown; and whether the exchange is embedded', () => {
    const tokenFile = fileOf('yet-another-token-of-the-test');
    expect(diff({ control: { tokenFile } }, {}, { embeddedExchange: true }).refusals).toEqual([
      '--embedded-exchange: runs with off, found on; restart to change it',
      expect.stringMatching(/^exchange.baseUrls: /),
      `control.tokenFile: runs with none, found ${tokenFile}; restart to change it`,
    ]);
  });

  it('is decided for every key that there is', () => {
    const sections: Readonly<Record<string, SchemaNode>> = FileSchema.properties;
    const read = ['control.tokenFile', 'notify.urlFile', 'notify.pingUrlFile'];
    const elsewhere = ['$schema', 'defaults', 'markets', 'shard.index', 'shard.count', ...read];
    const decided = [...CHANGEABLE.keys(), ...FIXED.keys()];
    const keys = Object.entries(sections).flatMap(([section, { properties }]) =>
      properties === undefined || section === 'defaults'
        ? [section]
        : Object.keys(properties).map((key) => `${section}.${key}`),
    );
    expect(keys.sort()).toEqual([...decided, ...elsewhere].sort());
  });
});

const MANY = Array.from({ length: 10_000 }, (_, index) => `M${index}_USDT`);
const SOME = MANY.slice(0, 40);

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
    for (const market of MANY) sizes[ownerOf(market, count)] = (sizes[ownerOf(market, count)] ?? 0) + 1;
    const fair = MANY.length / count;
    // Five standard deviations of a fair draw.
    for (const size of sizes) expect(Math.abs(size - fair)).toBeLessThan(5 * Math.sqrt(fair));
    const moved = MANY.filter((market) => ownerOf(market, count) !== ownerOf(market, count + 1));
    expect(moved.every((market) => ownerOf(market, count + 1) === count)).toBe(true);
    expect(moved.length / MANY.length).toBeCloseTo(1 / (count + 1), 1);
  });
});

it('a shard has its part of the markets, tells the core which the others have, and all together have each once', () => {
  const configs = [0, 1, 2].map((index) => configOf({ index, count: 3 }).config);
  expect(configs.flatMap(({ markets }) => namesOf(markets)).sort()).toEqual(SOME.toSorted());
  for (const config of configs) {
    expect(namesOf(config.fleet)).toEqual(SOME);
    const { elsewhere, markets } = toCoreSettings(config, []);
    expect([...namesOf(elsewhere), ...namesOf(markets)].sort()).toEqual(SOME.toSorted());
  }
});

it('a shard has a part of the budget, unless it has an address and a key of its own', () => {
  const budget = (shard: object) => toCoreSettings(configOf(shard).config, []).budget.requests;
  expect(budget({ index: 0, count: 4 })).toBe(1250);
  expect(budget({ index: 0, count: 4, budget: 'own' })).toBe(5000);
});

it.each([
  [{ shard: '1/3' }, {}],
  [{ shard: 'killswitchd-1/3' }, {}],
  [{}, { KILLSWITCHD_SHARD: '1/3' }],
  [{}, { KILLSWITCHD_SHARD_INDEX: 'maker-2-1', KILLSWITCHD_SHARD_COUNT: '3' }],
])('a shard is given by the flags %j and the variables %j', (flags, env) => {
  const { config } = loadWell(null, { ...WITHOUT_KEY, ...shardSecrets(), ...env }, flags);
  expect(config.shard).toMatchObject({ index: 1, count: 3 });
});

it('a shard takes its number from the environment and the count from the file, and says where it guards nothing', () => {
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
])('a shard needs a key of its own: with a file below %s it is allowed: %s', (name, allowed) => {
  const folder = folderFor({ onTestFinished });
  // Its name may have a number in it.
  const path = folder.replace(/\d/g, 'x');
  renameSync(folder, path);
  mkdirSync(join(path, name));
  writeFileSync(join(path, name, 'api-key'), 'key-of-the-test', { mode: 0o400 });
  const file = { KILLSWITCHD_API_KEY_FILE: join(path, name, 'api-key') };
  const problems = problemsOf(load(null, { ...WITHOUT_KEY, ...file, KILLSWITCHD_SHARD: '1/3' }));
  expect(problems).toMatch(allowed ? /^$/ : /each shard needs a key of its own/);
  renameSync(path, folder);
});

it('a reload whose check throws is rejected with a message, and ends no process', async () => {
  const told: (readonly string[])[] = [];
  const clock = createSystemClock();
  const loaded = loadWell(JSON.stringify(BASE));
  const running = {
    clock,
    loaded,
    inForce: createInForce(clock, loaded.config, () => {}),
    load: () => {
      throw new RangeError('too much of something');
    },
    guard: { hide: (text: string) => text },
    telemetry: {
      operations: { reloadRejected: (_trigger: string, problems: string[]) => told.push(problems) },
    },
    supervision: null,
  };
  const { reload } = createReloading(running as unknown as Running);
  const says = expect.stringMatching(
    /^the configuration cannot be checked.*RangeError: too much of something$/,
  );
  expect(await reload('signal', 0)).toEqual({ kind: 'rejected', problems: [says] });
  expect(told).toEqual([[says]]);
});
