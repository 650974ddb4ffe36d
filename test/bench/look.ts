import { attempt } from './attempt.ts';
import { askProbe, measure, PROBE, tellProbe } from './measures.ts';
import { type ExchangeProcess, waitForAll, waitForEnd } from './processes.ts';
import { labelOf, noteLateness, noteLoopDelay, noter, noteTimers } from './rows.ts';
import { PERIOD_MS, type Stage, windowOf } from './stage.ts';
import { type PeerName, SUBJECTS, startPeer } from './subject.ts';

const MARKETS = 10_000;
/** More than the timeout, so that a timer that is not renewed fires in it. */
const LOOK_SECONDS = 64;

/** Each peer with 10,000 markets for longer than a round: what it is late by, and whether timers fire meanwhile. */
export async function runLook(stage: Stage): Promise<void> {
  const exchange = await stage.rig.exchange('tls');
  for (const kind of SUBJECTS) {
    if (kind === 'daemon') continue;
    stage.say(`10,000 markets, a look of ${LOOK_SECONDS} s: ${kind}`);
    await exchange.forget();
    await attempt(stage, kind, 'the look', () => look(stage, exchange, kind));
  }
  exchange.running.signal('SIGKILL');
  await exchange.running.ended;
}

async function look(stage: Stage, exchange: ExchangeProcess, kind: PeerName): Promise<void> {
  const label = labelOf(MARKETS, 'tls', true);
  const peer = startPeer(stage.rig, { kind, url: exchange.url, markets: MARKETS }, [PROBE]);
  await waitForAll(exchange, MARKETS);
  tellProbe(peer.running, 'watch-loop');
  const window = await measure(exchange, peer, windowOf(stage, LOOK_SECONDS), PERIOD_MS);
  noteLoopDelay(stage, labelOf(MARKETS, 'tls'), kind, await askProbe(peer.running, 'read'));
  noter(stage, label, kind)('rate', 'Renewals a second', '/s', 0, window.perSecond);
  noteTimers(stage, label, kind, window.seen);
  peer.running.signal('SIGTERM');
  await waitForEnd(peer.running);
  noteLateness(stage, label, kind, peer.lateness(window));
}
