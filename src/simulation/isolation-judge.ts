import type { Notice } from '../core/notice.ts';
import type { Court } from './court.ts';
import { hasRoom, isQuiet } from './disturbance.ts';
import { type Incarnation, nameOf } from './incarnation.ts';
import { FAULTS, type Plan } from './plan.ts';

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
