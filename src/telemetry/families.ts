import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { FAILURE_REASONS } from '../core/events.ts';
import { CERTAINTIES, FIRINGS, HOLDS, type Notice, SUSPENSIONS } from '../core/notice.ts';
import type { BotSnapshot, MarketSnapshot, Snapshot } from '../core/view.ts';
import { LOG_LEVELS } from '../ports.ts';
import { NOTIFY_WHATS } from './notifications.ts';

const DURATION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SLACK_BUCKETS = [0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
// Attempts that are due within 25 ms are written together.
const DELAY_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.03, 0.04, 0.06, 0.1, 0.25, 0.5, 1, 5];
/**
 * Bots beat in round intervals: a bound at 1 s would put beats of 1.0 s into the bucket above it. So each bound lies a
 * tenth above a round number.
 */
const BEAT_GAP_BUCKETS = [0.11, 0.22, 0.33, 0.55, 0.8, 1.1, 1.6, 2.2, 3.3, 5.5, 8, 11, 16, 22, 33, 66, 132];
const STALL_BUCKETS = [0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600];
const OUTAGE_BUCKETS = [1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800];

/** What prom-client declares beyond need: names that `promtool` objects to, and figures that would wake the process. */
const LEFT_OUT = /^nodejs_(eventloop_lag_|active_\w+_total$)/;

/**
 * Node's sampling of the event loop's delay wakes the process a hundred times a second. Its figures are left out, and it
 * is asked for one sample an hour; `killswitch_wake_delay_seconds` shows how late the loop is.
 */
const SAMPLE_EVERY_MS = 3_600_000;

export const BOT_STATES = [
  'starting',
  'alive',
  'stale',
  'goodbye',
  'failed',
] as const satisfies readonly BotSnapshot['state'][];

/** Label values of `killswitch_stalls_total` by what a notice calls them. */
export const STALL_KINDS = { stall: 'stall', suspend: 'suspend', 'clock-step': 'clock_step' } as const;

/** What became of the timer of a market that a reload took out. */
export const REMOVALS = ['deleted', 'kept', 'handed_off', 'fired'] as const satisfies readonly Extract<
  Notice,
  { kind: 'removed' }
>['how'][];

export const PURPOSES = ['renew', 'trip', 'delete'] as const;
/** `killswitch_market_held` has this reason, and the value 0, where nobody holds the market. */
export const NOT_HELD = 'none';

/** What a scrape shows as state: the snapshot, and Unix milliseconds of when it was taken. */
export interface Seen {
  readonly snapshot: Snapshot;
  readonly wallMs: number;
}

/** Every metric of the program, declared once. */
export type Families = ReturnType<typeof declareFamilies>;

/**
 * Declares every metric in a registry of its own. What the core knows anyway is read off `seen()` at the moment of the
 * scrape, so that a renewal costs no label lookup; `seen()` is null until the first scrape. No histogram has a label
 * `market` or `bot`: that many series would make every scrape slow.
 */
export function declareFamilies(
  seen: () => Seen | null,
  bases: readonly string[] = [],
  controlReasons: readonly string[] = [],
) {
  const registry = new Registry();
  const declare = createDeclarer(registry, seen);
  declareMarkets(declare);
  const families = {
    registry,
    ...declareBots(declare),
    ...declareDaemon(declare),
    ...declareOperations(declare, controlReasons),
    ...declareRenewals(declare),
    ...declareExceptions(declare),
    ...declareExchange(declare, bases),
  };
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: SAMPLE_EVERY_MS });
  for (const { name } of registry.getMetricsAsArray())
    if (LEFT_OUT.test(name)) registry.removeSingleMetric(name);
  return families;
}

type Declare = ReturnType<typeof createDeclarer>;

/** The values of each label; none where they are not known from the start. */
type Labels<L extends string> = Readonly<Record<L, readonly string[]>>;
type Sample<L extends string> = readonly [labels: Readonly<Record<L, string>>, value: number];

