import type { Certainty } from './notice.ts';
import type { ServerTimer } from './outcome.ts';
import { ROUNDING_MS } from './promise.ts';
import { type Attempt, awakeMs, type Belief, type CoreState, type MarketState } from './state.ts';

/** Clocks of two hosts drift apart by at most this share: belief gives it away on both sides. */
const DRIFT = 200e-6;

/** What one confirmation says about the time before it. */
export interface Confirmation {
  /** Null where the timer was alive all along. */
  readonly lapse: Certainty | null;
  /** Renewals of unknown outcome that could have bridged the gap. */
  readonly unresolved: number;
  /** How the exchange's answer differs from what was asked for; null where it does not. */
  readonly altered: string | null;
  /** A newer attempt had already been confirmed: nothing to learn but the upper end. */
  readonly stale: boolean;
}

/**
 * A request is about to be written: from here on a timer may exist that fires as late as the request's lifetime plus
 * its timeout from now. Nothing is gained for the lower end before a confirmation arrives; what ends or shortens the
 * timer may do so any time from now.
 */
export function believeWritten(state: CoreState, attempt: Attempt): void {
  const { market } = attempt;
  const { belief } = market;
  if (attempt.purpose === 'delete') {
    loseGuarantee(market);
    return;
  }
  // A trip, or the first renewal with a shorter timeout, may cut the timer the moment it arrives.
  believeCut(state, belief, attempt.writtenLifeMs, attempt.timeoutMs);
  resolveUpperEnd(state, market);
}

/** The latest firing of anything that was confirmed, is under way, or may still land. */
function resolveUpperEnd(state: CoreState, market: MarketState): void {
  const { belief } = market;
  const rising = state.settings.nonce === 'increasing';
  const ends: number[] = [];
  if (belief.confirmedUntilMs !== null) ends.push(belief.confirmedUntilMs);
  if (belief.strayUntilMs > 0) ends.push(belief.strayUntilMs + lastsAtMost(state, belief.strayLongestMs));
  for (const attempt of market.inFlight) {
    // With rising nonces an accepted one fences every earlier one: it is refused when it arrives.
    const fenced = rising && attempt.id < belief.lastAppliedId;
    if (attempt.purpose !== 'delete' && !fenced) ends.push(latestOf(state, attempt));
  }
  belief.notAfterMs = ends.length === 0 ? null : Math.max(...ends);
}

function believeUntil(state: CoreState, belief: Belief, untilLifeMs: number): void {
  belief.notBeforeLifeMs = untilLifeMs;
  belief.notBeforeAwakeMs = awakeMs(state) + (untilLifeMs - state.lifeMs);
  state.guardedUntilAwakeMs = Math.min(state.guardedUntilAwakeMs, belief.notBeforeAwakeMs);
}

/** Something that was written, or may land, from `fromLifeMs` on leaves a timer of only `timeoutMs`. */
function believeCut(state: CoreState, belief: Belief, fromLifeMs: number, timeoutMs: number): void {
  if (belief.notBeforeLifeMs === null) return;
  const leastLifeMs = fromLifeMs + (timeoutMs - ROUNDING_MS) * (1 - DRIFT);
  if (leastLifeMs < belief.notBeforeLifeMs) believeUntil(state, belief, leastLifeMs);
}

/** Nothing is guaranteed to be armed any more. */
export function forget(belief: Belief): void {
  belief.notBeforeLifeMs = null;
  belief.notBeforeAwakeMs = null;
}

/** Forgets the guarantee, but for its end: by that it is told whether a delete came too late for the orders. */
export function loseGuarantee(market: MarketState): void {
  market.heldUntilAwakeMs = market.belief.notBeforeAwakeMs ?? market.heldUntilAwakeMs;
  forget(market.belief);
}

/** The exchange did not, and will not, carry the attempt out: it leaves no trace in the belief. */
export function believeNotApplied(state: CoreState, attempt: Attempt): void {
  resolveUpperEnd(state, attempt.market);
}

