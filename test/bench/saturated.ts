import { setTimeout as sleep } from 'node:timers/promises';
import { attempt, inTurn } from './attempt.ts';
import { measure } from './measures.ts';
import { type ExchangeProcess, waitForAll } from './processes.ts';
import type { Stage } from './stage.ts';
import { windowOf } from './stage.ts';
import { SUBJECTS, type SubjectName, startDaemon, startPeer } from './subject.ts';

/** As many as are due when each is renewed every second: more than a core carries. The peers' loops go round as many. */
const MARKETS = 20_000;
/** The daemon runs at its full speed once all are armed; a peer does from the start, and needs only compiled code. */
const PEER_WARM = 1000;
const LIFTED = new URL('./lifted.ts', import.meta.url).href;

/** As many renewals as one core carries: no rate limit, no round trip, plain HTTP. */
export async function runSaturated(stage: Stage): Promise<void> {
  const { rig, book, rounds } = stage;
  const exchange = await rig.exchange('plain', 0);
  for (let round = 0; round < rounds; round += 1) {
    book.begin(round);
    stage.say(`saturated: round ${round + 1} of ${rounds}`);
    for (const subject of inTurn(SUBJECTS, round))
      await attempt(stage, subject, 'a saturated round', () => saturate(stage, exchange, subject));
  }
  exchange.running.signal('SIGKILL');
  await exchange.running.ended;
}

async function saturate(stage: Stage, exchange: ExchangeProcess, subject: SubjectName): Promise<void> {
  const { rig, book } = stage;
  await exchange.forget();
  const { url } = exchange;
  const running =
    subject === 'daemon'
      ? await startDaemon(rig, {
          url,
          markets: MARKETS,
          preload: [LIFTED],
          config: { defaults: { renewEverySeconds: 1 } },
        })
      : startPeer(rig, { kind: subject, url, markets: MARKETS, periodMs: 0 });
  await waitForAll(exchange, subject === 'daemon' ? MARKETS : PEER_WARM);
  await sleep(1000);
  const window = await measure(exchange, running, windowOf(stage, 3));
  const row = {
    title: 'Renewals per second of CPU, saturated, plain, no round trip',
    unit: '/s',
    decimals: 0,
  };
  book.note('saturated', row, subject, window.seen.renewals / window.cpuSeconds);
  const cpuRow = { title: 'CPU seconds per 1,000 renewals, saturated', unit: 's', decimals: 4 };
  book.note('saturated-cpu', cpuRow, subject, window.cpuPer1000);
  await running.kill();
}
