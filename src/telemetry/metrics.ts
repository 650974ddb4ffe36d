import { EventEmitter } from 'node:events';
import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type Metric,
  Registry,
  type RegistryContentType,
} from 'prom-client';
import { FAILURE_REASONS, type Purpose } from '../core/events.ts';
import { CERTAINTIES, FIRINGS, HOLDS, type Notice, SUSPENSIONS } from '../core/notice.ts';
import type { BotSnapshot, MarketSnapshot, Snapshot } from '../core/view.ts';
import { type Clock, LOG_LEVELS, type Observer } from '../ports.ts';
import { createBreather } from '../util/pace.ts';
import { BOT, type Kind, type Of, PURPOSE, REMOVED } from './events.ts';
import { NOTIFY_WHATS } from './notifications.ts';

const PIECE_LINES = 500;

/** A double holds 53 bits exactly; Alertmanager shows the first 48 of its hash, too. */
const HASH_DIGITS = 48 / 4;

const DURATION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SLACK_BUCKETS = [0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
// Attempts that are due within 25 ms are written together.
const DELAY_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.03, 0.04, 0.06, 0.1, 0.25, 0.5, 1, 5];
/** A tenth above round numbers: bots beat in round intervals, and a bound at 1 s would part beats of 1.0 s. */
const BEAT_GAP_BUCKETS = [0.11, 0.22, 0.33, 0.55, 0.8, 1.1, 1.6, 2.2, 3.3, 5.5, 8, 11, 16, 22, 33, 66, 132];
const STALL_BUCKETS = [0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600];
const OUTAGE_BUCKETS = [1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800];

/** Metrics of prom-client that are taken out: `promtool` objects to their names, or they would wake the process. */
const LEFT_OUT = /^nodejs_(eventloop_lag_|active_\w+_total$)/;

/** Node's sampling of the loop's delay wakes the process a hundred times a second: one sample an hour is asked for. */
const SAMPLE_EVERY_MS = 3_600_000;

export const BOT_STATES = Object.keys(BOT) as readonly BotSnapshot['state'][];

/** Label values of `killswitch_stalls_total` by what a notice calls them. */
export const STALL_KINDS = { stall: 'stall', suspend: 'suspend', 'clock-step': 'clock_step' } as const;

export const REMOVALS: readonly string[] = Object.keys(REMOVED);
export const PURPOSES = Object.keys(PURPOSE) as readonly Purpose[];
/** `killswitch_market_held` has this reason, and the value 0, where nobody holds the market. */
export const NOT_HELD = 'none';

