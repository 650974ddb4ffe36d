import type { Config, MarketConfig } from './config.ts';
import type { Secret } from './secrets.ts';

/** What a reload would do. */
export interface ConfigDiff {
  /** Why it cannot be done: one sentence per key that cannot change while the daemon runs. Never a secret. */
  readonly refusals: readonly string[];
  /** Names of markets, each list in the order of the configuration that has them. */
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Markets of this daemon that are another shard's from now on. */
  readonly moved: readonly string[];
  /** Markets whose timeout, order types, cadence or bot differs, also where a default made it so. */
  readonly changed: readonly string[];
  /** Nothing differs that has an effect, secrets included. The order of markets has none. */
  readonly same: boolean;
}

/**
 * Compares the configuration in force with a new one that is right in itself. What listens, what is counted and what
 * was promised at start stays as it is: exchange, liveness mode, listeners and log format.
 */
export function diffConfig(running: Config, next: Config): ConfigDiff {
  const before = new Map(running.markets.map((market) => [market.market, market]));
  const after = new Set(next.markets.map(({ market }) => market));
  const added: string[] = [];
  const changed: string[] = [];
  for (const market of next.markets) {
    const known = before.get(market.market);
    if (known === undefined) added.push(market.market);
    else if (shapeOf(known) !== shapeOf(market)) changed.push(market.market);
  }
  const elsewhere = new Set(next.fleet.map(({ market }) => market));
  const gone = running.markets.map(({ market }) => market).filter((market) => !after.has(market));
  const removed = gone.filter((market) => !elsewhere.has(market));
  const moved = gone.filter((market) => elsewhere.has(market));
  const refusals = [...findUnchangeable(running, next), ...findRemoval(running, next, removed)];
  const same =
    [refusals, added, removed, moved, changed].every(({ length }) => length === 0) &&
    JSON.stringify(changeableOf(running)) === JSON.stringify(changeableOf(next)) &&
    isSameSecret(running.secrets.apiKey, next.secrets.apiKey) &&
    isSameSecret(running.secrets.apiSecret, next.secrets.apiSecret) &&
    isSameSecret(running.control.token, next.control.token);
  return { refusals, added, removed, moved, changed, same };
}

/** A file that lost most of its markets is rather cut off than meant: their timers would be deleted. */
function findRemoval({ markets }: Config, next: Config, removed: readonly string[]): string[] {
  const isFew = removed.length <= 1 || removed.length * 2 <= markets.length;
  if (isFew || next.reload.allowRemoval) return [];
  const names = `${removed.slice(0, 5).join(', ')}${removed.length > 5 ? ', ...' : ''}`;
  return [
    `markets: ${removed.length} of ${markets.length} markets would be taken out: ${names}; allowed: at most half of them at once; write reload: { allowRemoval: true } if that is meant`,
  ];
}

/** Everything of a market but its name, as one text. The order of its types means nothing. */
function shapeOf({ timeoutSeconds, types, renewEverySeconds, bot }: MarketConfig): string {
  return JSON.stringify([timeoutSeconds, types === null ? null : [...types].sort(), renewEverySeconds, bot]);
}

/** What may change beside the markets and the secrets, in one order for both sides. */
function changeableOf(config: Config): unknown[] {
  const { markets, fleet, shard, liveness, onLapse, shutdown, ping, reload, log } = config;
  const own = new Set(markets.map(({ market }) => market));
  return [
    [liveness.file, liveness.url, liveness.probeEverySeconds],
    [liveness.ttlSeconds, liveness.startupGraceSeconds, liveness.onStale],
    [onLapse, shutdown.policy, shutdown.budgetSeconds],
    [ping.everySeconds, reload.pollSeconds, reload.allowRemoval, log.level],
    [shard.count, shard.handoverSeconds],
    // Those of other shards: one may still be guarded here, and their bots are known here.
    fleet
      .filter(({ market }) => !own.has(market))
      .map((market) => `${market.market} ${shapeOf(market)}`)
      .sort(),
  ];
}

function isSameSecret(one: Secret | null, other: Secret | null): boolean {
  return one?.reveal() === other?.reveal();
}

type Fixed = readonly [key: string, value: (config: Config) => string];

const listOf = (entries: readonly string[]) => (entries.length === 0 ? 'none' : entries.join(', '));

/** Keys that take effect at start only. None of them holds a secret. */
const FIXED: readonly Fixed[] = [
  ['--embedded-exchange', ({ embeddedExchange }) => (embeddedExchange ? 'on' : 'off')],
  ['exchange.baseUrls', ({ exchange }) => listOf(exchange.baseUrls)],
  ['exchange.sameAccount', ({ exchange }) => String(exchange.sameAccount)],
  ['exchange.nonce', ({ exchange }) => exchange.nonce],
  ['exchange.budgetShare', ({ exchange }) => String(exchange.budgetShare)],
  ['exchange.connections', ({ exchange }) => String(exchange.connections)],
  ['exchange.cancellationDelaySeconds', ({ exchange }) => String(exchange.cancellationDelaySeconds)],
  ['exchange.requestLifetimeSeconds', ({ exchange }) => String(exchange.requestLifetimeSeconds)],
  ['shard.index', ({ shard }) => String(shard.index)],
  ['shard.budget', ({ shard }) => shard.budget],
  ['liveness.mode', ({ liveness }) => liveness.mode],
  ['web.listen', ({ web }) => listOf(web.listen.map(({ text }) => text))],
  ['control.listen', ({ control }) => listOf(control.listen.map(({ text }) => text))],
  ['control.access', ({ control }) => control.access],
  ['control.tokenFile', ({ control }) => control.tokenFile ?? 'none'],
  ['log.format', ({ log }) => log.format],
];

function findUnchangeable(running: Config, next: Config): string[] {
  return FIXED.flatMap(([key, value]) => {
    const [was, found] = [value(running), value(next)];
    return was === found ? [] : [`${key}: runs with ${was}, found ${found}; restart to change it`];
  });
}
