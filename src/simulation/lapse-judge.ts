import type { Notice } from '../core/notice.ts';
import type { Court } from './court.ts';
import { isUndisturbed } from './disturbance.ts';
import { type Incarnation, nameOf } from './incarnation.ts';
import type { FaultKind } from './plan.ts';
import type { Truth } from './truth.ts';

type NoticeOf<Kind extends Notice['kind']> = Extract<Notice, { kind: Kind }>;

/** How long after its start, or after new evidence, a daemon may take to be armed. */
const ARMED_WITHIN_MS = 7000;

/** Invariant 2: while its bot lives no timer fires, but for outages that are long enough. */
export function createFalseLapseJudge(court: Court) {
  const { plan, evidence, running, nowMs, blame } = court;
  const armedOnce = new Map<Incarnation, Set<string>>();

  function mustHaveHeld(incarnation: Incarnation, { market, timeoutMs, bot }: Truth): boolean {
    if (incarnation.stoppingMs !== null || evidence.allowedUntilMs(incarnation, bot) <= nowMs()) return false;
    if (evidence.freshSinceMs(incarnation, bot) > nowMs() - timeoutMs - ARMED_WITHIN_MS) return false;
    if (armedOnce.get(incarnation)?.has(market) !== true) return false;
    return isUndisturbed(plan, incarnation, market, timeoutMs, nowMs());
  }

  return {
    onNotice: (incarnation: Incarnation, notice: Notice): void => {
      if (notice.kind === 'suspended') armedOnce.get(incarnation)?.delete(notice.market);
      if (notice.kind !== 'renewed') return;
      const armed = armedOnce.get(incarnation) ?? new Set();
      armedOnce.set(incarnation, armed.add(notice.market));
    },
    /** The exchange fired the market's timer. */
    onFired: (truth: Truth): void => {
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
  };
}

/** With these a daemon cannot know what its timers went through. */
const FOREIGN: ReadonlySet<FaultKind> = new Set([
  'actor-deletes',
  'actor-changes',
  'lie',
  'forget-timers',
  'server-clock-step',
]);

/** The newest confirmation of a market that a daemon reported. */
interface Confirmed {
  readonly cancellationTime: number;
  lapses: number;
}

/** Invariant 8: every timer that fired and was armed again is reported once, and none that did not fire. */
export function createLapseReportJudge({ plan, truths, blame }: Court) {
  // With several daemons each sees only its own part of a timer's life.
  const canTell = plan.daemons.length === 1 && !plan.faults.some(({ kind }) => FOREIGN.has(kind));
  const byIncarnation = new Map<Incarnation, Map<string, Confirmed>>();
  const byName = new Map(truths.map((truth) => [truth.market, truth]));

  function onLapsed(
    name: string,
    before: Confirmed | undefined,
    { market, certainty }: NoticeOf<'lapsed'>,
  ): void {
    if (before === undefined) return;
    before.lapses += 1;
    if (before.lapses > 1) blame('8 lapses', `${market}: ${name} reported one gap twice`);
    const fired = byName.get(market)?.fired ?? [];
    if (certainty === 'certain' && !fired.some((moment) => moment >= before.cancellationTime))
      blame('8 lapses', `${market}: ${name} is certain of a lapse that never was`);
  }

  function onRenewed(name: string, before: Confirmed | undefined, notice: NoticeOf<'renewed'>): void {
    const truth = byName.get(notice.market);
    if (truth === undefined || before === undefined || before.lapses > 0) return;
    const startTime = notice.cancellationTime - truth.timeoutMs / 1000;
    if (truth.fired.some((moment) => moment >= before.cancellationTime && moment < startTime))
      blame('8 lapses', `${notice.market}: ${name} armed it again after a lapse and said nothing`);
  }

  return {
    onNotice: (incarnation: Incarnation, notice: Notice): void => {
      if (!canTell) return;
      const confirmed = byIncarnation.get(incarnation) ?? new Map<string, Confirmed>();
      byIncarnation.set(incarnation, confirmed);
      const name = nameOf(incarnation);
      switch (notice.kind) {
        case 'suspended':
        case 'resumed':
          confirmed.delete(notice.market);
          break;
        case 'lapsed':
          onLapsed(name, confirmed.get(notice.market), notice);
          break;
        case 'renewed':
          onRenewed(name, confirmed.get(notice.market), notice);
          confirmed.set(notice.market, { cancellationTime: notice.cancellationTime, lapses: 0 });
          break;
        default:
          break;
      }
    },
  };
}
