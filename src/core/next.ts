import { mayRunOutAwakeMs, straysUntilMs } from './belief.ts';
import { LEAST_ATTEMPTS, ROUNDING_MS, SHORTEST_GAP_MS, TRIP_MS } from './promise.ts';
import { type BaseState, COALESCE_MS, type CoreState, type MarketState, type Write } from './state.ts';
import { clamp } from './time.ts';

/** An attempt may be this early: timers of a host fire up to a millisecond before their time. */
export const EARLY_MS = 1;
/** More attempts of one market than this on their way only add load. */
export const MOST_OPEN = 3;
/** Attempts for a market that has nothing left to save follow each other at this distance. */
export const UNPROTECTED_GAP_MS = 500;
/**
 * Half-open probes may follow each other faster than the attempts of one market: some may go to markets that are sick by
 * themselves, and must leave time for one that is well.
 */
const SHORTEST_PROBE_GAP_MS = 50;
/** An attempt without success is repeated after this share of the slack. */
const RETRY_SHARE = 1 / 4;
/** The same where others are answered. */
const SHARE_IN_PART = 1 / 16;
/** A refused market with nothing left to save is tried again rarely: exchanges lock keys that are refused too often. */
const LONGEST_PROBE_GAP_MS = 60_000;
/** The first gap between probes of what was good before. */
export const FIRST_PROBE_GAP_MS = 5000;
/** The share of its timeout that a timer of 5 s has left when it is due. Others have more where no period is stretched. */
const DUE_SHARE = 0.8;
/** Before an answer time was measured, attempts assume this one. Bounds and budget assume more, see `promise.ts`. */
const USUAL_ANSWER_MS = 100;
/** A delete is given this long to be carried out and answered. */
const DELETE_MS = 1000;

/** Sets when the market wants its next attempt. Nothing else sets it. */
export function schedule(state: CoreState, market: MarketState): void {
  market.nextMs = nextAttemptMs(state, market);
  lookAgainAt(state, market.nextMs);
}

/** Has the core woken by then, monotonic, to dispatch again. */
export function lookAgainAt(state: CoreState, monoMs: number): void {
  state.nextDueMs = Math.min(state.nextDueMs, monoMs);
}

/** Somebody wants an attempt now: an operator's command, or a new goal. */
export function askFor(state: CoreState, market: MarketState): void {
  market.askedMs = state.now.monoMs;
  schedule(state, market);
}

/**
 * An attempt now after trouble or a reload: a stall, the end of an outage, a good key, an answered ping. What is refused,
 * with nothing left to save, keeps to its rare probes.
 */
export function hurry(state: CoreState, market: MarketState): void {
  if (market.refusal.said === null || isSalvageable(state, market)) askFor(state, market);
}

/**
 * When the market wants its next attempt, in monotonic milliseconds; infinite where nothing is to be done. Whether an
 * attempt that is due may leave (lane, token, outage, refused key) is decided in `dispatch.ts`.
 */
function nextAttemptMs(state: CoreState, market: MarketState): number {
  const { goal, reached, askedMs, lastWrittenMs } = market;
  if (reached || goal === 'leave') return Number.POSITIVE_INFINITY;
  const isAsked = askedMs > Number.NEGATIVE_INFINITY;
  if (goal !== 'guard') {
    const dueMs = isAsked ? askedMs : lastWrittenMs + (refusedGapMs(state, market) ?? UNPROTECTED_GAP_MS);
    if (goal === 'renew-once') return dueMs;
    // The first trip leaves at once.
    if (goal === 'trip' && !isTripped(market)) return dueMs;
    const fromMs = noStraysFromMs(state, market, goal);
    return Math.max(dueMs, goal === 'delete' ? Math.min(fromMs, latestDeleteMs(state, market)) : fromMs);
  }
  if (isAsked) return market.staleNonces > 0 ? askedMs : Math.max(askedMs, lastWrittenMs + SHORTEST_GAP_MS);
  return lastWrittenMs + gapToNextMs(state, market);
}

