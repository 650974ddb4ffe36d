import { believeWritten, isOvertaken, lastsUntilAwakeMs } from './belief.ts';
import type { Purpose } from './events.ts';
import {
  answerTimeMs,
  EARLY_MS,
  gapToKeyProbeMs,
  gapToProbeMs,
  hasFailed,
  isInDoubt,
  isSalvageable,
  lastMomentMs,
  leastSlackMs,
  leftToSaveMs,
  lookAgainAt,
  MOST_OPEN,
  schedule,
  untilPressedMs,
} from './next.ts';
import { LONGEST_LANE_MS, SHORTEST_GAP_MS, TRIP_MS } from './promise.ts';
import { type Attempt, type BaseState, type CoreState, type MarketState, type Write } from './state.ts';
import { clamp } from './time.ts';

const LEAST_OWN = 64;

/** An answer that takes this many times as long as the market's answers did is overdue: its request may give way. */
const OVERDUE_FACTOR = 1.25;

/** The first number of each rank. What is added, milliseconds or thousandths of a timeout, is far less than their gaps. */
const RANK = { turn: -1e12, presses: 0, ends: 5e11, waited: 1e12, hasTime: 2e12, lapsed: 3e12 } as const;
/** What has lapsed, is new, or is to end lets the others go first for this long. Once in this time one goes before them. */
const LAPSED_WAITS_MS = 5000;

/**
 * The place in the order. The earliest deadline goes first, down to the timers that have lost half of their time, also of
 * those that are to be deleted: hundreds of deletes must not let others fire. Then the first attempt to end a timer; then
 * what has time, the least share of its timeout first, so that short timers leave tokens to long ones; then what has lapsed
 * or is new, and what failed to end a timer. After a few seconds these go before what has time, and every few seconds one
 * before all: who uses up the budget or the wire must not leave the others without both.
 */
function rankOf(state: CoreState, { market, leftMs }: Due, pressingUntilMs: number): number {
  const waitedMs = state.now.monoMs - market.nextMs;
  const isEnd = market.goal === 'delete' || market.goal === 'trip';
  const canBeSaved = market.goal !== 'trip' && isSalvageable(state, market, leftMs);
  if (isEnd ? market.streak > 0 : !canBeSaved)
    return (waitedMs > LAPSED_WAITS_MS ? RANK.waited : RANK.lapsed) - waitedMs;
  if (canBeSaved && leftMs <= pressingUntilMs) return RANK.presses + leftMs;
  if (isEnd) return RANK.ends - waitedMs;
  return RANK.hasTime + (1000 * leftMs) / market.settings.timeoutMs;
}

/**
 * The market that goes before what presses: of those that are not surely armed, or are to end, the one that has waited
 * longest. Null for a few seconds after the last turn: who is armed must stay so.
 */
function whoseTurn(state: CoreState, due: readonly Due[]): MarketState | null {
  if (state.now.monoMs - state.turnMs <= LAPSED_WAITS_MS) return null;
  let longest: MarketState | null = null;
  for (const { market } of due)
    if (waitsLong(state, market) && (longest === null || market.nextMs < longest.nextMs)) longest = market;
  return longest;
}

function waitsLong(state: CoreState, market: MarketState): boolean {
  const isLong = state.now.monoMs - market.nextMs > LAPSED_WAITS_MS;
  return isLong && (market.goal !== 'guard' || state.slackMs(market) <= 0);
}

/** A market that is due, and how long a renewal may still save its timer. */
interface Due {
  readonly market: MarketState;
  readonly leftMs: number;
}

/** The latest deadline among the timers that have lost half of their time: what ends before it presses as well. */
function pressingUntil(state: CoreState, due: readonly Due[]): number {
  let untilMs = 0;
  for (const { market, leftMs } of due) {
    if (leftMs * 2 <= market.settings.timeoutMs && isSalvageable(state, market, leftMs))
      untilMs = Math.max(untilMs, leftMs);
  }
  return untilMs;
}

