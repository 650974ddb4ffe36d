import { setTimeout as sleep } from 'node:timers/promises';
import { type createBook, median, type SubjectName } from './book.ts';
import { latenessBetween } from './lateness.ts';
import { cpuSeconds, rssMb, wakesOf } from './machine.ts';
import { kill } from './processes.ts';
import type { Exchange, Rig } from './rig.ts';
import { startDaemon, withSubject } from './subject.ts';

/** What every part of the bench is given. */
export interface Stage {
  readonly rig: Rig;
  readonly note: ReturnType<typeof createBook>['note'];
  readonly rounds: number;
  readonly longMs: number;
  /** A third of it where only a look is wanted. */
  readonly shorter: (ms: number) => number;
  readonly say: (line: string) => void;
  /** One that fails is told, and takes none of the others along. */
  readonly attempt: (what: string, work: () => Promise<void>) => Promise<void>;
}

export const COMPARED = ['daemon', 'undici', 'floor', 'ccxt'] as const;
const [timeoutSeconds, WINDOW_MS, GROWS_MS, HELD_MS] = [60, 12_000, 70_000, 20_000];
const LARGEST = 10_000;
export const FLEET_SIZES = [1, 10, 200, 2000, LARGEST];
/** One market is there for the picture alone, and 10,000 take long. */
const isIn = (round: number, markets: number) =>
  round === 0 || (markets > 1 && (markets < LARGEST || round === 1));
/** ccxt cannot renew 10,000 in time. No target is about it, nor about the floor above 10 markets: one round will do. */
const isCompared = (name: SubjectName, markets: number, round: number) =>
  name === 'ccxt' ? round === 0 && markets < LARGEST : name !== 'floor' || markets <= 10 || round === 0;
/** Ten seconds after its first one the daemon renews each market once more than it does later. */
const EXTRA_RENEWAL_MS = 12_000;

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
        if (!isCompared(name, markets, round)) continue;
        const windowMs = isLong && name === 'daemon' ? stage.longMs : stage.shorter(WINDOW_MS);
        const run = { exchange, name, markets, round, windowMs };
        await stage.attempt(`${markets} markets: ${name}`, () => measure(stage, run));
      }
    }
  await exchange.end();
}

async function measure({ rig, note, shorter }: Stage, run: Run): Promise<void> {
  const { exchange, name, markets, round, windowMs } = run;
  await exchange.ask('forget');
  await withSubject(rig, exchange, name, { markets, timeoutSeconds }, async ({ running, get }) => {
    const { firstArmedAt } = await exchange.ask('read');
    await sleep(shorter(name === 'daemon' ? EXTRA_RENEWAL_MS : 1000));
    const before = await get('/metrics');
    await exchange.ask('count');
    const [startMs, cpuBefore] = [performance.now(), cpuSeconds(running.pid)];
    const rss = await rssWithin(running.pid, windowMs);
    const cpu = (cpuSeconds(running.pid) - cpuBefore) * 1000;
    const core = (cpu / (performance.now() - startMs)) * 100;
    const { renewals, lapses, leastSlack } = await exchange.ask('read');
    const after = await get('/metrics');
    const sent = latenessBetween(before, after, 'killswitch_schedule_delay_seconds');
    const woken = latenessBetween(before, after, 'killswitch_wake_delay_seconds');
    const first = firstArmedAt - running.startedAt;
    if (markets === LARGEST) note(`rss/${markets}`, name, rss, round);
    const late = { 'late-p99': sent.p99, 'late-max': sent.max, held: woken.max };
    const noted = { cpu: cpu / renewals, core, slack: leastSlack * 100, lapses, first, ...late };
    for (const [what, value] of Object.entries(noted))
      if (!Number.isNaN(value)) note(`${what}/${markets}`, name, value, round);
  });
}

/** What a subject holds once it has stopped growing. All run at once, on both cores: together they fill one. */
export async function runMemory({ rig, note, say, shorter, attempt }: Stage): Promise<void> {
  say('memory');
  const anywhere: Rig = { ...rig, cores: { ...rig.cores, subject: rig.cores.both } };
  const hold = async (markets: number, name: SubjectName): Promise<void> => {
    const exchange = await rig.exchange();
    await withSubject(anywhere, exchange, name, { markets, timeoutSeconds }, async ({ running }) => {
      await sleep(shorter(GROWS_MS));
      note(`rss/${markets}`, name, await rssWithin(running.pid, shorter(HELD_MS)));
    });
    await exchange.end();
  };
  const sizes = FLEET_SIZES.filter((markets) => markets < LARGEST);
  const all = sizes.flatMap((markets) => COMPARED.map((name) => ({ markets, name })));
  const holdOne = ({ markets, name }: (typeof all)[number]) =>
    attempt(`${markets} markets: memory of ${name}`, () => hold(markets, name));
  await Promise.all(all.map(holdOne));
}

/** The median of looks, one a second, in megabytes. */
async function rssWithin(pid: number, windowMs: number): Promise<number> {
  const memory: number[] = [];
  for (const startMs = performance.now(); performance.now() - startMs < windowMs; ) {
    await sleep(Math.min(1000, windowMs / 8));
    memory.push(rssMb(pid));
  }
  return median(memory);
}

/** How often a daemon wakes that nobody beats to or scrapes, between two renewals of its only market: 12 to 19 s after the start. */
export async function runIdle({ rig, note, say, shorter }: Stage): Promise<void> {
  say('a daemon with nothing to do');
  const exchange = await rig.exchange();
  const liveness = { startupGraceSeconds: 300 };
  const config = { liveness, defaults: { renewEverySeconds: 20 }, ping: { everySeconds: 60 } };
  const { running } = await startDaemon(rig, { url: exchange.url, markets: 1, config, alone: true });
  await exchange.allArmed(1);
  await sleep(EXTRA_RENEWAL_MS);
  const before = wakesOf(running.pid);
  const startMs = performance.now();
  await sleep(shorter(7000));
  const seconds = (performance.now() - startMs) / 1000;
  note('wakes', 'daemon', (wakesOf(running.pid) - before) / seconds);
  await Promise.all([kill(running), exchange.end()]);
}