/** Declares metrics by their names without the prefix. */
function createDeclarer(registry: Registry, seen: () => Seen | null) {
  const described = <L extends string>(name: string, help: string, labelNames: L[]) => {
    return { name: `killswitch_${name}`, help, labelNames, registers: [registry] };
  };
  const collected = <L extends string>(
    name: string,
    help: string,
    labelNames: L[],
    read: (seen: Seen) => readonly Sample<L>[],
  ): void => {
    const made = new Gauge<L>({
      ...described(name, help, labelNames),
      collect() {
        made.reset();
        const now = seen();
        for (const [labels, value] of now === null ? [] : read(now)) made.set(labels, value);
      },
    });
  };
  return {
    /** A gauge that is read off the snapshot at a scrape. */
    collected,
    /** The same without labels. */
    shown: (name: string, help: string, read: (snapshot: Snapshot) => number) =>
      collected<never>(name, help, [], ({ snapshot }) => [[{}, read(snapshot)]]),
    marketGauge: (name: string, help: string, read: (market: MarketSnapshot) => number) =>
      collected(name, help, ['market'], ({ snapshot }) =>
        snapshot.markets.map((market) => [{ market: market.market }, read(market)]),
      ),
    marketCounter: (name: string, help: string, read: (market: MarketSnapshot) => number) => {
      const made = new Counter({
        ...described(name, help, ['market']),
        collect() {
          made.reset();
          for (const market of seen()?.snapshot.markets ?? [])
            made.inc({ market: market.market }, read(market));
        },
      });
    },
    botGauge: (name: string, help: string, read: (bot: BotSnapshot, wallMs: number) => number) =>
      collected(name, help, ['bot'], ({ snapshot, wallMs }) =>
        snapshot.bots.map((bot) => [{ bot: bot.bot }, read(bot, wallMs)]),
      ),
    gauge: <L extends string>(name: string, help: string, ...labelNames: L[]) =>
      new Gauge<L>(described(name, help, labelNames)),
    /** Every combination of label values that is known from the start begins with 0. */
    counter: <L extends string = never>(name: string, help: string, labels = {} as Labels<L>) => {
      const made = new Counter<L>(described(name, help, Object.keys(labels) as L[]));
      for (const combination of combinationsOf(labels)) made.inc(combination, 0);
      return made;
    },
    histogram: <L extends string>(name: string, help: string, buckets: number[], ...labelNames: L[]) =>
      new Histogram<L>({ ...described(name, help, labelNames), buckets: [...buckets] }),
  };
}

/** Nothing where the values of a label are not known, and one empty combination without labels. */
function combinationsOf<L extends string>(labels: Labels<L>): Record<L, string>[] {
  return Object.entries<readonly string[]>(labels).reduce<Record<string, string>[]>(
    (all, [label, values]) => all.flatMap((one) => values.map((value) => ({ ...one, [label]: value }))),
    [{}],
  );
}

/** Ten series for each market, and never more. */
function declareMarkets({ collected, marketGauge, marketCounter }: Declare): void {
  marketGauge(
    'timer_expiry_timestamp_seconds',
    'Unix time at which the timer ends, counted from the writing of its last renewal; 0 while no timer is armed.',
    ({ expiryWallMs }) => (expiryWallMs ?? 0) / 1000,
  );
  marketGauge(
    'market_armed_desired',
    '1 while the timer should be armed: nobody holds the market, and its bot is alive.',
    ({ wanted }) => (wanted ? 1 : 0),
  );
  collected(
    'market_state',
    'Always 1; the label is the state that the market is in.',
    ['market', 'state'],
    ({ snapshot }) => snapshot.markets.map(({ market, state }) => [{ market, state }, 1]),
  );
  collected(
    'market_held',
    `1 while the market is held, with the reason; else 0 with the reason "${NOT_HELD}".`,
    ['market', 'reason'],
    ({ snapshot }) =>
      snapshot.markets.map(({ market, hold }) => [
        { market, reason: hold?.why ?? NOT_HELD },
        hold === null ? 0 : 1,
      ]),
  );
  marketGauge(
    'timer_timeout_seconds',
    'Configured timeout of the timer.',
    ({ timeoutMs }) => timeoutMs / 1000,
  );
  marketGauge(
    'renewal_last_slack_ratio',
    'Slack at the last confirmed renewal, as a share of the timeout; 1 before the first one.',
    ({ lastSlackRatio }) => lastSlackRatio ?? 1,
  );
  marketCounter('renewals_total', 'Renewals that the exchange confirmed.', ({ renewals }) => renewals);
  marketCounter(
    'renewal_failures_total',
    'Requests about the timer that failed: renewals, trips and deletes.',
    ({ failures }) => failures,
  );
  marketCounter(
    'lapses_total',
    'Timers that fired, or may have fired, although they should not have.',
    ({ lapses }) => lapses,
  );
  collected(
    'market_info',
    'Always 1; what is configured for the market.',
    ['market', 'bot', 'order_types', 'policy'],
    ({ snapshot: { markets, shutdownPolicy: policy } }) =>
      markets.map(({ market, bot, types }) => [
        { market, bot, order_types: types?.join('+') ?? 'all', policy },
        1,
      ]),
  );
}

