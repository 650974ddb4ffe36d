import type { Effect } from './events.ts';
import { dueExits, tripDone } from './exit.ts';
import { routeFor, routeOf, usableBases } from './outage.ts';
import { TRIP_MS } from './promise.ts';
import { isThrottled } from './rate.ts';
import { type Candidate, release, waitsForHung } from './release.ts';
import {
  awakeMs,
  awakeSlackMs,
  type BaseState,
  type CoreState,
  isWanted,
  type MarketState,
  slackMs,
} from './state.ts';
import { gapToLastChanceMs, jittered, KEY_PROBE_MS, retryGapMs, SHORTEST_GAP_MS } from './timing.ts';

/** A renewal may be this early: timers of a host fire up to a millisecond before their time. */
const EARLY_MS = 1;
/** More attempts of one market than this in flight at a time only add load. */
const MOST_IN_FLIGHT = 3;

/** Finds what is due now and lets it go, the most urgent first. The only place that decides when next. */
export function plan(state: CoreState, out: Effect[]): void {
  state.nextDueMs = Number.POSITIVE_INFINITY;
  switch (state.phase.kind) {
    case 'running':
      release(state, dueWhileRunning(state), out);
      break;
    case 'stopping':
      // A refused key ends nothing: the stop says so, and leaves the timers to fire.
      release(state, state.unauthorised === null ? [...dueTrips(state), ...dueExits(state)] : [], out);
      break;
    case 'stopped':
      break;
  }
}

function dueWhileRunning(state: CoreState): Candidate[] {
  if (state.unauthorised !== null) return keyProbe(state, state.unauthorised);
  const trips = dueTrips(state);
  const route = routeOf(state);
  if (route === null) return [...trips, ...canaries(state, () => true), ...dueExits(state)];
  const due: MarketState[] = [];
  for (const market of state.markets) {
    if (!isWanted(state, market) || isBusy(state, market)) continue;
    if (market.nextMs <= state.now.monoMs + EARLY_MS) due.push(market);
    else state.nextDueMs = Math.min(state.nextDueMs, market.nextMs);
  }
  const pressingUntilMs = latestPressingMs(state, due);
  due.sort(byUrgency(state, pressingUntilMs));
  // An address that is pinged well again is tried beside the one that stands in for it.
  const returning = canaries(state, ({ pingUp }) => pingUp === true);
  const others = due.filter((market) => returning.every((canary) => canary.market !== market));
  const renewals = others.map((market) => renewal(market, routeFor(state, market), market.timedOut));
  // After a stall everything is due at once: what is to be deleted does not wait for those that have time.
  const withTime = renewals.findIndex(({ market }) => rankOf(state, market, pressingUntilMs) >= RANK.hasTime);
  const pressing = withTime < 0 ? renewals.length : withTime;
  return [
    ...trips,
    ...returning,
    ...renewals.slice(0, pressing),
    ...dueExits(state),
    ...renewals.slice(pressing),
  ];
}

/**
 * Cuts timers to their shortest once nothing in flight could lengthen them again: those of dead bots, and those that an
 * operator trips. A dead bot's timer that has fired is not made again; an operator wants the orders gone in any case.
 */
function dueTrips(state: CoreState): Candidate[] {
  const trips: Candidate[] = [];
  for (const market of state.markets) {
    if (!market.tripWanted || market.inFlight.length > 0) continue;
    const { unresolved, strayAwakeMs, lastsAwakeMs, strayUntilMs } = market.belief;
    const lastsMs = Math.max(lastsAwakeMs, unresolved > 0 ? strayAwakeMs : 0) - awakeMs(state);
    // Without rising nonces a renewal of unknown outcome may still land behind the cut and undo it.
    const fromMs = state.settings.nonce === 'window' ? Math.max(market.nextMs, strayUntilMs) : market.nextMs;
    // A timer that fires sooner by itself must not be lengthened, and one that has fired not be made again.
    const firesByItself =
      lastsMs <= TRIP_MS && (market.hold?.why !== 'tripped' || awakeSlackMs(state, market) > 0);
    if (firesByItself) {
      tripDone(market);
    } else if (fromMs <= state.now.monoMs + EARLY_MS) {
      const base = routeFor(state, market);
      trips.push({ market, purpose: 'trip', base, detached: market.timedOut, onWrite: null });
    } else {
      state.nextDueMs = Math.min(state.nextDueMs, fromMs);
    }
  }
  return trips;
}

/**
 * The key was refused: one attempt of the most urgent market now and then, and nothing else. Where nothing is to be
 * renewed, a trip or a delete that waits finds out about the key.
 */
function keyProbe(state: CoreState, latch: NonNullable<CoreState['unauthorised']>): Candidate[] {
  if (state.now.monoMs < latch.nextProbeMs) return [];
  const market = mostUrgent(state, () => true);
  const probe =
    market === null
      ? [...dueTrips(state), ...dueExits(state)][0]
      : renewal(market, routeFor(state, market), true);
  if (probe === undefined) return [];
  const onWrite = () => {
    latch.nextProbeMs = state.now.monoMs + KEY_PROBE_MS;
  };
  return [{ ...probe, detached: true, onWrite }];
}

/**
 * Every address is out: one request at a time per address finds out when it is back, so that the traffic of an outage
 * does not grow with the markets. The canary is the most urgent renewal that can still be saved, in turns, because a
 * market that is sick by itself must not keep the others from finding out that the exchange is well.
 */