/** No answer that can be believed: the exchange may carry the attempt out at any time within the request's lifetime. */
export function believeUnknown(state: CoreState, attempt: Attempt): void {
  const { belief } = attempt.market;
  if (attempt.id < belief.lastAppliedId && state.settings.nonce === 'increasing') {
    resolveUpperEnd(state, attempt.market);
    return;
  }
  const strayUntilMs = attempt.writtenMs + state.settings.requestLifetimeMs;
  if (attempt.purpose === 'delete') {
    // It was believed to do its worst when it was written; what comes after it may be undone by it.
    belief.strayDeleteUntilMs = Math.max(belief.strayDeleteUntilMs, strayUntilMs);
    return;
  }
  noteCut(state, belief, attempt, strayUntilMs);
  belief.unresolved += 1;
  belief.strayLongestMs = Math.max(belief.strayUntilMs > 0 ? belief.strayLongestMs : 0, attempt.timeoutMs);
  belief.lastUnresolvedId = attempt.id;
  belief.strayAwakeMs = Math.max(belief.strayAwakeMs, attempt.writtenAwakeMs + attempt.timeoutMs);
  belief.strayUntilMs = Math.max(belief.strayUntilMs, strayUntilMs);
  resolveUpperEnd(state, attempt.market);
}

function noteCut(state: CoreState, belief: Belief, attempt: Attempt, untilMs: number): void {
  const open = belief.strayCutUntilMs > state.now.monoMs;
  belief.strayCutMs = open ? Math.min(belief.strayCutMs, attempt.timeoutMs) : attempt.timeoutMs;
  belief.strayCutUntilMs = Math.max(belief.strayCutUntilMs, untilMs);
}

/** The exchange confirmed a renewal. Design, invariants 1 and 8. */
export function believeApplied(state: CoreState, attempt: Attempt, timer: ServerTimer): Confirmation {
  const { market } = attempt;
  const { belief } = market;
  const grantedMs = (timer.cancellationTime - timer.startTime) * 1000;
  const altered = describeAlteration(attempt, timer, grantedMs);
  const shortestMs = Math.max(0, Math.min(attempt.timeoutMs, grantedMs));
  const longestMs = Math.max(attempt.timeoutMs, grantedMs);
  const latestMs = state.now.monoMs + longest(longestMs) + ROUNDING_MS + state.settings.cancellationDelayMs;

  if (attempt.id < belief.lastAppliedId) {
    belief.confirmedUntilMs = Math.max(belief.confirmedUntilMs ?? latestMs, latestMs);
    // Without rising nonces it may have landed behind the newer one; a shorter timer is then all that is left.
    if (state.settings.nonce === 'window') believeCut(state, belief, belief.lastAppliedLifeMs, shortestMs);
    resolveUpperEnd(state, market);
    return { lapse: null, unresolved: 0, altered, stale: true };
  }

  const unresolved = belief.unresolved + market.inFlight.filter(({ id }) => id < attempt.id).length;
  const lapse = judgeLapse(state, belief, timer, unresolved);
  belief.server = { startTime: timer.startTime, cancellationTime: timer.cancellationTime };
  belief.lastAppliedId = attempt.id;
  belief.lastAppliedLifeMs = attempt.writtenLifeMs;
  const untilLifeMs = attempt.writtenLifeMs + (shortestMs - ROUNDING_MS) * (1 - DRIFT);
  believeUntil(state, belief, untilLifeMs);
  belief.expiryWallMs = attempt.writtenWallMs + shortestMs;
  const rising = state.settings.nonce === 'increasing';
  if (belief.lastUnresolvedId < attempt.id) belief.unresolved = 0;
  if (belief.strayUntilMs <= attempt.writtenMs || (rising && belief.lastUnresolvedId < attempt.id)) {
    belief.strayUntilMs = 0;
    belief.strayCutUntilMs = 0;
  }
  // Wherever a stray cut lands after this renewal, it leaves its own time from there; a stray delete leaves nothing.
  if (belief.strayCutUntilMs > state.now.monoMs)
    believeCut(state, belief, attempt.writtenLifeMs, belief.strayCutMs);
  believeOthersOnTheirWay(state, attempt, rising);
  if (rising) belief.strayDeleteUntilMs = 0;
  else if (belief.strayDeleteUntilMs > state.now.monoMs) forget(belief);
  belief.confirmedUntilMs = rising ? latestMs : believeOverlapping(state, attempt, shortestMs, latestMs);
  belief.lastsAwakeMs = attempt.writtenAwakeMs + longestMs;
  resolveUpperEnd(state, market);
  return { lapse, unresolved, altered, stale: false };
}

/**
 * Requests that ask for a shorter timer and are still on their way may land behind the one that was confirmed: newer
 * ones in any case, older ones where nonces do not rise.
 */
