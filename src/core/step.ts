import { hasSurelyFired } from './belief.ts';
import { carriedPerSecond, easeCadence, planPeriods } from './cadence.ts';
import { askStop, judgeStop, judgeStopAsked, stopWakeMs } from './drain.ts';
import { dueAt, dueBy, hurry } from './due.ts';
import type { CoreEvent, Effect } from './events.ts';
import { hearBot, isAlive, judgeBots } from './evidence.ts';
import { endPauses, holdAfterLapse, operate } from './hold.ts';
import type { Firing } from './notice.ts';
import { hearPing, judgeSilence, pingBases } from './outage.ts';
import type { Outcome } from './outcome.ts';
import { plan, planLifeMs, planOn } from './plan.ts';
import { takePermits } from './release.ts';
import { endHandovers, forgetGone, reload } from './reload.ts';
import { settle } from './settle.ts';
import {
  type Attempt,
  attemptOf,
  awakeMs,
  awakeSlackMs,
  type CoreState,
  isWanted,
  type MarketState,
  slackMs,
} from './state.ts';
import { clamp, type Instant, lifeMs, observeClocks } from './time.ts';
import { LONGEST_LISTEN_MS, TICK_MS } from './timing.ts';
import { isSalvageable } from './urgency.ts';

/** What becomes due within this is released together: at scale wake-ups cost more than requests. */
const COALESCE_MS = 25;
/** After a stall it takes this long at most until everything that waited in the sockets has been read. */
const DEAF_MS = 1000;
/** A loop that turned for this long has read what was there when it began to. */
const READ_MS = 200;

/**
 * One step of the core: takes in what happened, changes the state in place and returns what is to be done, in order.
 * Pure but for the state: no clock, no randomness, no input or output. The same events give the same effects.
 */
export function step(state: CoreState, event: CoreEvent, now: Instant): Effect[] {
  const out: Effect[] = [];
  passTime(state, now, out);
  judgeBots(state, out);
  let plansAgain = event.kind !== 'settled' || state.backlog;
  // An answer or a permit alone lets go what already waits in its order.
  let goesOn = false;
  switch (event.kind) {
    case 'tick':
      break;
    case 'granted':
      takePermits(state, event.permits, event.how, out);
      // A permit that was asked for ahead changes nothing while the lane is taken.
      plansAgain = !state.askedAhead;
      goesOn = true;
      break;
    case 'settled':
      ({ plansAgain, goesOn } = takeAnswer(state, event, plansAgain, out));
      break;
    case 'pinged':
      hearPing(state, event, out);
      break;
    case 'evidence':
      hearBot(state, event.bot, event.says, event.agoMs, out);
      break;
    case 'operate':
      operate(state, event.command, out);
      break;
    case 'reload':
      reload(state, event.settings, out);
      // A market that came back brought what is believed of its timer along.
      state.guardedUntilAwakeMs = Number.NEGATIVE_INFINITY;
      break;
    case 'budget':
      state.settings = { ...state.settings, budget: event.budget };
      planPeriods(state, carriedPerSecond(state));
      break;
    case 'credentials-changed':
      state.authorisedOnce = false;
      state.keyRefusers.length = 0;
      for (const market of state.markets) market.refusedAlone = false;
      state.keySinceMs = now.monoMs;
      if (state.unauthorised !== null)
        state.unauthorised = { ...state.unauthorised, nextProbeMs: now.monoMs };
      for (const { outage } of state.bases) if (outage !== null) outage.nextCanaryMs = now.monoMs;
      for (const market of state.markets)
        if (market.streak > 0 && market.refused === null) hurry(state, market);
      break;
    case 'stop':
      askStop(state, event.policy, event.why, out);
      break;
  }
  if (state.stopAsked !== null && state.phase.kind === 'running') {
    judgeStopAsked(state);
    plansAgain = true;
  }
  if (plansAgain && !(goesOn && planOn(state, out))) {
    sweep(state, out);
    plan(state, out);
  }
  judgeStop(state, out);
  forgetGone(state, out);
  sayAllArmed(state, out);
  setWake(state);
  return out;
}

/**
 * May this attempt's first byte leave now? Asked right before the write, after whatever connection had to be opened:
 * the evidence may have run out, or the host may have slept, in the meantime.
 */
export function mayWrite(state: CoreState, id: number, now: Instant): boolean {
  const attempt = attemptOf(state, id);
  if (attempt === undefined || attempt.aborted || attempt.overdue || attempt.epoch !== state.epoch)
    return false;
  // The host stood still since this was prepared, and the core has not been told yet.
  if (now.monoMs - state.wakeAtMs > TICK_MS) return false;
  if (attempt.purpose === 'trip') return attempt.market.tripWanted;
  // During a stop the deletes were decided when it began.
  if (attempt.purpose === 'delete' && state.phase.kind === 'stopping')
    return attempt.market.exit?.want === 'delete';
  const probe = { ...state.timebase, jumps: [] };
  const jumps = observeClocks(probe, now);
  if (jumps.length > 0) return false;
  const bot = state.bots.get(attempt.market.settings.bot);
  if (bot === undefined) return false;
  const alive = isAlive(state, bot, lifeMs(probe, now));
  if (attempt.purpose === 'delete')
    return attempt.market.exit?.want === 'delete' && (alive || bot.state === 'goodbye');
  if (!alive) return false;
  return isWanted(state, attempt.market) || attempt.market.exit?.want === 'handoff';
}