function canaries(state: CoreState, allowed: (base: BaseState) => boolean): Candidate[] {
  const chosen: Candidate[] = [];
  const besideOthers = routeOf(state) !== null;
  for (const base of usableBases(state)) {
    const { outage } = base;
    if (outage === null || !allowed(base)) continue;
    if (state.now.monoMs < outage.nextCanaryMs - EARLY_MS) {
      state.nextDueMs = Math.min(state.nextDueMs, outage.nextCanaryMs);
      continue;
    }
    // Beside an address that works: not one that was written there a moment ago.
    const rested = (one: MarketState) =>
      !besideOthers || state.now.monoMs - one.lastWrittenMs >= SHORTEST_GAP_MS - EARLY_MS;
    const market = mostUrgent(state, (one) => rested(one) && !chosen.some((other) => other.market === one));
    if (market === null) continue;
    const onWrite = () => {
      outage.attempts += 1;
      market.canaryTries += 1;
      const slack = leastSlackMs(state);
      const gapMs = jittered(retryGapMs(slack, isThrottled(state)), state.settings.seed, outage.attempts);
      outage.nextCanaryMs =
        state.now.monoMs + gapToLastChanceMs(slack, gapMs, 4 * (state.roundTripMs ?? 100));
    };
    chosen.push({ ...renewal(market, base.index, true), onWrite });
  }
  return chosen;
}

/** Nothing more for this market now: enough is in flight, or a trip is, which a renewal must not overtake. */
function isBusy(state: CoreState, market: MarketState): boolean {
  const most = waitsForHung(state) ? 1 : MOST_IN_FLIGHT;
  return market.inFlight.length >= most || market.inFlight.some(({ purpose }) => purpose !== 'renew');
}

function mostUrgent(state: CoreState, allowed: (market: MarketState) => boolean): MarketState | null {
  const compare = byUrgency(state, 0);
  let best: MarketState | null = null;
  for (const market of state.markets) {
    if (!isWanted(state, market) || isBusy(state, market) || !allowed(market)) continue;
    // A refused market finds out about the exchange only when its own probe is due.
    if (market.refused !== null && market.nextMs > state.now.monoMs + EARLY_MS) continue;
    if (best === null || comesFirst(state, market, best, compare)) best = market;
  }
  return best;
}

function comesFirst(
  state: CoreState,
  one: MarketState,
  other: MarketState,
  compare: (one: MarketState, other: MarketState) => number,
): boolean {
  const canBeSaved = isSalvageable(state, one);
  if (canBeSaved !== isSalvageable(state, other)) return canBeSaved;
  if (one.canaryTries !== other.canaryTries) return one.canaryTries < other.canaryTries;
  return compare(one, other) < 0;
}

function leastSlackMs(state: CoreState): number {
  let least = Number.POSITIVE_INFINITY;
  for (const market of state.markets) {
    if (isWanted(state, market) && isSalvageable(state, market))
      least = Math.min(least, leftToSaveMs(state, market));
  }
  return least === Number.POSITIVE_INFINITY ? 0 : least;
}

/** In which order what is due goes; within a rank the earliest deadline, or the longest waiting, comes first. */
const RANK = { presses: 0, isNew: 1, hasTime: 2, hasLapsed: 3 } as const;

function rankOf(state: CoreState, market: MarketState, pressingUntilMs: number): number {
  if (isSalvageable(state, market))
    return leftToSaveMs(state, market) > pressingUntilMs ? RANK.hasTime : RANK.presses;
  return market.confirmedOnce ? RANK.hasLapsed : RANK.isNew;
}

/** The latest deadline among those that have lost half of their time: with what ends sooner they go before all else. */
function latestPressingMs(state: CoreState, due: readonly MarketState[]): number {
  let latestMs = 0;
  for (const market of due) {
    const leftMs = leftToSaveMs(state, market);
    if (isSalvageable(state, market) && leftMs * 2 <= market.settings.timeoutMs)
      latestMs = Math.max(latestMs, leftMs);
  }
  return latestMs;
}

/**
 * Earliest deadline first over what can still be saved, then what has lapsed, the longest waiting first. A market that
 * was never armed goes behind those of which more than half of their time is gone, and before those that have time.
 */
function byUrgency(
  state: CoreState,
  pressingUntilMs: number,
): (one: MarketState, other: MarketState) => number {
  return (one, other) => {
    const rank = rankOf(state, one, pressingUntilMs) - rankOf(state, other, pressingUntilMs);
    if (rank !== 0) return rank;
    if (isSalvageable(state, one)) return leftToSaveMs(state, one) - leftToSaveMs(state, other);
    return one.nextMs - other.nextMs;
  };
}

/**
 * Until when a renewal may save the timer. Where the wall clock was set ahead and no slack is left by the count that
 * includes it, most likely no time has passed, and the timer still runs: it must not wait behind all that have time.
 */
function leftToSaveMs(state: CoreState, market: MarketState): number {
  const slack = slackMs(state, market);
  return slack > (state.roundTripMs ?? 0) ? slack : awakeSlackMs(state, market);
}

/** Could a renewal that is written now still reach the exchange before the timer fires? */
function isSalvageable(state: CoreState, market: MarketState): boolean {
  return leftToSaveMs(state, market) > (state.roundTripMs ?? 0);
}

function renewal(market: MarketState, base: number, detached: boolean): Candidate {
  return { market, purpose: 'renew', base, detached, onWrite: null };
}
