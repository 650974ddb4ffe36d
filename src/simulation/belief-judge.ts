import { type MarketState, slackMs } from '../core/state.ts';
import { type Court, TOLERANCE_MS } from './court.ts';
import { type Incarnation, nameOf } from './incarnation.ts';
import type { Truth } from './truth.ts';

/** A daemon that runs looks at its clocks at least this often. */
const TICK_MS = 250;

/** Invariant 1: after every turn of a daemon, and every change of a timer, the true lapse lies between the two ends of what it believes. */
export function createBeliefJudge(court: Court) {
  const { truthOf, running, nowMs, blame } = court;

  function judgeStart(
    incarnation: Incarnation,
    market: MarketState,
    truth: Truth,
    sinceStepMs: number,
  ): void {
    const slack = slackMs(incarnation.keeper.state, market) - sinceStepMs;
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

  function judgeEnd(incarnation: Incarnation, market: MarketState, truth: Truth, sinceStepMs: number): void {
    const { state } = incarnation.keeper;
    const lastsMs = truth.firesMs === null ? 0 : truth.firesMs - nowMs();
    if (truth.owner !== incarnation || lastsMs <= 0 || state.phase.kind === 'stopped') return;
    const { notAfterMs } = market.belief;
    const latestMs = notAfterMs === null ? 0 : notAfterMs - state.now.monoMs - sinceStepMs;
    if (latestMs >= lastsMs - TOLERANCE_MS) return;
    blame(
      '1 belief',
      `${truth.market}: fires in ${lastsMs.toFixed(0)} ms, ${nameOf(incarnation)} says within ${latestMs.toFixed(0)} ms`,
    );
  }

  return {
    onTurn: (incarnation: Incarnation): void => {
      for (const market of incarnation.keeper.state.markets) {
        const truth = truthOf(market.settings.market);
        if (truth === undefined || nowMs() < truth.brokenUntilMs) continue;
        judgeStart(incarnation, market, truth, 0);
        judgeEnd(incarnation, market, truth, 0);
      }
    },
    /** Something happened to the market's timer at the exchange. */
    onChanged: (truth: Truth): void => {
      if (nowMs() < truth.brokenUntilMs) return;
      for (const incarnation of running.values()) {
        const { clock, keeper } = incarnation;
        const market = keeper.state.byName.get(truth.market);
        const sinceStepMs = clock.now().monoMs - keeper.state.now.monoMs;
        // A host that stands still, or slept, reads its clocks first.
        if (market === undefined || clock.isStalled() || sinceStepMs > TICK_MS) continue;
        judgeStart(incarnation, market, truth, sinceStepMs);
        judgeEnd(incarnation, market, truth, sinceStepMs);
      }
    },
  };
}
