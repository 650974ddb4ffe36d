import type { Notice } from '../core/notice.ts';
import { type CoreState, isWanted, type MarketState } from '../core/state.ts';
import type { Court } from './court.ts';
import { hasRoom, longestStretchMs } from './disturbance.ts';
import { type Incarnation, nameOf } from './incarnation.ts';

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
/** One that has so many on their way waits for the time-out of one of them. */
const MOST_IN_FLIGHT = 3;

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
