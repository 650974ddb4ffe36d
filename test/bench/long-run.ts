import { setTimeout as sleep } from 'node:timers/promises';
import { measureDaemon } from './measures.ts';
import { type ExchangeProcess, eventually, waitForAll } from './processes.ts';
import { labelOf, noteCosts, noteLateness, noteTimers, stopAndNote } from './rows.ts';
import type { Stage } from './stage.ts';
import { startDaemon } from './subject.ts';

const MARKETS = 10_000;
const OUTAGE_SECONDS = 30;

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
  await outage(stage, exchange);
  await stopAndNote(stage, labelOf(MARKETS, 'tls'), exchange, 'daemon', daemon);
  const { mostInWindow } = await exchange.read();
  note(stage, 'long/requests', 'Most requests in any 10 s, from start to end', '', 0, mostInWindow);
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
): void {
  book.note(id, { title: `${title}, 10,000 markets, TLS`, unit, decimals }, 'daemon', value);
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