/** What each metric means, without the prefix of all names. */
const MEANING = {
  timer_expiry_timestamp_seconds:
    'Unix time at which the timer ends, counted from the writing of its last renewal; 0 while no timer is armed.',
  market_armed_desired:
    '1 while the timer should be armed: nobody holds the market, and its bot is alive or not heard yet.',
  market_state: 'Always 1; the label is the state that the market is in.',
  market_held: `1 while the market is held, with the reason; else 0 with the reason "${NOT_HELD}".`,
  timer_timeout_seconds: 'Configured timeout of the timer.',
  renewal_last_slack_ratio:
    'Slack at the last confirmed renewal, as a share of the timeout; 1 before the first one.',
  renewals_total: 'Renewals and trips that the exchange confirmed.',
  renewal_failures_total: 'Requests about the timer that failed: renewals, trips and deletes.',
  lapses_total: 'Timers that fired, or may have fired, although they should not have.',
  market_info: 'Always 1; what is configured for the market.',
  bot_info: 'Always 1; how the bot proves that it lives; mode none: not at all.',
  bot_state: '1 for the state the bot is in, 0 for every other state.',
  bot_alive: '1 while the bot gives evidence that it lives, and always with mode none.',
  bot_last_evidence_timestamp_seconds:
    'Unix time of the last evidence that the bot lives; 0 where there was none.',
  bot_evidence_ttl_seconds: 'How long one piece of evidence of the bot counts; 0 where nobody watches it.',
  bot_changes_total: 'Times that the bot came into the state.',
  bot_beats_total: 'Beats of the bot that counted.',
  bot_beats_refused_total:
    'Beats of the bot that did not count: copies of older ones, or of a mode that listens to no beats.',
  bot_beat_gap_seconds: 'Time between a beat that counted and the one before it of the same bot.',
  ready: '1 while every market of a living bot is armed, no bot is dead, and something is guarded.',
  live: "1 while the keeper's loop makes progress.",
  authorised: '0 while the exchange refuses the API key.',
  survivable_outage_seconds:
    'An outage of the exchange shorter than this lapses no wanted timer; 0 while none is wanted.',
  survivable_outage_ratio:
    'The same as a share of the timeout, of the wanted market where it is least; 1 while none is wanted.',
  build_info: 'Always 1; what is running.',
  shard_index: 'Which shard this daemon is, counted from 0.',
  shards: 'How many daemons share the markets.',
  shard_markets: "Markets of this daemon's shard.",
  fleet_markets: 'Markets of all shards together.',
  unauthorised_total: 'Times that the exchange began to refuse the key.',
  log_messages_total: 'Log lines by level.',
  log_dropped_total: 'Log lines that were dropped because standard output was slow or closed.',
  notify_failures_total: 'Posts and pings of notify that failed.',
  config_last_reload_successful: '1 where the last attempt to load the configuration was successful.',
  config_last_reload_success_timestamp_seconds: 'Unix time of the last successful load of the configuration.',
  config_hash:
    'The first 48 bits of the hash of the configuration in force, as a number; 0 where it is not known.',
  config_reloads_total: 'Reloads, rejected ones included.',
  config_reload_failures_total: 'Reloads that were rejected.',
  markets_removed_total: 'Markets that a reload took out, by what became of the timer.',
  holds_total: 'Times that an operator, or a lapse with onLapse: hold, put a market on hold.',
  control_refused_total: 'Refused requests to the control listener.',
  cadence_factor: 'Renewal periods in proportion to those planned; 1 is as planned.',
  capacity_requests_per_second: 'Renewals a second that rate limit and connection can carry.',
  requests_total: 'Requests about timers that were written: renewals, trips and deletes.',
  request_failures_total: 'Requests about timers that failed, by what they were for and why they failed.',
  renewal_duration_seconds: 'Confirmed renewals: from writing the request to its reply.',
  trip_duration_seconds: 'Confirmed trips: from writing the request to its reply.',
  renewal_cycle_duration_seconds:
    'Confirmed renewals: from when it was due to its confirmation, with waiting and retries.',
  renewal_slack_ratio: 'Slack when a renewal was confirmed, as a share of the timeout.',
  schedule_delay_seconds: 'From when an attempt was due to when it was written.',
  wake_delay_seconds: "From when the keeper's loop was to wake up to when it did.",
  throttled_total: 'Times that the exchange slowed the daemon down.',
  clock_skew_seconds: "The exchange's clock minus the clock of this host, in whole seconds of the exchange.",
  lapses_by_certainty_total: 'Lapses of all markets, by how sure it is that the timer fired.',
  fired_total: 'Timers that fired while nobody wanted them renewed, and why.',
  overdue_total:
    'Times that the guarantee for a wanted timer ran out; it was not known then whether the timer fired.',
  refusals_total: "Times that the exchange began to refuse a market's timer.",
  altered_replies_total: 'Confirmations that named another timeout or other order types than asked for.',
  suspensions_total: 'Times that renewing a market stopped because of its bot.',
  trips_total:
    'Trips that the exchange confirmed: the timer was cut to its shortest, which cancels the orders.',
  deletes_total: 'Deletions of timers that the exchange confirmed.',
  outage_active: '1 while renewals at the base address are in outage.',
  api_up: '1 while the base address answers pings.',
  ping_attempts_total: 'Pings of the base address.',
  ping_failures_total: 'Pings that failed.',
  ping_duration_seconds: 'Answered pings: from request to reply.',
  outages_total: 'Outages that began.',
  outage_seconds: 'How long the outages that ended lasted.',
  stalls_total: 'Times that the process stood still, the host was suspended, or the clock stepped.',
  stall_seconds: 'How long the process or the host stood still.',
} as const;

type Name = keyof typeof MEANING;

/** What a scrape shows as state. */
export interface Seen {
  readonly snapshot: Snapshot;
  /** Unix milliseconds of when the snapshot was taken. */
  readonly wallMs: number;
  /** This daemon's part of the markets: how many are its own, and of all shards together. */
  readonly shard: Readonly<Record<'index' | 'count' | 'markets' | 'fleet', number>>;
  readonly countsOf: (bot: string) => BotCounts;
}

