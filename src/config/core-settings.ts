import type { CoreSettings } from '../core/settings.ts';
import type { Config, MarketConfig } from './config.ts';

/** Documented limit of the kill-switch operation. */
const DOCUMENTED_REQUESTS = 10_000;
const WINDOW_MS = 10_000;
/** A ping that takes longer says nothing about the route's health any more. */
const LONGEST_PING_MS = 3000;

/** How many requests in how many milliseconds a share of the documented limit allows. */
export function budgetOf(share: number): CoreSettings['budget'] {
  return { requests: Math.floor(DOCUMENTED_REQUESTS * share), windowMs: WINDOW_MS };
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
  const { exchange, liveness, shutdown, ping } = config;
  return {
    markets: config.markets.map(toMarketSettings),
    nonce: exchange.nonce,
    bases,
    sameAccount: exchange.sameAccount,
    budget: budgetOf(exchange.budgetShare),
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
    seed: hash([...bases, ...config.markets.map(({ market }) => market)].join(' ')),
    flaw: null,
  };
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  return value >>> 0;
}
