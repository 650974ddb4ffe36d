import { fullPerSecond } from './rate.ts';
import type { CoreState } from './state.ts';

/**
 * The pace of what has time. A budget counts requests in a sliding window: whoever spends it in one burst, as ten
 * thousand markets do that are armed at once, writes nothing for the rest of the window, and bursts again at its end,
 * for ever. So what does not press leaves to the planned renewals what they need: it may burst by what the budget has
 * beyond them, and goes on as fast as the window forgets.
 */
export interface Pace {
  /** Requests that may leave at once; less than 0 after a burst of what pressed. */
  credit: number;
  /** Until when the credit was counted, monotonic milliseconds. */
  atMs: number;
  /** Renewals a second that the periods of all markets ask for. */
  neededPerSecond: number;
}

/** The most that may leave at once: what the planned renewals leave of the budget, and one request at least. */
function mostCredit(state: CoreState): number {
  const { requests } = state.settings.budget;
  return Math.max(1, requests * (1 - state.pace.neededPerSecond / fullPerSecond(state)));
}

/** How many requests that have time may leave now. */
export function paceAllows(state: CoreState): number {
  const { pace, now } = state;
  pace.credit += ((now.monoMs - pace.atMs) * fullPerSecond(state)) / 1000;
  pace.credit = Math.min(pace.credit, mostCredit(state));
  pace.atMs = now.monoMs;
  return Math.floor(pace.credit + 1e-6);
}

/** When the next one may leave, monotonic milliseconds. Asked where `paceAllows` said none. */
export function paceAllowsAtMs(state: CoreState): number {
  const { pace } = state;
  return pace.atMs + ((1 - pace.credit) * 1000) / fullPerSecond(state);
}

/** A request was written, whatever it was for. */
export function countPace({ pace, settings }: CoreState): void {
  pace.credit = Math.max(-settings.budget.requests, pace.credit - 1);
}