/** Writes the requests that are due, the most urgent first, as far as lanes and tokens reach. */
export function dispatch(state: CoreState): void {
  if (state.phase.kind === 'stopped') return;
  const isAnew = !state.isRecent;
  if (!isAnew && state.queue.length === 0) return;
  state.forgetSettled();
  const refused = state.key.refusal.said;
  const full = new Set<boolean>();
  if (isAnew) {
    order(state);
    endLongLanes(state);
    const probes = refused === null ? dueProbes(state) : dueKeyProbe(state);
    for (const [market, base] of probes) {
      const { nextAttemptId } = state;
      if (!send(state, market, base, full)) return;
      noteProbe(state, base, state.nextAttemptId > nextAttemptId);
    }
  }
  const left: MarketState[] = [];
  const takers = state.usableBases.filter((base) => base.takesRenewals);
  // A failed ping alone keeps no renewal from an address where no other one is well: the API may work all the same.
  const open = takers.length > 0 ? takers : state.usableBases.filter(({ outage }) => outage === null);
  for (const [place, market] of state.queue.entries()) {
    if (!isDue(state, market)) continue;
    // A refused key gates the markets that have met it, or were never armed, as an outage does: one probe at a time finds out.
    if (
      refused !== null &&
      (market.goal !== 'guard' || market.stats.renewals === 0 || hasFailed(state, market))
    )
      continue;
    const base = routeFor(state, market, open);
    if (base === null) continue;
    if (send(state, market, base, full)) continue;
    // No lane was full, so the bucket is empty, and the rest waits in its order. Where thousands wait for lanes, an answer
    // looks for no other market either.
    if (full.size === 0 || !isAnew) {
      left.push(...state.queue.slice(place));
      break;
    }
    left.push(market);
  }
  state.queue = left;
}

/** Finds the markets that are due and puts them in order. */
function order(state: CoreState): void {
  const { monoMs } = state.now;
  state.orderedMs = monoMs;
  state.nextDueMs = Number.POSITIVE_INFINITY;
  const due: Due[] = [];
  for (const market of state.markets) {
    if (market.nextMs > monoMs + EARLY_MS) lookAgainAt(state, market.nextMs);
    else due.push({ market, leftMs: leftToSaveMs(state, market) });
  }
  const untilMs = pressingUntil(state, due);
  const turn = whoseTurn(state, due);
  const ranks = new Map(
    due.map((one) => [one.market, one.market === turn ? RANK.turn : rankOf(state, one, untilMs)]),
  );
  state.queue = [...ranks].toSorted(([, one], [, other]) => one - other).map(([market]) => market);
}

function isDue(state: CoreState, { nextMs }: MarketState): boolean {
  return nextMs <= state.now.monoMs + EARLY_MS;
}

/**
 * Writes the market's next attempt, unless it waits for its own requests, or needs none. False where no token or no lane
 * is free: then others wait as well. `full` remembers which kind of lane has none left.
 */
function send(state: CoreState, market: MarketState, base: BaseState, full: Set<boolean>): boolean {
  if (markDone(state, market)) return true;
  const open = market.openWrites;
  const purpose: Purpose = market.goal === 'trip' || market.goal === 'delete' ? market.goal : 'renew';
  // A renewal must not overtake what ends or shortens the timer, nor be overtaken by it.
  const beside = market.onTheirWay;
  const waitsForAll = market.goal === 'trip' || market.goal === 'renew-once';
  const before = beside.filter((other) => waitsForAll || other.purpose !== purpose);
  if (before.length > 0) {
    endOverdue(state, market, before);
    return true;
  }
  // The oldest is awaited as long as it may be answered, so that the daemon learns how slow the exchange is. Another one
  // gives way; but where a newer one was confirmed, the oldest does: it teaches nothing any more, and most likely is lost.
  const givesWay = open.length < MOST_OPEN ? undefined : open[isOvertaken(market, open[0]) ? 0 : 1];
  if (givesWay !== undefined && waitsFor(state, market, givesWay)) return true;
  const lane = laneOf(state, market);
  // Where one found no lane, no other does: thousands that each look for one would stop the loop.
  if (full.has(lane.own) || !hasLane(state, lane)) {
    full.add(lane.own);
    return false;
  }
  if (state.tokens < 1) {
    lookAgainAt(state, state.tokenAtMs);
    return false;
  }
  if (givesWay !== undefined) giveUp(state, givesWay);
  if (waitsLong(state, market)) state.turnMs = state.now.monoMs;
  write(state, market, { purpose, base, ...lane });
  return true;
}

/**
 * A request that may still be answered in the usual time does not give way, as long as the timer can wait. Giving up ends
 * its connection, and perhaps its way through a slow exchange: a market that always did so would never be answered.
 */
function waitsFor(state: CoreState, market: MarketState, attempt: Write): boolean {
  const overdueAtMs = attempt.at.monoMs + OVERDUE_FACTOR * answerTimeMs(state, market);
  const untilMs = Math.min(overdueAtMs, state.now.monoMs + untilPressedMs(state, market));
  if (untilMs <= state.now.monoMs) return false;
  lookAgainAt(state, untilMs);
  return true;
}

