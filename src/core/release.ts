import { believeWritten } from './belief.ts';
import { dueAt } from './due.ts';
import type { Effect } from './events.ts';
import { assertBelief, assertMayFollow } from './invariants.ts';
import { countPace, paceAllows, paceAllowsAtMs } from './pace.ts';
import { TRIP_MS } from './promise.ts';
import { countWrite, isThrottled, reserved, roomAtMs, roomInWindow } from './rate.ts';
import { type Attempt, awakeMs, type Candidate, type CoreState, type MarketState, slackMs } from './state.ts';

export type { Candidate };

import { clamp } from './time.ts';
import { attemptDeadlineMs, gapToLastChanceMs, jittered, retryGapMs } from './timing.ts';

/** Permits are spent within this or given up: saved ones would break the limiter's own window. */
const PERMIT_LIFE_MS = 1000;
/** The longest that the limiter may hold a request back before it goes without. */
const LONGEST_LIMITER_WAIT_MS = 250;
const LATE_LIMITER_WAIT_MS = 50;

/**
 * Writes the candidates in their order, as far as lanes, permits and the rate reach, and asks the limiter for the
 * rest. What stays behind waits in the queue for `releaseNext`, and is found again by the next plan.
 */
export function release(state: CoreState, candidates: readonly Candidate[], out: Effect[]): void {
  state.backlog = false;
  state.queue = [];
  state.queueHead = 0;
  const [head] = candidates;
  if (head === undefined) return;
  if (state.now.monoMs > state.permitsUntilMs) state.permits = 0;
  const left: Candidate[] = [];
  let lanes = freeLanes(state);
  let room = roomInWindow(state);
  let inTurn = paceAllows(state);
  let wanting = 0;
  let patienceMs: number | null = null;
  for (const [place, candidate] of candidates.entries()) {
    if (!candidate.detached && lanes <= 0) {
      left.push(candidate);
      // The lane may have been taken a moment ago, in this very release.
      patienceMs ??= lanePatienceMs(state);
      continue;
    }
    const keepBack = candidate.purpose === 'delete' ? 0 : reserved(state) - (place === 0 ? 1 : 0);
    if (room <= keepBack) {
      // A delete may be among the rest, and has its room.
      waitForRoom(state);
      left.push(candidate);
      continue;
    }
    if (candidate.paced && inTurn <= 0) {
      waitForTurn(state);
      for (let rest = place; rest < candidates.length; rest += 1) {
        const waiting = candidates[rest] ?? candidate;
        waiting.market.waitedForTurn = true;
        left.push(waiting);
      }
      break;
    }
    room -= 1;
    inTurn -= 1;
    if (!candidate.detached) lanes -= 1;
    if (state.permits > 0) {
      state.permits -= 1;
      write(state, candidate, out);
    } else {
      left.push(candidate);
      wanting += 1;
    }
  }
  // What is to be cut short is judged anew each time.
  state.queue = left.some(({ purpose }) => purpose === 'trip') ? [] : left;
  state.backlog = left.length > 0;
  if (patienceMs !== null) state.nextDueMs = Math.min(state.nextDueMs, state.now.monoMs + patienceMs);
  if (wanting > 0) acquire(state, wanting, slackMs(state, head.market), out);
  else acquireAhead(state, left[0], room, inTurn, out);
}

/**
 * Goes on with the queue of the last plan, whose markets may want something else by now: `stillDue` says which do not.
 * What a whole plan of ten thousand markets costs would else be due for every answer.
 */