/** What is counted of a bot. */
export interface BotCounts {
  beats: number;
  refused: number;
  /** On the monotonic clock; null before its first beat. */
  lastBeatMs: number | null;
  /** How often it came into each state. */
  readonly changes: Map<BotSnapshot['state'], number>;
}

export interface MetricsOptions {
  /** The labels of `killswitch_build_info`. */
  readonly build: Readonly<Record<'version' | 'revision' | 'node_version', string>>;
  /** Base addresses in the order that the notices number them. */
  readonly bases: readonly string[];
  readonly clock: Clock;
  readonly shard: Seen['shard'];
  readonly controlReasons?: readonly string[];
  readonly configHash?: string;
}

export type Metrics = ReturnType<typeof createMetrics>;

/**
 * Declares every metric in a registry of its own, and creates every series whose labels are known from the start with the
 * value 0. What the core knows anyway is read off the snapshot of the scrape, so that a renewal costs no label lookup;
 * before the first scrape there is none. No histogram has a label `market` or `bot`: that many series would make every
 * scrape slow.
 */
export function createMetrics(options: MetricsOptions) {
  const { clock, bases, controlReasons = [] } = options;
  let { shard } = options;
  let seen: Seen | null = null;
  const registry = new Registry();
  const declare = createDeclarer(registry, () => seen);
  const { notices } = declare;
  declareMarkets(declare);
  const beatGap = declareBots(declare);
  const { buildInfo, config, ...counters } = declareDaemon(declare, controlReasons);
  const wakeDelay = declareRenewals(declare);
  declareExchange(declare, bases);
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: SAMPLE_EVERY_MS });
  for (const { name } of registry.getMetricsAsArray())
    if (LEFT_OUT.test(name)) registry.removeSingleMetric(name);
  buildInfo.set(options.build, 1);
  const counts = new Map<string, BotCounts>();
  const countsOf = (bot: string): BotCounts => {
    const found = counts.get(bot) ?? { beats: 0, refused: 0, lastBeatMs: null, changes: new Map() };
    counts.set(bot, found);
    return found;
  };
  const inForce = (hash: string): void => {
    config.lastOk.set(1);
    config.lastTime.set(clock.now().wallMs / 1000);
    config.hash.set(Number.parseInt(hash.slice(0, HASH_DIGITS), 16));
  };
  inForce(options.configHash ?? '0');
  notices.on('bot', ({ bot, state }) => {
    const { changes } = countsOf(bot);
    changes.set(state, (changes.get(state) ?? 0) + 1);
  });
  return {
    /** Counters that others move. */
    ...counters,
    registry,
    /** Counts what happened. What is counted of a bot shows for as long as the snapshot has it. */
    observe: ((notice) => void notices.emit(notice.kind, notice as never)) as Observer,
    /** The page of a snapshot, in OpenMetrics with `open`. Gives the event loop back between its pieces. */
    render: (snapshot: Snapshot, open: boolean): Promise<Buffer> => {
      seen = { snapshot, wallMs: clock.now().wallMs, shard, countsOf };
      return render(registry, clock, open);
    },
    reconfigure: (next: Seen['shard']): void => {
      shard = next;
    },
    /** The keeper's loop woke up so many milliseconds later than it had asked for. */
    wokeUp: (lateMs: number) => wakeDelay.observe(Math.max(0, lateMs) / 1000),
    /** The configuration was read again and is in force, changed or not. `hash`: its digest in hexadecimal digits. */
    reloadSucceeded: (hash: string): void => {
      config.reloads.inc();
      inForce(hash);
    },
    reloadFailed: (): void => {
      config.reloads.inc();
      config.failures.inc();
      config.lastOk.set(0);
    },
    beat(bot: string, isCounted: boolean): void {
      const found = countsOf(bot);
      found[isCounted ? 'beats' : 'refused'] += 1;
      if (!isCounted) return;
      const { monoMs } = clock.now();
      if (found.lastBeatMs !== null) beatGap.observe((monoMs - found.lastBeatMs) / 1000);
      found.lastBeatMs = monoMs;
    },
  };
}

type Declare = ReturnType<typeof createDeclarer>;

/** The values of each label; none where they are not known from the start. */
type Labels<L extends string> = Readonly<Record<L, readonly string[]>>;
type Sample<L extends string> = readonly [labels: Readonly<Record<L, string>>, value: number];

/** The notices by their kinds, as an emitter has them. */
type Noticed = { [K in Kind]: [notice: Of<K>] };

