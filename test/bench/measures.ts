import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ProbeAnswer, ProbeAsk } from './probe.ts';
import type { ExchangeProcess, Running } from './processes.ts';
import type { Seen } from './protocol.ts';
import type { Subject } from './subject.ts';

/** One window of one subject. */
export interface Window {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly cpuPer1000: number;
  readonly perSecond: number;
  readonly rssMb: number;
  readonly seen: Seen;
}

/** Lets the subject run for `seconds` and says what that cost, and what the exchange saw of it. */
export async function measure(
  exchange: ExchangeProcess,
  subject: Subject,
  seconds: number,
  periodMs: () => Promise<number> | number,
): Promise<Window> {
  await exchange.count();
  const cpuBefore = subject.cpu();
  const before = performance.now();
  await sleep(seconds * 1000);
  const cpu = subject.cpu() - cpuBefore;
  const lasted = (performance.now() - before) / 1000;
  const seen = await exchange.read(await periodMs());
  return {
    seconds: lasted,
    cpuSeconds: cpu,
    cpuPer1000: (cpu / seen.renewals) * 1000,
    perSecond: seen.renewals / lasted,
    rssMb: subject.rss(),
    seen,
  };
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
export async function askProbe(running: Running, probe: ProbeAsk['probe']): Promise<ProbeAnswer> {
  running.child.send({ probe });
  const [answer] = (await Promise.race([
    once(running.child, 'message'),
    running.ended.then(() => {
      throw new Error(`a subject ended:\n${running.log().slice(-2000)}`);
    }),
  ])) as [ProbeAnswer];
  return answer;
}

export function tellProbe(running: Running, probe: 'watch-loop' | 'watch-turns'): void {
  running.child.send({ probe });
}
