import type { Hold } from './notice.ts';
import type { OrderType } from './outcome.ts';

export const MARKET_STATES = [
  'arming',
  'armed',
  'retrying',
  'expired',
  'suspended',
  'disarmed',
  'paused',
  'rejected',
  'deleted',
] as const;
export type MarketPhase = (typeof MARKET_STATES)[number];

/**
 * One market, for people and machines to read. A view: each field is worked out when it is read, so that it can neither
 * be spread nor serialised as a whole. Durations in milliseconds, moments in Unix milliseconds.
 */
export interface MarketSnapshot {
  readonly market: string;
  readonly types: readonly OrderType[] | null;
  readonly bot: string;
  readonly state: MarketPhase;
  /** Should be armed now: not paused, not disarmed, its bot gives evidence. */
  readonly wanted: boolean;
  /** Why an operator, or a lapse, took it out of guard, and until when (Unix milliseconds; null: until armed). */
  readonly hold: { readonly why: Hold; readonly untilWallMs: number | null } | null;
  /** No longer configured; shown until its timer is gone. */
  readonly leaving: boolean;
  /** Another shard's, and guarded here as well for so much longer; null where it is this one's alone. */
  readonly handedOverInMs: number | null;
  readonly timeoutMs: number;
  readonly periodMs: number;
  /** Longest outage of the exchange that cancels nothing. */
  readonly survivesMs: number;
  /** Guaranteed armed for this long; 0 or less where the guarantee ran out; null where no timer was ever confirmed. */
  readonly guaranteedMs: number | null;
  /** Conservative expiry, Unix milliseconds; null where there is none (never armed, or deleted). */
  readonly expiryWallMs: number | null;
  /** Latest moment at which a timer that may exist fires, Unix milliseconds; null where surely none exists. */
  readonly firesByWallMs: number | null;
  /** The exchange's own cancellationTime of the last confirmation, Unix seconds. */
  readonly cancellationTime: number | null;
  readonly lastDurationMs: number | null;
  readonly lastSlackRatio: number | null;
  /** Slack ratios of the last confirmations, oldest first, at most 60. */
  readonly slackHistory: readonly number[];
  readonly renewals: number;
  readonly failures: number;
  readonly failureStreak: number;
  readonly lapses: number;
  readonly lastProblem: string | null;
  /** What a stop with the configured policy would do with this market's timer now, as a sentence. */
  readonly onStop: string;
  /** The promise for this market, see `promise.ts`. */
  readonly promise: readonly string[];
}

export interface BaseSnapshot {
  readonly url: string;
  readonly up: boolean | null;
  readonly pingMs: number | null;
  readonly lastProblem: string | null;
  readonly outage: boolean;
}

export interface BotSnapshot {
  readonly bot: string;
  readonly mode: string;
  readonly state: 'starting' | 'alive' | 'stale' | 'goodbye' | 'failed';
  readonly evidenceAgeMs: number | null;
  readonly ttlMs: number | null;
}

/**
 * The whole daemon. Which markets there are, and all that is not of one market, is of the moment it was taken; what a
 * market says is what is known of it when it is asked.
 */
export interface Snapshot {
  readonly phase: 'running' | 'stopping' | 'stopped';
  readonly ready: boolean;
  /** Why not ready, one sentence per reason; empty when ready. */
  readonly notReady: readonly string[];
  /** Why no market at all is wanted armed, in a sentence; null where one is. See `guarding.ts`. */
  readonly nothingGuarded: string | null;
  readonly live: boolean;
  readonly authorised: boolean;
  readonly shutdownPolicy: 'delete' | 'keep' | 'handoff';
  readonly markets: readonly MarketSnapshot[];
  readonly bases: readonly BaseSnapshot[];
  readonly bots: readonly BotSnapshot[];
  readonly capacityPerSecond: number;
  readonly cadenceFactor: number;
}