function createDeclarer(registry: Registry, seen: () => Seen | null) {
  const notices = new EventEmitter<Noticed>();
  const described = <L extends string>(name: Name, labelNames: L[]) => {
    return { name: `killswitch_${name}`, help: MEANING[name], labelNames, registers: [registry] };
  };
  const collected = <L extends string>(
    name: Name,
    labelNames: L[],
    read: (seen: Seen) => readonly Sample<L>[],
  ): void => {
    const made = new (name.endsWith('_total') ? Counter : Gauge)<L>({
      ...described(name, labelNames),
      collect() {
        made.reset();
        const now = seen();
        for (const [labels, value] of now === null ? [] : read(now)) made.inc(labels, value);
      },
    });
  };
  const counter = <L extends string = never>(name: Name, labels = {} as Labels<L>) => {
    const made = new Counter<L>(described(name, Object.keys(labels) as L[]));
    for (const combination of combinationsOf(labels)) made.inc(combination, 0);
    return made;
  };
  const histogram = <L extends string = never>(name: Name, buckets: number[], labels = {} as Labels<L>) => {
    const made = new Histogram<L>({ ...described(name, Object.keys(labels) as L[]), buckets: [...buckets] });
    for (const combination of combinationsOf(labels)) made.zero(combination);
    return made;
  };
  return {
    notices,
    /** Read off the snapshot at a scrape: a counter where the name is that of one, else a gauge. */
    collected,
    shown: (name: Name, read: (seen: Seen) => number) =>
      collected<never>(name, [], (now) => [[{}, read(now)]]),
    ofMarket: (name: Name, read: (market: MarketSnapshot) => number) =>
      collected(name, ['market'], ({ snapshot }) =>
        snapshot.markets.map((market) => [{ market: market.market }, read(market)]),
      ),
    ofBot: (name: Name, read: (bot: BotSnapshot, seen: Seen) => number) =>
      collected(name, ['bot'], (now) => now.snapshot.bots.map((bot) => [{ bot: bot.bot }, read(bot, now)])),
    gauge: <L extends string>(name: Name, ...labelNames: L[]) => new Gauge<L>(described(name, labelNames)),
    /** Every combination of label values that is known from the start begins with 0. */
    counter,
    histogram,
    counted: <K extends Kind, L extends string = never>(
      kind: K,
      name: Name,
      labels = {} as Labels<L>,
      labelsOf: (notice: Of<K>) => Record<L, string> = () => ({}) as Record<L, string>,
    ): void => {
      const made = counter(name, labels);
      notices.on(kind as Kind, (notice: Notice) => made.inc(labelsOf(notice as Of<K>)));
    },
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
function declareMarkets({ collected, ofMarket }: Declare): void {
  ofMarket('timer_expiry_timestamp_seconds', ({ expiryWallMs }) => (expiryWallMs ?? 0) / 1000);
  ofMarket('market_armed_desired', ({ wanted }) => +wanted);
  collected('market_state', ['market', 'state'], ({ snapshot }) =>
    snapshot.markets.map(({ market, state }) => [{ market, state }, 1]),
  );
  collected('market_held', ['market', 'reason'], ({ snapshot }) =>
    snapshot.markets.map(({ market, hold }) => [{ market, reason: hold?.why ?? NOT_HELD }, +(hold !== null)]),
  );
  ofMarket('timer_timeout_seconds', ({ timeoutMs }) => timeoutMs / 1000);
  ofMarket('renewal_last_slack_ratio', ({ lastSlackRatio }) => lastSlackRatio ?? 1);
  ofMarket('renewals_total', ({ renewals }) => renewals);
  ofMarket('renewal_failures_total', ({ failures }) => failures);
  ofMarket('lapses_total', ({ lapses }) => lapses);
  collected('market_info', ['market', 'bot', 'order_types', 'policy'], ({ snapshot }) =>
    snapshot.markets.map(({ market, bot, types }) => [
      { market, bot, order_types: types?.join('+') ?? 'all', policy: snapshot.shutdownPolicy },
      1,
    ]),
  );
}

function declareBots({ collected, histogram, ofBot }: Declare) {
  collected('bot_info', ['bot', 'mode'], ({ snapshot }) =>
    snapshot.bots.map(({ bot, mode }) => [{ bot, mode }, 1]),
  );
  collected('bot_state', ['bot', 'state'], ({ snapshot }) =>
    snapshot.bots.flatMap((seen) =>
      BOT_STATES.map((state) => [{ bot: seen.bot, state }, +(state === seen.state)] as const),
    ),
  );
  ofBot('bot_alive', ({ state }) => +(state === 'alive'));
  ofBot('bot_last_evidence_timestamp_seconds', ({ evidenceAgeMs }, { wallMs }) =>
    evidenceAgeMs === null ? 0 : (wallMs - evidenceAgeMs) / 1000,
  );
  ofBot('bot_evidence_ttl_seconds', ({ ttlMs }) => (ttlMs ?? 0) / 1000);
  collected('bot_changes_total', ['bot', 'state'], ({ snapshot, countsOf }) =>
    snapshot.bots.flatMap(({ bot }) =>
      BOT_STATES.map((state) => [{ bot, state }, countsOf(bot).changes.get(state) ?? 0] as const),
    ),
  );
  ofBot('bot_beats_total', ({ bot }, { countsOf }) => countsOf(bot).beats);
  ofBot('bot_beats_refused_total', ({ bot }, { countsOf }) => countsOf(bot).refused);
  return histogram('bot_beat_gap_seconds', BEAT_GAP_BUCKETS);
}

function declareDaemon({ gauge, counter, counted, shown }: Declare, controlReasons: readonly string[]) {
  shown('ready', ({ snapshot }) => +snapshot.ready);
  shown('live', ({ snapshot }) => +snapshot.live);
  shown('authorised', ({ snapshot }) => +snapshot.authorised);
  shown('survivable_outage_seconds', (seen) => least(seen, 0, ({ survivesMs }) => survivesMs / 1000));
  shown('survivable_outage_ratio', (seen) =>
    least(seen, 1, (market) => market.survivesMs / market.timeoutMs),
  );
  const buildInfo = gauge('build_info', 'version', 'revision', 'node_version');
  shown('shard_index', ({ shard }) => shard.index);
  shown('shards', ({ shard }) => shard.count);
  shown('shard_markets', ({ shard }) => shard.markets);
  shown('fleet_markets', ({ shard }) => shard.fleet);
  counted('unauthorised', 'unauthorised_total');
  const families = {
    buildInfo,
    logMessages: counter('log_messages_total', { level: LOG_LEVELS }),
    logDropped: counter('log_dropped_total'),
    notifyFailures: counter('notify_failures_total', { what: NOTIFY_WHATS }),
    config: {
      lastOk: gauge('config_last_reload_successful'),
      lastTime: gauge('config_last_reload_success_timestamp_seconds'),
      hash: gauge('config_hash'),
      reloads: counter('config_reloads_total'),
      failures: counter('config_reload_failures_total'),
    },
  };
  counted('removed', 'markets_removed_total', { how: REMOVALS }, ({ how }) => ({ how }));
  counted('held', 'holds_total', { reason: HOLDS }, ({ why }) => ({ reason: why }));
  return { ...families, controlRefused: counter('control_refused_total', { reason: controlReasons }) };
}

/** Over the markets that should be armed; `none` where there is no such market. */
function least({ snapshot }: Seen, none: number, read: (market: MarketSnapshot) => number): number {
  const found = snapshot.markets.filter(({ wanted, leaving }) => wanted && !leaving).map(read);
  return found.length === 0 ? none : found.reduce((one, other) => Math.min(one, other));
}

function declareRenewals({ notices, gauge, counted, counter, histogram, shown }: Declare) {
  shown('cadence_factor', ({ snapshot }) => snapshot.cadenceFactor);
  shown('capacity_requests_per_second', ({ snapshot }) => snapshot.capacityPerSecond);
  const requests = counter('requests_total', { purpose: PURPOSES });
  const failed = { purpose: PURPOSES, reason: FAILURE_REASONS };
  counted('attempt-failed', 'request_failures_total', failed, ({ purpose, reason }) => ({ purpose, reason }));
  const duration = histogram('renewal_duration_seconds', DURATION_BUCKETS);
  const tripDuration = histogram('trip_duration_seconds', DURATION_BUCKETS);
  const cycle = histogram('renewal_cycle_duration_seconds', DURATION_BUCKETS);
  const slack = histogram('renewal_slack_ratio', SLACK_BUCKETS);
  const delay = histogram('schedule_delay_seconds', DELAY_BUCKETS);
  const wakeDelay = histogram('wake_delay_seconds', DELAY_BUCKETS);
  counted('throttled', 'throttled_total');
  const skew = gauge('clock_skew_seconds');
  notices.on('attempt', ({ purpose, delayMs }) => {
    requests.inc({ purpose });
    if (purpose !== 'delete') delay.observe(delayMs / 1000);
  });
  notices.on('renewed', ({ durationMs, cycleMs, slackRatio, skewMs }) => {
    duration.observe(durationMs / 1000);
    cycle.observe(cycleMs / 1000);
    if (slackRatio !== null) slack.observe(slackRatio);
    skew.set(skewMs / 1000);
  });
  notices.on('tripped', ({ durationMs }) => tripDuration.observe(durationMs / 1000));
  const certainty = { certainty: CERTAINTIES };
  counted('lapsed', 'lapses_by_certainty_total', certainty, (lapse) => ({ certainty: lapse.certainty }));
  counted('fired', 'fired_total', { reason: FIRINGS }, ({ why }) => ({ reason: why }));
  counted('overdue', 'overdue_total');
  counted('refused', 'refusals_total');
  counted('altered', 'altered_replies_total');
  counted('suspended', 'suspensions_total', { reason: SUSPENSIONS }, ({ why }) => ({ reason: why }));
  counted('tripped', 'trips_total');
  counted('deleted', 'deletes_total');
  return wakeDelay;
}

function declareExchange(declare: Declare, bases: readonly string[]) {
  const { notices, collected, counted, counter, histogram } = declare;
  collected('outage_active', ['base'], ({ snapshot }) =>
    snapshot.bases.map(({ url, outage }) => [{ base: url }, +outage]),
  );
  collected('api_up', ['base'], ({ snapshot }) =>
    snapshot.bases.map(({ url, up }) => [{ base: url }, +(up === true)]),
  );
  const baseOf = ({ base }: { readonly base: number }) => ({ base: bases[base] ?? `#${base}` });
  counted('pinged', 'ping_attempts_total', { base: bases }, baseOf);
  const pingFailures = counter('ping_failures_total', { base: bases, reason: FAILURE_REASONS });
  const pingDuration = histogram('ping_duration_seconds', DURATION_BUCKETS, { base: bases });
  notices.on('pinged', (notice) => {
    if (notice.ok) pingDuration.observe(baseOf(notice), notice.latencyMs / 1000);
    else pingFailures.inc({ ...baseOf(notice), reason: notice.reason ?? 'network' });
  });
  counted('outage-began', 'outages_total', { base: bases }, baseOf);
  const outageDuration = histogram('outage_seconds', OUTAGE_BUCKETS, { base: bases });
  notices.on('outage-ended', (notice) => outageDuration.observe(baseOf(notice), notice.lastedMs / 1000));
  const kindOf = ({ what }: Of<'stall'>) => ({ kind: STALL_KINDS[what] });
  counted('stall', 'stalls_total', { kind: Object.values(STALL_KINDS) }, kindOf);
  const stallDuration = histogram('stall_seconds', STALL_BUCKETS, { kind: ['stall', 'suspend'] });
  notices.on('stall', (notice) => {
    if (notice.what !== 'clock-step') stallDuration.observe(kindOf(notice), notice.byMs / 1000);
  });
}

async function render(registry: Registry, clock: Clock, open: boolean): Promise<Buffer> {
  const pieces: Buffer[] = [];
  const breathe = createBreather(clock);
  for (const metric of registry.getMetricsAsArray() as unknown as Metric[]) {
    for await (const piece of linesOf(metric, open)) {
      pieces.push(Buffer.from(piece));
      await breathe();
    }
  }
  if (open) pieces.push(Buffer.from('# EOF\n'));
  return Buffer.concat(pieces);
}

/** In pieces, as the library writes them. For OpenMetrics, without `_total`, it would rename the counter for good. */
async function* linesOf(metric: Metric, open: boolean): AsyncGenerator<string> {
  const { values, ...described } = await metric.get();
  const isCounter = String(described.type) === 'counter';
  const name = open && isCounter ? described.name.replace(/_total$/, '') : described.name;
  for (let start = 0; start === 0 || start < values.length; start += PIECE_LINES) {
    const some = { ...described, name, values: values.slice(start, start + PIECE_LINES) };
    const writer = new Registry<RegistryContentType>();
    if (open) writer.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    writer.registerMetric({ name, get: async () => some } as never);
    const text = await writer.getSingleMetricAsString(name);
    // The lines HELP and TYPE stand once.
    yield `${start === 0 ? text : text.split('\n').slice(2).join('\n')}\n`;
  }
}
