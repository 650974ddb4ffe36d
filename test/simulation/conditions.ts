import type { Truth } from './court.ts';
import { FAULTS, type Fault, type FaultKind, type Plan, type PlannedMarket } from './plan.ts';

/** Faults that keep no request from succeeding, beside all of bots and those of reloads and operators. */
const HARMLESS: ReadonlySet<FaultKind> = new Set(['duplicate', 'new-budget', 'grants-less']);
const isOrder = ({ kind }: Fault) => /^(reload|operator)-/.test(kind);
const isHarmless = (fault: Fault) =>
  HARMLESS.has(fault.kind) || FAULTS[fault.kind] === 'bot' || isOrder(fault);
/** How long after its end a fault still shapes what the daemon does: latches, slower cadence, a nonce to find. */
const AFTERMATH_MS: Partial<Record<FaultKind, number>> = {
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
/** The largest share of a budget that cadences may use where outages are to be survived. */
const MOST_USED = 0.9;
const BUDGET_WINDOW_MS = 10_000;
/** Fewer are used up by the retries of one outage. */
const FEWEST_REQUESTS = 40;
/** What the retries of one market take of a budget: four a second, and what hangs counts in a second window as well. */
const MOST_RETRIES = 80;
/** The share of their time that requests one after the other take where every market keeps its cadence. */
const MOST_BUSY = 0.7;
/** The part of what connections could carry that is planned for; the rest is for retries. */
const MOST_CARRIED = 0.8;
/** The same where what is due leaves soon after. */
const LITTLE_BUSY = 0.3;

/**
 * How often a timer is renewed where nothing keeps it from that, as the configuration says: a tenth of its timeout from
 * 1 s to 10 s, and sooner between 10 and 25 s, where period, rounding and the last gap shall not cost more than 15 %.
 */
export function periodMs({ timeoutMs, renewEveryMs = null }: Timed): number {
  if (renewEveryMs !== null) return renewEveryMs;
  return Math.min(Math.max(1000, Math.min(timeoutMs / 10, timeoutMs * 0.15 - 1250)), 10_000);
}

interface Timed {
  readonly timeoutMs: number;
  readonly renewEveryMs?: number | null;
}

export function timedOf({ timeoutSeconds, renewEverySeconds }: PlannedMarket) {
  const renewEveryMs = renewEverySeconds === undefined ? null : renewEverySeconds * 1000;
  return { timeoutMs: timeoutSeconds * 1000, renewEveryMs };
}

/**
 * Can what is due leave soon after? Not where the budget is tight, several daemons get in each other's way, or requests
 * one after the other leave little room between them.
 */
export function hasRoom(plan: Plan): boolean {
  return plan.budgetRequests >= PLENTY_REQUESTS && keepsCadence(plan, LITTLE_BUSY);
}

/** Is there room for the cadence of every market, if not for all of them at once? */
function keepsCadence(plan: Plan, mostBusy = MOST_BUSY): boolean {
  const { budgetRequests, daemons, nonce, markets, faults } = plan;
  if (daemons.length > 1 || faults.some(({ kind }) => kind === 'new-budget')) return false;
  if (budgetRequests < leastBudget(markets)) return false;
  // A late answer keeps its part of the budget from others.
  if (budgetRequests < PLENTY_REQUESTS && faults.some(makesLate)) return false;
  const lanes = nonce === 'window' ? (plan.connections ?? 64) : 1;
  return laneMs(plan) * cadencePerMs(markets) <= mostBusy * lanes;
}

/** How long a request holds its connection: for longer where all answers come late, or overtake each other. */
function laneMs(plan: Plan): number {
  const { nonce, roundTripMs, faults } = plan;
  const mixing = faults.filter(
    ({ kind, target }) => target < 0 && (kind === 'reorder' || (nonce === 'window' && SLOW.has(kind))),
  );
  return roundTripMs + slowBaseMs(plan) + Math.max(0, ...mixing.map(({ sizeMs }) => sizeMs));
}

/** Renewals a millisecond that fit three into every timeout. */
export function leastPerMs(markets: readonly PlannedMarket[]): number {
  return markets.reduce((sum, { timeoutSeconds }) => sum + 3 / (timeoutSeconds * 1000), 0);
}

/** Renewals a millisecond that keep all timers at their cadence. */
export function cadencePerMs(markets: readonly PlannedMarket[]): number {
  return markets.reduce((sum, market) => sum + 1 / periodMs(timedOf(market)), 0);
}

/** The smallest budget that keeps the cadence of every market, and lets outages be survived. */
export function leastBudget(markets: readonly PlannedMarket[]): number {
  return Math.max(FEWEST_REQUESTS, Math.ceil((cadencePerMs(markets) * BUDGET_WINDOW_MS) / MOST_USED));
}

const THROTTLING: ReadonlySet<FaultKind> = new Set([
  'throttled-page',
  'throttled-json',
  'unacknowledged-page',
  'neighbour',
]);

/** Periods are longer for a while after the exchange has said that it is too much. */
export function isThrottling({ faults }: Plan): boolean {
  return faults.some(({ kind }) => THROTTLING.has(kind));
}

const SLOW: ReadonlySet<FaultKind> = new Set(['delay', 'slow-body']);

/**
 * The longest period that a market may be renewed at: its own, or a third of its timeout where the exchange says that it
 * is too much, or where answers that come late leave requests that go one after the other less room. Of a tight budget the
 * retries of sick markets take what their deadlines need, until the others have lost half of their time: not where it has
 * room for the cadence and for all of these retries.
 */
export function longestPeriods(plan: Plan): (market: Timed) => number {
  const struck = plan.faults.filter(({ kind, target }) => FAULTS[kind] === 'requests' && target >= 0);
  const retries = MOST_RETRIES * new Set(struck.map(({ target }) => target)).size;
  const needed = leastBudget(plan.markets) + retries;
  if (retries > 0 && plan.budgetRequests < Math.min(PLENTY_REQUESTS, needed))
    return ({ timeoutMs }) => timeoutMs / 2;
  const stretched = isThrottling(plan) || (plan.nonce === 'increasing' && plan.faults.some(makesLate));
  return keepsCadence(plan) && !stretched ? periodMs : ({ timeoutMs }) => timeoutMs / 3;
}
const LONGEST_ANSWER_MS = 4500;

export function makesLate({ kind }: Fault): boolean {
  return SLOW.has(kind) || kind === 'reorder' || kind === 'base-slow';
}

/** By how much all faults together may lengthen the answers to a market's requests; null for any market's. */
export function slowMs({ faults, markets }: Plan, market: string | null): number {
  let sum = 0;
  for (const { kind, target, sizeMs } of faults)
    if (SLOW.has(kind) && (target < 0 || markets[target]?.market === market)) sum += sizeMs;
  return sum;
}

/** An address that answers late and well keeps its requests, also where another one would be faster. */
function slowBaseMs({ faults }: Plan): number {
  return faults.reduce((most, { kind, sizeMs }) => (kind === 'base-slow' ? Math.max(most, sizeMs) : most), 0);
}

/** The longest answer time that lets no timer of the market lapse. */
export function bearableMs(plan: Plan, market: string): number {
  const planned = plan.markets.find((one) => one.market === market);
  if (planned === undefined) return 0;
  // A reload may cut its timeout.
  const reloads = plan.faults.filter(
    ({ kind, target }) => kind === 'reload-timeout' && plan.markets[target] === planned,
  );
  const leastMs = Math.min(planned.timeoutSeconds * 1000, ...reloads.map(({ sizeMs }) => sizeMs));
  const slackMs = leastMs - 1000 - periodMs(timedOf({ ...planned, timeoutSeconds: leastMs / 1000 }));
  if (plan.nonce === 'window') return Math.min(LONGEST_ANSWER_MS, 0.6 * slackMs);
  // One after the other: three renewals of every timer must find their time, and a part is for retries.
  return Math.min(LONGEST_ANSWER_MS, 0.3 * slackMs, 0.5 / leastPerMs(plan.markets) - plan.roundTripMs);
}

/** W: outages shorter than this lapse no timer of this length that is renewed so often. */
export function survivesMs(
  { roundTripMs }: Pick<Plan, 'roundTripMs'>,
  timeoutMs: number,
  everyMs: number,
  slow = 0,
): number {
  const tripMs = roundTripMs * 1.5 + slow;
  return timeoutMs - 1000 - everyMs - 4 * tripMs - LONGEST_GAP_MS - 250;
}

/**
 * Whether the promise "no false lapse" held its condition before a timer fired at `nowMs`: no stretch of faults that
 * this market feels, with what they leave behind, as long as W = T - 1 - P - d - g. A tight budget and several daemons
 * on one account make no promise.
 */
export function isUndisturbed(plan: Plan, truth: Truth, nowMs: number): boolean {
  const { market, timeoutMs, longestMs, changedMs } = truth;
  if (plan.budgetRequests < PLENTY_REQUESTS && !keepsCadence(plan)) return false;
  if (plan.daemons.length > 1) return false;
  const inForceMs = longestPeriods(plan)(truth);
  // While a timer changes its length, what it survives is not said; it lapses by no fault of the change.
  const survivedMs =
    changedMs > nowMs - longestMs - UNSEEN_MS
      ? 1
      : survivesMs(plan, timeoutMs, inForceMs, slowMs(plan, market) + slowBaseMs(plan));
  const feltMs = longestFeltMs(plan, market, nowMs - longestMs - 1000, nowMs);
  if (!isScarce(plan)) return feltMs < survivedMs;
  // Then periods come out longer, and after an outage each market waits for those before it. Where the shortest timer
  // finds no time at all, its tries take that of the others. What somebody orders takes a connection for an answer.
  const shortestMs = Math.min(...plan.markets.map((one) => one.timeoutSeconds * 1000));
  const everyMs = (shortestMs / 3) * overloadOf(plan);
  const answers = plan.faults.some(isOrder) ? 2 : 1;
  return feltMs === 0 && shortestMs - 1000 - everyMs - answers * laneMs(plan) - 250 > 0;
}

/** Can connections not carry three renewals of every timer? */
export function isScarce(plan: Plan): boolean {
  return plan.nonce === 'window' && overloadOf(plan) > 1;
}

function overloadOf({ connections = 64, ...plan }: Plan): number {
  return (laneMs(plan) * leastPerMs(plan.markets)) / (MOST_CARRIED * connections);
}

function longestFeltMs(plan: Plan, market: string, fromMs: number, toMs: number): number {
  const felt = plan.faults
    .filter((fault) => isFelt(plan, fault, market))
    .flatMap((fault) => partsOf(plan, fault));
  return longestStretchMs(felt, fromMs, toMs);
}

/** Does no fault that this market feels, with what it leaves behind, touch the time between the two moments? */
export const isQuiet = (...asked: Parameters<typeof longestFeltMs>) => longestFeltMs(...asked) === 0;

/** The times at which the fault leaves no address that works: one of two keeps no renewal from succeeding. */
function partsOf(plan: Plan, fault: Fault): readonly Fault[] {
  if (FAULTS[fault.kind] !== 'base' || plan.bases < 2) return [fault];
  return plan.faults
    .filter((other) => FAULTS[other.kind] === 'base' && other.target !== fault.target)
    .flatMap((other) => {
      const atMs = Math.max(fault.atMs, other.atMs);
      const toMs = Math.min(
        fault.atMs + fault.forMs + tailMs(fault),
        other.atMs + other.forMs + tailMs(other),
      );
      return toMs > atMs ? [{ ...fault, atMs, forMs: toMs - atMs }] : [];
    });
}

/**
 * Can the fault keep renewals of this market from succeeding? Not where it strikes the requests of another one
 * (invariant 12).
 */
function isFelt(plan: Plan, { kind, target }: Fault, market: string): boolean {
  if (SLOW.has(kind) && slowMs(plan, market) <= bearableMs(plan, market)) return false;
  // It makes evidence, and the nonces of a window, doubtful for a while. Nothing else that a timer needs goes by it.
  if (kind === 'wall-step') return plan.watched || plan.nonce === 'window';
  if (FAULTS[kind] !== 'requests' || target < 0 || FELT_BY_ALL.has(kind)) return true;
  return plan.markets[target]?.market === market;
}

/** The longest stretch of faults that touches the time between the two moments; stretches that are close are one. */
export function longestStretchMs(faults: readonly Fault[], fromMs: number, toMs: number): number {
  const bad = faults
    .filter((fault) => !isHarmless(fault))
    .map((fault) => ({ fromMs: fault.atMs, toMs: fault.atMs + fault.forMs + tailMs(fault) }))
    .filter((stretch) => stretch.toMs >= fromMs && stretch.fromMs <= toMs)
    .toSorted((one, other) => one.fromMs - other.fromMs);
  let longest = 0;
  let open = { fromMs: 0, toMs: Number.NEGATIVE_INFINITY };
  for (const stretch of bad) {
    if (stretch.fromMs > open.toMs + UNSEEN_MS) open = stretch;
    else open.toMs = Math.max(open.toMs, stretch.toMs);
    longest = Math.max(longest, open.toMs - open.fromMs);
  }
  return longest;
}

function tailMs({ kind, sizeMs }: Fault): number {
  const delays = kind === 'delay' || kind === 'slow-body' || kind === 'reorder';
  return (AFTERMATH_MS[kind] ?? 0) + (delays ? sizeMs : 0);
}
