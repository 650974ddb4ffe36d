import { hasSurelyFired } from './belief.ts';
import { beginStop, judgeStop, stopWakeMs } from './drain.ts';
import type { CoreEvent, Effect } from './events.ts';
import { hearBot, isAlive, judgeBots } from './evidence.ts';
import { hearPing, judgeSilence, pingBases } from './outage.ts';
import { plan } from './plan.ts';
import { plannedPerSecond } from './rate.ts';
import { takePermits } from './release.ts';
import { settle } from './settle.ts';
import { awakeSlackMs, type CoreState, isWanted, slackMs } from './state.ts';
import { type Instant, lifeMs, observeClocks } from './time.ts';
import { planCadence } from './timing.ts';

/** The core looks at the clocks at least this often: that is how it notices that time was lost. */
const TICK_MS = 250;
/** What becomes due within this is released together: at scale wake-ups cost more than requests. */
const COALESCE_MS = 25;
const REPLAN_MS = 5000;
/** Share of 1/round trip that requests one after the other are planned to use. */
const SERIAL_SHARE = 0.8;
const RECOVERY_MS = 10_000;
const RECOVERY_STEP = 0.25;

/**
 * One step of the core: takes in what happened, changes the state in place and returns what is to be done, in order.
 * Pure but for the state: no clock, no randomness, no input or output. The same events give the same effects.
 */
export function step(state: CoreState, event: CoreEvent, now: Instant): Effect[] {
  const out: Effect[] = [];
  passTime(state, now, out);
  judgeBots(state, out);
  let plansAgain = state.backlog;
  switch (event.kind) {
    case 'tick':
      plansAgain = true;
      break;
    case 'granted':
      takePermits(state, event.permits, event.how, out);
      plansAgain = true;
      break;
    case 'settled':
      plansAgain ||= event.outcome.kind !== 'applied' || state.bases.some(({ outage }) => outage !== null);
      settle(state, event.attempt, event.outcome, out);
      plansAgain ||= state.phase.kind === 'stopping';
      break;
    case 'pinged':
      hearPing(state, event, out);
      plansAgain = true;
      break;
    case 'evidence':
      hearBot(state, event.bot, event.says, out);
      plansAgain = true;
      break;
    case 'credentials-changed':
      state.authorisedOnce = false;
      state.keySinceMs = now.monoMs;
      state.unauthorisedStreak = 0;
      if (state.unauthorised !== null)
        state.unauthorised = { ...state.unauthorised, nextProbeMs: now.monoMs };
      plansAgain = true;
      break;
    case 'stop':
      beginStop(state, event.policy, event.why, out);
      plansAgain = true;
      break;
  }
  if (plansAgain) {
    sweep(state, out);
    plan(state, out);
  }
  judgeStop(state, out);
  sayAllArmed(state, out);
  setWake(state);
  return out;
}

/**
 * May this attempt's first byte leave now? Asked right before the write, after whatever connection had to be opened:
 * the evidence may have run out, or the host may have slept, in the meantime.
 */
export function mayWrite(state: CoreState, id: number, now: Instant): boolean {
  const attempt = state.attempts.get(id);
  if (attempt === undefined || attempt.aborted || attempt.epoch !== state.epoch) return false;
  // The host stood still since this was prepared, and the core has not been told yet.
  if (now.monoMs - state.wakeAtMs > TICK_MS) return false;
  if (attempt.purpose === 'delete') return true;
  if (attempt.purpose === 'trip') return attempt.market.tripWanted;
  const probe = { ...state.timebase };
  const jumps = observeClocks(probe, now);
  if (jumps.length > 0) return false;
  const bot = state.bots.get(attempt.market.settings.bot);
  if (bot === undefined || !isAlive(state, bot, lifeMs(probe, now))) return false;
  if (state.phase.kind === 'running') return isWanted(state, attempt.market);
  return state.phase.kind === 'stopping' && attempt.market.exit?.want === 'handoff';
}

/** Reads the clocks. Lost time means: nothing that was prepared may leave, and everything is renewed. */
function passTime(state: CoreState, now: Instant, out: Effect[]): void {
  const lateMs = now.monoMs - state.wakeAtMs;
  const jumps = observeClocks(state.timebase, now);
  state.now = now;
  state.lifeMs = lifeMs(state.timebase, now);
  if (lateMs > TICK_MS) out.push({ kind: 'notice', notice: { kind: 'stall', what: 'stall', byMs: lateMs } });
  for (const jump of jumps) {
    out.push({ kind: 'notice', notice: { kind: 'stall', ...jump } });
    if (jump.what === 'suspend' && state.phase.kind === 'stopping') state.phase.budgetEndMs -= jump.byMs;
  }
  if (lateMs <= TICK_MS && jumps.every(({ byMs }) => byMs < 0)) return;
  state.epoch += 1;
  state.permits = 0;
  for (const market of state.markets) {
    if (market.refused === null) market.nextMs = Math.min(market.nextMs, now.monoMs);
  }
  // Answers may lie unread in the socket: give them a moment before the attempts are given up.
  for (const attempt of state.attempts.values())
    attempt.deadlineMs = Math.max(attempt.deadlineMs, now.monoMs + TICK_MS);
}

