import {
  believeApplied,
  believeDeleted,
  believeNotApplied,
  believeUnknown,
  isOvertaken,
  isRepeated,
  mayHaveRunOut,
  straysUntilMs,
} from './belief.ts';
import type { FailureReason, Outcome, Pinged, ServerTimer } from './events.ts';
import { hold } from './goal.ts';
import {
  FIRST_PROBE_GAP_MS,
  gapToKeyProbeMs,
  hurry,
  isAnswering,
  noStraysFromMs,
  schedule,
  silentMs,
  UNPROTECTED_GAP_MS,
} from './next.ts';
import type { Certainty } from './notice.ts';
import { LATE_MS, ROUNDING_MS, SHORTEST_GAP_MS } from './promise.ts';
import {
  type Attempt,
  type BaseState,
  type CoreState,
  type MarketState,
  type Moment,
  type Refusal,
} from './state.ts';

const SLACKS_KEPT = 60;
/** A key or market that was good counts as refused after this many refusals in a row. */
const LOOKS = 2;
/** This many failures in a row, of more than one market, are an outage of the address where it answers nobody else. */
const FAILURES = 3;
/** While an address is down it is pinged this often, so that its recovery is seen at once. */
const RECOVERY_PING_MS = 500;
/** A stale nonce is answered with a new one at once, this many times in a row, and after that at the usual distance. */
const NONCE_RETRIES = 3;

const REPEATED = {
  kind: 'protocol',
  detail: 'the exchange repeats an earlier answer: its startTime has not moved',
} as const;

type Failed = Exclude<Outcome, { kind: 'applied' } | { kind: 'deleted' }>;

/** Takes in what became of one attempt. */
export function settle(state: CoreState, attempt: Attempt, told: Outcome): void {
  state.attempts.delete(attempt.id);
  state.settledMs.push(state.now.monoMs);
  const { market } = attempt;
  const outcome: Outcome =
    told.kind === 'applied' && isRepeated(market, attempt, told.timer) ? REPEATED : told;
  learn(state, attempt, outcome);
  if (outcome.kind === 'applied' || outcome.kind === 'deleted') {
    answered(state, attempt);
    if (outcome.kind === 'applied') confirm(state, attempt, outcome.timer);
    else confirmDelete(state, attempt);
  } else {
    fail(state, attempt, outcome);
  }
  schedule(state, market);
}

/**
 * How long the market's answers take: a longer one counts at once, a shorter one by half. Not counted are answers that a
 * stall held up, those that a newer request has overtaken, and those of a cache or a garbling proxy.
 */
function learn(state: CoreState, attempt: Attempt, outcome: Outcome): void {
  const { market } = attempt;
  const isAnswer =
    outcome.kind === 'transient'
      ? outcome.reason === 'validation'
      : outcome.kind !== 'protocol' && outcome.kind !== 'throttled';
  if (!isAnswer || attempt.at.monoMs < state.stalledMs || isOvertaken(market, attempt)) return;
  const tookMs = state.ageMs(attempt);
  market.answerMs = Math.max(tookMs, ((market.answerMs ?? tookMs) + tookMs) / 2);
  state.answerMs = Math.min(market.answerMs, state.answerMs ?? Number.POSITIVE_INFINITY);
}

/** The answer time of the fastest market that is renewed, found anew: it may have become slower. */
export function measureAnswers(state: CoreState): void {
  let leastMs = Number.POSITIVE_INFINITY;
  for (const market of state.markets)
    if (market.answerMs !== null && market.mustNotFire) leastMs = Math.min(leastMs, market.answerMs);
  if (leastMs < Number.POSITIVE_INFINITY) state.answerMs = leastMs;
}

/** A good answer: the address works, the key is good, the market is known. */
function answered(state: CoreState, attempt: Attempt): void {
  heardFrom(state, attempt);
  acceptKey(state, attempt);
  const { market } = attempt;
  market.refusal.count = 0;
  if (market.refusal.said === null) return;
  market.refusal.said = null;
  state.say({ kind: 'accepted-again', market: market.settings.market });
}

