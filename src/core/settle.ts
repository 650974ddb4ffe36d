import { believeApplied, believeDeleted } from './belief.ts';
import { dueAt } from './due.ts';
import type { Effect } from './events.ts';
import { tripDone } from './exit.ts';
import { fail } from './failures.ts';
import { holdAfterLapse } from './hold.ts';
import { assertBelief } from './invariants.ts';
import { acceptKey } from './key.ts';
import { heardFrom } from './outage.ts';
import type { Outcome, ServerTimer } from './outcome.ts';
import { ROUNDING_MS } from './promise.ts';
import { countSettled } from './rate.ts';
import {
  type Attempt,
  attemptOf,
  awakeMs,
  awakeSlackMs,
  type BaseState,
  type CoreState,
  type MarketState,
  type RoundTrip,
  slackMs,
} from './state.ts';
import { LEAST_ATTEMPTS } from './timing.ts';

const SLACKS_KEPT = 60;
const GRID_SLACK_MS = 25;

/** Takes in what became of one attempt: the table "Failures" of the design. */
export function settle(state: CoreState, id: number, outcome: Outcome, out: Effect[]): void {
  const attempt = attemptOf(state, id);
  if (attempt === undefined) return;
  state.attempts.splice(state.attempts.indexOf(attempt), 1);
  countSettled(state);
  const { market } = attempt;
  market.inFlight.splice(market.inFlight.indexOf(attempt), 1);
  const base = state.bases[attempt.base];
  if (base === undefined) return;
  switch (outcome.kind) {
    case 'applied':
      answered(state, base, attempt, out);
      confirm(state, attempt, outcome.timer, out);
      break;
    case 'deleted':
      answered(state, base, attempt, out);
      confirmDelete(state, attempt, out);
      break;
    default:
      fail(state, base, attempt, outcome, out);
  }
  assertBelief(state, market);
}

/** A good answer: the address works, the key is good, the market is known. */
function answered(state: CoreState, base: BaseState, attempt: Attempt, out: Effect[]): void {
  measureRoundTrip(state, attempt.market, state.now.monoMs - attempt.writtenMs);
  heardFrom(state, base, out);
  acceptKey(state, out);
  const { market } = attempt;
  market.refusedAlone = false;
  market.refusals = 0;
  if (market.refused !== null) {
    market.refused = null;
    out.push({ kind: 'notice', notice: { kind: 'accepted-again', market: market.settings.market } });
  }
}

function confirm(state: CoreState, attempt: Attempt, timer: ServerTimer, out: Effect[]): void {
  const { market } = attempt;
  const name = market.settings.market;
  const { monoMs } = state.now;
  const durationMs = monoMs - attempt.writtenMs;
  const slackBefore = awakeSlackMs(state, market);
  const wasArmed = market.belief.notBeforeLifeMs !== null && slackBefore > 0;
  // A timer that was left to fire, and is wanted again, says nothing about how well renewals are in time.
  const hadTimer = market.belief.notBeforeLifeMs !== null && market.belief.server !== null;
  const gapMs = monoMs - market.lastConfirmedMs;

  const { lapse, unresolved, altered, stale } = believeApplied(state, attempt, timer);
  if (altered !== null && altered !== market.altered) {
    out.push({ kind: 'notice', notice: { kind: 'altered', market: name, detail: altered } });
  }
  market.altered = altered;
  if (stale) return;
  // What fired before a trip fired on purpose: nobody wanted the timer any more.
  if (lapse !== null && attempt.purpose !== 'trip' && !market.lapseSaid) {
    market.lapses += 1;
    const rearms = state.settings.onLapse === 'rearm';
    const notice = { kind: 'lapsed', market: name, certainty: lapse, gapMs, unresolved, rearms } as const;
    out.push({ kind: 'notice', notice });
    holdAfterLapse(state, market, out);
  }
  if (market.streak > 0) {
    out.push({ kind: 'notice', notice: { kind: 'recovered', market: name, failures: market.streak } });
  }
  const slackRatio = hadTimer ? (slackBefore + ROUNDING_MS) / market.settings.timeoutMs : null;
  if (slackRatio !== null) {
    market.slackHistory.push(slackRatio);
    if (market.slackHistory.length > SLACKS_KEPT) market.slackHistory.shift();
  }
  if (attempt.purpose === 'trip') {
    // It is meant to fire: whatever comes after it is no lapse.
    market.belief.server = null;
    const firesByWallMs = state.now.wallMs + ((market.belief.notAfterMs ?? monoMs) - monoMs);
    out.push({ kind: 'notice', notice: { kind: 'tripped', market: name, durationMs, firesByWallMs } });
  } else {
    const first = !wasArmed && market.belief.notBeforeLifeMs !== null;
    out.push(renewed(state, attempt, timer, first, slackRatio));
  }
  calm(market);
  market.confirmedOnce = true;
  // An answer that had waited through a stall tells of a timer that may have fired since.
  market.armedWhenUnwanted = awakeSlackMs(state, market) > 0;
  market.renewals += 1;
  market.lastConfirmedMs = monoMs;
  market.lastDurationMs = durationMs;
  market.overdueSaid = false;
  market.lapseSaid = false;
  market.firedSaid = false;
  market.deleted = false;
  if (attempt.purpose === 'trip') tripDone(market);
  if (market.exit?.want === 'handoff') market.exit.done = true;
  planNext(state, attempt);
}

