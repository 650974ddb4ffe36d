import type { Incarnation } from './incarnation.ts';
import { type Plan, REQUEST_LIFETIME_MS } from './plan.ts';

/** What is true of one market's timer at the exchange, as only the simulation can know it. True milliseconds. */
export interface Truth {
  readonly market: string;
  /** As it is configured now, the longest that it ever was, and since when it is what it is. */
  timeoutMs: number;
  longestMs: number;
  changedMs: number;
  readonly bot: number;
  /** Whose renewal made the timer that is armed now; null for somebody else's, or where none is armed. */
  owner: Incarnation | null;
  /** When the armed timer fires; null where none is armed. */
  firesMs: number | null;
  /** cancellationTime of every timer that fired, Unix seconds. */
  readonly fired: number[];
  /** When the last one did. */
  lastFiredMs: number;
  /** The exchange lied, forgot or was changed by others: until the end of this no belief about it can be sound. */
  brokenAtMs: number;
  brokenUntilMs: number;
}

/** The truth of every market, in the order of the plan. */
export function createTruths({ markets }: Plan): readonly Truth[] {
  return markets.map(({ market, timeoutSeconds, bot }) => ({
    market,
    timeoutMs: timeoutSeconds * 1000,
    longestMs: timeoutSeconds * 1000,
    changedMs: Number.NEGATIVE_INFINITY,
    bot,
    owner: null,
    firesMs: null,
    fired: [],
    lastFiredMs: Number.NEGATIVE_INFINITY,
    brokenAtMs: Number.NEGATIVE_INFINITY,
    brokenUntilMs: 0,
  }));
}

/** The market is configured with another timeout from now on. */
export function changeTimeout(truth: Truth, timeoutMs: number, nowMs: number): void {
  truth.timeoutMs = timeoutMs;
  truth.longestMs = Math.max(truth.longestMs, timeoutMs);
  truth.changedMs = nowMs;
}

export function breakTruth(truth: Truth, nowMs: number): void {
  truth.brokenAtMs = nowMs;
  truth.brokenUntilMs = nowMs + 2 * truth.longestMs + REQUEST_LIFETIME_MS;
}
