import type { Notice } from '../../src/core/notice.ts';
import { awakeSlackMs, type CoreState, isWanted, type MarketState, slackMs } from '../../src/core/state.ts';
import { hasRoom, isQuiet, longestStretchMs } from './conditions.ts';
import { type Court, type Incarnation, nameOf, TOLERANCE_MS } from './court.ts';
import { FAULTS, type Plan, sharesKeys } from './plan.ts';

interface Pace {
  /** True moments of what was written within the last window. */
  readonly writes: number[];
  readonly nonces: Set<string>;
  /** The same by market, of the last second. */
  readonly byMarket: Map<string, number[]>;
  lastNonce: number;
  lastNumber: number;
}

const RATE_WINDOW_MS = 10_000;
/** Four attempts a second, new nonces after each of them, and what a stall or a stop adds. */
const MOST_PER_SECOND = 30;
/** Nonces further than this from the exchange's clock are surely refused in a nonce window. */
const NONCE_WINDOW_MS = 6000;

/** Invariants 9 and 10: nonces rise, or are unique where a window is used, and nobody writes more than the budget. */
export function createPaceJudge(court: Court) {
  const { plan, nowMs, serverNowMs, blame } = court;
  const byIncarnation = new Map<Incarnation, Pace>();
  // When the exchange's clock steps back, so does the window, over nonces that were used in it.
  const windowSteps = plan.nonce === 'window' && plan.faults.some(({ kind }) => kind === 'server-clock-step');

  function paceOf(incarnation: Incarnation): Pace {
    const known = byIncarnation.get(incarnation);
    if (known !== undefined) return known;
    const pace: Pace = { writes: [], nonces: new Set(), byMarket: new Map(), lastNonce: -1, lastNumber: -1 };
    byIncarnation.set(incarnation, pace);
    return pace;
  }

  function judgeNonce(incarnation: Incarnation, pace: Pace, number: number, nonce: string): void {
    // A nonce far from the exchange's clock was never accepted: it may be given out again when its time has come.
    if (plan.nonce === 'window' && Math.abs(Number(nonce) - serverNowMs()) > NONCE_WINDOW_MS) return;
    if (windowSteps) return;
    if (pace.nonces.has(nonce)) blame('9 nonces', `${nameOf(incarnation)} used ${nonce} twice`);
    pace.nonces.add(nonce);
    if (plan.nonce === 'window' || number < pace.lastNumber) return;
    const value = Number(nonce);
    if (value <= pace.lastNonce)
      blame('9 nonces', `${nameOf(incarnation)}: ${nonce} after ${pace.lastNonce}`);
    pace.lastNumber = number;
    pace.lastNonce = value;
  }

  function judgeRate(incarnation: Incarnation, { writes }: Pace): void {
    writes.push(nowMs());
    while ((writes[0] ?? nowMs()) <= nowMs() - RATE_WINDOW_MS) writes.shift();
    if (writes.length <= plan.budgetRequests) return;
    blame(
      '10 rate',
      `${nameOf(incarnation)} wrote ${writes.length} requests within 10 s, allowed ${plan.budgetRequests}`,
    );
  }

  /** Retries get denser as the deadline comes near, and never turn into a storm. */
  function judgeStorm(incarnation: Incarnation, { byMarket }: Pace, market: string): void {
    const writes = byMarket.get(market) ?? [];
    byMarket.set(market, writes);
    writes.push(nowMs());
    while ((writes[0] ?? nowMs()) <= nowMs() - 1000) writes.shift();
    if (writes.length <= MOST_PER_SECOND) return;
    blame('10 rate', `${market}: ${nameOf(incarnation)} wrote ${writes.length} requests within a second`);
  }

  return {
    /** A request's first byte leaves. `number` counts the requests of one daemon in the order of signing. */
    onWrite(incarnation: Incarnation, market: string, number: number, nonce: string): void {
      const pace = paceOf(incarnation);
      judgeNonce(incarnation, pace, number, nonce);
      judgeRate(incarnation, pace);
      judgeStorm(incarnation, pace, market);
    },
  };
}

/** Ticks, and the gaps that hurried renewals keep. */
const LEAST_MS = 1000;
/** What a fault that is over may still delay. */
const QUIET_MS = 5_000;
/** The longest that an unanswered request keeps others from leaving where they go one after the other. */
const PATIENCE_MS = 500;
/** So many requests of a market are on their way at a time. */
const MOST_IN_FLIGHT = 3;

