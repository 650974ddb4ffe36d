import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { CoreSettings, OrderType } from '../core/events.ts';
import { carriedPerSecond, planCadence, seconds } from '../core/promise.ts';
import type { ListenAddress } from '../ports.ts';
import { hashText, isRecord } from '../util/text.ts';
import { firstOf } from './problem.ts';
import { FileSchema, type LivenessMode, type Values } from './schema.ts';
import type { Secret, Secrets } from './secrets.ts';

/** One market with everything that it inherits filled in. */
export interface MarketConfig {
  readonly market: string;
  readonly timeoutSeconds: number;
  /** Null means all order types. */
  readonly types: readonly OrderType[] | null;
  /** Null where the cadence follows from the timeout. */
  readonly renewEverySeconds: number | null;
  readonly bot: string;
}

type Replaced = 'exchange' | 'markets' | 'liveness' | 'web' | 'control' | 'notify';

/** A configuration without a mistake: file, environment, flags and defaults in one. Null is what nobody has given. */
export interface Config extends Omit<Values, Replaced> {
  /** Name of the file that was read, null where there was none. */
  readonly file: string | null;
  /** The daemon brings its own exchange. */
  readonly embeddedExchange: boolean;
  /** Origins without a trailing slash. Empty with an embedded exchange, whose address is not known yet. */
  readonly exchange: Values['exchange'] & { readonly baseUrls: readonly string[] };
  readonly secrets: Secrets;
  /** Those of this daemon's shard. */
  readonly markets: readonly MarketConfig[];
  /** Those of all shards. */
  readonly fleet: readonly MarketConfig[];
  /** `file` and `url` as written, with `{bot}` in them. The pace is of no meaning with modes beat and none. */
  readonly liveness: Values['liveness'] & { readonly mode: LivenessMode; readonly probeEverySeconds: number };
  readonly web: { readonly listen: readonly ListenAddress[] };
  /** `token`, `url` and `pingUrl` are what the files hold; null where none is named. */
  readonly control: Omit<Values['control'], 'listen'> & {
    readonly listen: readonly ListenAddress[];
    readonly token: Secret | null;
  };
  readonly notify: Values['notify'] & { readonly url: Secret | null; readonly pingUrl: Secret | null };
}

export const marketsOf = ({ index, count }: Values['shard'], markets: readonly MarketConfig[]) =>
  markets.filter(({ market }) => ownerOf(market, count) === index);

/**
 * The shard that a market belongs to, from 0. Rendezvous hashing: the shard with the highest weight for this market.
 * Growing from N to N + 1 shards moves the markets that the new one gets, 1 in N + 1, and no other; shrinking likewise.
 * Every version must give the same owner, or a rolling update would leave markets without one.
 */
export function ownerOf(market: string, count: number): number {
  const seed = hashText(market);
  const weights = Array.from({ length: count }, (_, index) => mix(seed ^ mix(index + 1)));
  return weights.indexOf(Math.max(...weights));
}