/** The host slept: what waits for a time of day, and not for this process, comes nearer by as much. */
function comeNearer(state: CoreState, byMs: number): void {
  if (state.phase.kind === 'stopping') state.phase.budgetEndMs -= byMs;
  if (state.stopAsked !== null) state.stopAsked.startedMs -= byMs;
  if (state.unauthorised !== null) state.unauthorised.nextProbeMs -= byMs;
  for (const market of state.markets) if (market.refused !== null) dueAt(state, market, market.nextMs - byMs);
}

/** What became of an attempt, and whether that asks for a new plan or only lets the last one go on. */
function takeAnswer(
  state: CoreState,
  { attempt, outcome }: Extract<CoreEvent, { kind: 'settled' }>,
  waits: boolean,
  out: Effect[],
): { readonly plansAgain: boolean; readonly goesOn: boolean } {
  const market = attemptOf(state, attempt)?.market;
  let plansAgain = waits || state.phase.kind === 'stopping';
  const onlyMakesRoom = plansAgain && isExpected(state, attempt, outcome);
  // What waited for this answer waits no longer.
  plansAgain ||= isOnItsWayOut(market);
  plansAgain ||= outcome.kind !== 'applied' || state.bases.some(({ outage }) => outage !== null);
  settle(state, attempt, outcome, out);
  // One that is due again at once, as after a stall, has its place in a new order.
  const isDueAgain = market !== undefined && !market.exit?.done && market.nextMs <= state.now.monoMs;
  return { plansAgain, goesOn: onlyMakesRoom && !isDueAgain };
}

/**
 * An answer that only makes room: a renewal or a delete that was carried out, and that nothing else waited for. What
 * waited for a renewal in a stop is due again at once.
 */
function isExpected(state: CoreState, id: number, outcome: Outcome): boolean {
  const attempt = attemptOf(state, id);
  if (attempt === undefined) return false;
  const isRenewal = outcome.kind === 'applied' && attempt.purpose === 'renew';
  if (state.phase.kind === 'stopping') return isRenewal || outcome.kind === 'deleted';
  return isRenewal && !isOnItsWayOut(attempt.market);
}

function isOnItsWayOut(market: MarketState | undefined): boolean {
  return market !== undefined && (market.exit !== null || market.tripWanted);
}

/** Reads the clocks. Lost time means: nothing that was prepared may leave, and everything is renewed. */
function passTime(state: CoreState, now: Instant, out: Effect[]): void {
  const { monoMs } = now;
  const lastMs = state.now.monoMs;
  const lateMs = monoMs - state.wakeAtMs;
  const jumps = observeClocks(state.timebase, now);
  state.now = now;
  state.lifeMs = lifeMs(state.timebase, now);
  if (lateMs > TICK_MS) out.push({ kind: 'notice', notice: { kind: 'stall', what: 'stall', byMs: lateMs } });
  for (const jump of jumps) {
    out.push({ kind: 'notice', notice: { kind: 'stall', ...jump } });
    if (jump.what === 'suspend') comeNearer(state, jump.byMs);
  }
  if (lateMs <= TICK_MS && jumps.every(({ byMs }) => byMs < 0)) return;
  state.epoch += 1;
  state.permits = 0;
  // Between two stalls the sockets were read if there was time for it.
  const readMs = lastMs - (state.deafUntilMs - DEAF_MS);
  state.deafSinceMs = readMs < READ_MS ? Math.min(state.deafSinceMs, lastMs) : lastMs;
  state.deafUntilMs = monoMs + DEAF_MS;
  for (const market of state.markets) {
    if (market.refused === null || isSalvageable(state, market)) dueBy(state, market, now.monoMs);
  }
  // Answers may lie unread in the socket: give them a moment before the attempts are given up.
  for (const attempt of state.attempts)
    attempt.deadlineMs = Math.max(attempt.deadlineMs, now.monoMs + TICK_MS);
}

/** What time alone brings about. */
function sweep(state: CoreState, out: Effect[]): void {
  const { monoMs } = state.now;
  // Those that are listened to longer than an answer should take leave connections for the others.
  let listening = 0;
  for (const attempt of state.attempts) {
    if (attempt.aborted || monoMs < attempt.deadlineMs) continue;
    if (mayListenOn(state, attempt) && listening < state.settings.connections / 2) {
      listening += 1;
      if (!attempt.overdue) attempt.market.timedOut = true;
      attempt.overdue = true;
    } else {
      attempt.aborted = true;
      out.push({ kind: 'abort', attempt: attempt.id });
    }
  }
  if (state.phase.kind === 'running') {
    judgeSilence(state, out);
    judgeLapses(state, out);
    endPauses(state, out);
    endHandovers(state, out);
    pingBases(state, out);
    easeCadence(state, out);
  }
}