export function releaseNext(
  state: CoreState,
  stillDue: (candidate: Candidate) => boolean,
  out: Effect[],
): void {
  if (state.now.monoMs > state.permitsUntilMs) state.permits = 0;
  let lanes = freeLanes(state);
  let room = roomInWindow(state);
  let inTurn = paceAllows(state);
  let at = state.queueHead;
  const hasWay = (next: Candidate) => lanes > 0 || next.detached;
  for (let next = state.queue[at]; next !== undefined && hasWay(next); next = state.queue[at]) {
    const keepBack = next.purpose === 'delete' ? 0 : reserved(state);
    if (room <= keepBack) {
      waitForRoom(state);
      break;
    }
    if (next.paced && inTurn <= 0) {
      waitForTurn(state);
      break;
    }
    if (stillDue(next)) {
      if (state.permits <= 0) break;
      state.permits -= 1;
      room -= 1;
      inTurn -= 1;
      if (!next.detached) lanes -= 1;
      write(state, next, out);
    }
    at += 1;
  }
  state.queueHead = at;
  const left = state.queue.length - at;
  state.backlog = left > 0;
  const head = state.queue[at];
  if (head === undefined) return;
  if (!hasWay(head)) return acquireAhead(state, head, room, inTurn, out);
  if (state.permits > 0) return;
  const most = Math.min(room - reserved(state), head.paced ? inTurn : Number.POSITIVE_INFINITY);
  const wanted = Math.min(Math.max(lanes, 1), left, most);
  if (wanted > 0) acquire(state, wanted, slackMs(state, head.market), out);
}

/** What waits for a lane alone finds its permit there: the limiter may take longer to give one than an answer takes. */
function acquireAhead(
  state: CoreState,
  next: Candidate | undefined,
  room: number,
  inTurn: number,
  out: Effect[],
): void {
  if (next === undefined || state.permits > 0 || room <= reserved(state) || (next.paced && inTurn <= 0))
    return;
  acquire(state, 1, slackMs(state, next.market), out, true);
}

function waitForRoom(state: CoreState): void {
  state.nextDueMs = Math.min(state.nextDueMs, Math.max(roomAtMs(state), state.now.monoMs + 1));
}

function waitForTurn(state: CoreState): void {
  state.nextDueMs = Math.min(state.nextDueMs, Math.max(paceAllowsAtMs(state), state.now.monoMs + 1));
}

function acquire(
  state: CoreState,
  permits: number,
  leastSlackMs: number,
  out: Effect[],
  ahead = false,
): void {
  state.askedAhead = ahead;
  if (state.acquiring) return;
  state.acquiring = true;
  // A limiter that let one request go past it has stopped answering: the next ones hardly wait for it.
  const longestMs = state.limiterLate ? LATE_LIMITER_WAIT_MS : LONGEST_LIMITER_WAIT_MS;
  const withinMs = leastSlackMs <= 0 ? longestMs : clamp(leastSlackMs / 8, 25, longestMs);
  out.push({ kind: 'acquire', permits, withinMs });
}

/** The limiter let requests go, or did not answer in time; either way they may be written now. */
export function takePermits(
  state: CoreState,
  permits: number,
  how: 'in-turn' | 'overdue',
  out: Effect[],
): void {
  state.acquiring = false;
  state.limiterLate = how === 'overdue';
  state.permits += permits;
  state.permitsUntilMs = state.now.monoMs + PERMIT_LIFE_MS;
  if (how === 'overdue') out.push({ kind: 'notice', notice: { kind: 'limiter-bypassed', permits } });
}

/**
 * How many attempts may be written over ordinary connections now. With rising nonces requests go one after the other,
 * or a later one could overtake an earlier one and make it stale; but nobody waits for an answer longer than a few
 * round trips, so that one hung request does not hold up the rest. A key that was never accepted is shown one request
 * at a time in either mode: a wrong one must not count as many refused tries.
 */
function freeLanes(state: CoreState): number {
  const proven = state.authorisedOnce;
  if (state.settings.nonce === 'window' && proven) return state.settings.connections - state.attempts.length;
  const patienceMs = lanePatienceMs(state);
  for (const attempt of state.attempts) {
    const ageMs = state.now.monoMs - attempt.writtenMs;
    if (!attempt.detached && ageMs < patienceMs) {
      state.nextDueMs = Math.min(state.nextDueMs, attempt.writtenMs + patienceMs);
      return 0;
    }
  }
  return 1;
}

