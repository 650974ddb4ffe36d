import type { Notice } from '../core/notice.ts';
import type { DaemonFamilies } from './daemon-metrics.ts';
import type { MarketCounters } from './market-metrics.ts';

/** What a notice calls a standstill, and the label value for it. */
export const STALL_KINDS = { stall: 'stall', suspend: 'suspend', 'clock-step': 'clock_step' } as const;

/** What becomes of the timer of a market that a reload took out. */
export const REMOVALS = ['deleted', 'kept', 'handed_off', 'fired'] as const satisfies readonly Extract<
  Notice,
  { kind: 'removed' }
>['how'][];

type MarketNotice = Extract<Notice, { market: string }>;
type DaemonNotice = Exclude<Notice, MarketNotice | { kind: 'bot' }>;

/** Counts what happened to one market; `counters` are those of its shard. */
export function countMarketNotice(
  daemon: DaemonFamilies,
  counters: MarketCounters,
  notice: MarketNotice,
): void {
  const { market } = notice;
  switch (notice.kind) {
    case 'attempt':
      if (notice.purpose === 'delete') return;
      if (notice.purpose === 'renew') counters.attempts.inc({ market });
      daemon.delay.observe(notice.delayMs / 1000);
      return;
    case 'renewed':
      counters.renewals.inc({ market });
      daemon.duration.observe(notice.durationMs / 1000);
      daemon.cycle.observe(notice.cycleMs / 1000);
      if (notice.slackRatio !== null) daemon.slack.observe(notice.slackRatio);
      daemon.skew.set(notice.skewMs / 1000);
      return;
    case 'tripped':
      counters.trips.inc({ market });
      daemon.tripDuration.observe(notice.durationMs / 1000);
      return;
    case 'attempt-failed':
      countFailure(counters, notice);
      return;
    case 'overdue':
      counters.overdue.inc({ market });
      return;
    case 'lapsed':
      counters.lapses.inc({ market, certainty: notice.certainty });
      return;
    case 'refused':
      counters.refusals.inc({ market });
      return;
    case 'altered':
      counters.alterations.inc({ market });
      return;
    case 'suspended':
      counters.suspensions.inc({ market, reason: notice.why });
      return;
    case 'held':
      counters.holds.inc({ market, reason: notice.why });
      return;
    case 'deleted':
      counters.deletes.inc({ market });
      return;
    case 'removed':
    case 'fired':
    case 'recovered':
    case 'accepted-again':
    case 'resumed':
    case 'released':
      return;
  }
}

function countFailure(
  counters: MarketCounters,
  { market, purpose, reason }: Extract<Notice, { kind: 'attempt-failed' }>,
): void {
  switch (purpose) {
    case 'renew':
      counters.failures.inc({ market, reason });
      return;
    case 'trip':
      counters.tripFailures.inc({ market });
      return;
    case 'delete':
      counters.deleteFailures.inc({ market });
      return;
  }
}

/** Counts what happened to the daemon and around it; `bases` names the base addresses in order. */
export function countDaemonNotice(
  daemon: DaemonFamilies,
  bases: readonly string[],
  notice: DaemonNotice,
): void {
  switch (notice.kind) {
    case 'unauthorised':
      daemon.unauthorised.inc();
      daemon.authorised.set(0);
      return;
    case 'authorised-again':
      daemon.authorised.set(1);
      return;
    case 'outage-began':
      daemon.outages.inc({ base: nameOf(bases, notice.base) });
      return;
    case 'outage-ended':
      daemon.outageDuration.observe({ base: nameOf(bases, notice.base) }, notice.lastedMs / 1000);
      return;
    case 'throttled':
      daemon.throttled.inc();
      daemon.cadenceFactor.set(notice.factor);
      return;
    case 'cadence':
      daemon.capacity.set(notice.capacityPerSecond);
      return;
    case 'stall': {
      const kind = STALL_KINDS[notice.what];
      daemon.stalls.inc({ kind });
      if (kind !== 'clock_step') daemon.stallDuration.observe({ kind }, notice.byMs / 1000);
      return;
    }
    case 'limiter-bypassed':
      daemon.bypasses.inc(notice.permits);
      return;
    case 'pinged':
      observePing(daemon, nameOf(bases, notice.base), notice);
      return;
    case 'reloaded':
    case 'handed-over':
    case 'all-armed':
    case 'stopping':
    case 'stopped':
      return;
  }
}

function observePing(
  daemon: DaemonFamilies,
  base: string,
  notice: Extract<Notice, { kind: 'pinged' }>,
): void {
  daemon.pings.inc({ base });
  daemon.apiUp.set({ base }, notice.ok ? 1 : 0);
  if (notice.ok) daemon.pingDuration.observe({ base }, notice.latencyMs / 1000);
  else daemon.pingFailures.inc({ base, reason: notice.reason ?? 'network' });
}

function nameOf(bases: readonly string[], index: number): string {
  return bases[index] ?? `#${index}`;
}