/** The finalizer of MurmurHash3: every bit of the input reaches every bit of the output. */
function mix(value: number): number {
  let mixed = value ^ (value >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** Documented limit of the kill-switch operation. */
const DOCUMENTED = { requests: 10_000, windowMs: 10_000 };
/** A ping that takes longer says nothing about the route's health any more. */
const LONGEST_PING_MS = 3000;

/** How many requests in how many milliseconds this daemon may write: its share, or its shard's part of it. */
export function budgetOf(
  { budgetShare }: Pick<Config['exchange'], 'budgetShare'>,
  { index, count, budget }: Pick<Config['shard'], 'index' | 'count' | 'budget'>,
): CoreSettings['budget'] {
  // A shard above the count still hands its markets over.
  const parts = budget === 'shared' ? Math.max(count, index + 1) : 1;
  const requests = Math.floor((DOCUMENTED.requests * budgetShare) / parts);
  return { ...DOCUMENTED, requests: Math.max(1, requests) };
}

function toMarketSettings(config: MarketConfig): CoreSettings['markets'][number] {
  const { timeoutSeconds, renewEverySeconds, ...same } = config;
  const renewEveryMs = renewEverySeconds === null ? null : renewEverySeconds * 1000;
  return { ...same, timeoutMs: timeoutSeconds * 1000, renewEveryMs };
}

/** What the core must know. `bases`: the addresses in use, `config.exchange.baseUrls` or that of the embedded exchange. */
export function toCoreSettings(config: Config, bases: readonly string[]): CoreSettings {
  const { exchange, shard, liveness, shutdown, ping } = config;
  const own = new Set(config.markets.map(({ market }) => market));
  const pingMs = ping.everySeconds * 1000;
  return {
    markets: config.markets.map(toMarketSettings),
    nonce: exchange.nonce,
    bases,
    sameAccount: exchange.sameAccount,
    budget: budgetOf(exchange, shard),
    connections: exchange.connections,
    liveness: {
      mode: liveness.mode,
      ttlMs: liveness.ttlSeconds * 1000,
      startupGraceMs: liveness.startupGraceSeconds * 1000,
      onStale: liveness.onStale,
    },
    onLapse: config.onLapse,
    shutdown: { policy: shutdown.policy, budgetMs: shutdown.budgetSeconds * 1000 },
    ping: { everyMs: pingMs, timeoutMs: Math.min(pingMs, LONGEST_PING_MS) },
    cancellationDelayMs: exchange.cancellationDelaySeconds * 1000,
    requestLifetimeMs: exchange.requestLifetimeSeconds * 1000,
    elsewhere: config.fleet.filter(({ market }) => !own.has(market)),
  };
}

/** Stands for the name of a bot in `liveness.file` and `liveness.url`. */
export const BOT_PLACE = '{bot}';

export const fillInBot = (template: string, bot: string) => template.replaceAll(BOT_PLACE, () => bot);

/** The file of each bot with mode file, or its address with mode http. */
export function placesOfBots({ liveness, markets }: Config, key: 'file' | 'url') {
  const template = liveness[key] ?? '';
  return botsOf(markets).map((bot) => ({ bot, at: fillInBot(template, bot) }));
}

/** Each bot once, in the order of the markets. */
export const botsOf = (markets: readonly MarketConfig[]) => [...new Set(markets.map(({ bot }) => bot))];

/** The keys of the section that change nothing with a mode. */
export const MEANINGLESS_KEYS: Readonly<Record<LivenessMode, readonly (keyof Config['liveness'])[]>> = {
  beat: ['file', 'url', 'probeEverySeconds'],
  file: ['url'],
  http: ['file'],
  process: ['file', 'url'],
  none: ['file', 'url', 'probeEverySeconds', 'ttlSeconds', 'startupGraceSeconds', 'onStale'],
};

/** What a reload would do with the configuration in force and a new one that has no mistake. */
export function diffConfig(running: Config, next: Config) {
  const before = shapesOf(running.markets);
  const after = shapesOf(next.markets);
  const elsewhere = shapesOf(next.fleet);
  // Names of markets, each list in the order of the configuration that has them.
  const added = [...after.keys()].filter((market) => !before.has(market));
  // In timeout, order types, cadence or bot, also where a default made it so.
  const kept = [...after.keys()].filter((market) => before.has(market));
  const changed = kept.filter((market) => before.get(market) !== after.get(market));
  const gone = [...before.keys()].filter((market) => !after.has(market));
  const removed = gone.filter((market) => !elsewhere.has(market));
  // Another shard's from now on.
  const moved = gone.filter((market) => elsewhere.has(market));
  // Why it cannot be done: one sentence per key that cannot change while the daemon runs. Never a secret.
  const refusals = [...findUnchangeable(running, next), ...findRemoval(running, next, removed)];
  // Nothing differs that has an effect, secrets included. The order of markets has none.
  const same = refusals.length === 0 && isDeepStrictEqual(effectOf(running), effectOf(next));
  return { refusals, added, removed, moved, changed, same };
}

/** Everything of each market, as one text. Neither the order of markets nor that of types means anything. */
function shapesOf(markets: readonly MarketConfig[]): ReadonlyMap<string, string> {
  return new Map(
    markets.map((market) => [market.market, JSON.stringify({ ...market, types: market.types?.toSorted() })]),
  );
}

/** A file that lost most of its markets was probably cut off: their timers would be deleted. */
function findRemoval({ markets }: Config, next: Config, removed: readonly string[]): string[] {
  const isFew = removed.length <= 1 || removed.length * 2 <= markets.length;
  const refusal = `markets: ${removed.length} of ${markets.length} markets would be taken out: ${firstOf(removed)}; allowed: at most half of them at once; write reload: { allowRemoval: true } if that is meant`;
  return isFew || next.reload.allowRemoval ? [] : [refusal];
}

/** All that has an effect. Markets of other shards have: one may still be guarded here, and their bots are known here. */
function effectOf(config: Config) {
  const { secrets, control, notify } = config;
  const all = [secrets.apiKey, secrets.apiSecret, control.token, notify.url, notify.pingUrl];
  const revealed = all.map((secret) => secret?.reveal());
  return { ...said(config), defaults: null, markets: null, fleet: shapesOf(config.fleet), revealed };
}

/** What the configuration says, without the secrets and the name of its file. */
function said({ secrets: _secrets, file: _file, control, notify, ...rest }: Config) {
  const { token: _token, ...listening } = control;
  const { url: _url, pingUrl: _pingUrl, ...telling } = notify;
  return { ...rest, control: listening, notify: telling };
}

export const hashOf = (config: Config): string => hash('sha256', JSON.stringify(said(config)));

const keysOf = (section: 'exchange' | 'web' | 'control') =>
  Object.keys(FileSchema.properties[section].properties).map((key) => `${section}.${key}`);

/** Keys that take effect at start only. None of them holds a secret. */
const FIXED: readonly string[] = [
  'embeddedExchange',
  ...keysOf('exchange'),
  'shard.index',
  'shard.budget',
  'liveness.mode',
  ...keysOf('web'),
  ...keysOf('control'),
  'log.format',
];

function findUnchangeable(running: Config, next: Config): string[] {
  return FIXED.flatMap((path) => {
    const [was, found] = [valueAt(running, path), valueAt(next, path)];
    const key = path === 'embeddedExchange' ? '--embedded-exchange' : path;
    return was === found ? [] : [`${key}: runs with ${was}, found ${found}; restart to change it`];
  });
}

/** The value at a path as a sentence shows it. */
export function valueAt(config: Config, path: string): string {
  const value = path.split('.').reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], config);
  if (path === 'embeddedExchange') return value === true ? 'on' : 'off';
  return [value ?? []].flat().map(asText).join(', ') || 'none';
}

