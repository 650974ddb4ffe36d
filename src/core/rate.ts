import type { CoreSettings } from './settings.ts';
import type { CoreState } from './state.ts';
import { clamp } from './time.ts';

/** Permits that renewals leave to deletes and to the most urgent renewal. */
const RESERVE = 0.02;

/** A round trip is reckoned with as if a connection had to be opened for it: with this at most, or before it was measured. */
const LONGEST_CONNECT_MS = 500;
/** By so much the exchange's 10 s may be longer than ours: 200 ppm. */
const DRIFT_MS = 2;

/** How much longer than the window a request counts: it does so from when it is written until a window after its answer. */
function underWayMs(roundTripMs: number | null): number {
  if (roundTripMs === null) return DRIFT_MS + LONGEST_CONNECT_MS;
  return DRIFT_MS + Math.max(roundTripMs, clamp(2 * roundTripMs, 20, LONGEST_CONNECT_MS));
}

/**
 * Renewals a second that the budget is planned to carry. A part stays free for retries and for arming again what
 * lapsed, or a full budget would never let a lapsed timer in: a fiftieth of a large budget, a tenth of a small one.
 * Null stands for a round trip that was not measured yet.
 */
export function plannedPerSecond(
  { budget: { requests, windowMs } }: Pick<CoreSettings, 'budget'>,
  roundTripMs: number | null,
): number {
  const free = clamp(5 / requests, 0.02, 0.1);
  return ((requests * (1 - free)) / (windowMs + underWayMs(roundTripMs))) * 1000;
}

/** Requests a second that the budget allows where they are spread evenly. */
export function fullPerSecond({
  settings,
  roundTripMs,
}: Pick<CoreState, 'settings' | 'roundTripMs'>): number {
  const { requests, windowMs } = settings.budget;
  return (requests * 1000) / (windowMs + underWayMs(roundTripMs));
}

/**
 * How many requests may still be written now without more than the budget in any sliding window of the exchange. Nobody
 * knows when it counted one: at any time between the write and the answer.
 */
export function roomInWindow(state: CoreState): number {
  const { settled, now } = state;
  const from = now.monoMs - state.settings.budget.windowMs - DRIFT_MS;
  while (state.settledHead < settled.length && (settled[state.settledHead] ?? 0) <= from)
    state.settledHead += 1;
  if (state.settledHead > 4096 && state.settledHead * 2 > settled.length) {
    settled.splice(0, state.settledHead);
    state.settledHead = 0;
  }
  return state.settings.budget.requests - state.underWay - (settled.length - state.settledHead);
}

/** The part of the room that is kept back for deletes and for the head of the queue. */
export function reserved(state: CoreState): number {
  return Math.min(16, Math.ceil(state.settings.budget.requests * RESERVE));
}

/** When the window has room again, in monotonic milliseconds. */
export function roomAtMs(state: CoreState): number {
  return (state.settled[state.settledHead] ?? state.now.monoMs) + state.settings.budget.windowMs + DRIFT_MS;
}

export function countWrite(state: CoreState): void {
  state.underWay += 1;
}

/** The request was answered, or is waited for no longer. */
export function countSettled(state: CoreState): void {
  state.underWay -= 1;
  state.settled.push(state.now.monoMs);
}

/** Throttled within the last seconds: retries keep a larger distance. */
export function isThrottled(state: CoreState): boolean {
  return state.now.monoMs - state.lastThrottledMs < 5000;
}