/** The gap to the attempt after the last one: the cadence while all is well, else a share of the slack. */
function gapToNextMs(state: CoreState, market: MarketState): number {
  const { lastWrittenMs, streak, belief, settings } = market;
  const refusedMs = refusedGapMs(state, market);
  if (refusedMs !== null) return refusedMs;
  const slackNowMs = likelySlackMs(state, market);
  const slackThenMs = slackNowMs > 0 ? slackNowMs + (state.now.monoMs - lastWrittenMs) : 0;
  const newest = belief.writes.at(-1);
  const opensConnection = market.timedOut || market.openWrites.length > 1;
  const arrivesInMs = opensConnection
    ? 1.5 * (state.answerMs ?? USUAL_ANSWER_MS)
    : travelMs(state) + EARLY_MS;
  const share = failsInPart(state, market) ? SHARE_IN_PART : RETRY_SHARE;
  const retryMs = lastChanceMs(slackThenMs, retryGapMs(slackThenMs, share), arrivesInMs);
  // Another address may be well: the first failure is no reason to wait.
  const addresses = state.settings.sameAccount ? state.bases.length : 1;
  if (streak > 0 && streak < addresses) return Math.min(retryMs, SHORTEST_GAP_MS);
  if (streak > 0 || newest === undefined) return retryMs;
  const soonestMs = Math.min(
    gapOnGridMs(state, market, state.periodOf(market)),
    gapToCertaintyMs(market),
    shortTimerGapMs(market, slackNowMs),
  );
  // At most MOST_OPEN are open at once: those of a slow market are spread over its answer time, or over the timeout.
  const spreadMs = Math.min(answerTimeMs(state, market), settings.timeoutMs) / MOST_OPEN;
  const cadenceMs = Math.max(soonestMs, spreadMs);
  if (newest.status === 'confirmed') return cadenceMs;
  // Not before its answer is overdue is it a retry: a market that answers slowly is not always due.
  return Math.min(cadenceMs, Math.max(retryMs, 1.5 * answerTimeMs(state, market)));
}

/** The longest gap where a timer is much shorter than asked for, or confirmed late: it still gets three attempts. */
export function shortTimerGapMs({ settings }: MarketState, slackMs: number): number {
  const isShort = slackMs < settings.timeoutMs / 2;
  return isShort ? Math.max(1000, slackMs / LEAST_ATTEMPTS) : Number.POSITIVE_INFINITY;
}

/**
 * Does the market fail while others are answered? Then most likely a part of all requests fails, and each further one may
 * be the one that does not. What the exchange refuses, or throttles, is not tried more often, and half of the budget stays
 * for others.
 */
function failsInPart(state: CoreState, market: MarketState): boolean {
  const { staleNonces, refusal } = market;
  const isRefused = staleNonces > 0 || refusal.count > 0 || state.key.refusal.count > 0;
  const isScarce = state.cadenceFactor > 1 || state.tokens * 2 < state.settings.budget.requests;
  if (isRefused || isScarce || !hasFailed(state, market)) return false;
  return state.bases.some((base) => isAnswering(state, base));
}

/** How long the market's next answer takes, by its own last ones; before it had any, by those of the fastest market. */
export function answerTimeMs(state: CoreState, { answerMs }: MarketState): number {
  return answerMs ?? state.answerMs ?? 0;
}

/**
 * The gap after a confirmed renewal that a request of unknown outcome may still undo: to when none can any more. After a
 * start that is the same moment for every market, so that they are spread over half of a period.
 */
function gapToCertaintyMs({ belief, lastWrittenMs, offsetMs }: MarketState): number {
  if (belief.notBefore !== null) return Number.POSITIVE_INFINITY;
  let gapMs = 0;
  for (const { status, untilMs } of belief.writes)
    if (status === 'unknown') gapMs = Math.max(gapMs, untilMs + EARLY_MS + offsetMs / 2 - lastWrittenMs);
  return gapMs > 0 ? Math.max(gapMs, SHORTEST_GAP_MS) : Number.POSITIVE_INFINITY;
}

/**
 * The gap after an attempt without success: a share of the slack, so that attempts get denser as the deadline comes
 * near. Nobody knows when an outage ends, and of all gaps only the last one before the deadline costs time.
 */
function retryGapMs(slackMs: number, share = RETRY_SHARE, leastMs = SHORTEST_GAP_MS): number {
  return slackMs <= 0 ? UNPROTECTED_GAP_MS : clamp(slackMs * share, leastMs, 5000);
}

/**
 * Where only one more attempt fits before the deadline, it is placed at the last moment from which it still arrives in
 * time. One that opens a connection takes longer.
 */
function lastChanceMs(slackMs: number, gapMs: number, arrivesInMs: number): number {
  const lastMs = slackMs - arrivesInMs;
  return lastMs >= SHORTEST_GAP_MS && lastMs - gapMs < SHORTEST_GAP_MS ? lastMs : gapMs;
}

/** The gap between probes of a refused market with nothing left to save; null where the usual gap holds. */
function refusedGapMs(state: CoreState, market: MarketState): number | null {
  if (state.phase.kind === 'stopping' || (market.goal === 'guard' && isSalvageable(state, market)))
    return null;
  if (market.refusal.said === null) return null;
  // Its last request was not refused, and may have armed the timer: the refusal may be over.
  if (market.refusal.lastMs < market.lastWrittenMs && market.onTheirWay.length === 0) return null;
  return probeGapMs(market.lastWrittenMs - market.refusal.said.sinceMs, market.stats.renewals > 0);
}

