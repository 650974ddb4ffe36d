import type { Notice } from '../core/notice.ts';
import type { Court } from './court.ts';
import { isUndisturbed } from './disturbance.ts';
import { type Incarnation, nameOf } from './incarnation.ts';
import type { FaultKind } from './plan.ts';
import type { Truth } from './truth.ts';

/** The newest confirmation of a market that a daemon reported. */
interface Confirmed {
  readonly cancellationTime: number;
  lapses: number;
}

/** With these a daemon cannot know what its timers went through. */
const FOREIGN: ReadonlySet<FaultKind> = new Set([
  'actor-deletes',
  'actor-changes',
  'lie',
  'forget-timers',
  'server-clock-step',
]);
/** How long after its start, or after new evidence, a daemon may take to be armed. */
const ARMED_WITHIN_MS = 7000;

/** Invariants 2 and 8: no timer fires without a reason, and each that fired is reported exactly once. */
export function createLapseJudge(court: Court) {
  const { plan, truths, evidence, running, nowMs, blame } = court;
  // With several daemons each sees only its own part of a timer's life.
  const canTell = plan.daemons.length === 1 && !plan.faults.some(({ kind }) => FOREIGN.has(kind));
  const byIncarnation = new Map<Incarnation, Map<string, Confirmed>>();
  const byName = new Map(truths.map((truth) => [truth.market, truth]));

  function confirmedOf(incarnation: Incarnation): Map<string, Confirmed> {
    const known = byIncarnation.get(incarnation) ?? new Map<string, Confirmed>();
    byIncarnation.set(incarnation, known);
    return known;
  }

  function onLapsed(incarnation: Incarnation, notice: Extract<Notice, { kind: 'lapsed' }>): void {
    const before = confirmedOf(incarnation).get(notice.market);
    if (before === undefined) return;
    before.lapses += 1;
    const name = nameOf(incarnation);
    if (before.lapses > 1) blame('8 lapses', `${notice.market}: ${name} reported one gap twice`);
    const fired = byName.get(notice.market)?.fired ?? [];
    if (notice.certainty === 'certain' && !fired.some((moment) => moment >= before.cancellationTime)) {
      blame('8 lapses', `${notice.market}: ${name} is certain of a lapse that never was`);
    }
  }

  function onRenewed(incarnation: Incarnation, notice: Extract<Notice, { kind: 'renewed' }>): void {
    const truth = byName.get(notice.market);
    const confirmed = confirmedOf(incarnation);
    const before = confirmed.get(notice.market);
    const { cancellationTime } = notice;
    if (truth !== undefined && before !== undefined && before.lapses === 0) {
      const startTime = cancellationTime - truth.timeoutMs / 1000;
      const silent = truth.fired.some((moment) => moment >= before.cancellationTime && moment < startTime);
      if (silent) {
        const name = nameOf(incarnation);
        blame('8 lapses', `${notice.market}: ${name} armed it again after a lapse and said nothing`);
      }
    }
    confirmed.set(notice.market, { cancellationTime, lapses: 0 });
  }

  function mustHaveHeld(incarnation: Incarnation, truth: Truth): boolean {
    if (incarnation.stoppingMs !== null || evidence.allowedUntilMs(incarnation, truth.bot) <= nowMs())
      return false;
    const sinceMs = evidence.freshSinceMs(incarnation, truth.bot);
    if (sinceMs > nowMs() - truth.timeoutMs - ARMED_WITHIN_MS) return false;
    if (!confirmedOf(incarnation).has(truth.market)) return false;
    return isUndisturbed(plan, incarnation, truth.market, truth.timeoutMs, nowMs());
  }

  return {
    /** The exchange fired the market's timer. */
    onFired(truth: Truth): void {
      if (nowMs() < truth.brokenUntilMs) return;
      for (const incarnation of running.values()) {
        if (!mustHaveHeld(incarnation, truth)) continue;
        const name = nameOf(incarnation);
        blame(
          '2 false lapse',
          `${truth.market}: fired although ${name} ran, its bot lived and no outage was long enough`,
        );
      }
    },
    onNotice(incarnation: Incarnation, notice: Notice): void {
      if (!canTell) return;
      if (notice.kind === 'suspended' || notice.kind === 'resumed')
        confirmedOf(incarnation).delete(notice.market);
      if (notice.kind === 'lapsed') onLapsed(incarnation, notice);
      if (notice.kind === 'renewed') onRenewed(incarnation, notice);
    },
  };
}