/** What time alone brings about. */
function sweep(state: CoreState, out: Effect[]): void {
  const { monoMs } = state.now;
  for (const attempt of state.attempts.values()) {
    if (attempt.aborted || monoMs < attempt.deadlineMs) continue;
    attempt.aborted = true;
    out.push({ kind: 'abort', attempt: attempt.id });
  }
  if (state.phase.kind === 'running') {
    judgeSilence(state, out);
    judgeLapses(state, out);
    pingBases(state, out);
    easeCadence(state, out);
  }
}

/** A guarantee that ran out is said once; a timer that must have fired is a lapse even while nobody answers. */
function judgeLapses(state: CoreState, out: Effect[]): void {
  for (const market of state.markets) {
    if (market.overdueSaid && market.lapseSaid) continue;
    if (market.belief.notBeforeLifeMs === null || awakeSlackMs(state, market) > 0 || !isWanted(state, market))
      continue;
    const name = market.settings.market;
    if (!market.overdueSaid) {
      market.overdueSaid = true;
      const expiryWallMs = market.belief.expiryWallMs ?? state.now.wallMs;
      out.push({ kind: 'notice', notice: { kind: 'overdue', market: name, expiryWallMs } });
    }
    if (market.lapseSaid || !hasSurelyFired(state, market)) continue;
    market.lapseSaid = true;
    market.lapses += 1;
    const rearms = state.settings.onLapse === 'rearm';
    market.held = !rearms;
    const gapMs = state.now.monoMs - market.lastConfirmedMs;
    const { unresolved } = market.belief;
    out.push({
      kind: 'notice',
      notice: { kind: 'lapsed', market: name, certainty: 'certain', gapMs, unresolved, rearms },
    });
  }
}

/** Lets the cadence follow what the connection carries, and recover from throttling in small steps. */
function easeCadence(state: CoreState, out: Effect[]): void {
  const { monoMs } = state.now;
  if (monoMs < state.nextReplanMs) return;
  state.nextReplanMs = monoMs + REPLAN_MS;
  if (state.cadenceFactor > 1 && monoMs - state.lastThrottledMs > RECOVERY_MS) {
    state.cadenceFactor = Math.max(1, state.cadenceFactor - RECOVERY_STEP);
  }
  const { nonce, markets } = state.settings;
  const limitPerSecond = plannedPerSecond(state.settings, state.roundTripMs);
  const carriesPerSecond =
    nonce === 'increasing' && state.roundTripMs !== null
      ? (SERIAL_SHARE * 1000) / Math.max(state.roundTripMs, 0.1)
      : Number.POSITIVE_INFINITY;
  const capacityPerSecond = Math.min(limitPerSecond, carriesPerSecond);
  if (Math.abs(capacityPerSecond / state.capacityPerSecond - 1) < 0.1) return;
  state.capacityPerSecond = capacityPerSecond;
  const { periodsMs, problems } = planCadence(markets, capacityPerSecond);
  let moved = false;
  for (const market of state.markets) {
    const periodMs = periodsMs[market.index] ?? market.periodMs;
    moved ||= Math.abs(periodMs / market.periodMs - 1) > 0.1;
    market.periodMs = periodMs;
    market.phaseMs = (periodMs * market.index) / Math.max(1, state.markets.length);
  }
  if (!moved && problems.length === 0) return;
  const detail =
    problems[0] ??
    `requests one after the other carry ${capacityPerSecond.toFixed(1)} renewals a second at a round trip of ${(state.roundTripMs ?? 0).toFixed(1)} ms; the cadence follows`;
  out.push({ kind: 'notice', notice: { kind: 'cadence', detail, capacityPerSecond } });
}

function sayAllArmed(state: CoreState, out: Effect[]): void {
  if (state.allArmedSaid || state.phase.kind !== 'running') return;
  if (state.markets.some((market) => slackMs(state, market) <= 0)) return;
  state.allArmedSaid = true;
  const sinceStartMs = state.now.monoMs - state.startedMs;
  out.push({ kind: 'notice', notice: { kind: 'all-armed', markets: state.markets.length, sinceStartMs } });
}

function setWake(state: CoreState): void {
  const { monoMs } = state.now;
  let wakeMs = Math.min(monoMs + TICK_MS, stopWakeMs(state));
  for (const attempt of state.attempts.values()) {
    if (!attempt.aborted) wakeMs = Math.min(wakeMs, attempt.deadlineMs);
  }
  if (state.phase.kind === 'running') {
    for (const base of state.bases) wakeMs = Math.min(wakeMs, base.nextPingMs);
  }
  const dueMs = Math.max(state.nextDueMs, state.backlog ? monoMs : state.lastReleaseMs + COALESCE_MS);
  state.wakeAtMs = Math.max(Math.min(wakeMs, dueMs), monoMs);
}
