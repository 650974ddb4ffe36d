import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Violation } from './court.ts';
import type { Plan } from './plan.ts';
import type { RunResult } from './run.ts';
import { planOf } from './shapes.ts';
import type { Shrunk } from './shrink.ts';

/** Work for a thread of its own: everything in it and in its result can be sent as a message. */
export interface Job {
  readonly plan: Plan;
  /** Look for the simplest plan that breaks the same promise. */
  readonly shrinks?: boolean;
  /** The name of a bug, or of a rule that is taken out. */
  readonly planted?: string | undefined;
}

export interface Report extends RunResult {
  readonly shrunk: Shrunk | null;
}

export const startThread = () => new Worker(new URL('./worker.ts', import.meta.url));

/** Rejects where the thread died. */
export async function ask(worker: Worker, job: Job): Promise<Report> {
  worker.postMessage(job);
  const [report] = await once(worker, 'message');
  return report;
}

export interface SwarmOptions extends Pick<Job, 'shrinks' | 'planted'> {
  readonly firstSeed: number;
  readonly seeds: number;
  readonly threads: number;
  readonly onProgress?: (seeds: number, failing: readonly Failing[]) => void;
}

export interface Failing {
  readonly seed: number;
  readonly violation: Violation;
  /** Null where too many failed before it. */
  readonly shrunk: Shrunk | null;
}

/** A first seed that nobody has run: known seeds hold long before fresh ones do. */
export function freshSeed(): number {
  return Math.floor(Math.random() * 2 ** 31);
}

/** A broken core breaks many seeds in the same way: these many are shrunk, and the rest is only named. */
const MOST_SHRUNK = 8;

/** Runs the plans of many seeds on threads of their own. */
export async function runSwarm({ firstSeed, seeds, threads, planted, shrinks, onProgress }: SwarmOptions) {
  const workers = Array.from({ length: threads }, startThread);
  const totals = { seeds: 0, simulatedMs: 0, requests: 0 };
  const failing: Failing[] = [];
  let nextSeed = firstSeed;

  async function runOneAfterTheOther(worker: Worker): Promise<void> {
    while (nextSeed < firstSeed + seeds) {
      const seed = nextSeed;
      nextSeed += 1;
      const shrinksIt = shrinks === true && failing.length < MOST_SHRUNK;
      const report = await ask(worker, { plan: planOf(seed), planted, shrinks: shrinksIt });
      const { violation, shrunk } = report;
      totals.seeds += 1;
      totals.simulatedMs += report.simulatedMs;
      totals.requests += report.requests;
      if (violation !== null) failing.push({ seed, violation, shrunk });
      onProgress?.(totals.seeds, failing);
    }
  }
  try {
    await Promise.all(workers.map(runOneAfterTheOther));
    const usages = await Promise.all(workers.map((worker) => worker.cpuUsage()));
    const cpuSeconds = usages.reduce((sum, { user, system }) => sum + (user + system) / 1e6, 0);
    return { ...totals, cpuSeconds, failing: failing.toSorted((one, other) => one.seed - other.seed) };
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}
