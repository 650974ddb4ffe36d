import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Violation } from './court.ts';
import type { Plan } from './plan.ts';
import type { RunResult, runPlan as run } from './run.ts';
import { planOf } from './shapes.ts';
import { type Shrunk, shrinkPlan } from './shrink.ts';

/** Work for a thread of its own: everything in it and in its result can be sent as a message. */
export interface Job {
  readonly plan: Plan;
  /** In at most so many runs looks for the simplest plan that breaks what this one breaks first; as a rule it is only run. */
  readonly mostRuns?: number;
  /** The name of a bug, or of a rule that is taken out. */
  readonly planted?: string | undefined;
}

interface Report extends Pick<RunResult, 'simulatedMs' | 'requests'> {
  /** The first promise that was broken; null where all held. */
  readonly violation: Violation | null;
  readonly shrunk: Shrunk | null;
}

export function carryOut({ plan, mostRuns = 0 }: Job, runPlan: typeof run): Report {
  const { violations, simulatedMs, requests } = runPlan(plan, { first: true });
  const [violation = null] = violations;
  const find = (simpler: Plan) =>
    runPlan(simpler).violations.find(({ invariant }) => invariant === violation?.invariant) ?? null;
  const shrunk = mostRuns === 0 || violation === null ? null : shrinkPlan(plan, find, mostRuns);
  return { simulatedMs, requests, violation, shrunk };
}

export const startThread = () => new Worker(new URL('./worker.ts', import.meta.url));

/** Rejects where the thread died. */
export async function ask(worker: Worker, job: Job): Promise<Report> {
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
  /** The name of a rule that is taken out. */
  readonly planted?: string | undefined;
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
  const { firstSeed, seeds, planted, first = false, shrinks = true } = options;
  const { simulatedMs = Number.POSITIVE_INFINITY } = options;
  const workers = Array.from({ length: options.threads }, () => startThread());
  const totals = { seeds: 0, simulatedMs: 0, requests: 0 };
  const failing: Failing[] = [];
  let nextSeed = firstSeed;

  async function runOneAfterTheOther(worker: Worker): Promise<void> {
    const isOver = () => totals.simulatedMs >= simulatedMs || (first && failing.length > 0);
    while (nextSeed < firstSeed + seeds && !isOver()) {
      const seed = nextSeed;
      nextSeed += 1;
      const report = await ask(worker, { plan: planOf(seed), planted });
      const { violation } = report;
      totals.seeds += 1;
      totals.simulatedMs += report.simulatedMs;
      totals.requests += report.requests;
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
        one.shrunk = (await ask(worker, { plan: planOf(one.seed), mostRuns: RUNS_PER_SHRINK })).shrunk;
    };
    await Promise.all(workers.map(shrink));
    return { ...totals, cpuSeconds, failing };
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}
