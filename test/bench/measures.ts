import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { latenessIn, observedBetween } from './histogram.ts';
import type { MemoryAnswer, ProbeAnswer, ProbeAsk } from './probe.ts';
import type { ExchangeProcess, Running } from './processes.ts';
import { type Lateness, nowMs, type Seen } from './protocol.ts';
import { median } from './statistics.ts';
import type { DaemonSubject, Subject } from './subject.ts';

/** What a subject is started with where something of its inside is asked. */
export const PROBE = new URL('./probe.ts', import.meta.url).href;

/** One window of one subject. */
export interface Window {
  /** From when until when, in Unix milliseconds. */
  readonly fromMs: number;
  readonly untilMs: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly cpuPer1000: number;
  readonly perSecond: number;
  /** The median of what was looked at during the window. */
  readonly rssMb: number;
  readonly seen: Seen;
}

/**
 * Lets the subject run for `seconds` and says what that cost, and what the exchange saw of it. By `periodMs` the exchange
 * judges the gaps between renewals; 0 judges none.
 */
export async function measure(
  exchange: ExchangeProcess,
  subject: Subject,
  seconds: number,
  periodMs = 0,
): Promise<Window> {
  await exchange.count();
  const cpuBefore = subject.cpu();
  const fromMs = nowMs();
  const rssMb = await sampleRss(subject, seconds);
  const cpu = subject.cpu() - cpuBefore;
  const untilMs = nowMs();
  const lasted = (untilMs - fromMs) / 1000;
  const seen = await exchange.read(periodMs);
  return {
    fromMs,
    untilMs,
    seconds: lasted,
    cpuSeconds: cpu,
    cpuPer1000: (cpu / seen.renewals) * 1000,
    perSecond: seen.renewals / lasted,
    rssMb,
    seen,
  };
}

const LEAST_RSS_LOOKS = 8;
const RSS_EVERY_MS = 1000;

/** Waits for `seconds` and looks at the memory of the subject now and then: it goes up and down with the collector. */
async function sampleRss(subject: Subject, seconds: number): Promise<number> {
  const looks = Math.max(LEAST_RSS_LOOKS, Math.round((seconds * 1000) / RSS_EVERY_MS));
  const startMs = performance.now();
  const seen: number[] = [];
  for (let look = 1; look <= looks; look += 1) {
    await sleep(Math.max(0, startMs + (seconds * 1000 * look) / looks - performance.now()));
    seen.push(subject.rss());
  }
  return median(seen);
}

/** The same of the daemon, with how late it was against its plan: by its own metrics, from one scrape to the next. */
export async function measureDaemon(
  exchange: ExchangeProcess,
  daemon: DaemonSubject,
  seconds: number,
): Promise<Window & { readonly lateness: Lateness | null }> {
  const periodMs = await daemon.periodMs();
  const before = await daemon.delays();
  const window = await measure(exchange, daemon, seconds, periodMs);
  return { ...window, lateness: latenessIn(observedBetween(before, await daemon.delays())) };
}

const SAMPLE_MS = 10;

/** CPU seconds that a subject uses until `work` is over. It may end before that: then what was seen last counts. */
export async function cpuDuring(subject: Subject, work: Promise<unknown>): Promise<number> {
  const before = subject.cpu();
  let last = before;
  let over = false;
  const finish = () => {
    over = true;
  };
  work.then(finish, finish);
  while (!over) {
    try {
      // Threads that have ended are not counted any more.
      last = Math.max(last, subject.cpu());
    } catch {
      break;
    }
    await sleep(SAMPLE_MS);
  }
  await work;
  return last - before;
}

/** Asks the probe that was loaded into a subject. */
export function askProbe(running: Running, probe: 'read' | 'heap'): Promise<ProbeAnswer> {
  return answerTo<ProbeAnswer>(running, probe);
}

/** What memory the subject has, before a collection and after it. */
export function askMemory(running: Running): Promise<MemoryAnswer> {
  return answerTo<MemoryAnswer>(running, 'memory');
}

async function answerTo<Answer>(running: Running, probe: ProbeAsk['probe']): Promise<Answer> {
  // A question that does not arrive any more is answered by the end of the process.
  running.child.send({ probe }, () => undefined);
  const [answer] = (await Promise.race([
    once(running.child, 'message'),
    running.ended.then(() => {
      throw new Error(`a subject ended:\n${running.log().slice(-2000)}`);
    }),
  ])) as [Answer];
  return answer;
}

export function tellProbe(running: Running, probe: 'watch-loop' | 'watch-turns'): void {
  running.child.send({ probe });
}
