import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'vitest';
import type { DaemonProcess } from './daemon.ts';
import { stageFor } from './harness.ts';
import { type Events, eventsIn, renewalsOf } from './simulated-exchange.ts';

/** A shard that was killed or told to stop. Times by the exchange, Unix milliseconds. */
export interface Departure {
  /** The markets that it guarded. */
  readonly own: ReadonlySet<string>;
  readonly leftMs: number;
  readonly endedMs: number;
}

/** What its markets met with, by the renewals that the exchange saw; milliseconds. */
export interface Takeover {
  /** The longest time since a market's renewal, when the shard was killed or told to stop. */
  readonly oldestMs: number;
  /** Markets that it renewed once more before it ended. */
  readonly renewedAtStop: number;
  /** From its last renewal, of whichever market, to the first of its successor: so long nobody guarded them. */
  readonly ownerlessMs: number;
  /** From that first renewal until each of the markets had one. */
  readonly untilAllMs: number;
  /** The longest time between the last renewal of the one and the first of the other. */
  readonly longestGapMs: number;
}

/** The events of each market. */
export function byMarket(events: Events): (market: string) => Events {
  const of = Map.groupBy(events, (event) => ('market' in event ? event.market : ''));
  return (market) => of.get(market) ?? [];
}

/** How the markets of a shard came to its successor. */
export function takeoverOf(
  eventsOf: (market: string) => Events,
  { own, leftMs, endedMs }: Departure,
): Takeover {
  const markets = [...own].map((market) => {
    const all = renewalsOf(eventsOf(market), market);
    const lastBefore = (ms: number) => all.findLast((atMs) => atMs <= ms) ?? Number.NEGATIVE_INFINITY;
    return {
      beforeMs: lastBefore(leftMs),
      lastMs: lastBefore(endedMs),
      nextMs: all.find((atMs) => atMs > endedMs) ?? Number.POSITIVE_INFINITY,
    };
  });
  const most = (of: (market: (typeof markets)[number]) => number) =>
    markets.reduce((longest, market) => Math.max(longest, of(market)), 0);
  const firstMs = markets.reduce((least, { nextMs }) => Math.min(least, nextMs), Number.POSITIVE_INFINITY);
  return {
    oldestMs: most(({ beforeMs }) => leftMs - beforeMs),
    renewedAtStop: markets.filter(({ lastMs }) => lastMs > leftMs).length,
    ownerlessMs: firstMs - most(({ lastMs }) => lastMs),
    untilAllMs: most(({ nextMs }) => nextMs - firstMs),
    longestGapMs: most(({ lastMs, nextMs }) => nextMs - lastMs),
  };
}

const keyOf = (shard: number) => ({ key: `key-of-shard-${shard}`, secret: `secret-of-shard-${shard}` });
const marketAt = (index: number) => `M${index}_USDT`;

interface FleetOptions {
  readonly markets: number;
  readonly timeoutSeconds: number;
  readonly handoverSeconds: number;
  /** While shards disagree about their number, 3 or 4, they use up to 5/4 of this: that must fit into the limit. */
  readonly budgetShare: number;
  /** What a shard does with its timers when it is stopped. */
  readonly policy: 'delete' | 'handoff';
  /** How long each shard may take for that; 8 s where nothing is said. */
  readonly stopSeconds?: readonly number[];
  readonly requestLifetimeSeconds?: number;
}

/** A shard that was told to stop, and its exit code. */
type Stopped = Departure & { readonly code: number | null };

type Fleet = Awaited<ReturnType<typeof stageFleet>>;

/** An exchange as a process, and the means to start shards against it. */
export async function stageFleet(context: TestContext, options: FleetOptions) {
  const { markets, timeoutSeconds, handoverSeconds, budgetShare, policy, stopSeconds = [] } = options;
  const { requestLifetimeSeconds = 10 } = options;
  const stage = stageFor(context);
  const eventLog = join(stage.directory, 'events');
  const keyFile = join(stage.directory, 'keys.json');
  writeFileSync(keyFile, JSON.stringify([0, 1, 2, 3].map(keyOf)));
  const flags = ['--keys', keyFile, '--event-log', eventLog];
  const exchange = await stage.exchangeProcess(['--listen', '127.0.0.1:0', ...flags]);
  const names = Array.from({ length: markets }, (_, index) => marketAt(index));
  const configOf = (index: number, count: number) => ({
    exchange: { baseUrls: [exchange.url], nonce: 'window', budgetShare, requestLifetimeSeconds },
    defaults: { timeoutSeconds },
    shard: { index, count, handoverSeconds },
    shutdown: { policy, budgetSeconds: stopSeconds[index] ?? 8 },
  });
  const start = async (index: number, count: number): Promise<DaemonProcess> => {
    const config = configOf(index, count);
    const key = { ...keyOf(index), keyName: `shard-${index}.api-key` };
    const daemon = await stage.daemon({ exchange: exchange.url, markets: names, config, ...key });
    await daemon.ready(180_000);
    return daemon;
  };
  const events = (): Events => eventsIn(eventLog);
  return { exchange, names, configOf, start, events };
}

/**
 * A rolling update: each shard is told to stop, and its successor is started once it has ended; the next one follows
 * when that one has armed all of its markets.
 */
export async function rollShards(
  { exchange, start }: Fleet,
  shards: readonly DaemonProcess[],
): Promise<readonly Stopped[]> {
  const stopped: Stopped[] = [];
  for (const [index, daemon] of shards.entries()) {
    const own = await ownedBy(daemon);
    const leftMs = await exchange.nowMs();
    daemon.signal('SIGTERM');
    const { code } = await daemon.exit(60_000);
    stopped.push({ own, leftMs, endedMs: await exchange.nowMs(), code });
    await start(index, shards.length);
  }
  return stopped;
}

/** The markets that a daemon guards, by its status. */
export async function ownedBy(daemon: DaemonProcess | undefined): Promise<ReadonlySet<string>> {
  if (daemon === undefined) return new Set();
  const { markets } = JSON.parse((await daemon.get('/api/v1/status')).body) as {
    markets: { market: string }[];
  };
  return new Set(markets.map(({ market }) => market));
}
