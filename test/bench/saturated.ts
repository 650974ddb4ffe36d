import { setTimeout as sleep } from 'node:timers/promises';
import { measure } from './measures.ts';
import { CONNECTIONS, waitForAll } from './paced.ts';
import type { Stage } from './stage.ts';
import { windowOf } from './stage.ts';
import { SUBJECTS, startDaemon, startPeer } from './subject.ts';

/** As many as are due when each is renewed every second: more than a core carries. */
const MARKETS = 20_000;
const PEER_MARKETS = 1000;
/** Nothing waits here, so that rounds differ little. */
const MOST_ROUNDS = 3;
const LIFTED = new URL('./lifted.ts', import.meta.url).href;

/** As many renewals as one core carries: no rate limit, no round trip, plain HTTP. */
export async function runSaturated(stage: Stage): Promise<void> {
  const { rig, book, rounds } = stage;
  const exchange = await rig.exchange('plain', 0);
  const row = {
    title: 'Renewals a second on one core, saturated, plain, no round trip',
    unit: '/s',
    decimals: 0,
  };
  const cpuRow = { title: 'CPU seconds per 1,000 renewals, saturated', unit: 's', decimals: 4 };
  for (let round = 0; round < Math.min(rounds, MOST_ROUNDS); round += 1) {
    book.begin(round);
    stage.say(`saturated: round ${round + 1}`);
    for (const subject of SUBJECTS) {
      if (subject === 'ccxt' && 'problem' in rig.ccxt) continue;
      await exchange.forget();
      const { url } = exchange;
      const running =
        subject === 'daemon'
          ? await startDaemon(rig, {
              url,
              markets: MARKETS,
              preload: [LIFTED],
              config: { defaults: { timeoutSeconds: 60, renewEverySeconds: 1 } },
            })
          : startPeer(rig, {
              kind: subject,
              url,
              markets: PEER_MARKETS,
              timeoutSeconds: 60,
              periodMs: 0,
              connections: CONNECTIONS,
            });
      await waitForAll(exchange, subject === 'daemon' ? MARKETS : PEER_MARKETS);
      await sleep(1000);
      const window = await measure(exchange, running, windowOf(stage, 3), () => 0);
      book.note('saturated', row, subject, window.seen.renewals / window.cpuSeconds);
      book.note('saturated-cpu', cpuRow, subject, window.cpuPer1000);
      await running.kill();
    }
  }
  exchange.running.signal('SIGKILL');
  await exchange.running.ended;
}
