import { FAILURE_REASONS } from '../core/outcome.ts';
import type { MarketSnapshot, Snapshot } from '../core/snapshot.ts';
import type { Instant } from '../core/time.ts';
import type { Clock, Observer } from '../ports.ts';
import { countDaemonNotice, countMarketNotice, type MarketHandle, STALL_KINDS } from './count.ts';
import { type DaemonFamilies, declareDaemonFamilies } from './daemon-metrics.ts';
import type { MeteredMarket } from './market-metrics.ts';
import { createMarketShard, type MarketShard } from './market-shard.ts';

/** Markets in one registry: their text for one metric takes about a millisecond to build. */
const SHARD_MARKETS = 50;
/** A scrape gives the event loop back after this long, so that no renewal waits for it. */
const SLICE_MS = 3;

/** About what one write to a socket should carry. */
const CHUNK_CHARS = 64 * 1024;

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug'] as const;

export interface MetricsOptions {
  readonly version: string;
  readonly revision: string;
  readonly nodeVersion: string;
  readonly markets: readonly MeteredMarket[];
  /** Base addresses in the order that the notices number them. */
  readonly bases: readonly string[];
  readonly bots: readonly string[];
  readonly policy: Snapshot['shutdownPolicy'];
  readonly clock: Clock;
}

export interface Metrics {
  /** Counts what happened. Costs a few microseconds; notices about a market that was removed are ignored. */
  readonly observe: Observer;
  /** Takes over what the next scrape shows as state. Cheap: the series are set while the page is built. */
  refresh(snapshot: Snapshot, now: Instant): void;
  /** The page in pieces that make it up when joined; the event loop is given back between them. */
  renderChunks(): Promise<readonly string[]>;
  /** The page in one piece. */
  render(): Promise<string>;
  readonly contentType: string;
  addMarket(market: MeteredMarket): void;
  removeMarket(market: string): void;
  /** Counts one log line, or one that was dropped. */
  countLogLine(level: string): void;
  countDroppedLogLine(): void;
  /** Notes that the configuration was loaded, or that a load was rejected. */
  configLoaded(successful: boolean, now: Instant): void;
}

/** Declares every metric and creates every series of the configured markets, base addresses and bots. */
export function createMetrics(options: MetricsOptions): Metrics {
  const { clock, policy, bases } = options;
  const daemon = declareDaemonFamilies();
  const latest = new Map<string, MarketSnapshot>();
  const shards: MarketShard[] = [createMarketShard(policy)];
  const handles = new Map<string, MarketHandle>();

  const addMarket = (metered: MeteredMarket): void => {
    if (handles.has(metered.market)) removeMarket(metered.market);
    let shard = shards.find((candidate) => candidate.size() < SHARD_MARKETS);
    if (shard === undefined) {
      shard = createMarketShard(policy);
      shards.push(shard);
    }
    shard.add(metered);
    const { counters } = shard;
    const { market } = metered;
    const [attempts, renewals] = [counters.attempts.of(market), counters.renewals.of(market)];
    handles.set(market, { counters, attempts, renewals, remove: () => shard.remove(market) });
  };
  const removeMarket = (market: string): void => {
    handles.get(market)?.remove();
    handles.delete(market);
  };

  createDaemonSeries(daemon, options);
  for (const market of options.markets) addMarket(market);
  const renderChunks = () => renderAll(clock, daemon, shards, (market) => latest.get(market));
  return {
    observe: (notice, now) => {
      if ('market' in notice) countMarketNotice(daemon, handles.get(notice.market), notice);
      else countDaemonNotice(daemon, bases, notice, now);
    },
    refresh: (snapshot, now) => {
      latest.clear();
      for (const market of snapshot.markets) latest.set(market.market, market);
      refreshDaemon(daemon, snapshot, now);
    },
    renderChunks,
    render: async () => (await renderChunks()).join(''),
    contentType: daemon.registry.contentType,
    addMarket,
    removeMarket,
    countLogLine: (level) => daemon.logMessages.inc({ level }),
    countDroppedLogLine: () => daemon.logDropped.inc(),
    configLoaded: (successful, now) => {
      daemon.reloadOk.set(successful ? 1 : 0);
      if (successful) daemon.reloadTime.set(now.wallMs / 1000);
    },
  };
}

