import { setTimeout as sleep } from 'node:timers/promises';
import { askProbe, measureDaemon, tellProbe } from './measures.ts';
import { type ExchangeProcess, eventually, waitForAll } from './processes.ts';
import { labelOf, noteCosts, noteLateness, noteTimers, stopAndNote } from './rows.ts';
import type { Stage } from './stage.ts';
import { type SubjectName, startDaemon, startPeer } from './subject.ts';

const MARKETS = 10_000;
const OUTAGE_SECONDS = 30;
const LOOP_DELAY = 'Event-loop delay p99';
const PROBE = new URL('./probe.ts', import.meta.url).href;

/** One daemon with 10,000 markets for minutes, then 30 s without an exchange, then a stop. */
export async function runLong(stage: Stage): Promise<void> {
  stage.say(`10,000 markets for ${stage.minutes} min, an outage of ${OUTAGE_SECONDS} s, and a stop`);
  const exchange = await stage.rig.exchange('tls');
  const daemon = await startDaemon(stage.rig, { url: exchange.url, markets: MARKETS });
  await waitForAll(exchange, MARKETS);
  await sleep(11_000);
  const window = await measureDaemon(exchange, daemon, stage.minutes * 60);
  const label = labelOf(MARKETS, 'tls', true);
  noteCosts(stage, label, 'daemon', window);
  noteLateness(stage, label, 'daemon', window.lateness);
  noteTimers(stage, label, 'daemon', window.seen);
  note(stage, 'long/requests', 'Most requests in any 10 s', '', 0, window.seen.mostInWindow);
  await outage(stage, exchange);
  await stopAndNote(stage, labelOf(MARKETS, 'tls'), exchange, 'daemon', daemon);
  exchange.running.signal('SIGKILL');
  await exchange.running.ended;
}

function note(
  { book }: Stage,
  id: string,
  title: string,
  unit: string,
  decimals: number,
  value: number,
  subject: SubjectName = 'daemon',
): void {
  book.note(id, { title: `${title}, 10,000 markets, TLS`, unit, decimals }, subject, value);
}

/** Everything hangs for half of the timeout; afterwards all timers must be there again as fast as the limit allows. */
async function outage(stage: Stage, exchange: ExchangeProcess): Promise<void> {
  await exchange.fail('hang');
  await sleep(OUTAGE_SECONDS * 1000);
  await exchange.count();
  const backAt = performance.timeOrigin + performance.now();
  await exchange.work();
  // All were renewed once since: the least of their ends lies behind the outage.
  const seen = await eventually('all timers renewed after the outage', 60_000, async () => {
    await sleep(100);
    const now = await exchange.read();
    return now.stalestRenewedAt > backAt ? now : null;
  });
  note(
    stage,
    'outage/all',
    `All renewed after an outage of ${OUTAGE_SECONDS} s`,
    's',
    2,
    (seen.lastRenewalAt - backAt) / 1000,
  );
  note(stage, 'outage/lapses', `Lapses in an outage of ${OUTAGE_SECONDS} s`, '', 0, seen.lapses);
}

/** How long anything holds the event loop while 10,000 markets are renewed, with and without a scrape. */
export async function runLoop(stage: Stage): Promise<void> {
  stage.say('what holds the event loop, at 10,000 markets');
  const exchange = await stage.rig.exchange('tls');
  const options = {
    url: exchange.url,
    markets: MARKETS,
    preload: [PROBE],
    flags: ['--expose-gc'],
    channel: true,
  };
  const daemon = await startDaemon(stage.rig, {
    ...options,
    alone: true,
    config: { liveness: { mode: 'none' } },
  });
  const { running } = daemon;
  await waitForAll(exchange, MARKETS);
  await sleep(11_000);
  const heap = await askProbe(running, 'heap');
  // A forced collection throws compiled code away as well: the turns after it are those of a cold program.
  await sleep(11_000);
  const turns = async (id: string, title: string, disturb: () => Promise<void>) => {
    tellProbe(running, 'watch-turns');
    await sleep(500);
    await disturb();
    const { longestTurnMs } = await askProbe(running, 'read');
    note(stage, `turn/${id}`, `Longest turn of the event loop, ${title}`, 'ms', 1, longestTurnMs);
  };
  await turns('quiet', 'nobody asks', () => sleep(3000));
  await turns('scrape', 'while scraped', async () => {
    for (let scrape = 0; scrape < 3; scrape += 1) {
      await daemon.get('/metrics');
      await sleep(1000);
    }
  });
  await turns('status', 'while the status is read', async () => {
    for (let read = 0; read < 3; read += 1) {
      await daemon.get('/api/v1/status?view=page');
      await sleep(1000);
    }
  });
  const scraped = await askProbe(running, 'heap');
  tellProbe(running, 'watch-loop');
  await sleep(10_000);
  const { delayP99Ms } = await askProbe(running, 'read');
  note(stage, 'loop/10000', LOOP_DELAY, 'ms', 1, delayP99Ms);
  await daemon.kill();
  for (const kind of ['undici', 'floor'] as const) await peerLoop(stage, exchange, kind);
  exchange.running.signal('SIGKILL');
  await exchange.running.ended;
  await memory(stage, heap.heapBytes + heap.externalBytes, scraped.heapBytes + scraped.externalBytes);
}

/** The same for what a user would write instead; those that carry 10,000 markets at all. */
async function peerLoop(stage: Stage, exchange: ExchangeProcess, kind: 'undici' | 'floor'): Promise<void> {
  await exchange.forget();
  const peer = startPeer(stage.rig, { kind, url: exchange.url, markets: MARKETS }, [PROBE]);
  await waitForAll(exchange, MARKETS);
  await sleep(2000);
  tellProbe(peer.running, 'watch-loop');
  await sleep(10_000);
  const { delayP99Ms } = await askProbe(peer.running, 'read');
  note(stage, 'loop/10000', LOOP_DELAY, 'ms', 1, delayP99Ms, kind);
  await peer.kill();
}

/** What a market costs: the heap of 10,000 against that of 10, before the first scrape and after it. */
async function memory(stage: Stage, bytes: number, scrapedBytes: number): Promise<void> {
  const exchange = await stage.rig.exchange('tls');
  const options = { url: exchange.url, preload: [PROBE], flags: ['--expose-gc'], channel: true, alone: true };
  const daemon = await startDaemon(stage.rig, {
    ...options,
    markets: 10,
    config: { liveness: { mode: 'none' } },
  });
  await waitForAll(exchange, 10);
  await sleep(3000);
  const base = await askProbe(daemon.running, 'heap');
  await daemon.get('/metrics');
  const baseScraped = await askProbe(daemon.running, 'heap');
  const perMarket = (of: number, to: number) => (of - to) / (MARKETS - 10) / 1024;
  const before = perMarket(bytes, base.heapBytes + base.externalBytes);
  const after = perMarket(scrapedBytes, baseScraped.heapBytes + baseScraped.externalBytes);
  note(stage, 'memory/market', 'Memory per market before a scrape', 'KB', 2, before);
  note(stage, 'memory/market-scraped', 'Memory per market after scrapes and pages', 'KB', 2, after);
  await daemon.kill();
  exchange.running.signal('SIGKILL');
  await exchange.running.ended;
}