/**
 * Invariants 10 and 12: a renewal leaves soon after it is due, whatever other markets' requests, pings and the limiter are
 * up to. Where requests go one after the other each that
 * hangs may keep it waiting once.
 */
export function createIsolationJudge({ plan, nowMs, blame }: Court) {
  const oneByOne = plan.nonce === 'increasing';
  const queueMs = (oneByOne ? plan.markets.length : 1) * 1.5 * plan.roundTripMs;
  const patienceMs = oneByOne ? Math.min(PATIENCE_MS, 4 * plan.roundTripMs + 150) : 0;
  const leastMs = LEAST_MS + queueMs;
  const promised = hasRoom(plan);

  return {
    onNotice(incarnation: Incarnation, notice: Notice): void {
      if (!promised || notice.kind !== 'attempt' || notice.delayMs <= leastMs) return;
      const { market, purpose, delayMs } = notice;
      const { state } = incarnation.keeper;
      // What ends a timer waits for everything of its market.
      if (purpose !== 'renew' || state.byName.get(market)?.exit !== null) return;
      const sinceMs = nowMs() - delayMs - QUIET_MS;
      if (delayMs <= leastMs + MOST_IN_FLIGHT * sickMarkets(plan, sinceMs, nowMs()) * patienceMs) return;
      if (!isQuiet(plan, market, sinceMs, nowMs())) return;
      const stuck = plan.faults.some(({ kind, atMs }) => kind === 'limiter-stuck' && atMs <= nowMs());
      blame(
        stuck ? '10 rate' : '12 isolation',
        `${market}: ${nameOf(incarnation)} renewed it ${delayMs.toFixed(0)} ms after it was due`,
      );
    },
  };
}

/** How many markets have requests that faults strike, or did between the two moments. */
function sickMarkets({ faults }: Plan, fromMs: number, toMs: number): number {
  const sick = new Set<number>();
  for (const { kind, target, atMs, forMs } of faults)
    if (FAULTS[kind] === 'requests' && atMs <= toMs && atMs + forMs >= fromMs) sick.add(target);
  return sick.size;
}

/** A daemon that was lied to finds out with its next renewal, and this much later at the most. */
const FINDS_OUT_MS = 15_000;
/** No order is gone by for longer. */
const OLDEST_ORDER_MS = 250;

/** How long the timer is surely, or but for a step of the wall clock, still armed; null where no renewal is in time. */
function leftMs(state: CoreState, market: MarketState, travelMs: number): number | null {
  const both = [slackMs(state, market), awakeSlackMs(state, market)];
  return both.find((slack) => slack > travelMs) ?? null;
}

/**
 * A market that was due when the order was made that this renewal comes from, and that should have had it before this
 * one. Answers move the estimate of the round trip meanwhile: what can be saved only by the latest one is let pass.
 */
function overtaken(state: CoreState, market: MarketState): MarketState | undefined {
  const travelMs = state.roundTripMs ?? 0;
  const longestMs = Math.max(travelMs, state.plannedRoundTripMs);
  const ownMs = leftMs(state, market, travelMs) ?? Number.POSITIVE_INFINITY;
  const orderedMs = Math.max(state.plannedMs, state.now.monoMs - OLDEST_ORDER_MS);
  return state.markets.find(
    (other) =>
      isWanted(state, other) &&
      other.inFlight.length === 0 &&
      other.nextMs <= orderedMs &&
      (leftMs(state, other, longestMs) ?? Number.POSITIVE_INFINITY) < ownMs - TOLERANCE_MS,
  );
}

/**
 * Invariant 11: what can be saved goes in the order of the deadlines, then what has lapsed; and at the end of a run, long
 * after the last fault, everything is armed, and those who arm it know.
 */
