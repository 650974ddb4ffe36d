import { dueUntil, isEnding } from './due.ts';
import type { Effect } from './events.ts';
import { dueExits, tripDone } from './exit.ts';
import { isFailing, routeFor, routeOf, usableBases } from './outage.ts';
import { TRIP_MS } from './promise.ts';
import { isThrottled, reserved, roomInWindow } from './rate.ts';
import { type Candidate, longestAnswerMs, outlivesLane, release, releaseNext } from './release.ts';
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
import { byUrgency, canSaveAny, isSalvageable, leftToSaveMs, orderOf, RANK, rankOf } from './urgency.ts';

/** A renewal may be this early: timers of a host fire up to a millisecond before their time. */
const EARLY_MS = 1;
/** More attempts of one market than this in flight at a time only add load. */
const MOST_IN_FLIGHT = 3;

/** A stop with a refused key shows it this often. */
const KEY_PROBE_OF_STOP_MS = 500;

/** The longest that an order of urgency may be gone by. */
const PLAN_LIFE_MS = 25;

/** A plan that takes this long serves one request for so many markets that it looked at, unless it is older than this. */
const COSTLY_PLAN_MS = 2.5;
const MARKETS_PER_RELEASE = 64;
const LONGEST_PLAN_LIFE_MS = 250;
/** No more than this can leave before the next plan is made. */
const MOST_PLANNED = 2048;

/**
 * How long the order that the last plan found is good for: next to nothing for few markets, 25 ms for ten thousand. A
 * plan that hardly anything was taken from yet lives longer: on a host that is short of time each would be too old by
 * the next answer, and nothing else be done than plan.
 */
export function planLifeMs(state: CoreState): number {
  const { length } = state.markets;
  const costMs = length / state.settings.looksPerMs;
  if (costMs >= COSTLY_PLAN_MS && state.queueHead < length / MARKETS_PER_RELEASE) return LONGEST_PLAN_LIFE_MS;
  return Math.min(PLAN_LIFE_MS, costMs);
}

/**
 * Lets go what the last plan had to leave behind, in its order. What has become due since waits for the next plan, which
 * is made when the last one is too old, and wherever more has changed than that an answer or a permit came.
 */
export function planOn(state: CoreState, out: Effect[]): boolean {
  const isFresh =
    state.now.monoMs - state.plannedMs < planLifeMs(state) && state.plannedEpoch === state.epoch;
  const isCalm = state.unauthorised === null && state.bases.every(({ outage }) => outage === null);
  const head = state.queue[state.queueHead];
  if (!isFresh || !isCalm || head === undefined || roomInWindow(state) <= reserved(state)) return false;
  releaseNext(state, (candidate) => isStillDue(state, candidate), out);
  return true;
}

/** Whether a plan that is made now would find the candidate as well, and in no later place. */
function isStillDue(state: CoreState, { market, purpose }: Candidate): boolean {
  // Renewed since, and maybe due again: that is for the next plan.
  if (market.nextMs > state.plannedMs + EARLY_MS) return false;
  const { inFlight, exit } = market;
  if (purpose === 'delete') {
    const others = inFlight.some((attempt) => attempt.purpose !== 'delete');
    return exit?.want === 'delete' && !exit.done && !others && inFlight.length < MOST_IN_FLIGHT;
  }
  if (exit !== null) return exit.want === 'handoff' && !exit.done && inFlight.length === 0;
  if (wasSalvageable(state, market) && !isSalvageable(state, market)) {
    // What can be saved no longer goes behind what still can: the next plan finds its place.
    state.nextDueMs = state.now.monoMs;
    return false;
  }
  return isWanted(state, market) && !isBusy(market);
}

/** Could a renewal have saved the timer when the last plan was made? */
function wasSalvageable(state: CoreState, market: MarketState): boolean {
  if (market.belief.notBeforeLifeMs === null) return false;
  const leftMs = Math.max(slackMs(state, market), awakeSlackMs(state, market));
  return leftMs + state.now.monoMs - state.plannedMs > state.plannedRoundTripMs;
}

/** Finds what is due now and lets it go, the most urgent first. The only place that decides when next. */
export function plan(state: CoreState, out: Effect[]): void {
  // What is due after that is not known yet.
  state.nextDueMs = dueUntil(state, state.now.monoMs + EARLY_MS).untilMs;
  state.plannedMs = state.now.monoMs;
  state.plannedEpoch = state.epoch;
  state.plannedRoundTripMs = state.roundTripMs ?? 0;
  switch (state.phase.kind) {
    case 'running':
      release(state, dueWhileRunning(state, out), out);
      break;
    case 'stopping':
      release(state, dueWhileStopping(state), out);
      break;
    case 'stopped':
      break;
  }
}

/** A refused key may be good again within the budget: one request at a time finds out. */
function dueWhileStopping(state: CoreState): Candidate[] {
  if (state.unauthorised === null) return dueEndings(state);
  const rested = state.now.monoMs - state.lastReleaseMs >= KEY_PROBE_OF_STOP_MS;
  const probe = rested && state.attempts.length === 0 ? dueEndings(state)[0] : undefined;
  return probe === undefined ? [] : [{ ...probe, detached: true }];
}

