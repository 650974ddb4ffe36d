import { believeLeft, mayHaveRunOut, tidy } from './belief.ts';
import { beginStop, endPauses, forgetGone, judgeStop, operate, reload, stopWakeMs } from './commands.ts';
import { dispatch, giveUp } from './dispatch.ts';
import type { CoreEvent, Effect } from './events.ts';
import { hearBot, isAlive, judgeBots, suspensionOf } from './goal.ts';
import { hurry, schedule } from './next.ts';
import type { Firing } from './notice.ts';
import { carriedPerSecond, LATE_MS, TICK_MS } from './promise.ts';
import { hearPing, judgeSilence, measureAnswers, noteLapse, pingBases, settle } from './settle.ts';
import { type Attempt, COALESCE_MS, type CoreState, type MarketState } from './state.ts';
import { clamp, type Instant, lifeMs, observeClocks } from './time.ts';

/** A loop that has turned for this long has read what waited in the sockets. */
const READ_MS = 100;
const REPLAN_MS = 5000;
/** After a 429 periods come back in steps. */
const RECOVERY_MS = 10_000;
const RECOVERY_STEP = 0.25;

/**
 * One step of the core: takes in what happened, changes the state in place and returns what is to be done, in order.
 * Pure but for the state: no clock, no randomness, no input or output. The same events give the same effects.
 */
export function step(state: CoreState, event: CoreEvent, now: Instant): Effect[] {
  state.effects = [];
  advanceClocks(state, now);
  // Thousands of answers and beats, each with a look at thousands of markets, would stop the loop.
  const looksAtAll = !state.isRecent || (event.kind !== 'settled' && event.kind !== 'evidence');
  judgeBots(state);
  applyFact(state, event);
  if (looksAtAll) judge(state);
  dispatch(state);
  judgeStop(state);
  if (looksAtAll) {
    forgetGone(state);
    sayAllArmed(state);
  }
  setWake(state);
  return state.effects;
}

/** Takes in what the event says, and nothing else. */
function applyFact(state: CoreState, event: CoreEvent): void {
  switch (event.kind) {
    case 'tick':
      break;
    case 'settled': {
      const attempt = state.attempts.get(event.attempt);
      if (attempt === undefined) break;
      // A timer that must have fired by now is told of first: the answer may have it forgotten.
      judgeTimer(state, attempt.market);
      settle(state, attempt, event.outcome);
      break;
    }
    case 'pinged':
      hearPing(state, event);
      break;
    case 'evidence':
      hearBot(state, event.bot, event.says, event.agoMs);
      break;
    case 'operate':
      operate(state, event.command);
      break;
    case 'reload':
      reload(state, event.settings);
      break;
    case 'credentials-changed':
      state.key.changes += 1;
      state.key.accepted = false;
      state.key.refusal.count = 0;
      state.key.nextProbeMs = state.now.monoMs;
      break;
    case 'stop':
      beginStop(state, event.policy, event.why);
      break;
  }
}

/**
 * May this attempt's first byte leave now? Asked right before the write, after whatever connection had to be opened:
 * the evidence may have run out, or the host may have slept, in the meantime. From a yes on the request's lifetime counts.
 */
export function mayWrite(state: CoreState, id: number, now: Instant): boolean {
  const attempt = state.attempts.get(id);
  if (attempt === undefined || !isAllowed(state, attempt, now)) return false;
  believeLeft(state, attempt, now.monoMs);
  // Hundreds of connections that open in one turn of the loop are no stall; but words may lie unread for a tick at most.
  state.wakeAtMs = Math.max(state.wakeAtMs, Math.min(now.monoMs, state.now.monoMs + TICK_MS));
  return true;
}

/**
 * The request of this attempt takes its nonce now: once its connection is open, and anew where that closed again. With
 * rising nonces the exchange carries requests out in this order, or not at all.
 */
export function noteSigned(state: CoreState, id: number): void {
  const attempt = state.attempts.get(id);
  if (attempt === undefined) return;
  attempt.order = state.nextOrder;
  state.nextOrder += 1;
}

