import { FAILURE_REASONS } from '../core/outcome.ts';
import type { MarketSnapshot, Snapshot } from '../core/snapshot.ts';
import type { Instant } from '../core/time.ts';
import type { Clock, Observer } from '../ports.ts';
import { BOT_SHARDS, type BotCounters, type SeenBot } from './bot-metrics.ts';
import { countDaemonNotice, countMarketNotice, REMOVALS, STALL_KINDS } from './count.ts';
import { type DaemonFamilies, declareDaemonFamilies } from './daemon-metrics.ts';
import { type Breathe, createFleet, type Fleet } from './fleet.ts';
import {
  type LabelledMarket,
  MARKET_SHARDS,
  type MarketCounters,
  type MeteredMarket,
} from './market-metrics.ts';
import { createPageMaker, type Page } from './render.ts';

/** A scrape, or a reload, gives the event loop back after this long, so that no renewal waits for it. */
const SLICE_MS = 3;

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug'] as const;
/** What refused requests are counted under whose reason was not announced. */
const OTHER_REASON = 'other';
/** A double holds 53 bits exactly; Alertmanager shows the first 48 of its hash, too. */
const HASH_DIGITS = 48 / 4;

/** What a reload can change of what the metrics show. */
export interface MeteredShard {
  readonly index: number;
  readonly count: number;
  /** Markets of this shard, and of all together. */
  readonly markets: number;
  readonly fleet: number;
}

