import { periodOf } from '../../src/core/settle.ts';
import { planCadence } from '../../src/core/timing.ts';
import type { Incarnation, Truth } from './court.ts';
import { FAULTS, type Fault, type FaultKind, type Plan, type PlannedMarket } from './plan.ts';

/** Faults that keep no request from succeeding. */
const HARMLESS: ReadonlySet<FaultKind> = new Set([
  'limiter-stuck',
  'bot-silent',
  'bot-goodbye',
  'bot-fails',
  'bot-flaps',
  'duplicate',
  'reload-timeout',
  'reload-remove',
  'reload-moves',
  'operator-pauses',
  'operator-disarms',
  'operator-trips',
]);
/** How long after its end a fault still shapes what the daemon does: latches, slower cadence, a nonce to find. */
const AFTERMATH_MS: Partial<Record<FaultKind, number>> = {
  unauthorised: 70_000,
  forbidden: 70_000,
  'bad-request': 70_000,
  'throttled-page': 60_000,
  'unacknowledged-page': 60_000,
  neighbour: 60_000,
  'throttled-json': 5_000,
  'wall-step': 5_000,
};
/** What one market is told about the key, or about the limit, concerns all of them. */
const FELT_BY_ALL: ReadonlySet<FaultKind> = new Set([
  'unauthorised',
  'forbidden',
  'throttled-page',
  'unacknowledged-page',
  'throttled-json',
]);
/** A good stretch shorter than this may pass between two attempts: the longest gap of retries, and a round trip. */
const UNSEEN_MS = 6_000;
const LONGEST_GAP_MS = 250;
/** With a smaller budget whatever is due may have to wait for room. */
export const PLENTY_REQUESTS = 1000;
/** The share of their time that requests one after the other take where they leave room. */
const LITTLE_BUSY = 0.3;

/** How often each market is renewed where nothing keeps it from that; milliseconds. */
export function periodsOf(markets: readonly PlannedMarket[]): readonly number[] {
  const cadenced = markets.map(({ market, timeoutSeconds }) => ({
    market,
    timeoutMs: timeoutSeconds * 1000,
    renewEveryMs: null,
  }));
  return planCadence(cadenced, Number.POSITIVE_INFINITY).periodsMs;
}

/**
 * Can what is due leave soon after? Not where the budget is tight, several daemons get in each other's way, or requests
 * one after the other leave little room between them.
 */
export function hasRoom({ budgetRequests, daemons, nonce, markets, roundTripMs }: Plan): boolean {
  if (budgetRequests < PLENTY_REQUESTS || daemons.length > 1) return false;
  const perMs = periodsOf(markets).reduce((sum, periodMs) => sum + 1 / periodMs, 0);
  return nonce === 'window' || roundTripMs * perMs <= LITTLE_BUSY;
}

/** W: outages shorter than this lapse no timer of this length that is renewed so often. */
export function survivesMs(
  { roundTripMs, nonce, markets }: Pick<Plan, 'roundTripMs' | 'nonce' | 'markets'>,
  timeoutMs: number,
  periodMs: number,
): number {
  const tripMs = roundTripMs * 1.5;
  const queueMs = (nonce === 'increasing' ? markets.length : 1) * tripMs;
  return timeoutMs - 1000 - periodMs - 3 * tripMs - queueMs - LONGEST_GAP_MS - 250;
}

/**
 * Whether the promise "no false lapse" held its condition before a timer fired at `nowMs`: no stretch of faults that
 * this market feels, with what they leave behind, as long as W = T - 1 - P - d - g. A tight budget and several daemons
 * on one account make no promise.
 */
export function isUndisturbed(
  plan: Plan,
  incarnation: Incarnation,
  { market, timeoutMs, longestMs, changedMs }: Truth,
  nowMs: number,
): boolean {
  if (plan.budgetRequests < PLENTY_REQUESTS || plan.daemons.length > 1) return false;
  const { state } = incarnation.keeper;
  const own = state.byName.get(market);
  if (own === undefined) return false;
  const felt = plan.faults.filter((fault) => isFelt(plan, fault, market));
  // While a timer changes its length, what it survives is not said; it lapses by no fault of the change.
  const changing = changedMs > nowMs - longestMs - UNSEEN_MS;
  return (
    longestStretchMs(felt, nowMs - longestMs - 1000, nowMs) <
    (changing ? 1 : survivesMs(plan, timeoutMs, periodOf(state, own)))
  );
}

/** Does no fault that this market feels, with what it leaves behind, touch the time between the two moments? */
export function isQuiet(plan: Plan, market: string, fromMs: number, toMs: number): boolean {
  const felt = plan.faults.filter((fault) => isFelt(plan, fault, market));
  return longestStretchMs(felt, fromMs, toMs) === 0;
}

/**
 * Can the fault keep renewals of this market from succeeding? Not where it strikes the requests of another one
 * (invariant 12), nor one of two base addresses while the other works.
 */
function isFelt(plan: Plan, { kind, target }: Fault, market: string): boolean {
  // It makes evidence, and the nonces of a window, doubtful for a while. Nothing else that a timer needs goes by it.
  if (kind === 'wall-step') return plan.watched || plan.nonce === 'window';
  if (FAULTS[kind] === 'base') {
    const others = plan.faults.some((other) => FAULTS[other.kind] === 'base' && other.target !== target);
    return plan.bases < 2 || others;
  }
  if (FAULTS[kind] !== 'requests' || target < 0 || FELT_BY_ALL.has(kind)) return true;
  return plan.markets[target]?.market === market;
}

/** The longest stretch of faults that touches the time between the two moments; stretches that are close are one. */
export function longestStretchMs(faults: readonly Fault[], fromMs: number, toMs: number): number {
  const bad = faults
    .filter(({ kind }) => !HARMLESS.has(kind))
    .map((fault) => ({ fromMs: fault.atMs, toMs: fault.atMs + fault.forMs + tailMs(fault) }))
    .filter((stretch) => stretch.toMs >= fromMs && stretch.fromMs <= toMs)
    .toSorted((one, other) => one.fromMs - other.fromMs);
  let longest = 0;
  let open: { fromMs: number; toMs: number } | null = null;
  for (const stretch of bad) {
    if (open !== null && stretch.fromMs <= open.toMs + UNSEEN_MS) {
      open.toMs = Math.max(open.toMs, stretch.toMs);
    } else {
      open = { ...stretch };
    }
    longest = Math.max(longest, open.toMs - open.fromMs);
  }
  return longest;
}

function tailMs({ kind, sizeMs }: Fault): number {
  const delays = kind === 'delay' || kind === 'slow-body' || kind === 'reorder';
  return (AFTERMATH_MS[kind] ?? 0) + (delays ? sizeMs : 0);
}
