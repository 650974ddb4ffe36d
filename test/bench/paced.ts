import { setTimeout as sleep } from 'node:timers/promises';
import { cpuDuring, measure, type Window } from './measures.ts';
import { type ExchangeProcess, eventually, killSubjects } from './processes.ts';
import type { Wire } from './rig.ts';
import { type Stage, windowOf } from './stage.ts';
import {
  type DaemonSubject,
  SUBJECTS,
  type Subject,
  type SubjectName,
  startDaemon,
  startPeer,
} from './subject.ts';

/** Markets renewed at their cadence over one wire, subject after subject, round after round. */
interface Fleet {
  readonly markets: number;
  readonly wire: Wire;
  readonly subjects: readonly SubjectName[];
  /** How long the daemon may take until all of its timers run on their grid. */
  readonly daemonWarmSeconds: number;
  readonly daemonWindowSeconds: number;
  readonly warmSeconds: number;
  readonly windowSeconds: number;
}

export const PERIOD_MS = 10_000;
const TIMEOUT_SECONDS = 60;
export const CONNECTIONS = 64;
const FLEETS: readonly Fleet[] = [
  {
    markets: 10_000,
    wire: 'tls',
    subjects: SUBJECTS,
    daemonWarmSeconds: 11,
    // One period of the daemon's.
    daemonWindowSeconds: 10.72,
    warmSeconds: 2,
    windowSeconds: 5,
  },
  {
    markets: 10_000,
    wire: 'plain',
    subjects: ['daemon', 'undici', 'floor'],
    daemonWarmSeconds: 11,
    daemonWindowSeconds: 10.72,
    warmSeconds: 2,
    windowSeconds: 5,
  },
  {
    markets: 1000,
    wire: 'tls',
    subjects: SUBJECTS,
    daemonWarmSeconds: 1,
    daemonWindowSeconds: 5,
    warmSeconds: 1.5,
    windowSeconds: 5,
  },
  {
    markets: 1000,
    wire: 'plain',
    subjects: ['daemon', 'undici', 'floor'],
    daemonWarmSeconds: 1,
    daemonWindowSeconds: 4,
    warmSeconds: 1.5,
    windowSeconds: 4,
  },
];

/** CPU, lateness, slack, memory and start of every subject at 1,000 and 10,000 markets. */
export async function runFleets(stage: Stage): Promise<void> {
  for (const fleet of FLEETS) {
    const exchange = await stage.rig.exchange(fleet.wire);
    for (let round = 0; round < stage.rounds; round += 1) {
      stage.book.begin(round);
      stage.say(`${fleet.markets} markets, ${fleet.wire}: round ${round + 1} of ${stage.rounds}`);
      // Each round begins with another subject, so that none always runs behind the same one.
      for (let turn = 0; turn < fleet.subjects.length; turn += 1) {
        const name = fleet.subjects[(turn + round) % fleet.subjects.length] ?? 'daemon';
        await runSubject(stage, fleet, exchange, name);
      }
    }
    exchange.running.signal('SIGKILL');
    await exchange.running.ended;
  }
}

/** A subject that does not come to its feet is told, and takes none of the others along. */
async function runSubject(
  stage: Stage,
  fleet: Fleet,
  exchange: ExchangeProcess,
  name: SubjectName,
): Promise<void> {
  const { book, rig } = stage;
  if (name === 'ccxt' && 'problem' in rig.ccxt) {
    book.skip(`ccxt: ${rig.ccxt.problem}`);
    return;
  }
  await exchange.forget();
  try {
    if (name === 'daemon') await runDaemon(stage, fleet, exchange);
    else await runPeer(stage, fleet, exchange, name);
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n')[0] : String(error);
    book.skip(`a round of ${name} with ${fleet.markets} markets: ${why}`);
    await killSubjects();
  }
}

async function runPeer(
  stage: Stage,
  fleet: Fleet,
  exchange: ExchangeProcess,
  kind: Exclude<SubjectName, 'daemon'>,
) {
  const { markets } = fleet;
  const peer = startPeer(stage.rig, {
    kind,
    url: exchange.url,
    markets,
    timeoutSeconds: TIMEOUT_SECONDS,
    periodMs: PERIOD_MS,
    connections: CONNECTIONS,
  });
  await waitForFirst(exchange, peer);
  await sleep(fleet.warmSeconds * 1000);
  const seconds = windowOf(stage, fleet.windowSeconds);
  const window = await measure(exchange, peer, seconds, () => PERIOD_MS);
  noteWindow(stage, fleet, kind, window);
  noteStart(stage, fleet, kind, window, peer);
  await peer.kill();
}