/** Gives up what the market's next request waits for: after three answer times, at least 1 s; sooner where it cannot wait. */
function endOverdue(state: CoreState, market: MarketState, attempts: readonly Write[]): void {
  for (const attempt of attempts) {
    const listensMs = attempt.at.monoMs + Math.max(1000, 3 * answerTimeMs(state, market));
    const untilMs = Math.min(listensMs, lastMomentMs(state, market, attempts));
    if (untilMs <= state.now.monoMs) giveUp(state, attempt);
    else if (attempt.status === 'open') lookAgainAt(state, untilMs);
  }
}

/** Marks what needs no request: nothing of ours is armed, or the timer fires sooner than after a trip. */
function markDone(state: CoreState, market: MarketState): boolean {
  if (market.goal === 'delete') {
    // Only what this process armed is deleted.
    const armed = market.belief.writes.some(({ id }) => id > 0);
    // A stop goes on until its delete is confirmed: else nobody knows which came first, the delete or the firing.
    const awaits = state.phase.kind === 'stopping' && market.armedUntilAwakeMs !== null;
    const isGone = !armed || !state.mayFire(market.belief);
    market.reached = !awaits && isGone;
  } else if (market.goal === 'trip') {
    const firesSoon = lastsUntilAwakeMs(state, market) - state.awakeMs <= TRIP_MS;
    if (firesSoon && (market.hold?.why !== 'tripped' || state.awakeSlackMs(market) > 0))
      market.reached = true;
  }
  if (market.reached) schedule(state, market);
  return market.reached;
}

/**
 * The connection may hang: the market's last request got no answer, or one that no newer answer has overtaken takes too
 * long.
 */
function isHung(state: CoreState, market: MarketState): boolean {
  if (market.timedOut) return true;
  const oldest = market.openWrites.find((one) => !isOvertaken(market, one));
  return (
    oldest !== undefined &&
    state.unansweredMs(oldest) > Math.max(SHORTEST_GAP_MS, hangsAfterMs(answerTimeMs(state, market)))
  );
}

/** A request holds its lane for a few answer times, where it is not answered before. */
const patienceOf = ({ answerMs }: CoreState) =>
  answerMs === null ? LONGEST_LANE_MS : clamp(4 * answerMs + 50, 100, LONGEST_LANE_MS);

/** A request that is unanswered for longer than this may hang, where answers take so long. */
const hangsAfterMs = (answerMs: number) => 2 * answerMs + 50;

/** The lane that a request takes, and whether it needs a connection over which nothing hangs. */
type Lane = Pick<Attempt, 'laneMs' | 'own'> & { readonly fresh: boolean };

/**
 * How long others wait for the answer to the market's next request. In a nonce window a market whose last request hangs, or
 * whose answers take longer than its lane is held, takes a lane of its own, so that it does not hold up the others. With
 * rising nonces such a market takes none; once it has lost half of its time and its requests were called stale, the others
 * wait for it, if three such waits fit into the least slack.
 */
function laneOf(state: CoreState, market: MarketState): Lane {
  const { goal, staleNonces, settings } = market;
  const fresh = isHung(state, market);
  const patienceMs = patienceOf(state);
  const answerMs = market.answerMs ?? 0;
  if (!state.key.accepted) return { fresh, own: false, laneMs: patienceMs };
  // A whole exchange that is slow is no reason for more connections than are configured.
  if (state.settings.nonce === 'window') {
    const laneMs = Math.max(patienceMs, hangsAfterMs(state.answerMs ?? 0));
    return { fresh, own: fresh || answerMs > laneMs, laneMs };
  }
  if (answerMs <= patienceMs) return { fresh, own: false, laneMs: fresh ? 0 : patienceMs };
  const presses = goal !== 'guard' || leftToSaveMs(state, market) * 2 <= settings.timeoutMs;
  const waits = staleNonces > 0 && presses && 3 * OVERDUE_FACTOR * answerMs <= leastSlackMs(state);
  return { fresh, own: false, laneMs: waits ? OVERDUE_FACTOR * answerMs : 0 };
}

/**
 * With rising nonces requests go one after the other, or a later one could overtake an earlier one and make it stale; but
 * nobody waits for an answer longer than a few answer times, or a third of its slack where another market is overtaken
 * again and again. In a nonce window there are as many lanes as connections, and as many again for what hangs or is slow,
 * 64 at least: after an outage of thousands of markets that is all of them, and a connection for each at once would stop
 * the loop. A key that was never accepted is shown one request at a time: a wrong one must not count as many refused tries.
 */