function dueWhileRunning(state: CoreState, out: Effect[]): Candidate[] {
  // While a timer can be saved, a refused key is a failure like any other: it is tried again in time for the deadline.
  if (state.unauthorised !== null && !canSaveAny(state)) return keyProbe(state, state.unauthorised);
  const route = routeOf(state);
  const dueMs = state.now.monoMs + EARLY_MS;
  const due: MarketState[] = [];
  const ending: MarketState[] = [];
  const soon = dueUntil(state, dueMs);
  for (let place = 0; place < soon.atMs.length; place += 1) {
    const atMs = soon.atMs[place] ?? 0;
    const market = soon.markets[place];
    // Most are neither due nor the next one: nothing else about them needs to be looked at.
    if ((atMs > dueMs && atMs >= state.nextDueMs) || market === undefined) continue;
    if (isEnding(market)) ending.push(market);
    if (!isWanted(state, market) || (route === null && isFailing(state, market))) continue;
    if (market.nextMs <= dueMs) makePlace(state, market, out);
    if (isBusy(market)) continue;
    if (market.nextMs <= dueMs) due.push(market);
    else state.nextDueMs = Math.min(state.nextDueMs, market.nextMs);
  }
  // A trip or a delete has no deadline: it waits until the key is accepted.
  const trips = state.unauthorised === null ? dueTrips(state, ending) : [];
  const exits = state.unauthorised === null ? dueExits(state, ending) : [];
  const { markets: inOrder, pressingUntilMs } = orderOf(state, due, MOST_PLANNED);
  // Those behind are found by the next plan.
  if (inOrder.length < due.length) state.nextDueMs = state.now.monoMs;
  // An address that is pinged well again is tried beside the one that stands in for it.
  const returning = canaries(state, ({ pingUp }) => route === null || pingUp === true);
  const others =
    returning.length === 0
      ? inOrder
      : inOrder.filter((market) => returning.every((canary) => canary.market !== market));
  // After a stall everything is due at once: what is to be deleted does not wait for those that have time.
  const withTime = others.findIndex((market) => rankOf(state, market, pressingUntilMs) > RANK.presses);
  const pressing = withTime < 0 ? others.length : withTime;
  const renewals = others.map((market, place) =>
    renewal(
      market,
      routeFor(state, market),
      market.timedOut || paysAlone(state, market),
      place >= pressing,
      market.timedOut,
    ),
  );
  return [...trips, ...returning, ...renewals.slice(0, pressing), ...exits, ...renewals.slice(pressing)];
}

/** Trips, and then what exits want to write. */
function dueEndings(state: CoreState): Candidate[] {
  const ending = dueUntil(state, state.now.monoMs).markets;
  return [...dueTrips(state, ending), ...dueExits(state, ending)];
}

/**
 * Cuts timers to their shortest once nothing in flight could lengthen them again: those of dead bots, and those that an
 * operator trips. A dead bot's timer that has fired is not made again; an operator wants the orders gone in any case.
 */
function dueTrips(state: CoreState, ending: readonly MarketState[]): Candidate[] {
  const trips: Candidate[] = [];
  for (const market of ending) {
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
      trips.push({ market, purpose: 'trip', base, detached: market.timedOut, paced: false, onWrite: null });
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
  const probe = market === null ? dueEndings(state)[0] : renewal(market, routeFor(state, market), true);
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

/**
 * A new attempt needs the place of one that will hardly be answered any more. The oldest stays: it shows how long an
 * answer takes.
 */
function makePlace(state: CoreState, market: MarketState, out: Effect[]): void {
  const [, second] = market.inFlight;
  if (second === undefined || market.inFlight.length < MOST_IN_FLIGHT) return;
  if (market.inFlight.some(({ aborted, purpose }) => aborted || purpose !== 'renew')) return;
  if (state.now.monoMs - second.writtenMs < longestAnswerMs(state, market)) return;
  second.aborted = true;
  out.push({ kind: 'abort', attempt: second.id });
}

/** Nothing more for this market now: enough is in flight, or a trip is, which a renewal must not overtake. */
function isBusy(market: MarketState): boolean {
  return (
    market.inFlight.length >= MOST_IN_FLIGHT || market.inFlight.some(({ purpose }) => purpose !== 'renew')
  );
}

function mostUrgent(state: CoreState, allowed: (market: MarketState) => boolean): MarketState | null {
  const compare = byUrgency(state, 0);
  let best: MarketState | null = null;
  for (const market of state.markets) {
    if (!isWanted(state, market) || isBusy(market) || !allowed(market)) continue;
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

function renewal(
  market: MarketState,
  base: number,
  detached: boolean,
  paced = false,
  fresh = detached,
): Candidate {
  return { market, purpose: 'renew', base, detached, paced, fresh, onWrite: null };
}

/** The market is slow by itself, or unanswered: one more attempt of it holds up nobody else. */
function paysAlone(state: CoreState, market: MarketState): boolean {
  if (state.settings.nonce === 'window') return false;
  return outlivesLane(state, market) || market.inFlight.length > 0;
}