async function runDaemon(stage: Stage, fleet: Fleet, exchange: ExchangeProcess): Promise<void> {
  const { markets } = fleet;
  const cadence = markets <= 1000 ? { defaults: { renewEverySeconds: PERIOD_MS / 1000 } } : {};
  const daemon = await startDaemon(stage.rig, { url: exchange.url, markets, config: cadence });
  await waitForFirst(exchange, daemon);
  const armingCpu = await cpuDuring(daemon, waitForAll(exchange, markets));
  await sleep(fleet.daemonWarmSeconds * 1000);
  const seconds = windowOf(stage, fleet.daemonWindowSeconds);
  const window = await measure(exchange, daemon, seconds, daemon.periodMs);
  noteWindow(stage, fleet, 'daemon', window);
  noteStart(stage, fleet, 'daemon', window, daemon);
  const { firstArmedAt, lastFirstArmedAt } = window.seen;
  const note = secondsOf(stage, fleet);
  note('all-armed', 'First to last timer armed', (lastFirstArmedAt - firstArmedAt) / 1000);
  note('arming-cpu', 'CPU used meanwhile', armingCpu);
  if (markets > 1000) await daemon.kill();
  else await stopAndNote(stage, fleet, exchange, daemon);
}

/** Notes how many seconds something took the daemon. */
function secondsOf({ book }: Stage, fleet: Fleet) {
  const { id, name } = labelOf(fleet);
  return (what: string, title: string, seconds: number) =>
    book.note(`${what}/${id}`, { title: `${title}, ${name}`, unit: 's', decimals: 2 }, 'daemon', seconds);
}

/** Ends the daemon as a service manager does, and notes how long the deletes took. */
async function stopAndNote(
  stage: Stage,
  fleet: Fleet,
  exchange: ExchangeProcess,
  daemon: DaemonSubject,
): Promise<void> {
  const askedAt = performance.timeOrigin + performance.now();
  daemon.running.signal('SIGTERM');
  const cpu = await cpuDuring(daemon, daemon.running.ended);
  const seen = await exchange.read();
  const note = secondsOf(stage, fleet);
  note('delete-all', 'Time to delete all', (seen.lastDeleteAt - askedAt) / 1000);
  note('delete-cpu', 'CPU used until it ended', cpu);
}

export async function waitForAll(
  exchange: ExchangeProcess,
  markets: number,
  withinMs = 120_000,
): Promise<void> {
  let armed = 0;
  await eventually(`${markets} timers armed`, withinMs, async () => {
    await sleep(markets > 1000 ? 100 : 5);
    ({ armed } = await exchange.read());
    return armed >= markets ? true : null;
  }).catch((error: unknown) => {
    throw new Error(`only ${armed} of ${markets} timers armed within ${withinMs / 1000} s`, { cause: error });
  });
}

async function waitForFirst(exchange: ExchangeProcess, { running }: Subject): Promise<void> {
  await eventually(`a renewal of ${running.log()}`, 20_000, async () => {
    return (await exchange.read()).armed > 0 ? true : null;
  });
}

function labelOf({ markets, wire }: Pick<Fleet, 'markets' | 'wire'>): {
  readonly id: string;
  readonly name: string;
} {
  return {
    id: `${markets}/${wire}`,
    name: `${markets.toLocaleString('en')} markets, ${wire === 'tls' ? 'TLS' : 'plain'}`,
  };
}

function noteStart(
  { book }: Stage,
  fleet: Fleet,
  subject: SubjectName,
  { seen }: Window,
  { running }: Subject,
): void {
  const { id, name } = labelOf(fleet);
  const row = { title: `Start to first timer armed, ${name}`, unit: 'ms', decimals: 0 };
  book.note(`first-armed/${id}`, row, subject, seen.firstArmedAt - running.startedAt);
}

/** Writes the rows that every subject has. */
export function noteWindow(
  { book }: Stage,
  fleet: Pick<Fleet, 'markets' | 'wire'>,
  subject: SubjectName,
  window: Window,
  run: 'rounds' | 'long' = 'rounds',
): void {
  const label = labelOf(fleet);
  const id = run === 'long' ? 'long' : label.id;
  const name = run === 'long' ? `${label.name}, the long run` : label.name;
  const { seen } = window;
  const note = (what: string, title: string, unit: string, decimals: number, value: number) =>
    book.note(`${what}/${id}`, { title: `${title}, ${name}`, unit, decimals }, subject, value);
  note('cpu', 'CPU seconds per 1,000 renewals', 's', 3, window.cpuPer1000);
  note('rate', 'Renewals a second', '/s', 0, window.perSecond);
  note('rss', 'RSS', 'MB', 0, window.rssMb);
  note('late-p50', 'Lateness p50', 'ms', 1, seen.lateness?.p50 ?? Number.NaN);
  note('late-p99', 'Lateness p99', 'ms', 1, seen.lateness?.p99 ?? Number.NaN);
  note('late-p999', 'Lateness p99.9', 'ms', 1, seen.lateness?.p999 ?? Number.NaN);
  note('late-max', 'Lateness max', 'ms', 1, seen.lateness?.max ?? Number.NaN);
  note('slack', 'Least slack at a renewal', '% of T', 1, (seen.leastSlack ?? Number.NaN) * 100);
  note('lapses', 'Lapses', '', 0, seen.lapses);
}
