import { CERTAINTIES, HOLDS, SUSPENSIONS } from '../core/notice.ts';
import { FAILURE_REASONS, type OrderType } from '../core/outcome.ts';
import { ROUNDING_MS } from '../core/promise.ts';
import { MARKET_STATES, type MarketSnapshot } from '../core/snapshot.ts';
import { retryGapMs } from '../core/timing.ts';
import type { Declarer } from './series.ts';
import type { ShardKind } from './shard.ts';

/** A market as the metrics know it before anything has happened. */
export interface MeteredMarket {
  readonly market: string;
  /** The bot that trades it. */
  readonly bot: string;
  /** Null means all order types. */
  readonly types: readonly OrderType[] | null;
  readonly timeoutSeconds: number;
}

/** A market with what a label says of the daemon it belongs to. */
export interface LabelledMarket extends MeteredMarket {
  /** The shutdown policy. */
  readonly policy: string;
}

/** W = T - 1 - P - d - g of the design, with the last measured round trip as d. */
function survivableOutageMs(snapshot: MarketSnapshot): number {
  const roundTripMs = snapshot.lastDurationMs ?? 0;
  const lastGapMs = retryGapMs(1, false);
  return Math.max(0, snapshot.timeoutMs - ROUNDING_MS - snapshot.periodMs - roundTripMs - lastGapMs);
}

/** Every metric with a label `market`. */
export const MARKET_SHARDS = {
  own: 'market',
  nameOf: ({ market }: LabelledMarket) => market,
  declare: (declarer: Declarer<LabelledMarket, MarketSnapshot, 'market'>) => {
    declareState(declarer);
    return { ...declareRenewals(declarer), ...declareExceptions(declarer) };
  },
} satisfies ShardKind<LabelledMarket, MarketSnapshot, 'market', object>;

export type MarketCounters = ReturnType<typeof MARKET_SHARDS.declare>;

function declareState(declarer: Declarer<LabelledMarket, MarketSnapshot, 'market'>): void {
  declarer.gauge(
    'killswitch_market_armed_desired',
    '1 while the timer should be armed: not paused, not disarmed, and its bot gives evidence.',
    () => 0,
    (snapshot) => (snapshot.wanted ? 1 : 0),
  );
  declarer.gauge(
    'killswitch_timer_timeout_seconds',
    'Configured timeout of the kill-switch timer.',
    (metered) => metered.timeoutSeconds,
    (snapshot) => snapshot.timeoutMs / 1000,
  );
  declarer.gauge(
    'killswitch_timer_expiry_timestamp_seconds',
    'Unix time at which the timer ends, counted from the writing of its last renewal; 0 where it was deleted on purpose or never armed.',
    () => 0,
    (snapshot) => (snapshot.expiryWallMs ?? 0) / 1000,
  );
  declarer.gauge(
    'killswitch_timer_server_expiry_timestamp_seconds',
    "The exchange's own cancellationTime of the last confirmation, Unix time; 0 where there was none.",
    () => 0,
    (snapshot) => snapshot.cancellationTime ?? 0,
  );
  declarer.gauge(
    'killswitch_survivable_outage_seconds',
    'Any stretch without a successful request shorter than this lapses nothing.',
    () => 0,
    (snapshot) => survivableOutageMs(snapshot) / 1000,
  );
  declarer.gauge(
    'killswitch_renewal_last_slack_ratio',
    'Share of the timeout that was left when the last renewal was confirmed; 1 where none was yet.',
    () => 1,
    (snapshot) => snapshot.lastSlackRatio ?? 1,
  );
  declarer.info(
    'killswitch_market_info',
    'Always 1; what is configured for the market.',
    ['bot', 'order_types', 'policy'],
    ({ bot, types, policy }) => [bot, types?.join('+') ?? 'all', policy],
  );
  declarer.stateset(
    'killswitch_market_state',
    '1 for the state the market is in, 0 for every other state.',
    'state',
    MARKET_STATES,
    ({ state }) => state,
  );
  declarer.stateset(
    'killswitch_market_held',
    '1 for why the market is left alone until an operator, or the end of a pause, says otherwise; else 0.',
    'reason',
    HOLDS,
    ({ hold }) => hold?.why ?? null,
  );
}

function declareRenewals({ counter }: Declarer<LabelledMarket, MarketSnapshot, 'market'>) {
  return {
    attempts: counter('killswitch_renewal_attempts_total', 'HTTP attempts to arm or renew the timer.'),
    renewals: counter('killswitch_renewals_total', 'Renewals that the exchange confirmed.'),
    failures: counter(
      'killswitch_renewal_failures_total',
      'HTTP attempts to arm or renew the timer that came to nothing.',
      'reason',
      FAILURE_REASONS,
    ),
    lapses: counter(
      'killswitch_lapses_total',
      'Timers that fired although they should not have.',
      'certainty',
      CERTAINTIES,
    ),
    overdue: counter(
      'killswitch_overdue_total',
      'Times that the guaranteed life of a wanted timer ran out; whether it fired was not known then.',
    ),
    refusals: counter('killswitch_refusals_total', 'Times that the exchange began to refuse the timer.'),
    alterations: counter(
      'killswitch_altered_replies_total',
      'Confirmations that named another timeout or other order types than asked for.',
    ),
  };
}

/** What is done on purpose instead of renewing. */
function declareExceptions({ counter }: Declarer<LabelledMarket, MarketSnapshot, 'market'>) {
  return {
    suspensions: counter(
      'killswitch_suspensions_total',
      'Times that renewing was stopped on purpose.',
      'reason',
      SUSPENSIONS,
    ),
    holds: counter(
      'killswitch_holds_total',
      'Times that an operator, or a lapse with onLapse: hold, took the market out of guard.',
      'reason',
      HOLDS,
    ),
    trips: counter(
      'killswitch_trips_total',
      'Times that the exchange confirmed that the timer was cut to its shortest, which cancels the orders.',
    ),
    tripFailures: counter(
      'killswitch_trip_failures_total',
      'HTTP attempts to cut the timer to its shortest that came to nothing.',
    ),
    deletes: counter('killswitch_deletes_total', 'Deletions of the timer that the exchange confirmed.'),
    deleteFailures: counter(
      'killswitch_delete_failures_total',
      'HTTP attempts to delete the timer that came to nothing.',
    ),
  };
}
