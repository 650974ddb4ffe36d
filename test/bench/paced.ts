import { setTimeout as sleep } from 'node:timers/promises';
import { attempt, inTurn } from './attempt.ts';
import { cpuDuring, measure, measureDaemon } from './measures.ts';
import { type ExchangeProcess, waitForAll, waitForFirst } from './processes.ts';
import type { Wire } from './rig.ts';
import { labelOf, noteCosts, noteLateness, noter, noteStart, noteTimers, stopAndNote } from './rows.ts';
import { PERIOD_MS, type Stage, windowOf } from './stage.ts';
import { type PeerName, SUBJECTS, type SubjectName, startDaemon, startPeer } from './subject.ts';

/** Markets renewed at their cadence over one wire, subject after subject, round after round. */
interface Fleet {
  readonly markets: number;
  readonly wire: Wire;
  readonly subjects: readonly SubjectName[];
  /** How long the daemon may take until all of its timers run on their grid. */
  readonly daemonWarmSeconds: number;
  readonly daemonWindowSeconds: number;
  /** Who is stopped in each round and not just killed: the daemon with 10,000 markets takes 10 s, in the long run alone. */
  readonly stops: 'all' | 'peers' | 'none';
  readonly windowSeconds: number;
}

/** Arming them all has compiled what a peer needs. */
const PEER_WARM_SECONDS = 1;
const FEW: readonly SubjectName[] = ['daemon', 'undici', 'floor'];
const LARGE = {
  markets: 10_000,
  daemonWarmSeconds: 11,
  // One period of the daemon's.
  daemonWindowSeconds: 10.72,
  windowSeconds: 4,
} as const;
const SMALLER = { markets: 1000, daemonWarmSeconds: 1, stops: 'all' } as const;
const FLEETS: readonly Fleet[] = [
  { ...LARGE, wire: 'tls', subjects: SUBJECTS, stops: 'peers' },
  { ...LARGE, wire: 'plain', subjects: FEW, stops: 'none' },
  { ...SMALLER, wire: 'tls', subjects: SUBJECTS, daemonWindowSeconds: 5, windowSeconds: 5 },
  { ...SMALLER, wire: 'plain', subjects: FEW, daemonWindowSeconds: 4, windowSeconds: 4 },
];

/** CPU, memory, lateness, start and stop of every subject at 1,000 and 10,000 markets. */
export async function runFleets(stage: Stage): Promise<void> {
  for (const fleet of FLEETS) {
    const exchange = await stage.rig.exchange(fleet.wire);
    for (let round = 0; round < stage.rounds; round += 1) {
      stage.book.begin(round);
      stage.say(`${fleet.markets} markets, ${fleet.wire}: round ${round + 1} of ${stage.rounds}`);
      for (const name of inTurn(fleet.subjects, round)) {
        await exchange.forget();
        await attempt(stage, name, `a round with ${fleet.markets} markets`, () =>
          name === 'daemon' ? runDaemon(stage, fleet, exchange) : runPeer(stage, fleet, exchange, name),
        );
      }
    }
    exchange.running.signal('SIGKILL');
    await exchange.running.ended;
  }
}

async function runPeer(stage: Stage, fleet: Fleet, exchange: ExchangeProcess, kind: PeerName) {
  const { markets, wire } = fleet;
  const label = labelOf(markets, wire);
  const peer = startPeer(stage.rig, { kind, url: exchange.url, markets });
  await waitForAll(exchange, markets);
  noteStart(stage, label, kind, await exchange.read(), peer.running.startedAt);
  await sleep(PEER_WARM_SECONDS * 1000);
  const window = await measure(exchange, peer, windowOf(stage, fleet.windowSeconds));
  noteCosts(stage, label, kind, window);
  if (fleet.stops === 'none') return await peer.kill();
  await stopAndNote(stage, label, exchange, kind, peer);
  noteLateness(stage, label, kind, peer.lateness(window));
}

async function runDaemon(stage: Stage, fleet: Fleet, exchange: ExchangeProcess): Promise<void> {
  const { markets, wire } = fleet;
  const label = labelOf(markets, wire);
  const cadence = markets <= 1000 ? { defaults: { renewEverySeconds: PERIOD_MS / 1000 } } : {};
  const daemon = await startDaemon(stage.rig, { url: exchange.url, markets, config: cadence });
  await waitForFirst(exchange, daemon.running);
  const armingCpu = await cpuDuring(daemon, waitForAll(exchange, markets));
  noteStart(stage, label, 'daemon', await exchange.read(), daemon.running.startedAt);
  noter(stage, label, 'daemon')('arming-cpu', 'CPU used from first to last timer armed', 's', 2, armingCpu);
  await sleep(fleet.daemonWarmSeconds * 1000);
  const window = await measureDaemon(exchange, daemon, windowOf(stage, fleet.daemonWindowSeconds));
  noteCosts(stage, label, 'daemon', window);
  noteLateness(stage, label, 'daemon', window.lateness);
  // A timer that was not renewed twice on the grid shows nothing.
  if (fleet.daemonWarmSeconds * 1000 > PERIOD_MS) noteTimers(stage, label, 'daemon', window.seen);
  if (fleet.stops === 'all') await stopAndNote(stage, label, exchange, 'daemon', daemon);
  else await daemon.kill();
}
