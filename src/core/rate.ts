import type { CoreSettings } from './settings.ts';
import type { CoreState } from './state.ts';
import { clamp } from './time.ts';

/** Permits that renewals leave to deletes and to the most urgent renewal. */
const RESERVE = 0.02;

/** The longest that opening a connection is reckoned with; assumed before a round trip was measured. */
const LONGEST_CONNECT_MS = 500;
/** By so much the exchange's 10 s may be longer than ours: 200 ppm. */
const DRIFT_MS = 2;

/** A request may leave later than it was counted, while its connection is opened: the window is longer by it. */
function connectMs(roundTripMs: number | null): number {
  return (
    DRIFT_MS + (roundTripMs === null ? LONGEST_CONNECT_MS : clamp(2 * roundTripMs, 20, LONGEST_CONNECT_MS))
  );
}

/**
 * Renewals a second that the budget is planned to carry. A part stays free for retries and for arming again what
 * lapsed, or a full budget would never let a lapsed timer in: a fiftieth of a large budget, a tenth of a small one.
 * Null stands for a round trip that was not measured yet.
 */
export function plannedPerSecond(settings: CoreSettings, roundTripMs: number | null): number {
  const { requests, windowMs } = settings.budget;
  const free = clamp(5 / requests, 0.02, 0.1);
  return ((requests * (1 - free)) / (windowMs + connectMs(roundTripMs))) * 1000;
}

/** How many requests may still be written now without more than the budget in any sliding window. */
export function roomInWindow(state: CoreState): number {
  const { written, now } = state;
  const from = now.monoMs - state.settings.budget.windowMs - connectMs(state.roundTripMs);
  while (state.writtenHead < written.length && (written[state.writtenHead] ?? 0) <= from)
    state.writtenHead += 1;
  if (state.writtenHead > 4096 && state.writtenHead * 2 > written.length) {
    written.splice(0, state.writtenHead);
    state.writtenHead = 0;
  }
  return state.settings.budget.requests - (written.length - state.writtenHead);
}

/** Less than half of the budget is left: a renewal more than the cadence asks for would have others wait. */
export function isMostlyUsed(state: CoreState): boolean {
  return roomInWindow(state) * 2 < state.settings.budget.requests;
}

/** The part of the room that is kept back for deletes and for the head of the queue. */
export function reserved(state: CoreState): number {
  return Math.min(16, Math.ceil(state.settings.budget.requests * RESERVE));
}

/** When the window has room again, in monotonic milliseconds. */
export function roomAtMs(state: CoreState): number {
  return (
    (state.written[state.writtenHead] ?? state.now.monoMs) +
    state.settings.budget.windowMs +
    connectMs(state.roundTripMs)
  );
}

export function countWrite(state: CoreState): void {
  state.written.push(state.now.monoMs);
}

/** Throttled within the last seconds: retries keep a larger distance. */
export function isThrottled(state: CoreState): boolean {
  return state.now.monoMs - state.lastThrottledMs < 5000;
}
