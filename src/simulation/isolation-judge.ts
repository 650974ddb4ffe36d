import type { Notice } from '../core/notice.ts';
import type { Court } from './court.ts';
import { hasRoom, isQuiet } from './disturbance.ts';
import { type Incarnation, nameOf } from './incarnation.ts';

/** Ticks, and the gaps that hurried renewals keep. */
const LEAST_MS = 1000;
/** What a fault that is over may still delay. */
const QUIET_MS = 10_000;
/** The longest that an unanswered request keeps others from leaving where they go one after the other. */
const PATIENCE_MS = 500;

/**
 * Invariants 10 and 12: a renewal leaves soon after it is due, whatever other markets' requests, pings and the limiter are
 * up to. Where requests go one after the other each of them may keep it waiting once.
 */
export function createIsolationJudge({ plan, nowMs, blame }: Court) {
  const oneByOne = plan.nonce === 'increasing';
  const eachMs = Math.min(PATIENCE_MS, 4 * plan.roundTripMs + 150) + 1.5 * plan.roundTripMs;
  const withinMs = LEAST_MS + (oneByOne ? plan.markets.length * eachMs : plan.roundTripMs);
  const promised = hasRoom(plan);

  return {
    onNotice(incarnation: Incarnation, notice: Notice): void {
      if (!promised || notice.kind !== 'attempt' || notice.delayMs <= withinMs) return;
      const { market, purpose, delayMs } = notice;
      const { state } = incarnation.keeper;
      // What ends a timer waits for everything of its market.
      if (purpose !== 'renew' || state.byName.get(market)?.exit !== null) return;
      if (!isQuiet(plan, market, nowMs() - delayMs - QUIET_MS, nowMs())) return;
      const stuck = plan.faults.some(({ kind, atMs }) => kind === 'limiter-stuck' && atMs <= nowMs());
      blame(
        stuck ? '10 rate' : '12 isolation',
        `${market}: ${nameOf(incarnation)} renewed it ${delayMs.toFixed(0)} ms after it was due`,
      );
    },
  };
}