function declareBots({ collected, counter, histogram, botGauge }: Declare) {
  collected(
    'bot_info',
    'Always 1; how the bot proves that it lives; mode none: not at all.',
    ['bot', 'mode'],
    ({ snapshot }) => snapshot.bots.map(({ bot, mode }) => [{ bot, mode }, 1]),
  );
  collected(
    'bot_state',
    '1 for the state the bot is in, 0 for every other state.',
    ['bot', 'state'],
    ({ snapshot }) =>
      snapshot.bots.flatMap((seen) =>
        BOT_STATES.map((state) => [{ bot: seen.bot, state }, state === seen.state ? 1 : 0] as const),
      ),
  );
  botGauge('bot_alive', '1 while the bot gives evidence that it lives.', ({ state }) =>
    state === 'alive' ? 1 : 0,
  );
  botGauge(
    'bot_last_evidence_timestamp_seconds',
    'Unix time of the last evidence that the bot lives; 0 where there was none.',
    ({ evidenceAgeMs }, wallMs) => (evidenceAgeMs === null ? 0 : (wallMs - evidenceAgeMs) / 1000),
  );
  botGauge(
    'bot_evidence_ttl_seconds',
    'How long one piece of evidence of the bot counts; 0 where nobody watches it.',
    ({ ttlMs }) => (ttlMs ?? 0) / 1000,
  );
  return {
    botChanges: counter('bot_changes_total', 'Times that the bot came into the state.', {
      bot: [],
      state: BOT_STATES,
    }),
    beats: counter('bot_beats_total', 'Beats of the bot that counted.', { bot: [] }),
    beatsRefused: counter(
      'bot_beats_refused_total',
      'Beats of the bot that did not count: copies of older ones, or of a mode that listens to no beats.',
      { bot: [] },
    ),
    beatGap: histogram(
      'bot_beat_gap_seconds',
      'Time between a beat that counted and the one before it of the same bot.',
      BEAT_GAP_BUCKETS,
    ),
  };
}

function declareDaemon({ gauge, counter, shown }: Declare) {
  shown('ready', '1 while every market of a living bot is armed and no bot is dead.', ({ ready }) => +ready);
  shown('live', "1 while the keeper's loop makes progress.", ({ live }) => +live);
  shown('authorised', '0 while the exchange refuses the API key.', ({ authorised }) => +authorised);
  shown(
    'survivable_outage_seconds',
    'An outage of the exchange shorter than this lapses no wanted timer; 0 while none is wanted.',
    (snapshot) => least(snapshot, 0, ({ survivesMs }) => survivesMs / 1000),
  );
  shown(
    'survivable_outage_ratio',
    'The same as a share of the timeout, of the wanted market where it is least; 1 while none is wanted.',
    (snapshot) => least(snapshot, 1, ({ survivesMs, timeoutMs }) => survivesMs / timeoutMs),
  );
  return {
    buildInfo: gauge('build_info', 'Always 1; what is running.', 'version', 'revision', 'node_version'),
    shardIndex: gauge('shard_index', 'Which shard this daemon is, counted from 0.'),
    shardCount: gauge('shards', 'How many daemons share the markets.'),
    shardMarkets: gauge('shard_markets', "Markets of this daemon's shard."),
    fleetMarkets: gauge('fleet_markets', 'Markets of all shards together.'),
    unauthorised: counter('unauthorised_total', 'Times that the exchange began to refuse the key.'),
    logMessages: counter('log_messages_total', 'Log lines by level.', { level: LOG_LEVELS }),
    logDropped: counter(
      'log_dropped_total',
      'Log lines that were dropped because standard output was slow or closed.',
    ),
    notifyFailures: counter('notify_failures_total', 'Posts and pings of notify that failed.', {
      what: NOTIFY_WHATS,
    }),
  };
}

/** Over the markets that should be armed; `none` where there is no such market. */
function least({ markets }: Snapshot, none: number, read: (market: MarketSnapshot) => number): number {
  const found = markets.filter(({ wanted, leaving }) => wanted && !leaving).map(read);
  return found.length === 0 ? none : found.reduce((one, other) => Math.min(one, other));
}

/** What operators bring about. */
function declareOperations({ gauge, counter }: Declare, controlReasons: readonly string[]) {
  return {
    reloadOk: gauge(
      'config_last_reload_successful',
      '1 where the last attempt to load the configuration was successful.',
    ),
    reloadTime: gauge(
      'config_last_reload_success_timestamp_seconds',
      'Unix time of the last successful load of the configuration.',
    ),
    configHash: gauge(
      'config_hash',
      'The first 48 bits of the hash of the configuration in force, as a number; 0 where it is not known.',
    ),
    reloads: counter('config_reloads_total', 'Reloads, rejected ones included.'),
    reloadFailures: counter('config_reload_failures_total', 'Reloads that were rejected.'),
    marketsRemoved: counter(
      'markets_removed_total',
      'Markets that a reload took out, by what became of the timer.',
      { how: REMOVALS },
    ),
    holds: counter(
      'holds_total',
      'Times that an operator, or a lapse with onLapse: hold, put a market on hold.',
      { reason: HOLDS },
    ),
    controlRefused: counter('control_refused_total', 'Refused requests to the control listener.', {
      reason: controlReasons,
    }),
  };
}

