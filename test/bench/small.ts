import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { measure } from './measures.ts';
import { type ExchangeProcess, eventually, waitForAll } from './processes.ts';
import { FAULTS, type Fault } from './protocol.ts';
import { PERIOD_MS, type Stage, windowOf } from './stage.ts';
import { SUBJECTS, type SubjectName, startDaemon, startPeer } from './subject.ts';

const MARKETS = 10;
const STARTS = 5;

async function end(...exchanges: readonly ExchangeProcess[]): Promise<void> {
  for (const { running } of exchanges) {
    running.signal('SIGKILL');
    await running.ended;
  }
}

/** Ten markets, nonces that rise: what the daemon costs somebody who trades a handful of markets. */
export async function runSmall(stage: Stage): Promise<void> {
  const { book, rig } = stage;
  stage.say('10 markets: start, memory, CPU');
  const exchange = await rig.exchange('tls');
  const name = '10 markets, TLS';
  const config = { exchange: { nonce: 'increasing' }, defaults: { renewEverySeconds: PERIOD_MS / 1000 } };
  for (let start = 0; start < (stage.quick ? 2 : STARTS); start += 1) {
    const before = performance.now();
    spawnSync(process.execPath, ['-e', '0'], { stdio: 'ignore' });
    const bare = { title: 'Start and end of a bare Node', unit: 'ms', decimals: 0 };
    book.note('bare-start', bare, 'daemon', performance.now() - before);
    await exchange.forget();
    const daemon = await startDaemon(rig, { url: exchange.url, markets: MARKETS, config });
    await waitForAll(exchange, MARKETS);
    const { firstArmedAt, lastFirstArmedAt } = await exchange.read();
    const row = (title: string) => ({ title: `${title}, ${name}`, unit: 'ms', decimals: 0 });
    const { startedAt } = daemon.running;
    book.note('first-armed/10', row('Start to first timer armed'), 'daemon', firstArmedAt - startedAt);
    book.note('all-armed/10', row('Start to all timers armed'), 'daemon', lastFirstArmedAt - startedAt);
    await daemon.kill();
  }
  // So little to do that all can do it at once; the windows take the place of the rounds.
  const runs = await Promise.all(
    SUBJECTS.filter((subject) => subject !== 'ccxt' || 'module' in rig.ccxt).map(async (subject) => {
      const own = await rig.exchange('tls');
      return { subject, own, running: await startSmall(stage, subject, own, config) };
    }),
  );
  await sleep(5000);
  for (let round = 0; round < stage.rounds; round += 1) {
    const seconds = windowOf(stage, 8);
    await Promise.all(
      runs.map(async ({ subject, own, running }) => {
        const window = await measure(own, running, seconds);
        const share = (window.cpuSeconds / window.seconds) * 100;
        book.note('core/10', { title: `CPU, ${name}`, unit: '% of a core', decimals: 2 }, subject, share);
        book.note(
          'cpu/10',
          { title: `CPU seconds per 1,000 renewals, ${name}`, unit: 's', decimals: 2 },
          subject,
          window.cpuPer1000,
        );
        book.note('rss/10', { title: `RSS, ${name}`, unit: 'MB', decimals: 0 }, subject, window.rssMb);
      }),
    );
  }
  for (const { own, running } of runs) {
    await running.kill();
    await end(own);
  }
  await end(exchange);
}

function startSmall(
  { rig }: Stage,
  subject: SubjectName,
  exchange: ExchangeProcess,
  config: Record<string, Record<string, unknown>>,
) {
  if (subject === 'daemon') return startDaemon(rig, { url: exchange.url, markets: MARKETS, config });
  return startPeer(rig, { kind: subject, url: exchange.url, markets: MARKETS });
}

const FAULT_MARKETS = 100;
const FAULT_TIMEOUT = 15;
const FAULT_PERIOD = 5;
const FAULT_SECONDS = 8;

/** How long a market goes without a renewal when the exchange fails for 8 s in each way, two at a time. */
export async function runFaults(stage: Stage): Promise<void> {
  stage.say('outages of 8 s: hang, reset, 500, both kinds of 429');
  for (let first = 0; first < FAULTS.length; first += 2)
    await Promise.all(FAULTS.slice(first, first + 2).map((fault) => runFault(stage, fault)));
}