function createDaemonSeries(daemon: DaemonFamilies, options: MetricsOptions): void {
  const { version, revision, nodeVersion } = options;
  daemon.buildInfo.set({ version, revision, node_version: nodeVersion }, 1);
  daemon.authorised.set(1);
  daemon.cadenceFactor.set(1);
  daemon.reloadOk.set(1);
  daemon.reloadTime.set(options.clock.now().wallMs / 1000);
  for (const level of LOG_LEVELS) daemon.logMessages.inc({ level }, 0);
  for (const kind of Object.values(STALL_KINDS)) daemon.stalls.inc({ kind }, 0);
  for (const kind of ['stall', 'suspend']) daemon.stallDuration.zero({ kind });
  for (const base of options.bases) {
    daemon.apiUp.set({ base }, 0);
    daemon.pings.inc({ base }, 0);
    daemon.outageActive.set({ base }, 0);
    daemon.outages.inc({ base }, 0);
    daemon.pingDuration.zero({ base });
    daemon.outageDuration.zero({ base });
    for (const reason of FAILURE_REASONS) daemon.pingFailures.inc({ base, reason }, 0);
  }
  for (const bot of options.bots) {
    daemon.botAlive.set({ bot }, 0);
    daemon.botEvidence.set({ bot }, 0);
  }
}

function refreshDaemon(daemon: DaemonFamilies, snapshot: Snapshot, now: Instant): void {
  daemon.ready.set(snapshot.ready ? 1 : 0);
  daemon.live.set(snapshot.live ? 1 : 0);
  daemon.authorised.set(snapshot.authorised ? 1 : 0);
  daemon.capacity.set(snapshot.capacityPerSecond);
  daemon.cadenceFactor.set(snapshot.cadenceFactor);
  for (const base of snapshot.bases) {
    daemon.outageActive.set({ base: base.url }, base.outage ? 1 : 0);
    if (base.up !== null) daemon.apiUp.set({ base: base.url }, base.up ? 1 : 0);
  }
  for (const { bot, mode, state, evidenceAgeMs } of snapshot.bots) {
    daemon.botInfo.set({ bot, mode }, 1);
    daemon.botAlive.set({ bot }, state === 'alive' ? 1 : 0);
    if (evidenceAgeMs !== null) daemon.botEvidence.set({ bot }, (now.wallMs - evidenceAgeMs) / 1000);
  }
}

async function renderAll(
  clock: Clock,
  daemon: DaemonFamilies,
  shards: readonly MarketShard[],
  lookup: (market: string) => MarketSnapshot | undefined,
): Promise<readonly string[]> {
  const chunks: string[] = [];
  let chunk = '';
  let sliceStartMs = clock.now().monoMs;
  const breathe = async (): Promise<void> => {
    if (clock.now().monoMs - sliceStartMs < SLICE_MS) return;
    await new Promise<void>((resolve) => clock.after(0, resolve));
    sliceStartMs = clock.now().monoMs;
  };
  const add = async (text: string): Promise<void> => {
    chunk += `${text}\n`;
    if (chunk.length >= CHUNK_CHARS) {
      chunks.push(chunk);
      chunk = '';
    }
    await breathe();
  };
  for (const { name } of daemon.registry.getMetricsAsArray()) {
    await add(await daemon.registry.getSingleMetricAsString(name));
  }
  for (const shard of shards) {
    shard.refresh(lookup);
    await breathe();
  }
  for (const name of shards[0]?.names ?? []) {
    for (const [index, shard] of shards.entries()) {
      const text = await shard.text(name);
      const samples = index === 0 ? text : withoutHeader(text);
      if (samples !== '') await add(samples);
    }
  }
  chunks.push(chunk);
  return chunks;
}

/** Without the HELP and TYPE lines, which a metric may have only once on a page. */
function withoutHeader(text: string): string {
  const endOfHelp = text.indexOf('\n');
  const endOfType = text.indexOf('\n', endOfHelp + 1);
  return endOfType === -1 ? '' : text.slice(endOfType + 1);
}