function confirm(state: CoreState, attempt: Attempt, timer: ServerTimer): void {
  const { market } = attempt;
  const { stats, belief } = market;
  const name = market.settings.market;
  const { monoMs } = state.now;
  const durationMs = state.ageMs(attempt);
  const slackBeforeMs = state.awakeSlackMs(market);
  const wasArmed = slackBeforeMs > 0;
  const hadTimer = belief.server !== null;
  // A timer that was left to fire, and is wanted again, says nothing about how well renewals are in time.
  const slackRatio =
    market.firesOnPurpose || belief.notBefore === null || !hadTimer
      ? null
      : (slackBeforeMs + ROUNDING_MS) / market.settings.timeoutMs;
  const { lapse, unresolved, altered } = believeApplied(state, attempt, timer);
  if (altered !== null && altered !== market.altered)
    state.say({ kind: 'altered', market: name, detail: altered });
  market.altered = altered;
  // A timer that fired after it became unwanted fired on purpose; one that was overdue before a trip of it did not.
  const wasWanted = market.mustNotFire || !market.firesOnPurpose;
  if (lapse !== null && wasWanted) noteLapse(state, market, lapse, unresolved);
  if (!belief.writes.includes(attempt)) return;
  // A market that was taken out of guard meanwhile is not "renewed again".
  const isHeld = market.hold !== null;
  if (market.streak > 0 && !isHeld) state.say({ kind: 'recovered', market: name, failures: market.streak });
  if (slackRatio !== null) stats.slackHistory = [...stats.slackHistory.slice(1 - SLACKS_KEPT), slackRatio];
  if (attempt.purpose === 'trip') {
    // A tripped timer is meant to fire: no lapse follows.
    belief.server = null;
    const isFinal = endsIt(state, attempt, 'trip');
    const firesByWallMs = state.wallAt(belief.notAfterMs ?? monoMs);
    const ofBot = market.bot.state === 'failed' ? 'bot_failed' : 'bot_stale';
    const why = market.hold?.why === 'tripped' ? 'tripped' : ofBot;
    state.say({ kind: 'tripped', market: name, why, durationMs, firesByWallMs, isFinal });
  } else {
    if (market.goal === 'renew-once') market.reached = true;
    const first = !wasArmed && !isHeld && state.awakeSlackMs(market) > 0;
    const { cancellationTime, startTime } = timer;
    state.say({
      kind: 'renewed',
      market: name,
      durationMs,
      cycleMs: monoMs - (market.cycleSinceMs ?? attempt.at.monoMs),
      slackRatio,
      first,
      cancellationTime,
      expiryWallMs: attempt.at.wallMs + (cancellationTime - startTime) * 1000,
      skewMs: startTime * 1000 + 500 - (attempt.at.wallMs + durationMs / 2),
    });
  }
  calm(market);
  market.mayHaveFired = false;
  // A timer that a late answer confirms while nobody wants it fires on purpose; a lapse before that was told of.
  market.firesOnPurpose =
    market.goal !== 'guard' && (lapse !== null || !hadTimer || state.awakeSlackMs(market) > 0);
  // An answer that comes too late arms nothing.
  if (state.awakeSlackMs(market) > 0) market.overdueSaid = false;
  stats.renewals += 1;
  stats.lastConfirmedMs = attempt.at.monoMs;
  stats.lastDurationMs = durationMs;
}

function confirmDelete(state: CoreState, attempt: Attempt): void {
  const { market } = attempt;
  const { armedUntilAwakeMs, belief } = market;
  if (armedUntilAwakeMs !== null) market.mayHaveFired = armedUntilAwakeMs <= state.awakeMs;
  market.mayHaveFired ||= mayHaveRunOut(state, market);
  // It was overdue before somebody wanted it deleted. What a stop comes to is told at its end.
  const wasWanted = !market.firesOnPurpose && belief.server !== null && state.phase.kind === 'running';
  if (wasWanted && market.mayHaveFired) {
    const unresolved = belief.writes.filter(({ status }) => status === 'unknown').length;
    noteLapse(state, market, 'possible', unresolved);
  }
  market.armedUntilAwakeMs = null;
  believeDeleted(state, attempt);
  calm(market);
  const isFinal = endsIt(state, attempt, 'delete');
  const { mayHaveFired, settings } = market;
  const durationMs = state.ageMs(attempt);
  state.say({ kind: 'deleted', market: settings.market, durationMs, mayHaveFired, isFinal });
}

/** Can no stray undo it? Else another one follows; but not in a stop that has no time for that. */
function endsIt(state: CoreState, { market, at }: Attempt, as: 'delete' | 'trip'): boolean {
  const isFinal = at.monoMs >= straysUntilMs(state, market, as);
  if (market.goal === as) market.reached = isFinal || noStraysFromMs(state, market, as) === 0;
  return isFinal;
}

function calm(market: MarketState): void {
  market.streak = 0;
  market.timedOut = false;
  market.staleNonces = 0;
  market.cycleSinceMs = null;
  market.lastProblem = null;
}

