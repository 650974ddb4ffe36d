import type { Notice } from '../core/notice.ts';
import type { Instant } from '../core/time.ts';
import type { DaemonFamilies } from './daemon-metrics.ts';
import type { MarketCounters } from './market-shard.ts';

/** What a notice calls a standstill, and the label value for it. */
export const STALL_KINDS = { stall: 'stall', suspend: 'suspend', 'clock-step': 'clock_step' } as const;

/** A market's place and its two series that move with every renewal. */
export interface MarketHandle {
  readonly counters: MarketCounters;
  readonly attempts: { readonly inc: () => void };
  readonly renewals: { readonly inc: () => void };
  readonly remove: () => void;
}

type MarketNotice = Extract<Notice, { market: string }>;
type DaemonNotice = Exclude<Notice, MarketNotice>;

/** Counts what happened to one market. */
export function countMarketNotice(
  daemon: DaemonFamilies,
  handle: MarketHandle | undefined,
  notice: MarketNotice,
): void {
  if (handle === undefined) return;
  const { counters } = handle;
  const { market } = notice;
  switch (notice.kind) {
    case 'attempt':
      if (notice.purpose === 'delete') return;
      handle.attempts.inc();
      daemon.delay.observe(notice.delayMs / 1000);
      return;
    case 'renewed':
      handle.renewals.inc();
      daemon.duration.observe(notice.durationMs / 1000);
      daemon.cycle.observe(notice.cycleMs / 1000);
      if (notice.slackRatio !== null) daemon.slack.observe(notice.slackRatio);
      daemon.skew.set(notice.skewMs / 1000);
      return;
    case 'attempt-failed':
      if (notice.purpose === 'delete') counters.deleteFailures.inc({ market });
      else counters.failures.inc({ market, reason: notice.reason });
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
    case 'deleted':
      counters.deletes.inc({ market });
      return;
    case 'recovered':
    case 'accepted-again':
    case 'resumed':
      return;
  }
}

/** Counts what happened to the daemon and around it; `bases` names the base addresses in order. */
export function countDaemonNotice(
  daemon: DaemonFamilies,
  bases: readonly string[],
  notice: DaemonNotice,
  now: Instant,
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
    case 'bot':
      daemon.botAlive.set({ bot: notice.bot }, notice.state === 'alive' ? 1 : 0);
      if (notice.state === 'alive') daemon.botEvidence.set({ bot: notice.bot }, now.wallMs / 1000);
      return;
    case 'limiter-bypassed':
      daemon.bypasses.inc(notice.permits);
      return;
    case 'pinged':
      observePing(daemon, nameOf(bases, notice.base), notice);
      return;
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