export interface Metered {
  readonly markets: readonly MeteredMarket[];
  readonly bots: readonly string[];
  readonly policy: Snapshot['shutdownPolicy'];
  /** This daemon's part of the markets. */
  readonly shard: MeteredShard;
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

export interface Metrics {
  /** Counts what happened. Costs a few microseconds; notices about markets and bots that are gone are ignored. */
  readonly observe: Observer;
  /** Takes over what the next scrape shows as state. Cheap: the series are set while the page is built. */
  refresh(snapshot: Snapshot, now: Instant): void;
  /**
   * Takes a new configuration over; to be awaited before the keeper is told of it, so that nothing is missed that
   * happens to a new market. What is configured anew has every series with 0, what stays goes on counting, and what has
   * left keeps its series until its `removed` notice, or a snapshot without it. Calls follow one another. Never rejects.
   */
  reconfigure(metered: Metered): Promise<void>;
  /** The page; the event loop is given back while it is made. */
  renderPage(): Promise<Page>;
  /** Its text in one piece. */
  render(): Promise<string>;
  readonly contentType: string;
  /** The keeper's loop woke up so many milliseconds later than it had asked for. */
  readonly wokeUp: (lateMs: number) => void;
  /** Counts one log line, or one that was dropped. */
  countLogLine(level: string): void;
  countDroppedLogLine(): void;
  /** The configuration was read again and is in force, changed or not. `hash`: its digest in hexadecimal digits. */
  reloadSucceeded(hash: string): void;
  /** The configuration was read again and rejected. */
  reloadFailed(): void;
  /** Counts a refused request. Returns the reason that it is counted under: `other` for one that was not announced. */
  controlRefused(reason: string): string;
  /** Counts a beat that counted, or one that did not. Names that no configured or leaving bot has are ignored. */
  beatHeard(bot: string): void;
  beatRefused(bot: string): void;
}

/** Declares every metric and creates every series of the configured markets, base addresses and bots. */
export function createMetrics(options: MetricsOptions): Metrics {
  const { clock, bases, controlReasons = [] } = options;
  const daemon = declareDaemonFamilies();
  const markets = createFleet(MARKET_SHARDS);
  const bots = createFleet(BOT_SHARDS);
  createDaemonSeries(daemon, options);
  for (const market of labelled(options)) markets.add(market);
  for (const bot of options.bots) bots.add(bot);

  const makePage = createPageMaker(daemon.registry, [bots.shards, markets.shards]);
  const renderPage = async (): Promise<Page> => {
    const breathe = createBreather(clock);
    await markets.refresh(breathe);
    await bots.refresh(breathe);
    return makePage(breathe);
  };
  /** Monotonic milliseconds of the last beat of each bot. */
  const lastBeatMs = new Map<string, number>();
  let reconfigured = Promise.resolve();
  return {
    observe: (notice) => {
      if ('market' in notice) {
        const counters = markets.counters(notice.market);
        if (counters !== undefined) countMarketNotice(daemon, counters, notice);
        if (notice.kind === 'removed') {
          daemon.marketsRemoved.inc({ how: notice.how });
          markets.gone(notice.market);
        }
      } else if (notice.kind === 'bot') {
        bots.counters(notice.bot)?.changes.inc({ bot: notice.bot, state: notice.state });
      } else {
        countDaemonNotice(daemon, bases, notice);
      }
    },
    refresh: (snapshot, now) => {
      refreshDaemon(daemon, snapshot);
      seeMembers(markets, bots, snapshot, now);
    },
    reconfigure: (metered) => {
      const apply = async (): Promise<void> => {
        showShard(daemon, metered.shard);
        const breathe = createBreather(clock);
        await markets.configure(labelled(metered), breathe);
        await bots.configure(metered.bots, breathe);
        const named = new Set(metered.bots);
        for (const bot of lastBeatMs.keys()) if (!named.has(bot)) lastBeatMs.delete(bot);
      };
      reconfigured = reconfigured.then(apply);
      return reconfigured;
    },
    renderPage,
    render: async () => Buffer.concat([...(await renderPage()).text()]).toString(),
    contentType: daemon.registry.contentType,
    wokeUp: (lateMs) => daemon.wakeDelay.observe(Math.max(0, lateMs) / 1000),
    countLogLine: (level) => daemon.logMessages.inc({ level }),
    countDroppedLogLine: () => daemon.logDropped.inc(),
    ...countReloads(daemon, clock),
    controlRefused: (said) => {
      const reason = controlReasons.includes(said) ? said : OTHER_REASON;
      daemon.controlRefused.inc({ reason });
      return reason;
    },
    ...countBeats(daemon, bots, clock, lastBeatMs),
  };
}

function labelled({ markets, policy }: Metered): LabelledMarket[] {
  return markets.map((market) => ({ ...market, policy }));
}

function seeMembers(
  markets: Fleet<LabelledMarket, MarketSnapshot, MarketCounters>,
  bots: Fleet<string, SeenBot, BotCounters>,
  snapshot: Snapshot,
  { wallMs }: Instant,
): void {
  const marketsNow = new Map(snapshot.markets.map((market) => [market.market, market]));
  markets.see((name) => marketsNow.get(name));
  const botsNow = new Map(snapshot.bots.map((bot) => [bot.bot, bot]));
  bots.see((name) => {
    const bot = botsNow.get(name);
    return bot === undefined ? undefined : { ...bot, seenWallMs: wallMs };
  });
}

function countReloads(
  daemon: DaemonFamilies,
  clock: Clock,
): Pick<Metrics, 'reloadSucceeded' | 'reloadFailed'> {
  return {
    reloadSucceeded: (hash) => {
      daemon.reloads.inc();
      daemon.reloadOk.set(1);
      daemon.reloadTime.set(clock.now().wallMs / 1000);
      daemon.configHash.set(hashNumber(hash));
    },
    reloadFailed: () => {
      daemon.reloads.inc();
      daemon.reloadFailures.inc();
      daemon.reloadOk.set(0);
    },
  };
}

function countBeats(
  daemon: DaemonFamilies,
  bots: Fleet<string, SeenBot, BotCounters>,
  clock: Clock,
  lastMs: Map<string, number>,
): Pick<Metrics, 'beatHeard' | 'beatRefused'> {
  return {
    beatHeard: (bot) => {
      const counters = bots.counters(bot);
      if (counters === undefined) return;
      counters.beats.inc({ bot });
      const { monoMs } = clock.now();
      const before = lastMs.get(bot);
      if (before !== undefined) daemon.beatGap.observe((monoMs - before) / 1000);
      lastMs.set(bot, monoMs);
    },
    beatRefused: (bot) => bots.counters(bot)?.beatsRefused.inc({ bot }),
  };
}

function hashNumber(hash: string): number {
  return Number.parseInt(hash.slice(0, HASH_DIGITS), 16);
}

/** Waits for the next turn of the event loop where this one has been held for long enough. */
function createBreather(clock: Clock): Breathe {
  let sliceStartMs = clock.now().monoMs;
  return async () => {
    if (clock.now().monoMs - sliceStartMs < SLICE_MS) return;
    await new Promise<void>((resolve) => clock.after(0, resolve));
    sliceStartMs = clock.now().monoMs;
  };
}

function createDaemonSeries(daemon: DaemonFamilies, options: MetricsOptions): void {
  const { version, revision, nodeVersion, bases, controlReasons = [], configHash } = options;
  daemon.buildInfo.set({ version, revision, node_version: nodeVersion }, 1);
  daemon.authorised.set(1);
  showShard(daemon, options.shard);
  daemon.cadenceFactor.set(1);
  daemon.reloadOk.set(1);
  daemon.reloadTime.set(options.clock.now().wallMs / 1000);
  if (configHash !== undefined) daemon.configHash.set(hashNumber(configHash));
  for (const level of LOG_LEVELS) daemon.logMessages.inc({ level }, 0);
  for (const reason of controlReasons) daemon.controlRefused.inc({ reason }, 0);
  for (const how of REMOVALS) daemon.marketsRemoved.inc({ how }, 0);
  for (const kind of Object.values(STALL_KINDS)) daemon.stalls.inc({ kind }, 0);
  for (const kind of ['stall', 'suspend']) daemon.stallDuration.zero({ kind });
  for (const base of bases) {
    daemon.apiUp.set({ base }, 0);
    daemon.pings.inc({ base }, 0);
    daemon.outageActive.set({ base }, 0);
    daemon.outages.inc({ base }, 0);
    daemon.pingDuration.zero({ base });
    daemon.outageDuration.zero({ base });
    for (const reason of FAILURE_REASONS) daemon.pingFailures.inc({ base, reason }, 0);
  }
}

function showShard(daemon: DaemonFamilies, shard: MeteredShard): void {
  daemon.shardIndex.set(shard.index);
  daemon.shardCount.set(shard.count);
  daemon.shardMarkets.set(shard.markets);
  daemon.fleetMarkets.set(shard.fleet);
}

function refreshDaemon(daemon: DaemonFamilies, snapshot: Snapshot): void {
  daemon.ready.set(snapshot.ready ? 1 : 0);
  daemon.live.set(snapshot.live ? 1 : 0);
  daemon.authorised.set(snapshot.authorised ? 1 : 0);
  daemon.capacity.set(snapshot.capacityPerSecond);
  daemon.cadenceFactor.set(snapshot.cadenceFactor);
  for (const base of snapshot.bases) {
    daemon.outageActive.set({ base: base.url }, base.outage ? 1 : 0);
    if (base.up !== null) daemon.apiUp.set({ base: base.url }, base.up ? 1 : 0);
  }
}
