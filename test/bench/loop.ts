import { setTimeout as sleep } from 'node:timers/promises';
import { attempt } from './attempt.ts';
import { askProbe, PROBE, tellProbe } from './measures.ts';
import type { ProbeAnswer } from './probe.ts';
import { type ExchangeProcess, waitForAll } from './processes.ts';
import { labelOf, noteLoopDelay, noter } from './rows.ts';
import { SMALL_CONFIG, type Stage, windowOf } from './stage.ts';
import { type DaemonSubject, SUBJECTS, type SubjectName, startDaemon, startPeer } from './subject.ts';

const MARKETS = 10_000;
/** Here the peers have their rows from the same run as the daemon; with 10,000 markets, from their look. */
const SMALLER = [1000, 10] as const;
const PROBED = { preload: [PROBE], flags: ['--expose-gc'], channel: true } as const;
/** Alone it has no bot: that it waits for one keeps its timers renewed until somebody comes. */
const UNWATCHED = { alone: true, config: { liveness: { startupGraceSeconds: 300 } } } as const;
/** Once round everything that a daemon as shipped does now and then. */
const ROUND_MS = 5500;

/** How long anything holds the event loop, and what a market takes of the memory. */
export async function runLoop(stage: Stage): Promise<void> {
  const exchange = await stage.rig.exchange('tls');
  stage.say('what holds the event loop, at 10,000 markets');
  const large = await largeDaemon(stage, exchange);
  for (const markets of SMALLER) {
    stage.say(`event-loop delay, at ${markets.toLocaleString('en')} markets`);
    for (const name of SUBJECTS) {
      await exchange.forget();
      await attempt(stage, name, `the event loop with ${markets} markets`, () =>
        loopDelay(stage, exchange, name, markets),
      );
    }
  }
  await exchange.forget();
  await memory(stage, exchange, large);
  exchange.running.signal('SIGKILL');
  await exchange.running.ended;
}

/** Bytes in use after a collection: before anybody asked for anything, and after scrapes and pages. */
interface Held {
  readonly before: number;
  readonly after: number;
}

function bytesOf({ heapBytes, externalBytes }: ProbeAnswer): number {
  return heapBytes + externalBytes;
}

/** The daemon with 10,000 markets: first alone, then as shipped, with a bot, scrapes and an open page. */
async function largeDaemon(stage: Stage, exchange: ExchangeProcess): Promise<Held> {
  const { url } = exchange;
  const daemon = await startDaemon(stage.rig, { url, markets: MARKETS, ...PROBED, ...UNWATCHED });
  await waitForAll(exchange, MARKETS);
  await sleep(11_000);
  const before = bytesOf(await askProbe(daemon.running, 'heap'));
  // A forced collection throws compiled code away as well: the turns after it are those of a cold program.
  await sleep(11_000);
  await longestTurn(stage, daemon, 'quiet', 'nobody asks', () => sleep(3000));
  daemon.keepCompany();
  await sleep(ROUND_MS);
  const thrice = (ask: () => Promise<unknown>) => async () => {
    for (let times = 0; times < 3; times += 1) {
      await ask();
      await sleep(1000);
    }
  };
  await longestTurn(stage, daemon, 'scrape', 'as shipped, while scraped', thrice(daemon.scrape));
  const status = 'as shipped, while the status is read';
  const read = () => daemon.get('/api/v1/status?view=page');
  await longestTurn(stage, daemon, 'status', status, thrice(read));
  tellProbe(daemon.running, 'watch-loop');
  await sleep(2 * ROUND_MS);
  noteLoopDelay(stage, labelOf(MARKETS, 'tls'), 'daemon', await askProbe(daemon.running, 'read'));
  const after = bytesOf(await askProbe(daemon.running, 'heap'));
  await daemon.kill();
  return { before, after };
}

async function longestTurn(
  stage: Stage,
  { running }: DaemonSubject,
  id: string,
  title: string,
  disturb: () => Promise<void>,
): Promise<void> {
  tellProbe(running, 'watch-turns');
  await sleep(500);
  await disturb();
  const { longestTurnMs } = await askProbe(running, 'read');
  const row = `Longest turn of the event loop, ${title}, ${labelOf(MARKETS, 'tls').name}`;
  stage.book.note(`turn/${id}`, { title: row, unit: 'ms' }, 'daemon', longestTurnMs);
}

async function loopDelay(
  stage: Stage,
  exchange: ExchangeProcess,
  name: SubjectName,
  markets: number,
): Promise<void> {
  const { url } = exchange;
  const config = markets === 10 ? SMALL_CONFIG : { defaults: SMALL_CONFIG.defaults };
  const subject =
    name === 'daemon'
      ? await startDaemon(stage.rig, { url, markets, config, preload: [PROBE], channel: true })
      : startPeer(stage.rig, { kind: name, url, markets }, [PROBE]);
  await waitForAll(exchange, markets);
  await sleep(1000);
  tellProbe(subject.running, 'watch-loop');
  await sleep(windowOf(stage, ROUND_MS));
  noteLoopDelay(stage, labelOf(markets, 'tls'), name, await askProbe(subject.running, 'read'));
  await subject.kill();
}

/** What a market costs: the memory in use with 10,000 against that with 10. */
async function memory(stage: Stage, exchange: ExchangeProcess, large: Held): Promise<void> {
  const { url } = exchange;
  const daemon = await startDaemon(stage.rig, { url, markets: 10, ...PROBED, ...UNWATCHED });
  await waitForAll(exchange, 10);
  await sleep(3000);
  const before = bytesOf(await askProbe(daemon.running, 'heap'));
  daemon.keepCompany();
  await sleep(ROUND_MS);
  const after = bytesOf(await askProbe(daemon.running, 'heap'));
  const perMarket = (of: number, to: number) => (of - to) / (MARKETS - 10) / 1024;
  const note = noter(stage, { id: 'memory', name: labelOf(MARKETS, 'tls').name }, 'daemon');
  note('before-scrape', 'Memory per market before a scrape', 'KB', 2, perMarket(large.before, before));
  note('scraped', 'Memory per market after scrapes and pages', 'KB', 2, perMarket(large.after, after));
  await daemon.kill();
}
