import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { attempt, inTurn } from './attempt.ts';
import { measure } from './measures.ts';
import { type ExchangeProcess, kill, waitForAll } from './processes.ts';
import { labelOf, noteCosts, noter, noteStart, stopAndNote } from './rows.ts';
import { SMALL_CONFIG, type Stage, windowOf } from './stage.ts';
import { SUBJECTS, type SubjectName, startDaemon, startPeer } from './subject.ts';

const MARKETS = 10;
const WARM_SECONDS = 3;
/** One scrape, one ping, five beats and five renewals, wherever it begins. */
const WINDOW_SECONDS = 5;

/** Ten markets, nonces that rise: what the daemon costs somebody who trades a handful of markets. */
export async function runSmall(stage: Stage): Promise<void> {
  const exchange = await stage.rig.exchange('tls');
  for (let round = 0; round < stage.rounds; round += 1) {
    stage.book.begin(round);
    stage.say(`10 markets: round ${round + 1} of ${stage.rounds}`);
    bareStart(stage);
    for (const name of inTurn(SUBJECTS, round)) {
      await exchange.forget();
      await attempt(stage, name, `a round with ${MARKETS} markets`, () => runOne(stage, exchange, name));
    }
  }
  await kill(exchange.running);
}

function bareStart({ book }: Stage): void {
  const before = performance.now();
  spawnSync(process.execPath, ['-e', '0'], { stdio: 'ignore' });
  const row = { title: 'Start and end of a bare Node', unit: 'ms', decimals: 0 };
  book.note('bare-start', row, 'daemon', performance.now() - before);
}

async function runOne(stage: Stage, exchange: ExchangeProcess, name: SubjectName): Promise<void> {
  const { url } = exchange;
  const label = labelOf(MARKETS, 'tls');
  const subject =
    name === 'daemon'
      ? await startDaemon(stage.rig, { url, markets: MARKETS, config: SMALL_CONFIG })
      : startPeer(stage.rig, { kind: name, url, markets: MARKETS });
  await waitForAll(exchange, MARKETS);
  noteStart(stage, label, name, await exchange.read(), subject.running.startedAt);
  await sleep(WARM_SECONDS * 1000);
  const window = await measure(exchange, subject, windowOf(stage, WINDOW_SECONDS));
  const share = (window.cpuSeconds / window.seconds) * 100;
  noter(stage, label, name)('core', 'CPU', '% of a core', 2, share);
  noteCosts(stage, label, name, window);
  await stopAndNote(stage, label, exchange, name, subject);
}
