import { slackMs } from '../core/state.ts';
import type { Court } from './court.ts';
import { nameOf } from './incarnation.ts';
import { sharesKeys } from './plan.ts';

/** A daemon that was lied to finds out with its next renewal, and this much later at the most. */
const FINDS_OUT_MS = 15_000;

/** Invariant 11, at the end of a run: long after the last fault everything is armed, and those who arm it know. */
export function createProgressJudge(court: Court) {
  const { plan, truths, running, nowMs, blame } = court;
  // Two daemons with one key and rising nonces overtake each other for as long as both run: every other request is
  // refused, and half of what serial requests carry may not be enough for all markets.
  const starves = plan.nonce === 'increasing' && sharesKeys(plan);

  return {
    onEnd: (): void => {
      for (const truth of truths) {
        const armed = truth.firesMs !== null && truth.firesMs > nowMs();
        const foundOutMs = truth.brokenAtMs + truth.longestMs / 3 + FINDS_OUT_MS;
        if (!armed && nowMs() > foundOutMs && !starves)
          blame('11 progress', `${truth.market}: not armed at the exchange long after the last fault`);
        for (const incarnation of running.values()) {
          const { state } = incarnation.keeper;
          const market = state.byName.get(truth.market);
          if (starves || market === undefined || slackMs(state, market) > 0) continue;
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
