import { believeNotApplied, believeUnknown } from './belief.ts';
import { dueAt } from './due.ts';
import type { Effect } from './events.ts';
import { acceptKey, latchKey } from './key.ts';
import { failedAt, heardFrom } from './outage.ts';
import type { FailureReason, Outcome } from './outcome.ts';
import { type Attempt, type BaseState, type CoreState, type MarketState, slackMs } from './state.ts';
import { jittered, LOOKS, retryGapMs } from './timing.ts';
import { canSaveAny, isSalvageable } from './urgency.ts';

/** A refused market is tried again this often. */
const MARKET_PROBE_MS = 60_000;
/** A probe of the key that got no answer is repeated after this. */
const UNHEARD_PROBE_MS = 10_000;
/** A stale nonce is answered with a new one at once, this many times in a row. */
const NONCE_RETRIES = 3;

export type Failed = Exclude<Outcome, { kind: 'applied' } | { kind: 'deleted' }>;

/** An attempt came to nothing: what that means for belief, market, address and key. */
export function fail(
  state: CoreState,
  base: BaseState,
  attempt: Attempt,
  outcome: Failed,
  out: Effect[],
): void {
  const { market } = attempt;
  if (mayHaveBeenApplied(outcome)) believeUnknown(state, attempt);
  else believeNotApplied(state, attempt);
  market.failures += 1;
  const superseded = attempt.id < market.belief.lastAppliedId;
  if (!superseded) {
    market.streak += 1;
    market.lastProblem = outcome.detail;
  }
  const notice = {
    kind: 'attempt-failed',
    market: market.settings.market,
    purpose: attempt.purpose,
    reason: reasonOf(outcome),
    detail: outcome.detail,
    streak: superseded ? 0 : market.streak,
    durationMs: state.now.monoMs - attempt.writtenMs,
  } as const;
  out.push({ kind: 'notice', notice });
  react(state, base, attempt, outcome, superseded, out);
}

function react(
  state: CoreState,
  base: BaseState,
  attempt: Attempt,
  outcome: Failed,
  superseded: boolean,
  out: Effect[],
): void {
  const { market } = attempt;
  if (outcome.kind !== 'nonce') market.nonceRetries = 0;
  if (state.unauthorised !== null && saysNothingOfKey(outcome)) {
    const againMs = state.now.monoMs + UNHEARD_PROBE_MS;
    state.unauthorised.nextProbeMs = Math.min(state.unauthorised.nextProbeMs, againMs);
  }
  switch (outcome.kind) {
    case 'transient':
      market.timedOut = outcome.reason === 'timeout';
      if (outcome.reason === 'validation' && !outcome.maybeApplied) heardFrom(state, base, out);
      else if (outcome.reason !== 'aborted') failedAt(state, base, attempt, outcome.detail, out);
      break;
    case 'protocol':
      failedAt(state, base, attempt, outcome.detail, out);
      break;
    case 'throttled':
      slowDown(state, out);
      dueAt(
        state,
        market,
        Math.max(market.nextMs, attempt.writtenMs + throttledGapMs(state, market, attempt)),
      );
      failedAt(state, base, attempt, outcome.detail, out);
      break;
    case 'nonce':
      heardFrom(state, base, out);
      market.timedOut = false;
      if (!superseded && market.nonceRetries < NONCE_RETRIES) {
        market.nonceRetries += 1;
        dueAt(state, market, state.now.monoMs);
        // Nothing was said about the key: the probe is not over.
        if (state.unauthorised !== null) state.unauthorised.nextProbeMs = state.now.monoMs;
      }
      break;
    case 'refused':
      heardFrom(state, base, out);
      // Who is told what is wrong with the request has shown a good key.
      acceptKey(state, out);
      refuse(state, attempt, outcome, out);
      break;
    case 'unauthorised':
      // Of a key that was good, the refusal may be the address's own: another one, or this one soon, may take it.
      // A market that is refused while others are not says nothing about either.
      if (market.refusedAlone) {
        if (!isSalvageable(state, market)) dueAt(state, market, state.now.monoMs + MARKET_PROBE_MS);
        break;
      }
      if (state.authorisedOnce || canSaveAny(state)) failedAt(state, base, attempt, outcome.detail, out);
      else heardFrom(state, base, out);
      latchKey(state, attempt, outcome, out);
      break;
  }
}

/** No answer of the API, or none about the key: whether it is good again is as open as before. */
function saysNothingOfKey({ kind }: Failed): boolean {
  return kind === 'transient' || kind === 'protocol' || kind === 'throttled' || kind === 'nonce';
}

function refuse(
  state: CoreState,
  attempt: Attempt,
  { code, detail }: { readonly code: number; readonly detail: string },
  out: Effect[],
): void {
  const { market } = attempt;
  // A stop has no time for a slow probe.
  if (state.phase.kind === 'stopping') return;
  if (market.refusals > 0 && attempt.writtenMs <= market.refusedAtMs && market.refused === null) return;
  market.refusals += 1;
  market.refusedAtMs = state.now.monoMs;
  if (market.confirmedOnce && market.refusals < LOOKS) return;
  const isNews = market.refused === null;
  market.refused = { code, detail };
  // A gateway may have said it: while the timer can be saved, the next attempt stays where a failure puts it.
  const sparselyMs = jittered(MARKET_PROBE_MS * 1.1, state.settings.seed + market.index, market.refusals);
  const probeInMs = isSalvageable(state, market) ? Math.max(0, market.nextMs - state.now.monoMs) : sparselyMs;
  dueAt(state, market, state.now.monoMs + probeInMs);
  if (!isNews) return;
  out.push({
    kind: 'notice',
    notice: { kind: 'refused', market: market.settings.market, code, detail, probeInMs },
  });
}

function slowDown(state: CoreState, out: Effect[]): void {
  const isNews = state.now.monoMs - state.lastThrottledMs > 1000;
  state.lastThrottledMs = state.now.monoMs;
  if (!isNews) return;
  state.cadenceFactor = Math.min(state.cadenceFactor * 1.5, 10);
  out.push({ kind: 'notice', notice: { kind: 'throttled', factor: state.cadenceFactor } });
}

function throttledGapMs(state: CoreState, market: MarketState, attempt: Attempt): number {
  return jittered(retryGapMs(slackMs(state, market), true), state.settings.seed + market.index, attempt.id);
}

/** A gateway's page says nothing about what stood behind the gateway; only the API's own refusals do. */
function mayHaveBeenApplied(outcome: Failed): boolean {
  switch (outcome.kind) {
    case 'transient':
      return outcome.maybeApplied;
    case 'protocol':
    case 'throttled':
      return true;
    case 'nonce':
    case 'refused':
    case 'unauthorised':
      return false;
  }
}

function reasonOf(outcome: Failed): FailureReason {
  switch (outcome.kind) {
    case 'transient':
      return outcome.reason;
    case 'protocol':
      return 'parse';
    case 'throttled':
      return 'rate_limited';
    case 'nonce':
      return 'nonce';
    case 'refused':
      return 'validation';
    case 'unauthorised':
      return 'auth';
  }
}