/** An address as it was written; any other value as it is. */
export const asText = (entry: unknown) => (isRecord(entry) ? entry['text'] : entry);

export const WHAT_A_STOP_DOES = {
  delete: 'deletes the timers',
  keep: 'leaves the timers to fire',
  handoff: 'renews the timers once more and leaves them to a successor',
} as const satisfies Record<Config['shutdown']['policy'], string>;

/** The answer time that is assumed before one was measured: commands and documents call it the round trip. */
export const ASSUMED_ROUND_TRIP_MS = 100;

/** For which round trip the promises hold where requests wait for each other; `how` ends the sentence. */
export const describePace = (roundTripMs: number, how = '') =>
  `Requests go out one after the other, because nonces are increasing. The times below hold for a round trip of ${roundTripMs.toFixed(0)} ms${how}.`;

/** The cadence that the rate limit and, with rising nonces, the round trip allow. `roundTripMs` null: not measured. */
export function cadenceAt(settings: CoreSettings, roundTripMs: number | null) {
  const assumedMs = settings.nonce === 'window' ? null : ASSUMED_ROUND_TRIP_MS;
  return planCadence(settings.markets, carriedPerSecond(settings, roundTripMs ?? assumedMs));
}

/** Why the markets of a shard cannot be renewed as often as they must be, whatever the round trip is. */
export function refuseCadence(exchange: Values['exchange'], shard: Values['shard'], fleet: Config['fleet']) {
  const carried = carriedPerSecond({ ...exchange, budget: budgetOf(exchange, shard) }, null);
  return planCadence(marketsOf(shard, fleet).map(toMarketSettings), carried).problems;
}

/** Warnings, without their full stops, where requests that go one after the other are too slow. */
export function warnOfPace(settings: CoreSettings, roundTripMs: number | null): string[] {
  const { markets, nonce, shutdown } = settings;
  if (nonce === 'window') return [];
  const { problems } = cadenceAt(settings, roundTripMs);
  const stopMs = markets.length * (roundTripMs ?? ASSUMED_ROUND_TRIP_MS);
  const warnings = problems.slice(0, 1).map((problem) => `exchange.nonce: increasing: ${problem}`);
  const slow = `shutdown.budgetSeconds: a stop writes ${markets.length} requests one after the other, which takes ${seconds(stopMs)}; ${seconds(shutdown.budgetMs)} leave timers armed; raise it`;
  return stopMs > shutdown.budgetMs && shutdown.policy !== 'keep' ? [...warnings, slow] : warnings;
}