/** The gap is as long as the refusal has lasted, from 5 s to a minute; a minute at once for what never was good. */
export function probeGapMs(refusedForMs: number, wasGood: boolean): number {
  return wasGood ? clamp(refusedForMs, FIRST_PROBE_GAP_MS, LONGEST_PROBE_GAP_MS) : LONGEST_PROBE_GAP_MS;
}

/**
 * The gap to the next point of the market's own grid, so that renewals that came in a burst spread again. Requests that
 * go one after the other would hold each other up if all were due together.
 */
function gapOnGridMs(state: CoreState, { lastWrittenMs, offsetMs }: MarketState, periodMs: number): number {
  const originMs = state.startedMs + offsetMs;
  const fromMs = lastWrittenMs + Math.min(SHORTEST_GAP_MS, periodMs / 8) - EARLY_MS;
  const pointMs = originMs + (Math.floor((fromMs - originMs) / periodMs) + 1) * periodMs;
  return pointMs - lastWrittenMs;
}

/** Was the timer cut, as far as the exchange said? Not any more once that one has surely fired. */
function isTripped({ belief }: MarketState): boolean {
  return belief.writes.some(({ purpose, status }) => purpose === 'trip' && status === 'confirmed');
}

/**
 * From when on the last delete or trip may be written, monotonic milliseconds; 0: at once. In a nonce window, and after a
 * change of the key, a renewal of unknown outcome may land behind it and undo it, and a trip behind a delete. A stop whose
 * budget ends before that does not wait, and reports the timer.
 */
export function noStraysFromMs(state: CoreState, market: MarketState, before: 'delete' | 'trip'): number {
  const straysMs = straysUntilMs(state, market, before);
  if (straysMs === 0) return 0;
  // An attempt may be written `EARLY_MS` before it is due.
  const untilMs = straysMs + EARLY_MS;
  const hasTime = state.phase.kind !== 'stopping' || untilMs < state.phase.budgetEndMs - DELETE_MS;
  return hasTime ? untilMs : 0;
}

/**
 * When a delete that waits for strays must leave at the latest: at once where the timer would run out meanwhile, and after
 * that before one which a stray may have armed behind it runs out. The last one follows when there are no strays left.
 */
function latestDeleteMs(state: CoreState, market: MarketState): number {
  const { armedUntilAwakeMs } = market;
  const untilAwakeMs = Math.min(armedUntilAwakeMs ?? Number.POSITIVE_INFINITY, mayRunOutAwakeMs(market));
  const runsOutMs = state.now.monoMs + untilAwakeMs - state.awakeMs;
  if (armedUntilAwakeMs === null) return runsOutMs - DELETE_MS;
  return runsOutMs < straysUntilMs(state, market, 'delete') + DELETE_MS ? 0 : Number.POSITIVE_INFINITY;
}

/** The slack. Where only a request of unknown outcome makes it doubtful, the slack without that request. */
function likelySlackMs(state: CoreState, market: MarketState): number {
  const { belief, armedUntilAwakeMs } = market;
  if (belief.notBefore !== null || belief.writes.at(-1)?.purpose !== 'renew') return state.slackMs(market);
  return armedUntilAwakeMs === null ? 0 : Math.max(0, armedUntilAwakeMs - state.awakeMs);
}

/** How long from now on a renewal may still save the timer. */
export function leftToSaveMs(state: CoreState, market: MarketState): number {
  const slack = likelySlackMs(state, market);
  // A step of the wall clock ended the guarantee, and most likely no time has passed: it must not wait behind the rest.
  return slack > travelMs(state) ? slack : state.awakeSlackMs(market);
}

/** Could a renewal that is written now still reach the exchange before the timer fires? */
export function isSalvageable(
  state: CoreState,
  market: MarketState,
  leftMs = leftToSaveMs(state, market),
): boolean {
  return leftMs > travelMs(state);
}

/**
 * When a renewal must leave to save the timer, monotonic, whatever becomes of the deletes and trips before it; infinite
 * where it cannot.
 */
export function lastMomentMs(state: CoreState, market: MarketState, before: readonly Write[]): number {
  if (market.goal !== 'guard') return Number.POSITIVE_INFINITY;
  const tripsMs = before.map(({ purpose, at }) =>
    purpose === 'trip' ? at.awakeMs + TRIP_MS - ROUNDING_MS : Number.POSITIVE_INFINITY,
  );
  const firesMs = Math.min(market.armedUntilAwakeMs ?? Number.POSITIVE_INFINITY, ...tripsMs);
  const leftMs = firesMs - state.awakeMs;
  const travelsMs = answerTimeMs(state, market) / 2 + SHORTEST_GAP_MS;
  return leftMs > 0 ? state.now.monoMs + Math.max(0, leftMs - travelsMs) : Number.POSITIVE_INFINITY;
}