/** The timer fired unwanted. Under `onLapse: hold` the market is left alone then until an operator arms it. */
export function noteLapse(
  state: CoreState,
  market: MarketState,
  certainty: Certainty,
  unresolved: number,
): void {
  const { stats } = market;
  stats.lapses += 1;
  const gapMs = stats.renewals === 0 ? null : state.now.monoMs - stats.lastConfirmedMs;
  const held = state.settings.onLapse === 'hold' && market.hold === null;
  const rearms = !held && market.mustNotFire && market.leaving === null;
  state.say({ kind: 'lapsed', market: market.settings.market, certainty, gapMs, unresolved, rearms, held });
  if (held) hold(state, market, 'lapsed', null);
}

/** An attempt came to nothing: what that means for belief, market, address and key. */
function fail(state: CoreState, attempt: Attempt, outcome: Failed): void {
  const { market } = attempt;
  // The end of an outage gave it up: its failure says nothing about now.
  const wasGivenUp =
    attempt.status === 'abandoned' && attempt.at.monoMs < attempt.base.provenMs - SHORTEST_GAP_MS;
  const wasOvertaken = wasGivenUp || isOvertaken(market, attempt);
  if (mayHaveBeenApplied(outcome)) believeUnknown(state, attempt);
  else believeNotApplied(state, attempt);
  market.stats.failures += 1;
  // A late failure of an attempt that a newer one has overtaken says nothing about now.
  if (!wasOvertaken) {
    market.streak += 1;
    market.lastProblem = outcome.detail;
    // A gateway may reset each connection that it has answered over: after a broken one comes a new one. One that is
    // full may close each new one: after a broken new one comes one that is open.
    const broke = outcome.kind === 'transient' && outcome.reason === 'network' && outcome.maybeApplied;
    const hung = outcome.kind === 'transient' && outcome.reason === 'timeout';
    market.timedOut = hung || (broke && !market.timedOut);
  }
  state.say({
    kind: 'attempt-failed',
    market: market.settings.market,
    purpose: attempt.purpose,
    reason: outcome.kind === 'transient' ? outcome.reason : REASONS[outcome.kind],
    detail: outcome.detail,
    streak: wasOvertaken ? 0 : market.streak,
    durationMs: state.ageMs(attempt),
  });
  if (outcome.kind !== 'nonce') market.staleNonces = 0;
  // Such an answer says nothing about a refused key: the next probe of the key comes soon.
  if (outcome.kind === 'transient' || outcome.kind === 'protocol' || outcome.kind === 'throttled') {
    const gapMs = outcome.kind === 'throttled' ? FIRST_PROBE_GAP_MS : UNPROTECTED_GAP_MS;
    state.key.nextProbeMs = Math.min(state.key.nextProbeMs, state.now.monoMs + gapMs);
  }
  react(state, attempt, outcome, wasOvertaken);
}

function react(state: CoreState, attempt: Attempt, outcome: Failed, wasOvertaken: boolean): void {
  const { market } = attempt;
  switch (outcome.kind) {
    case 'transient':
      if (outcome.reason === 'validation' && !outcome.maybeApplied) heardFrom(state, attempt);
      else if (outcome.reason !== 'aborted') failedAt(state, attempt, outcome.detail);
      break;
    case 'protocol':
      failedAt(state, attempt, outcome.detail);
      break;
    case 'throttled':
      slowDown(state);
      failedAt(state, attempt, outcome.detail);
      break;
    case 'nonce':
      heardFrom(state, attempt);
      if (wasOvertaken) break;
      market.staleNonces += 1;
      // Nothing was said about the key: the probe is not over.
      state.key.nextProbeMs = Math.min(
        state.key.nextProbeMs,
        state.now.monoMs + (market.staleNonces > NONCE_RETRIES ? UNPROTECTED_GAP_MS : 0),
      );
      if (market.staleNonces <= NONCE_RETRIES) market.askedMs = state.now.monoMs;
      break;
    case 'refused':
      heardFrom(state, attempt);
      // The API has looked at the request: the key is good.
      acceptKey(state, attempt);
      refuse(state, attempt, outcome);
      break;
    case 'unauthorised':
      heardFrom(state, attempt);
      refuseKey(state, attempt, outcome);
      break;
  }
}

/** Counts a refusal; true where it is to be said now. One wrong answer does not count against what was good before. */
function countRefusal(state: CoreState, refusal: Refusal<unknown>, at: Moment, wasGood: boolean): boolean {
  // An answer to what was sent before the first refusal came is no second one.
  if (refusal.count > 0 && at.monoMs <= refusal.lastMs) return false;
  refusal.count += 1;
  refusal.lastMs = state.now.monoMs;
  return refusal.said === null && (!wasGood || refusal.count >= LOOKS);
}