function isAllowed(state: CoreState, { market, purpose, status, at }: Attempt, now: Instant): boolean {
  if (status !== 'open' || at.monoMs < state.stalledMs) return false;
  // The host stood still since this was prepared, and the core has not been told yet.
  if (now.monoMs - state.wakeAtMs > LATE_MS) return false;
  if (purpose === 'trip') return market.goal === 'trip';
  // On a copy: the next step takes the reading in, and says what it shows.
  const ahead = { ...state.timebase, jumps: [] };
  if (observeClocks(ahead, now).length > 0) return false;
  const { bot } = market;
  const alive = isAlive(state, bot, lifeMs(ahead, now));
  if (purpose === 'delete') return market.goal === 'delete' && (alive || bot.state === 'goodbye');
  return alive && (market.goal === 'guard' || market.goal === 'renew-once');
}

/**
 * Reads the clocks. After lost time nothing that was prepared may leave. Where the monotonic clock has missed that time,
 * every guarded timer is renewed; else only what is due: a host that is short of CPU must not be given more work.
 */
function advanceClocks(state: CoreState, now: Instant): void {
  const { monoMs } = now;
  const lastMs = state.now.monoMs;
  const lateMs = monoMs - state.wakeAtMs;
  const jumps = observeClocks(state.timebase, now);
  if (monoMs > lastMs) state.lastStepMs = lastMs;
  state.now = now;
  if (lateMs > LATE_MS) state.say({ kind: 'stall', what: 'stall', byMs: lateMs });
  for (const jump of jumps) state.say({ kind: 'stall', ...jump });
  const missed = jumps.some(({ byMs }) => byMs > 0);
  if (lateMs <= LATE_MS && !missed) return;
  // Between two stalls the sockets were read if there was time for it.
  const readMs = lastMs - state.stalledMs;
  state.deafSinceMs = readMs < READ_MS ? Math.min(state.deafSinceMs, lastMs) : lastMs;
  state.stalledMs = monoMs;
  if (missed)
    for (const market of state.markets)
      if (market.goal === 'guard') hurry(state, market);
      else schedule(state, market);
  // Answers may lie unread in the socket: give them a moment before the attempts are given up.
  for (const attempt of state.attempts.values())
    attempt.giveUpMs = Math.max(attempt.giveUpMs, monoMs + LATE_MS);
}

/** Does what time alone demands. */
function judge(state: CoreState): void {
  for (const attempt of state.attempts.values())
    if (state.now.monoMs >= attempt.giveUpMs) giveUp(state, attempt);
  if (state.phase.kind === 'stopped') return;
  judgeSilence(state);
  for (const market of state.markets) judgeTimer(state, market);
  if (state.phase.kind !== 'running') return;
  endPauses(state);
  pingBases(state);
  easeCadence(state);
}

/** Says once that a guarantee ran out, that a timer must have lapsed, or that one has fired as it was left to. */
function judgeTimer(state: CoreState, market: MarketState): void {
  const { belief } = market;
  const name = market.settings.market;
  if (
    state.isWanted(market) &&
    belief.notBefore !== null &&
    state.awakeSlackMs(market) <= 0 &&
    !market.overdueSaid &&
    !mayBeAnswered(state, market)
  ) {
    market.overdueSaid = true;
    const expiryWallMs = state.now.wallMs + state.awakeSlackMs(market);
    state.say({ kind: 'overdue', market: name, expiryWallMs, leftToFire: belief.server === null });
  }
  if (belief.notAfterMs === null || state.mayFire(belief) || belief.notAfterMs <= market.firedMs) return;
  market.firedMs = belief.notAfterMs;
  const firedByWallMs = state.wallAt(belief.notAfterMs);
  // The end of the stop tells what became of its deletes.
  const isUnsure = market.armedUntilAwakeMs === null && mayHaveRunOut(state, market);
  const isDeleted =
    market.goal === 'delete' &&
    (state.phase.kind === 'stopping' || (market.armedUntilAwakeMs === null && !isUnsure));
  const wasArmed = belief.server !== null || market.stats.renewals > 0;
  const unresolved = belief.writes.filter(({ status }) => status === 'unknown').length;
  // A delete without an answer may have come first, once it has left.
  const mayBeDeleted = belief.writes.some(
    ({ purpose, left, status }) => purpose === 'delete' && left && status !== 'confirmed',
  );
  const certainty = mayBeDeleted ? 'possible' : 'certain';
  const isLapse = (market.mustNotFire || !market.firesOnPurpose) && belief.server !== null;
  // The next confirmation is of a new timer: it needs not say again that this one is gone.
  belief.server = null;
  tidy(state, market);
  const isFiring = !market.mustNotFire && wasArmed && !isDeleted;
  market.mayHaveFired ||= isUnsure || (mayBeDeleted && (isLapse || isFiring));
  if (isLapse) {
    noteLapse(state, market, certainty, unresolved);
  } else if (isFiring) {
    const why = mayBeDeleted || isUnsure ? 'undeleted' : whyFired(market);
    state.say({ kind: 'fired', market: name, why, firedByWallMs });
  }
  schedule(state, market);
}

