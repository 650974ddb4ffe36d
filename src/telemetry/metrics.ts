import {
  Histogram,
  type Metric,
  type OpenMetricsContentType,
  type PrometheusContentType,
  Registry,
} from 'prom-client';
import type { Notice } from '../core/notice.ts';
import type { Instant } from '../core/time.ts';
import type { Snapshot } from '../core/view.ts';
import type { Clock, Observer } from '../ports.ts';
import { BOT_STATES, declareFamilies, type Families, type Seen, STALL_KINDS } from './families.ts';
import type { NotifyWhat } from './notifications.ts';

/** A scrape gives the event loop back after this long, so that no renewal waits for it. */
const SLICE_MS = 3;
const PIECE_LINES = 500;

/** A double holds 53 bits exactly; Alertmanager shows the first 48 of its hash, too. */
const HASH_DIGITS = 48 / 4;

/** What a reload can change, and no snapshot shows. */
export interface Metered {
  readonly bots: readonly string[];
  /** This daemon's part of the markets. */
  readonly shard: {
    readonly index: number;
    readonly count: number;
    /** Markets of this shard, and of all together. */
    readonly markets: number;
    readonly fleet: number;
  };
}

export interface MetricsOptions extends Metered {
  readonly version: string;
  readonly revision: string;
  readonly nodeVersion: string;
  /** Base addresses in the order that the notices number them. */
  readonly bases: readonly string[];
  readonly clock: Clock;
  /** Every reason that the control listener refuses a request for. */
  readonly controlReasons?: readonly string[];
  /** The hash of the configuration of the start, see `reloadSucceeded`. */
  readonly configHash?: string;
}

export type Metrics = ReturnType<typeof createMetrics>;

/** Declares every metric, and creates every series whose labels are known from the start with the value 0. */
export function createMetrics(options: MetricsOptions) {
  const { clock, bases, controlReasons = [] } = options;
  let seen: Seen | null = null;
  const families = declareFamilies(() => seen, bases, controlReasons);
  createSeries(families, options);
  const bots = createBots(families, clock);
  bots.configure(options.bots);
  const observe: Observer = (notice) => {
    if (notice.kind === 'bot') return bots.changed(notice.bot, notice.state);
    const base = 'base' in notice ? (bases[notice.base] ?? `#${notice.base}`) : '';
    // The type of the table cannot express that a notice meets the entry of its own kind.
    (COUNT[notice.kind] as ((...given: unknown[]) => void) | undefined)?.(families, notice, base);
  };
  return {
    /** Counts what happened. Notices about bots that are gone are ignored. */
    observe,
    /**
     * The page in pieces, a metric each, of the state that `snapshot` shows; OpenMetrics with `open`. The event loop is
     * given back between two metrics.
     */
    render: (snapshot: Snapshot, now: Instant, open = false): Promise<string[]> => {
      seen = { snapshot, wallMs: now.wallMs };
      return render(families.registry, clock, open);
    },
    /** Takes a new configuration over. Bots that are new have every series with 0; those that have left lose them. */
    reconfigure: (metered: Metered): void => {
      showShard(families, metered.shard);
      bots.configure(metered.bots);
    },
    /** The keeper's loop woke up so many milliseconds later than it had asked for. */
    wokeUp: (lateMs: number) => families.wakeDelay.observe(Math.max(0, lateMs) / 1000),
    countLogLine: (level: string) => families.logMessages.inc({ level }),
    countDroppedLogLine: () => families.logDropped.inc(),
    /** Counts an attempt to deliver what `notify` sends that failed. */
    notifyFailed: (what: NotifyWhat) => families.notifyFailures.inc({ what }),
    /** The configuration was read again and is in force, changed or not. `hash`: its digest in hexadecimal digits. */
    reloadSucceeded: (hash: string): void => {
      families.reloads.inc();
      families.reloadOk.set(1);
      families.reloadTime.set(clock.now().wallMs / 1000);
      families.configHash.set(hashNumber(hash));
    },
    /** The configuration was read again and rejected. */
    reloadFailed: (): void => {
      families.reloads.inc();
      families.reloadFailures.inc();
      families.reloadOk.set(0);
    },
    controlRefused: (reason: string) => families.controlRefused.inc({ reason }),
    /** Counts a beat that counted, or one that did not. Names that no configured bot has are ignored. */
    beatHeard: bots.heard,
    beatRefused: bots.refused,
  };
}

async function render(registry: Registry, clock: Clock, open: boolean): Promise<string[]> {
  const pieces: string[] = [];
  let sliceStartMs = clock.now().monoMs;
  for (const metric of registry.getMetricsAsArray() as unknown as Metric[]) {
    for await (const piece of linesOf(metric, open)) {
      pieces.push(piece);
      if (clock.now().monoMs - sliceStartMs < SLICE_MS) continue;
      await new Promise<void>((resolve) => clock.after(0, resolve));
      sliceStartMs = clock.now().monoMs;
    }
  }
  if (open) pieces.push('# EOF\n');
  return pieces;
}

/**
 * The lines of one metric as the library writes them, at most `PIECE_LINES` at a time. In OpenMetrics a counter is named
 * without `_total`. The library would rename the metric itself for that, and could make no page of text any more.
 */