function refuse(
  state: CoreState,
  { market, at }: Attempt,
  { code, detail }: { readonly code: number; readonly detail: string },
): void {
  if (!countRefusal(state, market.refusal, at, market.stats.renewals > 0)) return;
  market.refusal.said = { code, detail, sinceMs: state.now.monoMs };
  schedule(state, market);
  const { nextMs } = market;
  const probeInMs = nextMs === Number.POSITIVE_INFINITY ? null : Math.max(0, nextMs - state.now.monoMs);
  const name = market.settings.market;
  const expiryWallMs = firstExpiry(state, [market]);
  state.say({ kind: 'refused', market: name, code, detail, probeInMs, expiryWallMs });
}

/**
 * The exchange refused the key. From the second time on it is tried by probes alone; at once where it never was good and
 * has not been replaced.
 */
function refuseKey(
  state: CoreState,
  { at, key: signedWith }: Attempt,
  { status, detail }: { readonly status: number; readonly detail: string },
): void {
  const { key } = state;
  if (signedWith !== key.changes) return;
  if (!countRefusal(state, key.refusal, at, key.accepted || key.changes > 0)) return;
  key.refusal.said = { status, detail, sinceMs: state.now.monoMs };
  const probeInMs = gapToKeyProbeMs(state);
  key.nextProbeMs = state.now.monoMs + probeInMs;
  const expiryWallMs = firstExpiry(state, state.markets);
  state.say({ kind: 'unauthorised', status, detail, probeInMs, expiryWallMs });
}

function acceptKey(state: CoreState, { key: signedWith }: Attempt): void {
  const { key } = state;
  // Answers to what was signed with an earlier key say nothing about this one.
  if (signedWith !== key.changes) return;
  key.accepted = true;
  key.refusal.count = 0;
  if (key.refusal.said === null) return;
  key.refusal.said = null;
  state.say({ kind: 'authorised-again' });
  for (const market of state.markets) hurry(state, market);
}

function slowDown(state: CoreState): void {
  const isNews = state.now.monoMs - state.lastThrottledMs > 1000;
  state.lastThrottledMs = state.now.monoMs;
  if (!isNews) return;
  state.cadenceFactor = Math.min(state.cadenceFactor * 1.5, 10);
  state.say({ kind: 'throttled', factor: state.cadenceFactor });
}

/** A gateway's page says nothing about what stood behind the gateway; only the API's own refusals do. */
function mayHaveBeenApplied(outcome: Failed): boolean {
  if (outcome.kind === 'transient') return outcome.maybeApplied;
  return outcome.kind === 'protocol' || outcome.kind === 'throttled';
}

const REASONS = {
  protocol: 'parse',
  throttled: 'rate_limited',
  nonce: 'nonce',
  refused: 'validation',
  unauthorised: 'auth',
} as const satisfies Record<Exclude<Failed['kind'], 'transient'>, FailureReason>;

/** Something of the API itself answered: the address works, whatever it said. */
function heardFrom(state: CoreState, attempt: Attempt): void {
  const { base, at } = attempt;
  base.failures = 0;
  base.lastAnswerMs = state.now.monoMs;
  if (base.outage === null) return;
  endOutage(state, base, base.outage);
  base.provenMs = at.monoMs;
  // Requests that left well before the one that was answered were swallowed, unless their answers come right behind it.
  for (const other of state.attempts.values())
    if (other.base === base && other.at.monoMs < base.provenMs - SHORTEST_GAP_MS)
      other.giveUpMs = Math.min(other.giveUpMs, state.now.monoMs + LATE_MS);
  const renewedMs = state.markets.reduce((last, { stats }) => Math.max(last, stats.lastConfirmedMs), 0);
  for (const market of state.markets) {
    const newest = market.belief.writes.at(-1);
    if (market.cycleSinceMs === null || newest === attempt) continue;
    // A market that failed while others were renewed is sick by itself: it keeps to its own retries.
    if (market.cycleSinceMs < renewedMs - silentMs(state)) continue;
    // A request that is on its way, or was just given up, may never be answered.
    const isUnanswered = newest?.status === 'open' || newest?.status === 'abandoned';
    if (isUnanswered || market.lastWrittenMs < at.monoMs) hurry(state, market);
  }
}

function endOutage(
  state: CoreState,
  base: BaseState,
  { sinceMs, probes }: NonNullable<BaseState['outage']>,
): void {
  base.outage = null;
  const lastedMs = state.now.monoMs - sinceMs;
  state.say({ kind: 'outage-ended', base: base.index, lastedMs, attempts: probes });
}

