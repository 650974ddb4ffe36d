import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'vitest';
import type { DaemonProcess } from './daemon.ts';
import { stageFor } from './harness.ts';
import { eventually, said, sleep } from './program.ts';
import { reloadBySignal, writeConfig } from './reloading.ts';
import { type Events, longestGapMs, ofKind, renewalsOf } from './simulated-exchange.ts';

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

export interface ShardPlay {
  readonly markets: number;
  readonly timeoutSeconds: number;
  readonly handoverSeconds: number;
  /** While shards disagree about their number, 3 or 4, they use up to 5/4 of this: that must fit into the limit. */
  readonly budgetShare: number;
  /**
   * How long the fleet stays as it is between two changes, and twice as long before a shard is killed and at the end: the
   * shards have more markets than part for a while.
   */
  readonly restMs: number;
}

/** What the exchange saw of a fleet that grew from three shards to four, lost one for a moment, and shrank again. */
export interface Played {
  readonly fired: number;
  /** Timers that anybody deleted. */
  readonly deleted: number;
  /** The longest time that a market went without a renewal, but for those of the shard that was killed, milliseconds. */
  readonly longestGapMs: number;
  /** How its successor took over from the shard that was killed. */
  readonly takeover: Takeover;
  /** Markets that the fourth shard had. */
  readonly moved: number;
  /** How the fourth shard left them when it was one too many, and how many so. */
  readonly leftBy: Readonly<Record<string, number>>;
  /** Markets that somebody renewed at the end, with the fourth shard gone. */
  readonly owned: number;
  readonly log: string;
}

const keyOf = (shard: number) => ({ key: `key-of-shard-${shard}`, secret: `secret-of-shard-${shard}` });
const marketAt = (index: number) => `M${index}_USDT`;

type FleetOptions = Omit<ShardPlay, 'restMs'> & {
  /** What a shard does with its timers when it is stopped. */
  readonly policy: 'delete' | 'handoff';
  /** How long each shard may take for that; 8 s where nothing is said. */
  readonly stopSeconds?: readonly number[];
  readonly requestLifetimeSeconds?: number;
};

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
  // The last line may not be written to its end yet.
  const events = (): Events =>
    readFileSync(eventLog, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Events[number]);
  return { exchange, names, configOf, start, events };
}

/** Real processes against one exchange: 3 shards, 4, one killed, 3 again. */
export async function playShards(context: TestContext, play: ShardPlay): Promise<Played> {
  const { handoverSeconds, restMs } = play;
  // What moves is handed off all the same.
  const fleet = await stageFleet(context, { ...play, policy: 'delete', requestLifetimeSeconds: 1 });
  const { exchange, names, configOf, start } = fleet;
  const resize = async (daemon: DaemonProcess, index: number, count: number) => {
    const text = JSON.parse(readFileSync(daemon.configFile, 'utf8')) as object;
    writeConfig(daemon, JSON.stringify({ ...text, ...configOf(index, count) }));
    await reloadBySignal(daemon, 'reload-applied');
  };

  const shards = await Promise.all([0, 1, 2].map((index) => start(index, 3)));
  const armedMs = await exchange.nowMs();
  await sleep(restMs);
  const fourth = await start(3, 4);
  const moved = await fourth.metric('killswitch_shard_markets');
  for (const [index, daemon] of shards.entries()) await resize(daemon, index, 4);
  // It is killed out of its usual round: that is found again after the last renewals of what moved.
  await sleep(handoverSeconds * 1000 + 2 * restMs);

  const killed = shards[1];
  // Some that it hands over may wait for their last renewal there: the fourth guards them as well.
  const ownedByKilled = (await ownedBy(killed)).difference(await ownedBy(fourth));
  const killedMs = await exchange.nowMs();
  killed?.signal('SIGKILL');
  await killed?.exit();
  const endedMs = await exchange.nowMs();
  const again = await start(1, 4);
  const backMs = await exchange.nowMs();
  await sleep(restMs);

  const all = [shards[0], again, shards[2]];
  for (const [index, daemon] of all.entries()) if (daemon !== undefined) await resize(daemon, index, 3);
  await resize(fourth, 3, 3);
  const leftBy = await leavingOf(fourth, moved, handoverSeconds * 1000 + 120_000);
  fourth.signal('SIGTERM');
  await fourth.exit(30_000);
  const aloneMs = await exchange.nowMs();
  await sleep(2 * restMs);
  const endMs = await exchange.nowMs();

  const events = fleet.events();
  const eventsOf = byMarket(events);
  const others = names.filter((market) => !ownedByKilled.has(market));
  const gap = (market: string, fromMs: number, toMs: number) =>
    longestGapMs(eventsOf(market), market, fromMs, toMs);
  const longest = (of: readonly string[], fromMs: number, toMs: number) =>
    of.reduce((most, market) => Math.max(most, gap(market, fromMs, toMs)), 0);
  return {
    fired: ofKind(events, 'timer-fired').length,
    deleted: ofKind(events, 'timer-deleted').length,
    longestGapMs: Math.max(
      longest(others, armedMs, endMs),
      longest([...ownedByKilled], armedMs, killedMs),
      longest([...ownedByKilled], backMs, endMs),
    ),
    takeover: takeoverOf(eventsOf, { own: ownedByKilled, leftMs: killedMs, endedMs }),
    moved,
    leftBy,
    owned: names.filter((market) => renewalsOf(eventsOf(market), market).some((atMs) => atMs > aloneMs))
      .length,
    log: [...shards, fourth, again].map(said).join('\n'),
  };
}

/** Waits until a shard that is one too many has left its markets, and says how. */
async function leavingOf(daemon: DaemonProcess, markets: number, withinMs: number) {
  let leftBy: Readonly<Record<string, number>> = {};
  await eventually('the fourth shard has left its markets', withinMs, async () => {
    // A page of metrics of thousands of markets is work for the daemon.
    await sleep(1000);
    const { body } = await daemon.get('/metrics');
    const counts = [...body.matchAll(/^killswitch_markets_removed_total\{how="(\w+)"\} (\d+)$/gm)];
    leftBy = Object.fromEntries(counts.map(([, how = '', count]) => [how, Number(count)]));
    return Object.values(leftBy).reduce((sum, count) => sum + count, 0) >= markets ? true : null;
  }).catch((error: unknown) => {
    throw new Error(`left were ${JSON.stringify(leftBy)}\n${said(daemon)}`, { cause: error });
  });
  return leftBy;
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
