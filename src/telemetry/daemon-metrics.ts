import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

const DURATION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SLACK_BUCKETS = [0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
// What is due within 25 ms goes together: about there the bounds lie close.
const DELAY_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.03, 0.04, 0.06, 0.1, 0.25, 0.5, 1, 5];
const BEAT_GAP_BUCKETS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 120];
const STALL_BUCKETS = [0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600];
const OUTAGE_BUCKETS = [1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800];

/** Gauges of prom-client whose names end in `_total`, which `promtool check metrics` objects to. */
const BADLY_NAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

/**
 * Node's own sampling of the event loop's delay wakes the process a hundred times a second, which would be most of what
 * a daemon with a few markets costs. Its figures are left out, and it is asked for one sample an hour;
 * `killswitch_wake_delay_seconds` shows how late the loop is.
 */
const SAMPLE_EVERY_MS = 3_600_000;

/** Every metric without a `market` or `bot` label, declared once, in a registry of its own. */
export type DaemonFamilies = ReturnType<typeof declareDaemonFamilies>;

/** What the declarations share. No histogram of this program carries a `market` or `bot` label. */
function declarers(registry: Registry) {
  const registers = [registry];
  return {
    gauge: <L extends string>(name: string, help: string, ...labelNames: L[]) =>
      new Gauge<L>({ name, help, labelNames, registers }),
    counter: <L extends string>(name: string, help: string, ...labelNames: L[]) =>
      new Counter<L>({ name, help, labelNames, registers }),
    histogram: <L extends string>(name: string, help: string, buckets: number[], ...labelNames: L[]) =>
      new Histogram<L>({ name, help, buckets: [...buckets], labelNames, registers }),
  };
}

/** The metrics of the daemon itself and those of Node that are well named. */
export function declareDaemonFamilies() {
  const registry = new Registry();
  const families = {
    ...declareState(registry),
    ...declareOperations(registry),
    ...declareRenewals(registry),
    ...declareSurroundings(registry),
    registry,
  };
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: SAMPLE_EVERY_MS });
  for (const { name } of registry.getMetricsAsArray())
    if (BADLY_NAMED.includes(name) || name.startsWith('nodejs_eventloop_lag_'))
      registry.removeSingleMetric(name);
  return families;
}

function declareState(registry: Registry) {
  const { gauge, counter } = declarers(registry);
  return {
    buildInfo: gauge(
      'killswitch_build_info',
      'Always 1; what is running.',
      'version',
      'revision',
      'node_version',
    ),
    ready: gauge('killswitch_ready', '1 while every wanted market is confirmed armed.'),
    shardIndex: gauge('killswitch_shard_index', 'Which shard this daemon is, counted from 0.'),
    shardCount: gauge('killswitch_shards', 'How many daemons share the markets.'),
    shardMarkets: gauge('killswitch_shard_markets', "Markets of this daemon's shard."),
    fleetMarkets: gauge('killswitch_fleet_markets', 'Markets of all shards together.'),
    live: gauge('killswitch_live', "1 while the keeper's loop makes progress."),
    authorised: gauge('killswitch_authorised', '0 while the exchange refuses the API key.'),
    unauthorised: counter(
      'killswitch_unauthorised_total',
      'Times that the exchange began to refuse the API key.',
    ),
    logMessages: counter('killswitch_log_messages_total', 'Log lines by level.', 'level'),
    logDropped: counter(
      'killswitch_log_dropped_total',
      'Log lines that were dropped because standard output was slow or closed.',
    ),
  };
}

