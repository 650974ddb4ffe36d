import type { OrderType } from './outcome.ts';

export interface MarketSettings {
  readonly market: string;
  /** Whole seconds 5 to 600, in milliseconds. */
  readonly timeoutMs: number;
  /** Null means all order types. */
  readonly types: readonly OrderType[] | null;
  /** Given where the configuration fixes the cadence; else null and the cadence follows from the timeout. */
  readonly renewEveryMs: number | null;
  readonly bot: string;
}

/** What a host does that is no faster than most, see `npm run bench`. */
export const LOOKS_PER_MS = 400;

/** Everything the core must know before its first step. Durations in milliseconds. */
export interface CoreSettings {
  readonly markets: readonly MarketSettings[];
  readonly nonce: 'increasing' | 'window';
  /** Base addresses; only the first is used for renewals unless `sameAccount`. */
  readonly bases: readonly string[];
  readonly sameAccount: boolean;
  /** Documented limit of the kill-switch operation times the share of it that this daemon may use. */
  readonly budget: { readonly requests: number; readonly windowMs: number };
  /** Most requests in flight at a time in nonce mode `window`. */
  readonly connections: number;
  readonly liveness: {
    readonly mode: 'none' | 'beat' | 'file' | 'http' | 'process';
    readonly ttlMs: number;
    readonly startupGraceMs: number;
    readonly onStale: 'expire' | 'trip';
  };
  readonly onLapse: 'rearm' | 'hold';
  readonly shutdown: { readonly policy: 'delete' | 'keep' | 'handoff'; readonly budgetMs: number };
  readonly ping: { readonly everyMs: number; readonly timeoutMs: number };
  /** Longest time that a timer may take to fire after its cancellationTime. */
  readonly cancellationDelayMs: number;
  /** Longest time that a written request can travel and still be carried out. */
  readonly requestLifetimeMs: number;
  /** Markets that other shards guard, and how long one that goes to another shard is still guarded here as well. */
  readonly handover: { readonly elsewhere: readonly MarketSettings[]; readonly forMs: number };
  /** Markets that the host looks at in a millisecond to find what is due: how long an order is gone by follows from it. */
  readonly looksPerMs: number;
  /** Seed of the deterministic jitter. */
  readonly seed: number;
}