/**
 * An exchange may just be slow: the oldest attempt of a market is listened to for longer than an answer should take, or
 * nobody would ever learn that it takes so long.
 */
function mayListenOn(state: CoreState, { market, id, writtenMs }: Attempt): boolean {
  if (state.phase.kind !== 'running' || market.inFlight[0]?.id !== id) return false;
  return state.now.monoMs - writtenMs < LONGEST_LISTEN_MS;
}

/** The last attempt is placed to arrive just in time: its answer is waited for before anything is said. */
function mayBeAnswered(state: CoreState, market: MarketState): boolean {
  const patienceMs = clamp(4 * (state.roundTripMs ?? 0), 20, TICK_MS);
  return market.inFlight.some(({ writtenMs }) => state.now.monoMs - writtenMs < patienceMs);
}

/** A guarantee that ran out is said once; a timer that must have fired is a lapse even while nobody answers. */
function judgeLapses(state: CoreState, out: Effect[]): void {
  const nowMs = awakeMs(state);
  if (nowMs < state.guardedUntilAwakeMs) return;
  let untilMs = Number.POSITIVE_INFINITY;
  for (const market of state.markets) {
    const { notBeforeAwakeMs } = market.belief;
    if (notBeforeAwakeMs !== null) untilMs = Math.min(untilMs, notBeforeAwakeMs);
    sayFired(state, market, out);
    if (market.belief.notBeforeLifeMs === null || awakeSlackMs(state, market) > 0 || !isWanted(state, market))
      continue;
    const name = market.settings.market;
    if (!market.overdueSaid && !mayBeAnswered(state, market)) {
      market.overdueSaid = true;
      const expiryWallMs = market.belief.expiryWallMs ?? state.now.wallMs;
      out.push({ kind: 'notice', notice: { kind: 'overdue', market: name, expiryWallMs } });
    }
    if (market.lapseSaid || !hasSurelyFired(state, market)) continue;
    market.lapseSaid = true;
    market.lapses += 1;
    const rearms = state.settings.onLapse === 'rearm';
    const gapMs = state.now.monoMs - market.lastConfirmedMs;
    const { unresolved } = market.belief;
    out.push({
      kind: 'notice',
      notice: { kind: 'lapsed', market: name, certainty: 'certain', gapMs, unresolved, rearms },
    });
    holdAfterLapse(state, market, out);
  }
  state.guardedUntilAwakeMs = untilMs;
}

/** A timer that nobody wants renewed is told of when it has surely fired: its orders are cancelled. */
function sayFired(state: CoreState, market: MarketState, out: Effect[]): void {
  const { notBeforeLifeMs, notAfterMs } = market.belief;
  if (market.firedSaid || market.lapseSaid || notBeforeLifeMs === null || notAfterMs === null) return;
  if (!hasSurelyFired(state, market) || isWanted(state, market)) return;
  market.firedSaid = true;
  const firedByWallMs = state.now.wallMs - (state.now.monoMs - notAfterMs);
  const notice = {
    kind: 'fired',
    market: market.settings.market,
    why: whyFired(market),
    firedByWallMs,
  } as const;
  out.push({ kind: 'notice', notice });
}

function whyFired({ hold, suspended }: MarketState): Firing {
  if (hold?.why === 'tripped') return 'tripped';
  if (suspended === 'bot_stale' || suspended === 'bot_failed') return suspended;
  return hold?.why === 'disarmed' || hold?.why === 'paused' ? 'disarmed' : 'kept';
}

function sayAllArmed(state: CoreState, out: Effect[]): void {
  if (state.allArmedSaid || state.phase.kind !== 'running') return;
  const { markets } = state;
  // From where one was not armed a moment ago: looking at all of them after every answer would cost more than renewing.
  for (let seen = 0; seen < markets.length; seen += 1) {
    state.unarmedHint %= markets.length;
    const market = markets[state.unarmedHint];
    if (market !== undefined && !market.leaving && slackMs(state, market) <= 0) return;
    state.unarmedHint += 1;
  }
  state.allArmedSaid = true;
  const sinceStartMs = state.now.monoMs - state.startedMs;
  out.push({ kind: 'notice', notice: { kind: 'all-armed', markets: state.markets.length, sinceStartMs } });
}

function setWake(state: CoreState): void {
  const { monoMs } = state.now;
  let wakeMs = Math.min(monoMs + TICK_MS, stopWakeMs(state));
  for (const attempt of state.attempts) {
    if (!attempt.aborted && !attempt.overdue) wakeMs = Math.min(wakeMs, attempt.deadlineMs);
  }
  if (state.phase.kind === 'running') {
    for (const base of state.bases) wakeMs = Math.min(wakeMs, base.nextPingMs);
  }
  const restedMs = state.backlog ? state.plannedMs + planLifeMs(state) : state.lastReleaseMs + COALESCE_MS;
  const dueMs = Math.max(state.nextDueMs, restedMs);
  state.wakeAtMs = Math.max(Math.min(wakeMs, dueMs), monoMs);
}
