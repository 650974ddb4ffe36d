import { type Metric, Registry, type RegistryContentType } from 'prom-client';
import type { Snapshot } from '../core/view.ts';
import type { Clock, Observer } from '../ports.ts';
import { createBreather } from '../util/pace.ts';
import { type BotCounts, declareFamilies, type Seen } from './families.ts';

/** A scrape gives the event loop back after this long, so that no renewal waits for it. */
const SLICE_MS = 3;
const PIECE_LINES = 500;

/** A double holds 53 bits exactly; Alertmanager shows the first 48 of its hash, too. */
const HASH_DIGITS = 48 / 4;

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

/** Declares every metric, and creates every series whose labels are known from the start with the value 0. */
export function createMetrics(options: MetricsOptions) {
  const { clock } = options;
  let seen: Seen | null = null;
  const families = declareFamilies(() => seen, options.bases, options.controlReasons);
  families.buildInfo.set(options.build, 1);
  let { shard } = options;
  const counts = new Map<string, BotCounts>();
  const countsOf = (bot: string): BotCounts => {
    const found = counts.get(bot) ?? { beats: 0, refused: 0, lastBeatMs: null, changes: new Map() };
    counts.set(bot, found);
    return found;
  };
  const inForce = (hash: string): void => {
    families.reloadOk.set(1);
    families.reloadTime.set(clock.now().wallMs / 1000);
    families.configHash.set(Number.parseInt(hash.slice(0, HASH_DIGITS), 16));
  };
  inForce(options.configHash ?? '0');
  families.notices.on('bot', ({ bot, state }) => {
    const { changes } = countsOf(bot);
    changes.set(state, (changes.get(state) ?? 0) + 1);
  });
  const { logMessages, logDropped, notifyFailures, controlRefused } = families;
  return {
    logMessages,
    logDropped,
    notifyFailures,
    controlRefused,
    /** Counts what happened. What is counted of a bot shows for as long as the snapshot has it. */
    observe: ((notice) => void families.notices.emit(notice.kind, notice as never)) as Observer,
    /** The page of a snapshot, in OpenMetrics with `open`. Gives the event loop back between its pieces. */
    render: (snapshot: Snapshot, open: boolean): Promise<Buffer> => {
      seen = { snapshot, wallMs: clock.now().wallMs, shard, countsOf };
      return render(families.registry, clock, open);
    },
    reconfigure: (next: Seen['shard']): void => {
      shard = next;
    },
    /** The keeper's loop woke up so many milliseconds later than it had asked for. */
    wokeUp: (lateMs: number) => families.wakeDelay.observe(Math.max(0, lateMs) / 1000),
    /** The configuration was read again and is in force, changed or not. `hash`: its digest in hexadecimal digits. */
    reloadSucceeded: (hash: string): void => {
      families.reloads.inc();
      inForce(hash);
    },
    reloadFailed: (): void => {
      families.reloads.inc();
      families.reloadFailures.inc();
      families.reloadOk.set(0);
    },
    beat(bot: string, isCounted: boolean): void {
      const found = countsOf(bot);
      found[isCounted ? 'beats' : 'refused'] += 1;
      if (!isCounted) return;
      const { monoMs } = clock.now();
      if (found.lastBeatMs !== null) families.beatGap.observe((monoMs - found.lastBeatMs) / 1000);
      found.lastBeatMs = monoMs;
    },
  };
}

async function render(registry: Registry, clock: Clock, open: boolean): Promise<Buffer> {
  const pieces: Buffer[] = [];
  const breathe = createBreather(clock, SLICE_MS);
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