async function runFault({ rig, book }: Stage, fault: Fault): Promise<void> {
  const exchange = await rig.exchange('tls');
  const defaults = { timeoutSeconds: FAULT_TIMEOUT, renewEverySeconds: FAULT_PERIOD };
  const daemon = await startDaemon(rig, { url: exchange.url, markets: FAULT_MARKETS, config: { defaults } });
  await waitForAll(exchange, FAULT_MARKETS);
  await sleep(5500);
  await exchange.count();
  await exchange.fail(fault);
  await sleep(FAULT_SECONDS * 1000);
  await exchange.work();
  await sleep(3000);
  const seen = await exchange.read();
  const name = `outage of ${FAULT_SECONDS} s: ${fault}`;
  const over = seen.longestGapMs / 1000 - FAULT_PERIOD - FAULT_SECONDS;
  book.note(
    `gap/${fault}`,
    { title: `Longest gap beyond cadence and outage, ${name}`, unit: 's', decimals: 2 },
    'daemon',
    over,
  );
  book.note(
    `gap-lapses/${fault}`,
    { title: `Lapses, ${name}`, unit: '', decimals: 0 },
    'daemon',
    seen.lapses,
  );
  await daemon.kill();
  await end(exchange);
}

/**
 * Round trip in milliseconds, and as many markets as its requests arm in 3 to 10 s. With so many that have so short a
 * timeout the cadence must follow what the requests carry.
 */
const SERIAL = [
  { roundTripMs: 1, markets: 4000, timeoutSeconds: 60 },
  { roundTripMs: 20, markets: 450, timeoutSeconds: 60 },
  { roundTripMs: 100, markets: 95, timeoutSeconds: 60 },
] as const;

/** Requests one after the other: how much of what the round trip allows is used, and what the daemon says about it. */
export async function runSerial(stage: Stage): Promise<void> {
  stage.say('nonces that rise, at round trips of 1, 20 and 100 ms');
  const [first, ...others] = SERIAL;
  await runSerialAt(stage, first);
  await Promise.all(others.map((other) => runSerialAt(stage, other)));
}

/** The part of the time from a tenth of the markets armed to all of them that the exchange held a request for. */
async function shareWhileArming(exchange: ExchangeProcess, markets: number) {
  await waitForAll(exchange, Math.floor(markets / 10));
  const before = await exchange.read();
  await exchange.count();
  await waitForAll(exchange, markets);
  const seen = await exchange.read();
  const seconds = (seen.lastRenewalAt - before.lastRenewalAt) / 1000;
  return { share: (seen.heldMs / 1000 / seconds) * 100, perSecond: seen.renewals / seconds };
}

async function runSerialAt(
  { rig, book }: Stage,
  { roundTripMs, markets, timeoutSeconds }: (typeof SERIAL)[number],
): Promise<void> {
  const exchange = await rig.exchange('tls', roundTripMs);
  const name = `rising nonces, round trip ${roundTripMs} ms`;
  const shareRow = { title: `Share of 1/round trip, ${name}`, unit: '%', decimals: 1 };
  const rateRow = { title: `Renewals a second while arming, ${name}`, unit: '/s', decimals: 1 };
  const noteShare = async (subject: SubjectName) => {
    const { share, perSecond } = await shareWhileArming(exchange, markets);
    book.note(`serial/${roundTripMs}`, shareRow, subject, share);
    book.note(`serial-rate/${roundTripMs}`, rateRow, subject, perSecond);
  };
  // What two bare loops get out of the same wire.
  for (const kind of ['undici', 'floor'] as const) {
    const given = { url: exchange.url, markets, timeoutSeconds, periodMs: 0, connections: 1 };
    const peer = startPeer(rig, { kind, ...given });
    await noteShare(kind);
    await peer.kill();
    await exchange.forget();
  }
  const daemon = await startDaemon(rig, {
    url: exchange.url,
    markets,
    config: { exchange: { nonce: 'increasing' }, defaults: { timeoutSeconds } },
  });
  await noteShare('daemon');
  const said = await eventually('a word about the cadence', 8000, () =>
    daemon.running.log().includes('the cadence follows') ? 1 : null,
  ).catch(() => 0);
  book.note(
    `serial-said/${roundTripMs}`,
    { title: `Says which cadence that carries, ${name}`, unit: '', decimals: 0 },
    'daemon',
    said,
  );
  await daemon.kill();
  await end(exchange);
}