function hasLane(state: CoreState, { own }: Lane): boolean {
  const { nonce, connections } = state.settings;
  const isWide = nonce === 'window' && state.key.accepted;
  const lanes = !isWide ? 1 : own ? Math.max(connections, LEAST_OWN) : connections;
  const open = [...state.attempts.values()].filter(({ status }) => status === 'open');
  // Where at least three requests hang, and as many as there are lanes, nobody waits longer than answers usually take.
  const hung = open.filter((one) => !one.own && one.laneMs > 0 && state.ageMs(one) >= one.laneMs);
  const isCut = hung.length >= Math.max(3, lanes) && hung.length < LEAST_OWN && state.key.accepted;
  const heldMs = ({ laneMs, market }: Attempt) =>
    isCut ? Math.min(laneMs, OVERDUE_FACTOR * answerTimeMs(state, market)) : laneMs;
  const holders = open.filter((one) => state.ageMs(one) < heldMs(one) && (!isWide || one.own === own));
  if (holders.length < lanes) return true;
  for (const one of holders) lookAgainAt(state, one.at.monoMs + heldMs(one));
  return false;
}

/**
 * Once another market has waited for a third of its slack, nobody waits for the slow market's answer any longer: the
 * request is overtaken then, and whoever else is due goes in the order of the deadlines.
 */
function endLongLanes(state: CoreState): void {
  // In a nonce window nobody is overtaken.
  if (state.settings.nonce === 'window') return;
  const patienceMs = patienceOf(state);
  for (const holder of state.attempts.values()) {
    if (holder.laneMs <= patienceMs) continue;
    // One that has nothing left to save loses nothing: it must not keep the slow one from being saved.
    const hasWaited = state.queue.some((market) => {
      const leftMs = leftToSaveMs(state, market);
      const waitedMs = state.now.monoMs - market.nextMs;
      return market !== holder.market && leftMs > 0 && waitedMs * 2 >= leftMs;
    });
    if (hasWaited) holder.laneMs = patienceMs;
  }
}

/** Its answer is not waited for any longer; it may still be carried out. */
export function giveUp(state: CoreState, attempt: Write): void {
  if (attempt.status !== 'open') return;
  attempt.status = 'abandoned';
  state.effects.push({ kind: 'abort', attempt: attempt.id });
}

/**
 * The address for the market's next attempt; null where it has failed itself and every address is out: then one probe at
 * a time finds out for all of them. A market without an answer tries the open addresses in turns: its failures alone make
 * no outage, and another address may be well.
 */
function routeFor(state: CoreState, market: MarketState, open: readonly BaseState[]): BaseState | null {
  if (open.length === 0) return hasFailed(state, market) ? null : (state.bases[0] ?? null);
  const tries = hasFailed(state, market) ? market.openWrites.length + market.streak : 0;
  return open[tries % open.length] ?? null;
}

/**
 * Half-open probes: each address that is out is tried by one request per `gapToProbeMs`. Of the markets that have failed
 * one goes whose last chance it is, else that which was tried least since its last success, else the most urgent: a
 * market that was sick before must not keep the others from finding out that the exchange is well. Where another address
 * stands in, only one that is pinged well again is probed, and by no request that ends a timer: a stop would spend its
 * budget on it.
 */
function dueProbes(state: CoreState): ReadonlyMap<MarketState, BaseState> {
  const probes = new Map<MarketState, BaseState>();
  const bases = state.usableBases;
  const standsIn = bases.some((base) => base.takesRenewals);
  for (const base of bases) {
    const { outage } = base;
    if (outage === null || (standsIn && base.ping?.ok !== true)) continue;
    const probeMs = outage.probedMs + gapToProbeMs(state, outage.probedMs);
    if (state.now.monoMs < probeMs - EARLY_MS) {
      lookAgainAt(state, probeMs);
      continue;
    }
    const market = chooseProbe(
      state,
      (one) => !probes.has(one) && (standsIn ? one.goal === 'guard' : hasFailed(state, one)),
    );
    if (market !== null) probes.set(market, base);
    else lookAgainAt(state, state.now.monoMs + SHORTEST_GAP_MS);
  }
  return probes;
}

/** Sets when the next probe is due. One that wrote nothing has found nothing out: another follows soon. */
function noteProbe(state: CoreState, { outage }: BaseState, isWritten: boolean): void {
  const { monoMs } = state.now;
  if (!isWritten) {
    lookAgainAt(state, monoMs + SHORTEST_GAP_MS);
  } else if (state.key.refusal.said !== null) {
    state.key.nextProbeMs = monoMs + gapToKeyProbeMs(state);
    lookAgainAt(state, state.key.nextProbeMs);
  } else if (outage !== null) {
    outage.probes += 1;
    outage.probedMs = monoMs;
    lookAgainAt(state, monoMs + gapToProbeMs(state, monoMs));
  }
}