/** An attempt over this address came to nothing. What was written before the last answer says nothing about it. */
function failedAt(state: CoreState, { base, at, market }: Attempt, detail: string): void {
  if (at.monoMs < base.lastAnswerMs) return;
  // Nor does a market that failed while others were answered: it is sick by itself.
  if ((market.cycleSinceMs ?? at.monoMs) < base.lastAnswerMs - silentMs(state)) return;
  base.failures += 1;
  // Nor do failures in a row while others are answered: a part of all requests fails, and each market goes on by itself.
  if (base.failures < FAILURES || isAnswering(state, base)) return;
  if (state.markets.some((other) => other !== market && other.streak > 0)) beginOutage(state, base, detail);
}

/**
 * A black hole answers nothing, and waiting for attempts to be given up before believing it would let requests pile up:
 * several markets unanswered for much longer than usual, and nobody answered since, are an outage too. A request that
 * still waits for its connection is no sign of one: a host that is short of CPU opens them slowly.
 */
export function judgeSilence(state: CoreState): void {
  const silent = silentMs(state);
  for (const base of state.bases) {
    const unanswered = [...state.attempts.values()].filter(
      (one) =>
        one.left &&
        one.base === base &&
        one.at.monoMs >= base.lastAnswerMs &&
        state.unansweredMs(one) >= silent,
    );
    const [first] = unanswered;
    if (unanswered.length < FAILURES || unanswered.every(({ market }) => market === first?.market)) continue;
    const detail = `${unanswered.length} requests unanswered for ${Math.round(silent)} ms or more`;
    beginOutage(state, base, detail);
  }
}

function beginOutage(state: CoreState, base: BaseState, detail: string): void {
  if (base.outage !== null) return;
  base.outage = { sinceMs: state.now.monoMs, probes: 0, probedMs: Number.NEGATIVE_INFINITY };
  base.nextPingMs = Math.min(base.nextPingMs, state.now.monoMs);
  const expiryWallMs = firstExpiry(state, state.markets);
  const standsIn = state.usableBases.find((base) => base.takesRenewals)?.index ?? null;
  state.say({ kind: 'outage-began', base: base.index, standsIn, detail, expiryWallMs });
}

/** Until when the first of these timers is surely armed, but for those meant to fire, Unix milliseconds; null: none is. */
function firstExpiry(state: CoreState, markets: readonly MarketState[]): number | null {
  const slacks = markets
    .filter(({ goal, reached }) => !reached && goal !== 'trip')
    .map((market) => state.awakeSlackMs(market))
    .filter((ms) => ms > 0);
  return slacks.length === 0 ? null : state.now.wallMs + slacks.reduce((one, other) => Math.min(one, other));
}

/** Sends what pings are due. A ping informs; it neither gates a renewal nor counts as one. */
export function pingBases(state: CoreState): void {
  const { everyMs, timeoutMs } = state.settings.ping;
  for (const base of state.bases) {
    if (state.now.monoMs < base.nextPingMs) continue;
    const hurried = base.outage !== null || base.ping?.ok === false;
    base.nextPingMs = state.now.monoMs + (hurried ? Math.min(RECOVERY_PING_MS, everyMs) : everyMs);
    state.effects.push({ kind: 'ping', base: base.index, timeoutMs });
  }
}

/** A ping was answered, or given up. An address that comes back is probed at once. */
export function hearPing(state: CoreState, event: Pinged): void {
  const base = state.bases[event.base];
  if (base === undefined) return;
  const sentMs = state.now.monoMs - event.latencyMs;
  // One that fails after a later one told something is counted, and changes nothing.
  if (!event.ok && sentMs < base.pingedMs) return state.say({ ...event, changed: false });
  base.pingedMs = sentMs;
  const changed = base.ping?.ok !== event.ok;
  const cameBack = base.ping?.ok === false && event.ok;
  base.ping = event;
  if (!event.ok) base.nextPingMs = Math.min(base.nextPingMs, state.now.monoMs + RECOVERY_PING_MS);
  state.say({ ...event, changed });
  const { outage } = base;
  // Where no market wants a request, no probe finds out.
  if (outage !== null && event.ok && sentMs >= outage.sinceMs && state.markets.every((one) => one.reached)) {
    base.failures = 0;
    endOutage(state, base, outage);
  }
  if (!cameBack) return;
  if (base.outage !== null) base.outage.probedMs = Number.NEGATIVE_INFINITY;
  for (const market of state.markets) if (market.streak > 0) hurry(state, market);
}
