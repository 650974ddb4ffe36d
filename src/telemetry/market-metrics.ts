import { Counter, Gauge, type Registry } from 'prom-client';
import type { OrderType } from '../core/outcome.ts';
import { ROUNDING_MS } from '../core/promise.ts';
import type { MarketSnapshot } from '../core/snapshot.ts';
import { retryGapMs } from '../core/timing.ts';

/** A market as the metrics know it before anything has happened. */
export interface MeteredMarket {
  readonly market: string;
  /** Null means all order types. */
  readonly types: readonly OrderType[] | null;
  readonly timeoutSeconds: number;
}

/** Told the name of a metric whose text is no longer what it was. */
export type Touch = (metric: string) => void;

/** A gauge per market whose value is read off the snapshot. `initial` stands until the first snapshot. */
export interface MarketGauge {
  readonly name: string;
  readonly gauge: Gauge<'market'>;
  readonly initial: (metered: MeteredMarket) => number;
  readonly read: (snapshot: MarketSnapshot) => number;
}

/** A counter per market, and per one more label where `L` names it. */
export interface MarketCounter<L extends string = never> {
  inc(labels: Record<'market' | L, string>, by?: number): void;
  remove(labels: Record<'market' | L, string>): void;
  /** The series of one market, for what is counted with every renewal. */
  of(market: string): { readonly inc: () => void };
}

/** W = T - 1 - P - d - g of the design, with the last measured round trip as d. */
function survivableOutageMs(snapshot: MarketSnapshot): number {
  const roundTripMs = snapshot.lastDurationMs ?? 0;
  const lastGapMs = retryGapMs(1, false);
  return Math.max(0, snapshot.timeoutMs - ROUNDING_MS - snapshot.periodMs - roundTripMs - lastGapMs);
}

/** The gauges that follow the snapshot, declared once. */
export function declareMarketGauges(registry: Registry): readonly MarketGauge[] {
  const gauge = (
    name: string,
    help: string,
    initial: MarketGauge['initial'],
    read: MarketGauge['read'],
  ): MarketGauge => ({
    name,
    initial,
    read,
    gauge: new Gauge({ name, help, labelNames: ['market'], registers: [registry] }),
  });
  return [
    gauge(
      'killswitch_market_armed_desired',
      '1 while the timer should be armed: not paused, not disarmed, and its bot gives evidence.',
      () => 0,
      (snapshot) => (snapshot.wanted ? 1 : 0),
    ),
    gauge(
      'killswitch_timer_timeout_seconds',
      'Configured timeout of the kill-switch timer.',
      (metered) => metered.timeoutSeconds,
      (snapshot) => snapshot.timeoutMs / 1000,
    ),
    gauge(
      'killswitch_timer_expiry_timestamp_seconds',
      'Unix time at which the timer ends, counted from the writing of its last renewal; 0 where it was deleted on purpose or never armed.',
      () => 0,
      (snapshot) => (snapshot.expiryWallMs ?? 0) / 1000,
    ),
    gauge(
      'killswitch_timer_server_expiry_timestamp_seconds',
      "The exchange's own cancellationTime of the last confirmation, Unix time; 0 where there was none.",
      () => 0,
      (snapshot) => snapshot.cancellationTime ?? 0,
    ),
    gauge(
      'killswitch_survivable_outage_seconds',
      'Any stretch without a successful request shorter than this lapses nothing.',
      () => 0,
      (snapshot) => survivableOutageMs(snapshot) / 1000,
    ),
    gauge(
      'killswitch_renewal_last_slack_ratio',
      'Share of the timeout that was left when the last renewal was confirmed; 1 where none was yet.',
      () => 1,
      (snapshot) => snapshot.lastSlackRatio ?? 1,
    ),
  ];
}

/** What is configured for a market, and the state it is in. */
export function declareMarketFacts(registry: Registry) {
  const registers = [registry];
  return {
    info: new Gauge({
      name: 'killswitch_market_info',
      help: 'Always 1; what is configured for the market.',
      labelNames: ['market', 'order_types', 'policy'],
      registers,
    }),
    state: new Gauge({
      name: MARKET_STATE_METRIC,
      help: '1 for the state the market is in, 0 for every other state.',
      labelNames: ['market', 'state'],
      registers,
    }),
  };
}

export const MARKET_STATE_METRIC = 'killswitch_market_state';

/** What is counted per market, declared once. */
export function declareMarketCounters(registry: Registry, touch: Touch) {
  const counter = <L extends string = never>(name: string, help: string, ...more: L[]): MarketCounter<L> => {
    const labelNames = ['market', ...more];
    const series = new Counter({ name, help, labelNames, registers: [registry] });
    const incBy = (labels: Record<string, string>, by: number): void => {
      series.inc(labels, by);
      touch(name);
    };
    return {
      inc: (labels, by = 1) => incBy(labels, by),
      remove: (labels) => {
        series.remove(labels);
        touch(name);
      },
      of: (market) => {
        const labels = { market };
        return { inc: () => incBy(labels, 1) };
      },
    };
  };
  return {
    attempts: counter('killswitch_renewal_attempts_total', 'HTTP attempts to arm or renew the timer.'),
    renewals: counter('killswitch_renewals_total', 'Renewals that the exchange confirmed.'),
    failures: counter(
      'killswitch_renewal_failures_total',
      'HTTP attempts to arm or renew the timer that came to nothing.',
      'reason',
    ),
    lapses: counter(
      'killswitch_lapses_total',
      'Timers that fired although they should not have.',
      'certainty',
    ),
    overdue: counter(
      'killswitch_overdue_total',
      'Times that the guaranteed life of a wanted timer ran out; whether it fired was not known then.',
    ),
    suspensions: counter(
      'killswitch_suspensions_total',
      'Times that renewing was stopped on purpose.',
      'reason',
    ),
    refusals: counter('killswitch_refusals_total', 'Times that the exchange began to refuse the timer.'),
    alterations: counter(
      'killswitch_altered_replies_total',
      'Confirmations that named another timeout or other order types than asked for.',
    ),
    deletes: counter('killswitch_deletes_total', 'Deletions of the timer that the exchange confirmed.'),
    deleteFailures: counter(
      'killswitch_delete_failures_total',
      'HTTP attempts to delete the timer that came to nothing.',
    ),
  };
}
