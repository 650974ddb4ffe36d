import { awakeSlackMs, type CoreState, isWanted, type MarketState, slackMs } from '../core/state.ts';
import { type Court, TOLERANCE_MS } from './court.ts';
import { type Incarnation, nameOf } from './incarnation.ts';
import { sharesKeys } from './plan.ts';

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
