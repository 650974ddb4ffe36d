import type { CoreView, MarketView } from '../core/view.ts';
import { type Court, TOLERANCE_MS } from './court.ts';
import { type Incarnation, nameOf } from './incarnation.ts';
import type { Truth } from './truth.ts';

/** A daemon that runs looks at its clocks at least this often. */
const TICK_MS = 250;

/** Invariant 1: after every turn of a daemon, and every change of a timer, the true lapse lies between the two ends of what it believes. */
export function createBeliefJudge(court: Court) {
  const { truthOf, running, nowMs, blame } = court;

  function judgeStart(incarnation: Incarnation, seen: MarketView, truth: Truth): void {
    const slack = seen.guaranteedMs ?? 0;
    if (slack <= TOLERANCE_MS) return;
    const lastsMs = truth.firesMs === null ? 0 : truth.firesMs - nowMs();
    if (lastsMs <= 0) {
      const name = nameOf(incarnation);
      blame(
        '1 belief',
        `${truth.market}: ${name} believes it armed for ${slack.toFixed(0)} ms more, and it is not`,
      );
    } else if (lastsMs < slack - TOLERANCE_MS) {
      const lateMs = slack - lastsMs;
      blame(
        '1 belief',
        `${truth.market}: ${nameOf(incarnation)} believes it armed ${lateMs.toFixed(0)} ms longer than it is`,
      );
    }
  }

  function judgeEnd(incarnation: Incarnation, { phase }: CoreView, seen: MarketView, truth: Truth): void {
    const lastsMs = truth.firesMs === null ? 0 : truth.firesMs - nowMs();
    if (truth.owner !== incarnation || lastsMs <= 0 || phase === 'stopped') return;
    const latestMs = seen.firesInMs ?? 0;
    if (latestMs >= lastsMs - TOLERANCE_MS) return;
    blame(
      '1 belief',
      `${truth.market}: fires in ${lastsMs.toFixed(0)} ms, ${nameOf(incarnation)} says within ${latestMs.toFixed(0)} ms`,
    );
  }

  return {
    onTurn: (incarnation: Incarnation): void => {
      const view = incarnation.view();
      for (const seen of view.markets) {
        const truth = truthOf(seen.market);
        if (truth === undefined || nowMs() < truth.brokenUntilMs) continue;
        judgeStart(incarnation, seen, truth);
        judgeEnd(incarnation, view, seen, truth);
      }
    },
    /** Something happened to the market's timer at the exchange. */
    onChanged: (truth: Truth): void => {
      if (nowMs() < truth.brokenUntilMs) return;
      for (const incarnation of running.values()) {
        const { clock } = incarnation;
        const view = incarnation.view();
        const seen = view.marketNamed(truth.market);
        // A host that stands still, or slept, reads its clocks first.
        if (seen === undefined || clock.isStalled() || clock.now().monoMs - view.monoMs > TICK_MS) continue;
        judgeStart(incarnation, seen, truth);
        judgeEnd(incarnation, view, seen, truth);
      }
    },
  };
}