function believeOthersOnTheirWay(state: CoreState, confirmed: Attempt, rising: boolean): void {
  for (const other of confirmed.market.inFlight) {
    if (other.purpose === 'delete' || (rising && other.id < confirmed.id)) continue;
    const fromLifeMs = Math.max(confirmed.writtenLifeMs, other.writtenLifeMs);
    believeCut(state, confirmed.market.belief, fromLifeMs, other.timeoutMs);
  }
}

/**
 * Takes in what was confirmed while this attempt was on its way, and may have been carried out after it. Returns the
 * latest firing of any of them.
 */
function believeOverlapping(
  state: CoreState,
  attempt: Attempt,
  shortestMs: number,
  latestMs: number,
): number {
  const { market, writtenMs, writtenLifeMs } = attempt;
  const { belief } = market;
  let untilMs = latestMs;
  for (const other of belief.overlapping) {
    if (other.repliedMs <= writtenMs) continue;
    untilMs = Math.max(untilMs, other.latestMs);
    believeCut(state, belief, writtenLifeMs, other.shortestMs);
  }
  belief.overlapping.push({ repliedMs: state.now.monoMs, shortestMs, latestMs });
  // What was confirmed before everything that is on its way was written lies in the past.
  belief.overlapping = belief.overlapping.filter(({ repliedMs }) =>
    market.inFlight.some((other) => other.writtenMs < repliedMs),
  );
  return untilMs;
}

/** The exchange confirmed a delete, and every renewal written before it had settled. */
export function believeDeleted(state: CoreState, attempt: Attempt): void {
  const { belief } = attempt.market;
  forget(belief);
  belief.expiryWallMs = null;
  belief.server = null;
  belief.unresolved = 0;
  belief.confirmedUntilMs = null;
  belief.lastsAwakeMs = 0;
  belief.strayAwakeMs = 0;
  if (state.settings.nonce === 'increasing' || belief.strayUntilMs <= attempt.writtenMs)
    belief.strayUntilMs = 0;
  resolveUpperEnd(state, attempt.market);
}

/**
 * A renewal that starts after the previous timer's end made a new timer: the old one had fired. Both numbers are of
 * the exchange's own clock, so neither offset nor suspend matters. A renewal whose answer was lost may have carried
 * the timer over the gap; then nobody can be certain.
 */
function judgeLapse(
  state: CoreState,
  belief: Belief,
  timer: ServerTimer,
  unresolved: number,
): Certainty | null {
  if (belief.server === null) return null;
  const sinceEndMs = (timer.startTime - belief.server.cancellationTime) * 1000;
  if (sinceEndMs < 0) return null;
  // The exchange may take its time to fire, and may round its stamps up by a second.
  const surely = sinceEndMs >= ROUNDING_MS + state.settings.cancellationDelayMs;
  return surely && unresolved === 0 ? 'certain' : 'possible';
}

function describeAlteration(attempt: Attempt, timer: ServerTimer, grantedMs: number): string | null {
  const said: string[] = [];
  if (grantedMs !== attempt.timeoutMs) {
    said.push(`a timer of ${grantedMs / 1000} s instead of ${attempt.timeoutMs / 1000} s`);
  }
  const asked = new Set<string>(attempt.market.settings.types ?? ['spot', 'margin', 'futures']);
  const given = new Set<string>(timer.types ?? ['spot', 'margin', 'futures']);
  if (asked.size !== given.size || [...asked].some((type) => !given.has(type))) {
    said.push(`order types ${[...given].join(', ') || 'none'} instead of ${[...asked].join(', ')}`);
  }
  return said.length === 0 ? null : `the exchange answered with ${said.join(' and ')}`;
}

function latestOf(state: CoreState, attempt: Attempt): number {
  const { requestLifetimeMs, cancellationDelayMs } = state.settings;
  return (
    attempt.writtenMs + requestLifetimeMs + longest(attempt.timeoutMs) + ROUNDING_MS + cancellationDelayMs
  );
}

function lastsAtMost(state: CoreState, timeoutMs: number): number {
  return longest(timeoutMs) + ROUNDING_MS + state.settings.cancellationDelayMs;
}

function longest(timeoutMs: number): number {
  return timeoutMs * (1 + DRIFT);
}

/** Whether the timer has surely fired by now, seen from the belief alone. */
export function hasSurelyFired(state: CoreState, market: MarketState): boolean {
  const { notAfterMs } = market.belief;
  return notAfterMs !== null && state.now.monoMs > notAfterMs;
}