function declareRenewals({ gauge, counter, histogram, shown }: Declare) {
  shown(
    'cadence_factor',
    'Renewal periods in proportion to those planned; 1 is as planned.',
    ({ cadenceFactor }) => cadenceFactor,
  );
  shown(
    'capacity_requests_per_second',
    'Renewals a second that rate limit and connection can carry.',
    ({ capacityPerSecond }) => capacityPerSecond,
  );
  return {
    requests: counter(
      'requests_total',
      'Requests about timers that were written: renewals, trips and deletes.',
      { purpose: PURPOSES },
    ),
    requestFailures: counter(
      'request_failures_total',
      'Requests about timers that failed, by what they were for and why they failed.',
      { purpose: PURPOSES, reason: FAILURE_REASONS },
    ),
    duration: histogram(
      'renewal_duration_seconds',
      'Confirmed renewals: from writing the request to its reply.',
      DURATION_BUCKETS,
    ),
    tripDuration: histogram(
      'trip_duration_seconds',
      'Confirmed trips: from writing the request to its reply.',
      DURATION_BUCKETS,
    ),
    cycle: histogram(
      'renewal_cycle_duration_seconds',
      'Confirmed renewals: from when it was due to its confirmation, with waiting and retries.',
      DURATION_BUCKETS,
    ),
    slack: histogram(
      'renewal_slack_ratio',
      'Slack when a renewal was confirmed, as a share of the timeout.',
      SLACK_BUCKETS,
    ),
    delay: histogram(
      'schedule_delay_seconds',
      'From when an attempt was due to when it was written.',
      DELAY_BUCKETS,
    ),
    wakeDelay: histogram(
      'wake_delay_seconds',
      "From when the keeper's loop was to wake up to when it did.",
      DELAY_BUCKETS,
    ),
    throttled: counter('throttled_total', 'Times that the exchange slowed the daemon down.'),
    skew: gauge(
      'clock_skew_seconds',
      "The exchange's clock minus the clock of this host, in whole seconds of the exchange.",
    ),
  };
}

/** What happens to timers besides renewals. */
function declareExceptions({ counter }: Declare) {
  return {
    lapses: counter(
      'lapses_by_certainty_total',
      'Lapses of all markets, by how sure it is that the timer fired.',
      { certainty: CERTAINTIES },
    ),
    fired: counter('fired_total', 'Timers that fired while nobody wanted them renewed, and why.', {
      reason: FIRINGS,
    }),
    overdue: counter(
      'overdue_total',
      'Times that the guarantee for a wanted timer ran out; it was not known then whether the timer fired.',
    ),
    refusals: counter('refusals_total', "Times that the exchange began to refuse a market's timer."),
    alterations: counter(
      'altered_replies_total',
      'Confirmations that named another timeout or other order types than asked for.',
    ),
    suspensions: counter('suspensions_total', 'Times that renewing a market stopped because of its bot.', {
      reason: SUSPENSIONS,
    }),
    trips: counter(
      'trips_total',
      'Trips that the exchange confirmed: the timer was cut to its shortest, which cancels the orders.',
    ),
    deletes: counter('deletes_total', 'Deletions of timers that the exchange confirmed.'),
  };
}

function declareExchange({ collected, counter, histogram }: Declare, base: readonly string[]) {
  collected(
    'outage_active',
    '1 while renewals at the base address are in outage.',
    ['base'],
    ({ snapshot }) => snapshot.bases.map(({ url, outage }) => [{ base: url }, outage ? 1 : 0]),
  );
  collected('api_up', '1 while the base address answers pings.', ['base'], ({ snapshot }) =>
    snapshot.bases.map(({ url, up }) => [{ base: url }, up === true ? 1 : 0]),
  );
  return {
    pings: counter('ping_attempts_total', 'Pings of the base address.', { base }),
    pingFailures: counter('ping_failures_total', 'Pings that failed.', {
      base,
      reason: FAILURE_REASONS,
    }),
    pingDuration: histogram(
      'ping_duration_seconds',
      'Answered pings: from request to reply.',
      DURATION_BUCKETS,
      'base',
    ),
    outages: counter('outages_total', 'Outages that began.', { base }),
    outageDuration: histogram(
      'outage_seconds',
      'How long the outages that ended lasted.',
      OUTAGE_BUCKETS,
      'base',
    ),
    stalls: counter(
      'stalls_total',
      'Times that the process stood still, the host was suspended, or the clock stepped.',
      { kind: Object.values(STALL_KINDS) },
    ),
    stallDuration: histogram(
      'stall_seconds',
      'How long the process or the host stood still.',
      STALL_BUCKETS,
      'kind',
    ),
  };
}