export function createProgressJudge(court: Court) {
  const { plan, truths, running, nowMs, blame } = court;
  // Two daemons with one key and rising nonces overtake each other for as long as both run: every other request is
  // refused, and half of what serial requests carry may not be enough for all markets.
  const starves = plan.nonce === 'increasing' && sharesKeys(plan);

  return {
    /** A request's first byte leaves. */
    onWrite(incarnation: Incarnation, name: string): void {
      const { state } = incarnation.keeper;
      const market = state.byName.get(name);
      const attempt = market?.inFlight.at(-1);
      // One that takes a connection of its own waits for no lane, and canaries and probes of the key go in turns.
      if (market === undefined || attempt === undefined || attempt.detached || attempt.purpose !== 'renew')
        return;
      // It was ordered a while ago, and waited for its connection.
      if (attempt.writtenMs !== state.now.monoMs) return;
      if (state.unauthorised !== null) return;
      // The last one of a handoff, and a market that was never armed, go before those that have time.
      if (!isWanted(state, market) || !market.confirmedOnce) return;
      if (state.bases.some(({ outage }) => outage !== null)) return;
      const first = overtaken(state, market);
      if (first === undefined) return;
      blame(
        '11 progress',
        `${name}: ${nameOf(incarnation)} renewed it before ${first.settings.market}, which ends sooner`,
      );
    },
    onEnd: (): void => {
      for (const truth of truths) {
        const armed = truth.firesMs !== null && truth.firesMs > nowMs();
        const foundOutMs = truth.brokenAtMs + truth.longestMs / 3 + FINDS_OUT_MS;
        if (!armed && nowMs() > foundOutMs && !starves)
          blame('11 progress', `${truth.market}: not armed at the exchange long after the last fault`);
        for (const incarnation of running.values()) {
          const seen = incarnation.view().marketNamed(truth.market);
          if (starves || seen === undefined || seen.guaranteedMs !== null) continue;
          blame(
            '11 progress',
            `${truth.market}: ${nameOf(incarnation)} does not believe it armed long after the last fault`,
          );
        }
      }
      if (running.size === 0) blame('11 progress', 'no daemon runs at the end');
    },
  };
}

interface Recovery {
  readonly endedMs: number;
  /** The same on the monotonic clock of the host. */
  readonly endedMonoMs: number;
  /** What had missed a renewal by then. */
  readonly markets: readonly MarketState[];
}

/** Hurried renewals keep 250 ms from the one before; a tick, and a limiter that is late. */
const HURRIES_MS = 1000;
/** A limiter that did not answer once is hardly waited for again. */
const LATE_LIMITER_MS = 50;

/** Invariant 11: after the first success following an outage, everything that missed a renewal meanwhile is renewed. */
export function createRecoveryJudge({ plan, nowMs, blame }: Court) {
  // One after the other, each waits for the answer to the one before, and goes past a limiter that hangs after a while.
  const stuckMs = plan.faults.some(({ kind }) => kind === 'limiter-stuck') ? LATE_LIMITER_MS : 0;
  const eachMs = plan.roundTripMs + stuckMs;
  const serialMs = plan.nonce === 'increasing' ? plan.markets.length * eachMs * 1.5 : 0;
  const withinMs = HURRIES_MS + plan.roundTripMs + serialMs;
  const promised = hasRoom(plan);
  const open = new Map<Incarnation, Recovery>();

  function missed(state: CoreState, market: MarketState, sinceMs: number): boolean {
    return (
      isWanted(state, market) &&
      market.refused === null &&
      market.confirmedOnce &&
      market.lastConfirmedMs < sinceMs &&
      (market.cycleSinceMs !== null || market.nextMs <= state.now.monoMs) &&
      market.inFlight.length < MOST_IN_FLIGHT
    );
  }

  function close(incarnation: Incarnation, { endedMs, endedMonoMs, markets }: Recovery): void {
    const { state } = incarnation.keeper;
    if (state.phase.kind !== 'running' || longestStretchMs(plan.faults, endedMs, nowMs()) > 0) return;
    for (const market of markets) {
      if (market.lastWrittenMs >= endedMonoMs || market.lastConfirmedMs >= endedMonoMs) continue;
      if (!isWanted(state, market) || market.refused !== null) continue;
      const name = market.settings.market;
      const within = `${withinMs.toFixed(0)} ms`;
      blame('11 progress', `${name}: ${nameOf(incarnation)} did not renew it within ${within} of an outage`);
    }
  }

  return {
    onNotice(incarnation: Incarnation, notice: Notice): void {
      if (!promised || notice.kind !== 'outage-ended') return;
      const { state } = incarnation.keeper;
      const { monoMs } = state.now;
      const markets = state.markets.filter((market) => missed(state, market, monoMs - notice.lastedMs));
      open.set(incarnation, { endedMs: nowMs(), endedMonoMs: monoMs, markets });
    },
    onTurn(incarnation: Incarnation): void {
      const recovery = open.get(incarnation);
      if (recovery === undefined || nowMs() < recovery.endedMs + withinMs) return;
      open.delete(incarnation);
      close(incarnation, recovery);
    },
  };
}
