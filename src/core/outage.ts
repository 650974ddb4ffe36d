import { dueBy, hurry } from './due.ts';
import type { Effect } from './events.ts';
import type { Pinged } from './outcome.ts';
import type { Attempt, BaseState, CoreState, MarketState } from './state.ts';

/** This many failures in a row, of more than one market, are an outage of the address and not a sick market. */
const FAILURES = 3;
/** While an address is down it is pinged this often, so that its recovery is seen at once. */
const RECOVERY_PING_MS = 500;
/** An attempt that is unanswered for this long, and for eight round trips, is silent. */
const SILENT_MS = 500;

/** Something of the API itself answered: the address works, whatever it said. */
export function heardFrom(state: CoreState, base: BaseState, out: Effect[]): void {
  base.failures = 0;
  base.firstFailed = null;
  base.severalFailed = false;
  base.lastAnswerMs = state.now.monoMs;
  if (base.outage === null) return;
  const { sinceMs, attempts } = base.outage;
  base.outage = null;
  // The order of the last plan left out those that had failed.
  state.plannedEpoch = -1;
  const lastedMs = state.now.monoMs - sinceMs;
  out.push({ kind: 'notice', notice: { kind: 'outage-ended', base: base.index, lastedMs, attempts } });
  for (const market of state.markets) {
    market.canaryTries = 0;
    const missedOne = market.cycleSinceMs !== null || market.nextMs <= state.now.monoMs;
    if (market.refused === null && missedOne && market.lastConfirmedMs < sinceMs) hurry(state, market);
  }
}

/** An attempt over this address came to nothing. What was written before the last answer says nothing about it. */
export function failedAt(
  state: CoreState,
  base: BaseState,
  attempt: Attempt,
  detail: string,
  out: Effect[],
): void {
  if (attempt.writtenMs < base.lastAnswerMs) return;
  const { market } = attempt;
  base.failures += 1;
  base.severalFailed ||= base.firstFailed !== null && base.firstFailed !== market;
  base.firstFailed ??= market;
  if (base.failures >= FAILURES && base.severalFailed) beginOutage(state, base, detail, out);
}

/**
 * A black hole answers nothing, and waiting for attempt deadlines before believing it would let requests pile up:
 * several markets unanswered for much longer than a round trip, and nobody answered since, are an outage too.
 */
export function judgeSilence(state: CoreState, out: Effect[]): void {
  for (const base of state.bases) {
    let count = 0;
    let first: MarketState | null = null;
    let several = false;
    for (const attempt of state.attempts.values()) {
      if (attempt.base !== base.index || attempt.writtenMs < base.lastAnswerMs) continue;
      if (state.now.monoMs - attempt.writtenMs < silentMs(state, attempt.market)) continue;
      count += 1;
      several ||= first !== null && first !== attempt.market;
      first ??= attempt.market;
    }
    if (count >= FAILURES && several) {
      beginOutage(state, base, `${count} requests unanswered for ${SILENT_MS} ms or more`, out);
    }
  }
}

/** Unanswered for longer than this is silent. */
function silentMs(state: CoreState, { roundTrip }: MarketState): number {
  return Math.max(SILENT_MS, 8 * (roundTrip?.meanMs ?? state.roundTripMs ?? 100));
}

/** The market itself has failed, or is silent: during an outage the canaries stand for it. */
export function isFailing(state: CoreState, market: MarketState): boolean {
  if (market.streak > 0 || market.timedOut) return true;
  const [oldest] = market.inFlight;
  return oldest !== undefined && state.now.monoMs - oldest.writtenMs >= silentMs(state, market);
}

function beginOutage(state: CoreState, base: BaseState, detail: string, out: Effect[]): void {
  if (base.outage !== null) return;
  base.outage = { sinceMs: state.now.monoMs, attempts: 0, nextCanaryMs: state.now.monoMs, lastCanary: null };
  base.nextPingMs = Math.min(base.nextPingMs, state.now.monoMs);
  out.push({ kind: 'notice', notice: { kind: 'outage-began', base: base.index, detail } });
}

/** Sends what pings are due. A ping informs; it neither gates a renewal nor counts as one. */
export function pingBases(state: CoreState, out: Effect[]): void {
  const { everyMs, timeoutMs } = state.settings.ping;
  for (const base of state.bases) {
    if (state.now.monoMs < base.nextPingMs) continue;
    const hurried = base.outage !== null || base.pingUp === false;
    base.nextPingMs = state.now.monoMs + (hurried ? Math.min(RECOVERY_PING_MS, everyMs) : everyMs);
    out.push({ kind: 'ping', base: base.index, timeoutMs });
  }
}

/** A ping was answered, or given up. An address that comes back lets the canary go at once. */
export function hearPing(state: CoreState, event: Pinged, out: Effect[]): void {
  const base = state.bases[event.base];
  if (base === undefined) return;
  const changed = base.pingUp !== event.ok;
  const cameBack = base.pingUp === false && event.ok;
  base.pingUp = event.ok;
  base.pingMs = event.ok ? event.latencyMs : null;
  base.pingProblem = event.ok ? null : event.detail;
  if (!event.ok) base.nextPingMs = Math.min(base.nextPingMs, state.now.monoMs + RECOVERY_PING_MS);
  out.push({ kind: 'notice', notice: { ...event, changed } });
  if (!cameBack) return;
  if (base.outage !== null) base.outage.nextCanaryMs = state.now.monoMs;
  for (const market of state.markets) {
    if (market.streak > 0 && market.refused === null) dueBy(state, market, state.now.monoMs);
  }
}

/**
 * The address that renewals take now, or null where every usable one is out. Others than the first count only when
 * the configuration says that they serve the same account.
 */
export function routeOf(state: CoreState): BaseState | null {
  for (const base of usableBases(state)) {
    if (base.outage === null && (base.index === 0 || base.pingUp !== false)) return base;
  }
  return null;
}

export function usableBases(state: CoreState): readonly BaseState[] {
  return state.settings.sameAccount ? state.bases : state.bases.slice(0, 1);
}

/**
 * Index of the address for the market's next request. A market that has no answer yet tries them in turns: the failures
 * of one market alone never make an outage, and the other address may be well.
 */
export function routeFor(state: CoreState, market: MarketState): number {
  const bases = usableBases(state);
  const route = routeOf(state);
  const open = bases.filter(
    (base) => route === null || base === route || (base.outage === null && base.pingUp !== false),
  );
  const tries = market.inFlight.length + market.streak;
  return open[tries % open.length]?.index ?? 0;
}