async function* linesOf(metric: Metric, open: boolean): AsyncGenerator<string> {
  const { values, ...described } = await metric.get();
  const isCounter = String(described.type) === 'counter';
  const name = open && isCounter ? described.name.replace(/_total$/, '') : described.name;
  const pieceLines = metric instanceof Histogram ? Number.POSITIVE_INFINITY : PIECE_LINES;
  for (let start = 0; start === 0 || start < values.length; start += pieceLines) {
    const some = { ...described, name, values: values.slice(start, start + pieceLines) };
    const writer = new Registry<OpenMetricsContentType | PrometheusContentType>();
    if (open) writer.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    writer.registerMetric({ name, get: async () => some } as never);
    const text = await writer.getSingleMetricAsString(name);
    yield `${start === 0 ? text : withoutHeader(text)}\n`;
  }
}

/** Without the lines HELP and TYPE, which a metric may have only once. */
function withoutHeader(text: string): string {
  return text.slice(text.indexOf('\n', text.indexOf('\n') + 1) + 1);
}

function createBots(families: Families, clock: Clock) {
  const { beats, beatsRefused, botChanges, beatGap } = families;
  /** Monotonic milliseconds of the last beat of each bot; null before the first. */
  const lastMs = new Map<string, number | null>();
  return {
    configure(names: readonly string[]): void {
      for (const bot of names) {
        if (lastMs.has(bot)) continue;
        lastMs.set(bot, null);
        beats.inc({ bot }, 0);
        beatsRefused.inc({ bot }, 0);
        for (const state of BOT_STATES) botChanges.inc({ bot, state }, 0);
      }
      const named = new Set(names);
      for (const bot of lastMs.keys()) {
        if (named.has(bot)) continue;
        lastMs.delete(bot);
        beats.remove({ bot });
        beatsRefused.remove({ bot });
        for (const state of BOT_STATES) botChanges.remove({ bot, state });
      }
    },
    changed(bot: string, state: string): void {
      if (lastMs.has(bot)) botChanges.inc({ bot, state });
    },
    heard: (bot: string): void => {
      const before = lastMs.get(bot);
      if (before === undefined) return;
      beats.inc({ bot });
      const { monoMs } = clock.now();
      if (before !== null) beatGap.observe((monoMs - before) / 1000);
      lastMs.set(bot, monoMs);
    },
    refused: (bot: string): void => {
      if (lastMs.has(bot)) beatsRefused.inc({ bot });
    },
  };
}

function hashNumber(hash: string): number {
  return Number.parseInt(hash.slice(0, HASH_DIGITS), 16);
}

function createSeries(families: Families, options: MetricsOptions): void {
  const { version, revision, nodeVersion, configHash } = options;
  families.buildInfo.set({ version, revision, node_version: nodeVersion }, 1);
  showShard(families, options.shard);
  families.reloadOk.set(1);
  families.reloadTime.set(options.clock.now().wallMs / 1000);
  if (configHash !== undefined) families.configHash.set(hashNumber(configHash));
  for (const kind of ['stall', 'suspend']) families.stallDuration.zero({ kind });
  for (const base of options.bases) {
    families.pingDuration.zero({ base });
    families.outageDuration.zero({ base });
  }
}

function showShard(families: Families, { index, count, markets, fleet }: Metered['shard']): void {
  families.shardIndex.set(index);
  families.shardCount.set(count);
  families.shardMarkets.set(markets);
  families.fleetMarkets.set(fleet);
}

type Count = {
  readonly [K in Notice['kind']]?: (
    families: Families,
    notice: Extract<Notice, { kind: K }>,
    base: string,
  ) => void;
};

/** What a notice moves; the series of markets are read off the snapshot. */
const COUNT: Count = {
  attempt(families, { purpose, delayMs }) {
    families.requests.inc({ purpose });
    if (purpose !== 'delete') families.delay.observe(delayMs / 1000);
  },
  renewed(families, { durationMs, cycleMs, slackRatio, skewMs }) {
    families.duration.observe(durationMs / 1000);
    families.cycle.observe(cycleMs / 1000);
    if (slackRatio !== null) families.slack.observe(slackRatio);
    families.skew.set(skewMs / 1000);
  },
  tripped(families, { durationMs }) {
    families.trips.inc();
    families.tripDuration.observe(durationMs / 1000);
  },
  'attempt-failed': ({ requestFailures }, { purpose, reason }) => requestFailures.inc({ purpose, reason }),
  overdue: ({ overdue }) => overdue.inc(),
  lapsed: ({ lapses }, { certainty }) => lapses.inc({ certainty }),
  fired: ({ fired }, { why }) => fired.inc({ reason: why }),
  refused: ({ refusals }) => refusals.inc(),
  altered: ({ alterations }) => alterations.inc(),
  suspended: ({ suspensions }, { why }) => suspensions.inc({ reason: why }),
  held: ({ holds }, { why }) => holds.inc({ reason: why }),
  deleted: ({ deletes }) => deletes.inc(),
  removed: ({ marketsRemoved }, { how }) => marketsRemoved.inc({ how }),
  unauthorised: ({ unauthorised }) => unauthorised.inc(),
  'outage-began': ({ outages }, _notice, base) => outages.inc({ base }),
  'outage-ended': ({ outageDuration }, { lastedMs }, base) =>
    outageDuration.observe({ base }, lastedMs / 1000),
  throttled: ({ throttled }) => throttled.inc(),
  stall(families, { what, byMs }) {
    const kind = STALL_KINDS[what];
    families.stalls.inc({ kind });
    if (kind !== 'clock_step') families.stallDuration.observe({ kind }, byMs / 1000);
  },
  pinged(families, notice, base) {
    families.pings.inc({ base });
    if (notice.ok) families.pingDuration.observe({ base }, notice.latencyMs / 1000);
    else families.pingFailures.inc({ base, reason: notice.reason ?? 'network' });
  },
};
