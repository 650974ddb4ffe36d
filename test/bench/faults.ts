import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, kill, waitForAll } from './processes.ts';
import { FAULTS, type Fault, nowMs } from './protocol.ts';
import { PERIOD_MS, type Stage } from './stage.ts';
import { startDaemon } from './subject.ts';

const MARKETS = 100;
const OUTAGE_SECONDS = 8;
/** What a market may be late by and still be as often renewed as it should. */
const TOLERANCE_MS = 500;

/** How long a market goes without a renewal when the exchange fails for 8 s in each way, two at a time. */
export async function runFaults(stage: Stage): Promise<void> {
  stage.say(`outages of ${OUTAGE_SECONDS} s: hang, reset, 500, both kinds of 429`);
  for (let first = 0; first < FAULTS.length; first += 2)
    await Promise.all(FAULTS.slice(first, first + 2).map((fault) => runFault(stage, fault)));
}

async function runFault({ rig, book }: Stage, fault: Fault): Promise<void> {
  const exchange = await rig.exchange('tls');
  const defaults = { renewEverySeconds: PERIOD_MS / 1000 };
  const daemon = await startDaemon(rig, { url: exchange.url, markets: MARKETS, config: { defaults } });
  await waitForAll(exchange, MARKETS);
  await sleep(PERIOD_MS + TOLERANCE_MS);
  await exchange.count();
  await exchange.fail(fault);
  await sleep(OUTAGE_SECONDS * 1000);
  await exchange.work();
  // A gap counts once it has ended.
  const seen = await eventually('no market waits longer than its period', 60_000, async () => {
    const now = await exchange.read();
    return nowMs() - now.stalestRenewedAt < PERIOD_MS + TOLERANCE_MS ? now : null;
  });
  const name = `outage of ${OUTAGE_SECONDS} s: ${fault}`;
  const over = (seen.longestGapMs - PERIOD_MS) / 1000 - OUTAGE_SECONDS;
  const gap = { title: `Longest gap beyond cadence and outage, ${name}`, unit: 's', decimals: 2 };
  book.note(`gap/${fault}`, gap, 'daemon', over);
  const lapses = { title: `Lapses, ${name}`, unit: '', decimals: 0 };
  book.note(`gap-lapses/${fault}`, lapses, 'daemon', seen.lapses);
  await daemon.kill();
  await kill(exchange.running);
}