/** When the market is due again after a confirmation. */
function planNext(state: CoreState, { market, writtenMs }: Attempt): void {
  const { monoMs } = state.now;
  // Whoever had to wait for a turn keeps it: turns are spread as evenly as the budget asks for.
  if (market.waitedForTurn) market.phaseMs = (writtenMs - state.startedMs) % periodOf(state, market);
  market.waitedForTurn = false;
  // A newer renewal that is on its way has been that point's.
  const newestMs = market.inFlight.reduce(
    (latest, other) =>
      other.purpose === 'renew' && !other.overdue ? Math.max(latest, other.writtenMs) : latest,
    writtenMs,
  );
  let nextMs = nextOnGrid(state, market, newestMs);
  // What waited for this answer waits no longer.
  if (market.tripWanted || market.exit !== null) nextMs = monoMs;
  const slackNow = slackMs(state, market);
  if (slackNow < market.settings.timeoutMs / 2) {
    // A timer that turned out much shorter than asked for still gets its three attempts.
    nextMs = Math.min(nextMs, monoMs + Math.max(1000, slackNow / LEAST_ATTEMPTS));
  }
  dueAt(state, market, nextMs);
  state.nextDueMs = Math.min(state.nextDueMs, market.nextMs);
}

function renewed(
  state: CoreState,
  { market, writtenMs, writtenWallMs }: Attempt,
  timer: ServerTimer,
  first: boolean,
  slackRatio: number | null,
): Effect {
  const { monoMs } = state.now;
  const durationMs = monoMs - writtenMs;
  return {
    kind: 'notice',
    notice: {
      kind: 'renewed',
      market: market.settings.market,
      durationMs,
      cycleMs: monoMs - (market.cycleSinceMs ?? writtenMs),
      slackRatio,
      first,
      cancellationTime: timer.cancellationTime,
      expiryWallMs: market.belief.expiryWallMs ?? writtenWallMs,
      skewMs: timer.startTime * 1000 + 500 - (writtenWallMs + durationMs / 2),
    },
  };
}

function confirmDelete(state: CoreState, attempt: Attempt, out: Effect[]): void {
  const { market } = attempt;
  believeDeleted(state, attempt);
  calm(market);
  if (!market.deleted) market.mayHaveFired = market.heldUntilAwakeMs <= awakeMs(state);
  market.heldUntilAwakeMs = Number.POSITIVE_INFINITY;
  market.deleted = true;
  if (market.exit?.want === 'delete') market.exit.done = true;
  const durationMs = state.now.monoMs - attempt.writtenMs;
  const { mayHaveFired } = market;
  const name = market.settings.market;
  out.push({ kind: 'notice', notice: { kind: 'deleted', market: name, durationMs, mayHaveFired } });
}

function calm(market: MarketState): void {
  market.streak = 0;
  market.timedOut = false;
  market.nonceRetries = 0;
  market.cycleSinceMs = null;
  market.lastProblem = null;
}

/**
 * The next point of the market's own grid: bursts of any cause spread again by themselves. A renewal that was written
 * just before its point, as timers of a host may fire early, has been that point's.
 */
function nextOnGrid(state: CoreState, market: MarketState, writtenMs: number): number {
  const periodMs = periodOf(state, market);
  const steps = Math.floor((writtenMs + GRID_SLACK_MS - state.startedMs - market.phaseMs) / periodMs) + 1;
  return state.startedMs + market.phaseMs + steps * periodMs;
}

/** The cadence in force: longer after throttling, never beyond a third of the timeout. */
export function periodOf(state: CoreState, market: MarketState): number {
  return Math.max(
    market.periodMs,
    Math.min(market.periodMs * state.cadenceFactor, market.settings.timeoutMs / 3),
  );
}

/** RFC 6298: an eighth of each new sample, a quarter of its deviation. */
function smoothed(known: RoundTrip | null, sampleMs: number): RoundTrip {
  if (known === null) return { meanMs: sampleMs, deviationMs: sampleMs / 2 };
  const { meanMs, deviationMs } = known;
  return {
    meanMs: meanMs + (sampleMs - meanMs) / 8,
    deviationMs: deviationMs + (Math.abs(sampleMs - meanMs) - deviationMs) / 4,
  };
}

/** Each market has answer times of its own; those of all are told by the fast ones. */
function measureRoundTrip(state: CoreState, market: MarketState, sampleMs: number): void {
  market.roundTrip = smoothed(market.roundTrip, sampleMs);
  if (market === state.fastest) {
    // It was the measure of all, and has become slower, or faster.
    state.fastestMs = sampleMs;
    state.fastestBeforeMs = sampleMs;
  } else if (sampleMs < state.fastestMs) {
    state.fastestMs = sampleMs;
    state.fastest = market;
  }
  if (sampleMs > 2 * Math.min(state.fastestMs, state.fastestBeforeMs) + 50) return;
  const { roundTripMs: meanMs, roundTripDeviationMs: deviationMs } = state;
  const next = smoothed(meanMs === null ? null : { meanMs, deviationMs }, sampleMs);
  state.roundTripMs = next.meanMs;
  state.roundTripDeviationMs = next.deviationMs;
}