function lanePatienceMs(state: CoreState): number {
  return state.roundTripMs === null ? 500 : clamp(4 * state.roundTripMs + 50, 100, 500);
}

/** Puts the last attempt that fits where it is worth most. One after a time-out opens a connection first. */
function placed(state: CoreState, market: MarketState, slack: number, gapMs: number): number {
  const roundTripMs = state.roundTripMs ?? 100;
  const opens = market.timedOut || market.inFlight.length > 1;
  return gapToLastChanceMs(slack, gapMs, roundTripMs * (opens ? 1.5 : 0.25));
}

/** What the market's answers take at most, as far as it is known. */
export function longestAnswerMs(state: CoreState, { roundTrip }: MarketState): number {
  if (roundTrip !== null) return roundTrip.meanMs + 4 * roundTrip.deviationMs;
  return (state.roundTripMs ?? 100) + 4 * state.roundTripDeviationMs;
}

/** An answer that is known to take long is waited for, but no longer than a period: a retry would say nothing new. */
function expectedMs({ roundTrip, periodMs, timedOut }: MarketState): number {
  return roundTrip === null || timedOut ? 0 : Math.min(roundTrip.meanMs, periodMs);
}

/** The market's answers take longer than anybody waits for a lane: it holds none. */
export function outlivesLane(state: CoreState, { roundTrip }: MarketState): boolean {
  return roundTrip !== null && roundTrip.meanMs > lanePatienceMs(state);
}

function write(state: CoreState, candidate: Candidate, out: Effect[]): void {
  const { market, purpose, base, detached } = candidate;
  const { monoMs, wallMs } = state.now;
  const slack = slackMs(state, market);
  const longestRoundTripMs = longestAnswerMs(state, market);
  const attempt: Attempt = {
    id: state.nextAttemptId,
    market,
    purpose,
    base,
    detached,
    writtenMs: monoMs,
    writtenLifeMs: state.lifeMs,
    writtenAwakeMs: awakeMs(state),
    writtenWallMs: wallMs,
    dueMs: market.nextMs,
    deadlineMs: monoMs + attemptDeadlineMs(slack, longestRoundTripMs),
    timeoutMs: purpose === 'trip' ? TRIP_MS : market.settings.timeoutMs,
    epoch: state.epoch,
    aborted: false,
    overdue: false,
  };
  state.nextAttemptId += 1;
  state.attempts.push(attempt);
  market.inFlight.push(attempt);
  market.lastWrittenMs = monoMs;
  market.cycleSinceMs ??= Math.min(market.nextMs, monoMs);
  const throttled = isThrottled(state);
  const gapMs =
    purpose === 'renew'
      ? Math.max(retryGapMs(slack, throttled), expectedMs(market))
      : retryGapMs(0, throttled);
  const jitteredMs = jittered(gapMs, state.settings.seed + market.index, attempt.id);
  const gapToNextMs = purpose === 'renew' ? placed(state, market, slack, jitteredMs) : jitteredMs;
  dueAt(state, market, monoMs + gapToNextMs);
  state.nextDueMs = Math.min(state.nextDueMs, market.nextMs);
  believeWritten(state, attempt);
  countWrite(state);
  countPace(state);
  assertBelief(state, market);
  assertMayFollow(state, attempt);
  state.lastReleaseMs = monoMs;
  const name = market.settings.market;
  const delayMs = Math.max(0, monoMs - attempt.dueMs);
  out.push({ kind: 'notice', notice: { kind: 'attempt', market: name, purpose, base, delayMs } });
  out.push({
    kind: 'write',
    attempt: attempt.id,
    market: name,
    timeoutSeconds: purpose === 'delete' ? null : Math.round(attempt.timeoutMs / 1000),
    types: market.settings.types,
    base,
    fresh: candidate.fresh ?? detached,
  });
  candidate.onWrite?.();
}
