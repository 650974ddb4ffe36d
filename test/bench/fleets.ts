import { setTimeout as sleep } from 'node:timers/promises';
import { type createBook, median } from './book.ts';
import { latenessBetween } from './lateness.ts';
import { cpuSeconds, rssMb, wakesOf } from './machine.ts';
import { kill } from './processes.ts';
import type { Exchange, Rig } from './rig.ts';
import { startDaemon, startPeer } from './subject.ts';

/** What every part of the bench is given. */
export interface Stage {
  readonly rig: Rig;
  readonly note: ReturnType<typeof createBook>['note'];
  readonly rounds: number;
  readonly longMs: number;
  /** A third of it where only a look is wanted. */
  readonly shorter: (ms: number) => number;
  readonly quick: boolean;
  readonly say: (line: string) => void;
  /** One that fails is told, and takes none of the others along. */
  readonly attempt: (what: string, work: () => Promise<void>) => Promise<void>;
}

const COMPARED = ['daemon', 'undici', 'floor', 'ccxt'] as const;
const [TIMEOUT_SECONDS, PERIOD_MS] = [60, 6000];
/** As many renewals a second as the documented limit has room for, and how long the first of 10,000 take therefore. */
const [LIMIT_PER_SECOND, LIMIT_MS] = [933, 11_000];
const LARGEST = 10_000;
export const FLEET_SIZES = [1, 10, 200, 2000, LARGEST];
/** One market is there for the picture alone, and 10,000 take long, which ccxt cannot renew in time. */
const isIn = (round: number, markets: number) =>
  round === 0 || (markets > 1 && (markets < LARGEST || round === 1));
const isCompared = (name: string, markets: number) => name !== 'ccxt' || markets < LARGEST;

interface Run {
  readonly exchange: Exchange;
  readonly name: (typeof COMPARED)[number];
  readonly markets: number;
  readonly round: number;
  readonly windowMs: number;
}

/** Costs of all subjects at all sizes, in turns: the load of the machine meets everybody. */
export async function runFleets(stage: Stage): Promise<void> {
  const exchange = await stage.rig.exchange();
  for (let round = 0; round < stage.rounds; round += 1)
    for (const markets of FLEET_SIZES.filter((size) => isIn(round, size))) {
      stage.say(`${markets.toLocaleString('en')} markets, round ${round + 1}`);
      const isLong = markets === LARGEST && round === Math.min(stage.rounds - 1, 1);
      for (const place of COMPARED.keys()) {
        const name = COMPARED[(place + round) % COMPARED.length] ?? 'daemon';
        if (!isCompared(name, markets)) continue;
        const windowMs = isLong && name === 'daemon' ? stage.longMs : stage.shorter(2 * PERIOD_MS);
        const run = { exchange, name, markets, round, windowMs };
        await stage.attempt(`${markets} markets: ${name}`, () => measure(stage, run));
      }
    }
  await exchange.end();
}

async function measure({ rig, note, shorter }: Stage, run: Run): Promise<void> {
  const { exchange, name, markets, round } = run;
  const { url } = exchange;
  await exchange.ask('forget');
  const daemon = name === 'daemon' ? await startDaemon(rig, { url, markets }) : undefined;
  const periodMs = Math.max(PERIOD_MS, (markets / LIMIT_PER_SECOND) * 1000);
  const kind = name === 'daemon' ? 'undici' : name;
  const ccxt = kind === 'ccxt' ? { ccxt: await rig.ccxt() } : {};
  const peer = { ...ccxt, kind, url, markets, timeoutSeconds: TIMEOUT_SECONDS, periodMs } as const;
  const running = daemon?.running ?? startPeer(rig, peer);
  try {
    await exchange.allArmed(markets);
    const { firstArmedAt, lastFirstArmedAt } = await exchange.ask('read');
    await sleep(shorter(name === 'daemon' && markets === LARGEST ? LIMIT_MS : 2000));
    const page = async () => (await daemon?.get('/metrics')) ?? '';
    const before = await page();
    const costs = await watch(run, running.pid);
    const after = await page();
    const sent = latenessBetween(before, after, 'killswitch_schedule_delay_seconds');
    const woken = latenessBetween(before, after, 'killswitch_wake_delay_seconds');
    const [first, all] = [firstArmedAt - running.startedAt, lastFirstArmedAt - running.startedAt];
    const noted = { ...costs, first, all, 'late-p99': sent.p99, 'late-max': sent.max, held: woken.max };
    for (const [what, value] of Object.entries(noted))
      if (!Number.isNaN(value)) note(`${what}/${markets}`, name, value, round);
  } finally {
    await kill(running);
  }
}

async function watch({ exchange, windowMs }: Run, pid: number) {
  await exchange.ask('count');
  const startMs = performance.now();
  const cpuBefore = cpuSeconds(pid);
  const memory: number[] = [];
  while (performance.now() - startMs < windowMs) {
    await sleep(Math.min(1000, windowMs / 8));
    memory.push(rssMb(pid));
  }
  const cpu = cpuSeconds(pid) - cpuBefore;
  const seconds = (performance.now() - startMs) / 1000;
  const { renewals, lapses, leastSlack, badSignatures } = await exchange.ask('read');
  if (badSignatures > 0) throw new Error(`${badSignatures} signatures are wrong`);
  const slack = leastSlack * 100;
  return { cpu: (cpu / renewals) * 1000, core: (cpu / seconds) * 100, rss: median(memory), slack, lapses };
}

/** How often a daemon wakes that nobody beats to or scrapes, between two renewals of its only market. */
export async function runIdle({ rig, note, say, shorter }: Stage): Promise<void> {
  say('a daemon with nothing to do');
  const exchange = await rig.exchange();
  const liveness = { startupGraceSeconds: 300 };
  const config = { liveness, defaults: { renewEverySeconds: 20 }, ping: { everySeconds: 60 } };
  const { running } = await startDaemon(rig, { url: exchange.url, markets: 1, config, alone: true });
  await exchange.allArmed(1);
  await sleep(5000);
  const before = wakesOf(running.pid);
  const startMs = performance.now();
  await sleep(shorter(10_000));
  const seconds = (performance.now() - startMs) / 1000;
  note('wakes', 'daemon', (wakesOf(running.pid) - before) / seconds);
  await Promise.all([kill(running), exchange.end()]);
}