function whyFired(market: MarketState): Firing {
  if (market.goal === 'delete') return 'undeleted';
  if (market.hold?.why === 'tripped') return 'tripped';
  const why = suspensionOf(market);
  if (why === 'bot_stale' || why === 'bot_failed') return why;
  return market.hold?.why === 'disarmed' || market.hold?.why === 'paused' ? 'disarmed' : 'kept';
}

/** The last attempt is placed to arrive just in time: its answer is waited for before anything is said. */
function mayBeAnswered(state: CoreState, { belief, answerMs }: MarketState): boolean {
  const patienceMs = clamp(4 * (answerMs ?? 0), 20, LATE_MS);
  return belief.writes.some(
    ({ status, at }) => status === 'open' && state.now.monoMs - at.monoMs < patienceMs,
  );
}

/** Lets the cadence follow what the wire carries, and recover from throttling in small steps. */
function easeCadence(state: CoreState): void {
  const { monoMs } = state.now;
  if (monoMs < state.nextReplanMs) return;
  state.nextReplanMs = monoMs + REPLAN_MS;
  measureAnswers(state);
  if (state.cadenceFactor > 1 && monoMs - state.lastThrottledMs > RECOVERY_MS)
    state.cadenceFactor = Math.max(1, state.cadenceFactor - RECOVERY_STEP);
  const capacityPerSecond = carriedPerSecond(state.settings, state.answerMs);
  if (Math.abs(capacityPerSecond / state.capacityPerSecond - 1) < 0.1) return;
  const { moved, problems } = state.planPeriods(capacityPerSecond);
  if (!moved && problems.length === 0) return;
  const detail =
    problems[0] ??
    `the wire carries ${capacityPerSecond.toFixed(1)} renewals a second at an answer time of ${(state.answerMs ?? 0).toFixed(1)} ms; the cadence follows`;
  const { answerMs } = state;
  state.say({ kind: 'cadence', detail, capacityPerSecond, answerMs });
}

function sayAllArmed(state: CoreState): void {
  if (state.allArmedSaid || state.phase.kind !== 'running') return;
  const { markets, settings } = state;
  // A shard without markets arms none.
  if (settings.markets.length === 0) return;
  if (markets.some((market) => market.leaving === null && state.slackMs(market) <= 0)) return;
  state.allArmedSaid = true;
  const sinceStartMs = state.now.monoMs - state.startedMs;
  state.say({ kind: 'all-armed', markets: settings.markets.length, sinceStartMs });
}

function setWake(state: CoreState): void {
  const { monoMs } = state.now;
  const restedMs = state.markets.length > 1 ? state.orderedMs + COALESCE_MS : monoMs;
  if (state.isRecent) {
    state.wakeAtMs = restedMs;
    return;
  }
  let wakeMs = Math.min(monoMs + TICK_MS, stopWakeMs(state));
  // A step after `READ_MS` shows that the loop turned: without it words would count from before every recent stall.
  const readMs = state.stalledMs + READ_MS;
  if (readMs > monoMs) wakeMs = Math.min(wakeMs, readMs);
  for (const { status, giveUpMs } of state.attempts.values())
    if (status === 'open') wakeMs = Math.min(wakeMs, giveUpMs);
  if (state.phase.kind === 'running')
    for (const { nextPingMs } of state.bases) wakeMs = Math.min(wakeMs, nextPingMs);
  state.wakeAtMs = Math.max(Math.min(wakeMs, Math.max(state.nextDueMs, restedMs)), monoMs);
}
