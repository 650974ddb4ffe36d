import { type CoreSettings, LOOKS_PER_MS } from '../core/settings.ts';
import { hashText } from '../util/hash.ts';
import type { Config, MarketConfig } from './config.ts';

/** Documented limit of the kill-switch operation. */
const DOCUMENTED_REQUESTS = 10_000;
const WINDOW_MS = 10_000;
/** A ping that takes longer says nothing about the route's health any more. */
const LONGEST_PING_MS = 3000;

/** How many requests in how many milliseconds this daemon may write: its share, or its shard's part of it. */
export function budgetOf(
  { budgetShare }: Pick<Config['exchange'], 'budgetShare'>,
  { index, count, budget }: Pick<Config['shard'], 'index' | 'count' | 'budget'>,
): CoreSettings['budget'] {
  // One that is not counted any more still hands its markets over.
  const parts = budget === 'shared' ? Math.max(count, index + 1) : 1;
  return {
    requests: Math.max(1, Math.floor((DOCUMENTED_REQUESTS * budgetShare) / parts)),
    windowMs: WINDOW_MS,
  };
}

/** Durations in milliseconds, as the core counts. */
export function toMarketSettings(market: MarketConfig): CoreSettings['markets'][number] {
  return {
    market: market.market,
    timeoutMs: market.timeoutSeconds * 1000,
    types: market.types,
    renewEveryMs: market.renewEverySeconds === null ? null : market.renewEverySeconds * 1000,
    bot: market.bot,
  };
}

/**
 * What the core must know. `bases` are the addresses in use: `config.exchange.baseUrls`, or that of the embedded
 * exchange. The seed follows from addresses and markets, so that a run can be repeated and two daemons differ.
 */
export function toCoreSettings(config: Config, bases: readonly string[]): CoreSettings {
  const { exchange, shard, liveness, shutdown, ping } = config;
  const own = new Set(config.markets.map(({ market }) => market));
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
    ping: {
      everyMs: ping.everySeconds * 1000,
      timeoutMs: Math.min(ping.everySeconds * 1000, LONGEST_PING_MS),
    },
    cancellationDelayMs: exchange.cancellationDelaySeconds * 1000,
    requestLifetimeMs: exchange.requestLifetimeSeconds * 1000,
    handover: {
      elsewhere: config.fleet.filter(({ market }) => !own.has(market)).map(toMarketSettings),
      forMs: 0,
    },
    looksPerMs: LOOKS_PER_MS,
    seed: hashText([...bases, ...config.markets.map(({ market }) => market)].join(' ')),
  };
}