/** What operators and bots bring about. */
function declareOperations(registry: Registry) {
  const { gauge, counter, histogram } = declarers(registry);
  return {
    reloadOk: gauge(
      'killswitch_config_last_reload_successful',
      '1 where the last attempt to load the configuration was successful.',
    ),
    reloadTime: gauge(
      'killswitch_config_last_reload_success_timestamp_seconds',
      'Unix time of the last successful load of the configuration.',
    ),
    configHash: gauge(
      'killswitch_config_hash',
      'The first 48 bits of the hash of the configuration in force, as a number; 0 where it is not known.',
    ),
    reloads: counter(
      'killswitch_config_reloads_total',
      'Times that the configuration was read again, with those that were rejected.',
    ),
    reloadFailures: counter(
      'killswitch_config_reload_failures_total',
      'Times that the configuration was read again and rejected, so that nothing changed.',
    ),
    marketsRemoved: counter(
      'killswitch_markets_removed_total',
      'Markets that a reload took out, by what became of the timer.',
      'how',
    ),
    controlRefused: counter(
      'killswitch_control_refused_total',
      'Requests to the control listener that were refused.',
      'reason',
    ),
    beatGap: histogram(
      'killswitch_bot_beat_gap_seconds',
      'Between a beat that counted and the one before it of the same bot.',
      BEAT_GAP_BUCKETS,
    ),
  };
}

function declareRenewals(registry: Registry) {
  const { gauge, counter, histogram } = declarers(registry);
  return {
    duration: histogram(
      'killswitch_renewal_duration_seconds',
      'Confirmed renewals: from writing the request to its reply.',
      DURATION_BUCKETS,
    ),
    tripDuration: histogram(
      'killswitch_trip_duration_seconds',
      'Confirmed trips: from writing the request to its reply.',
      DURATION_BUCKETS,
    ),
    cycle: histogram(
      'killswitch_renewal_cycle_duration_seconds',
      'Confirmed renewals: from when it was due to its confirmation, with waiting and retries.',
      DURATION_BUCKETS,
    ),
    slack: histogram(
      'killswitch_renewal_slack_ratio',
      'Share of the timeout that was left when a renewal was confirmed.',
      SLACK_BUCKETS,
    ),
    delay: histogram(
      'killswitch_schedule_delay_seconds',
      'From when an attempt was due to when it was written.',
      DELAY_BUCKETS,
    ),
    wakeDelay: histogram(
      'killswitch_wake_delay_seconds',
      "From when the keeper's loop was to wake up to when it did.",
      DELAY_BUCKETS,
    ),
    bypasses: counter(
      'killswitch_limiter_bypasses_total',
      'Requests that started without a permit because the limiter had not given one in time.',
    ),
    throttled: counter('killswitch_throttled_total', 'Times that the exchange slowed the daemon down.'),
    cadenceFactor: gauge(
      'killswitch_cadence_factor',
      'How much longer than planned the renewal periods are; 1 is as planned.',
    ),
    capacity: gauge(
      'killswitch_capacity_requests_per_second',
      'Renewals a second that the rate limit and the connection can carry.',
    ),
    skew: gauge(
      'killswitch_clock_skew_seconds',
      "The exchange's clock minus the clock of this host, in whole seconds of the exchange.",
    ),
  };
}

function declareSurroundings(registry: Registry) {
  const { gauge, counter, histogram } = declarers(registry);
  return {
    apiUp: gauge('killswitch_api_up', '1 while the base address answers pings.', 'base'),
    pings: counter('killswitch_ping_attempts_total', 'Pings of the base address.', 'base'),
    pingFailures: counter('killswitch_ping_failures_total', 'Pings that came to nothing.', 'base', 'reason'),
    pingDuration: histogram(
      'killswitch_ping_duration_seconds',
      'Answered pings: from request to reply.',
      DURATION_BUCKETS,
      'base',
    ),
    outageActive: gauge(
      'killswitch_outage_active',
      '1 while renewals at the base address are in outage.',
      'base',
    ),
    outages: counter('killswitch_outages_total', 'Outages that began.', 'base'),
    outageDuration: histogram(
      'killswitch_outage_seconds',
      'How long the outages that ended lasted.',
      OUTAGE_BUCKETS,
      'base',
    ),
    stalls: counter(
      'killswitch_stalls_total',
      'Times that the process stood still, the host was suspended, or the clock stepped.',
      'kind',
    ),
    stallDuration: histogram(
      'killswitch_stall_seconds',
      'How long the process or the host stood still.',
      STALL_BUCKETS,
      'kind',
    ),
  };
}