function chooseProbe(state: CoreState, allowed: (market: MarketState) => boolean): MarketState | null {
  let best: MarketState | null = null;
  let bestRank = Number.POSITIVE_INFINITY;
  for (const market of state.markets) {
    if (market.reached || !allowed(market)) continue;
    // The answer to a stale nonce is a new one at once, and the probe is not over.
    const goesOn = market.staleNonces > 0 && isDue(state, market);
    if (!goesOn && state.now.monoMs - market.lastWrittenMs < SHORTEST_GAP_MS - EARLY_MS) continue;
    // A trip or a delete may have to wait, and a refused market is tried when its own probe is due.
    if ((market.goal !== 'guard' || market.refusal.said !== null) && !isDue(state, market)) continue;
    const tries = market.streak - market.staleNonces + market.onTheirWay.length;
    // First the markets for which this is the last probe in time, then those that can be saved, then the rest. Among them
    // the fewest tries go first, and then the earliest deadline, which is less than 1e6 ms away: no timer is longer than 600 s.
    const leftMs = leftToSaveMs(state, market);
    const isLast = isInDoubt(state, market, leftMs) || untilPressedMs(state, market) <= 0;
    const lostRank = isSalvageable(state, market, leftMs) ? 0 : 1e12;
    const rank = (isLast ? -1e12 : lostRank) + tries * 1e6 + leftMs;
    if (rank < bestRank) [best, bestRank] = [market, rank];
  }
  return best;
}

/**
 * The key was refused: one request at a time finds out whether it is good again. In time for every deadline that can
 * still be met, and rarely where nothing is left to save.
 */
function dueKeyProbe(state: CoreState): ReadonlyMap<MarketState, BaseState> {
  const { key } = state;
  const probe = new Map<MarketState, BaseState>();
  if (state.now.monoMs < key.nextProbeMs - EARLY_MS) {
    lookAgainAt(state, key.nextProbeMs);
    return probe;
  }
  const market = chooseProbe(state, () => true);
  const bases = state.usableBases;
  // In turns, also where one address does not answer at all.
  const base = bases[state.nextAttemptId % bases.length];
  if (market !== null && base !== undefined) probe.set(market, base);
  else lookAgainAt(state, state.now.monoMs + SHORTEST_GAP_MS);
  return probe;
}

function write(state: CoreState, market: MarketState, asked: Pick<Attempt, 'purpose' | 'base'> & Lane): void {
  const { fresh, ...kept } = asked;
  const { purpose, base } = kept;
  const { monoMs } = state.now;
  const { requestLifetimeMs } = state.settings;
  const timeoutMs = purpose === 'trip' ? TRIP_MS : market.settings.timeoutMs;
  const delayMs = Math.max(0, monoMs - market.nextMs);
  // A market that has waited for a token gets a new place on the grid: on its old one it would wait again.
  if (state.tokens < 2) market.offsetMs = (monoMs - state.startedMs) % state.periodOf(market);
  const attempt: Attempt = {
    id: state.nextAttemptId,
    order: Number.POSITIVE_INFINITY,
    key: state.key.changes,
    market,
    ...kept,
    at: state.moment,
    giveUpMs: monoMs + requestLifetimeMs,
    status: 'open',
    left: false,
    untilMs: monoMs + 2 * requestLifetimeMs,
    shortestMs: timeoutMs,
    longestMs: timeoutMs,
  };
  state.nextAttemptId += 1;
  state.attempts.set(attempt.id, attempt);
  state.spend();
  market.lastWrittenMs = monoMs;
  if (purpose === 'delete' && state.phase.kind === 'stopping') market.triedDelete = true;
  market.askedMs = Number.NEGATIVE_INFINITY;
  market.cycleSinceMs ??= Math.min(market.nextMs, monoMs);
  believeWritten(state, attempt);
  schedule(state, market);
  const name = market.settings.market;
  state.say({ kind: 'attempt', market: name, purpose, base: base.index, delayMs });
  state.effects.push({
    kind: 'write',
    attempt: attempt.id,
    market: name,
    timeoutSeconds: purpose === 'delete' ? null : Math.round(timeoutMs / 1000),
    types: market.settings.types,
    base: base.index,
    fresh,
  });
}
