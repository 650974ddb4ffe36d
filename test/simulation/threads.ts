import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Violation } from './court.ts';
import type { Plan } from './plan.ts';
import { runPlan } from './run.ts';
import { planOf } from './shapes.ts';
import { type Shrunk, shrinkPlan } from './shrink.ts';

/** Work for a thread of its own: everything in it and in its result can be sent as a message. */
export interface Job {
  readonly seed: number;
  /** In at most so many runs looks for the simplest plan that breaks what the seed breaks first; 0: only runs it. */
  readonly mostRuns: number;
}

interface Report {
  readonly seed: number;
  readonly simulatedMs: number;
  readonly requests: number;
  /** The first promise that was broken; null where all held. */
  readonly violation: Violation | null;
  readonly shrunk: Shrunk | null;
}

export function carryOut({ seed, mostRuns }: Job): Report {
  const plan = planOf(seed);
  const { violations, simulatedMs, requests } = runPlan(plan, { first: true });
  const [violation = null] = violations;
  const find = (simpler: Plan) =>
    runPlan(simpler).violations.find(({ invariant }) => invariant === violation?.invariant) ?? null;
  const shrunk = mostRuns === 0 || violation === null ? null : shrinkPlan(plan, find, mostRuns);
  return { seed, simulatedMs, requests, violation, shrunk };
}

/** Rejects where the thread died. */
async function ask(worker: Worker, job: Job): Promise<Report> {
  worker.postMessage(job);
  const [report] = await once(worker, 'message');
  return report;
}

export interface SwarmOptions {
  readonly firstSeed: number;
  /** At most so many seeds, */
  readonly seeds: number;
  /** and none is begun after so much simulated time; milliseconds. */
  readonly simulatedMs?: number;
  readonly threads: number;
  /** End at the first seed that breaks a promise. */
  readonly first?: boolean;
  /** Look for the simplest plan that fails; true where it is not given. */
  readonly shrinks?: boolean;
  readonly onProgress?: (progress: Progress) => void;
}

export interface Progress {
  readonly seeds: number;
  readonly simulatedMs: number;
  readonly requests: number;
  /** How many seeds broke a promise so far. */
  readonly failing: number;
}

export interface Failing {
  readonly seed: number;
  readonly violation: Violation;
  /** Null where too many failed before it. */
  shrunk: Shrunk | null;
}

export interface SwarmResult extends Omit<Progress, 'failing'> {
  /** Of the runs, without what shrinking took. */
  readonly cpuSeconds: number;
  /** By seed. */
  readonly failing: readonly Failing[];
}

/** A broken core breaks many seeds in the same way: these many are shrunk, and the rest is only named. */
const MOST_SHRUNK = 8;
const RUNS_PER_SHRINK = 400;

/** Runs the plans of many seeds on threads of their own, and shrinks those that break a promise. */
export async function runSwarm(options: SwarmOptions): Promise<SwarmResult> {
  const { firstSeed, seeds, simulatedMs = Number.POSITIVE_INFINITY, first = false, shrinks = true } = options;
  const workers = Array.from(
    { length: options.threads },
    () => new Worker(new URL('./worker.ts', import.meta.url)),
  );
  const totals = { seeds: 0, simulatedMs: 0, requests: 0 };
  const failing: Failing[] = [];
  let nextSeed = firstSeed;

  async function runOneAfterTheOther(worker: Worker): Promise<void> {
    const isOver = () => totals.simulatedMs >= simulatedMs || (first && failing.length > 0);
    while (nextSeed < firstSeed + seeds && !isOver()) {
      nextSeed += 1;
      const report = await ask(worker, { seed: nextSeed - 1, mostRuns: 0 });
      totals.seeds += 1;
      totals.simulatedMs += report.simulatedMs;
      totals.requests += report.requests;
      const { seed, violation } = report;
      if (violation !== null) failing.push({ seed, violation, shrunk: null });
      options.onProgress?.({ ...totals, failing: failing.length });
    }
  }
  try {
    await Promise.all(workers.map(runOneAfterTheOther));
    const usages = await Promise.all(workers.map((worker) => worker.cpuUsage()));
    const cpuSeconds = usages.reduce((sum, { user, system }) => sum + (user + system) / 1e6, 0);
    failing.sort((one, other) => one.seed - other.seed);
    const shrunk = failing.slice(0, shrinks ? MOST_SHRUNK : 0).values();
    const shrink = async (worker: Worker) => {
      for (const one of shrunk)
        one.shrunk = (await ask(worker, { seed: one.seed, mostRuns: RUNS_PER_SHRINK })).shrunk;
    };
    await Promise.all(workers.map(shrink));
    return { ...totals, cpuSeconds, failing };
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}