/** Is this the second that rounding gives or takes? A renewal may still save the timer, and the next one may not. */
export function isInDoubt(state: CoreState, market: MarketState, leftMs: number): boolean {
  return (
    market.belief.notBefore !== null &&
    !isSalvageable(state, market, leftMs) &&
    isSalvageable(state, market, leftMs + ROUNDING_MS)
  );
}

/** How long the next attempt can wait and still save the timer; infinite where nothing can be saved. */
export function untilPressedMs(state: CoreState, market: MarketState): number {
  const leftMs = leftToSaveMs(state, market);
  if (!isSalvageable(state, market, leftMs)) return Number.POSITIVE_INFINITY;
  return leftMs - travelMs(state) - SHORTEST_GAP_MS;
}

/**
 * How long before the end of the guarantee a renewal must leave to save the timer. It reaches the exchange after about
 * half of the answer time. The timer stands up to a second longer than is guaranteed, which pays for half of that.
 */
function travelMs({ answerMs }: CoreState): number {
  return Math.min((answerMs ?? USUAL_ANSWER_MS) / 4, 500);
}

/**
 * Has this market itself met the outage: its last attempt failed, was given up, or is awaited for too long? One that
 * waits for a lane has met nothing yet.
 */
export function hasFailed(state: CoreState, market: MarketState): boolean {
  if (market.streak > 0) return true;
  const [oldest] = market.onTheirWay;
  return (
    oldest !== undefined && (oldest.status === 'abandoned' || state.unansweredMs(oldest) >= silentMs(state))
  );
}

/** A request that is unanswered for this long may have met a black hole. */
export function silentMs(state: CoreState): number {
  return Math.max(500, 8 * (state.answerMs ?? USUAL_ANSWER_MS));
}

/** Did the API itself answer over this address a moment ago? */
export function isAnswering(state: CoreState, { lastAnswerMs }: BaseState): boolean {
  return state.now.monoMs - lastAnswerMs < 2 * silentMs(state);
}

/** The earliest deadline that can still be met, also in the second of doubt, from now on; infinite where none can. */
function leastToSaveMs(state: CoreState): number {
  let leastMs = Number.POSITIVE_INFINITY;
  for (const market of state.markets) {
    if (market.goal !== 'guard') continue;
    const leftMs = leftToSaveMs(state, market);
    if (isSalvageable(state, market, leftMs)) leastMs = Math.min(leastMs, leftMs);
    else if (isInDoubt(state, market, leftMs)) leastMs = Math.min(leastMs, leftMs + ROUNDING_MS);
  }
  return leastMs;
}

/** The least slack that the shortest timer has when it is due. */
export function leastSlackMs({ markets }: CoreState): number {
  const leastMs = Math.min(...markets.map(({ settings }) => settings.timeoutMs));
  return leastMs * DUE_SHARE - ROUNDING_MS;
}

/** The gap between half-open probes: the one that the most urgent market would keep by itself, 0.5 s in a stop. */
export function gapToProbeMs(state: CoreState, probedMs: number): number {
  const leastMs = state.phase.kind === 'running' ? leastToSaveMs(state) : Number.POSITIVE_INFINITY;
  if (leastMs === Number.POSITIVE_INFINITY) return UNPROTECTED_GAP_MS;
  const thenMs = leastMs + (state.now.monoMs - probedMs);
  // Another market may be the one that is probed: its own renewal comes after the answer.
  const gapMs = retryGapMs(thenMs, RETRY_SHARE, SHORTEST_PROBE_GAP_MS);
  return lastChanceMs(thenMs, gapMs, 4 * (state.answerMs ?? USUAL_ANSWER_MS) + COALESCE_MS);
}

/**
 * The gap between probes of a refused key: that of the most urgent market while there is something to save, 5 s to a
 * minute after that, 0.5 s in a stop.
 */
export function gapToKeyProbeMs(state: CoreState): number {
  if (state.phase.kind === 'stopping') return UNPROTECTED_GAP_MS;
  const leastMs = leastToSaveMs(state);
  if (leastMs < Number.POSITIVE_INFINITY) return retryGapMs(leastMs);
  const { refusal, accepted } = state.key;
  return probeGapMs(state.now.monoMs - (refusal.said?.sinceMs ?? state.now.monoMs), accepted);
}
