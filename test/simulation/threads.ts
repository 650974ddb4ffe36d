import { Worker } from 'node:worker_threads';
import type { Violation } from './court.ts';
import type { Plan } from './plan.ts';
import { runPlan } from './run.ts';
import { type Shrunk, shrinkPlan } from './shrink.ts';
import { planFor } from './wider.ts';

/** Work for a thread of its own: everything in it and in its result can be sent as a message. */
export type Job = RunJob | ShrinkJob;

export interface RunJob {
  readonly kind: 'run';
  readonly seed: number;
  readonly wider: boolean;
}

/** Looks for the simplest plan that breaks the same promise as the seed does first. */
export interface ShrinkJob {
  readonly kind: 'shrink';
  readonly plan: Plan;
  readonly mostRuns: number;
}

export interface RunReport {
  readonly kind: 'run';
  readonly seed: number;
  readonly simulatedMs: number;
  readonly requests: number;
  /** The first promise that was broken; null where all held. */
  readonly violation: Violation | null;
}

export interface ShrinkReport {
  readonly kind: 'shrink';
  readonly shrunk: Shrunk | null;
}

export type Report<J extends Job> = J extends RunJob ? RunReport : ShrinkReport;

export function carryOut<J extends Job>(job: J): Report<J>;
export function carryOut(job: Job): RunReport | ShrinkReport {
  if (job.kind === 'run') {
    const { seed } = job;
    const { violations, simulatedMs, requests } = runPlan(planFor(seed, job.wider));
    return { kind: 'run', seed, simulatedMs, requests, violation: violations[0] ?? null };
  }
  const wanted = runPlan(job.plan).violations[0]?.invariant;
  const find = (plan: Plan) => runPlan(plan).violations.find(({ invariant }) => invariant === wanted) ?? null;
  return { kind: 'shrink', shrunk: shrinkPlan(job.plan, find, job.mostRuns) };
}

/** Threads that run plans. */
export interface Pool {
  /** Resolves with the result; rejects where the job threw or its thread died. Jobs beyond the threads wait. */
  do<J extends Job>(job: J): Promise<Report<J>>;
  /** CPU time of all threads so far, seconds. */
  cpuSeconds(): Promise<number>;
  close(): Promise<void>;
}

interface Task {
  readonly job: Job;
  readonly resolve: (report: Report<Job>) => void;
  readonly reject: (cause: unknown) => void;
}

/** The worker has the extension of this file: it runs from the sources and from the build. */
const SOURCE = new URL('./worker.ts', import.meta.url).href;
const WORKER = new URL(import.meta.url.endsWith('.ts') ? SOURCE : SOURCE.replace(/ts$/, 'js'));

export function createPool(threads: number): Pool {
  const waiting: Task[] = [];
  const idle: Worker[] = [];
  const busy = new Map<Worker, Task>();

  function next(): void {
    const worker = idle[0];
    const task = waiting[0];
    if (worker === undefined || task === undefined) return;
    idle.shift();
    waiting.shift();
    busy.set(worker, task);
    worker.postMessage(task.job);
  }
  function settle(worker: Worker, outcome: (task: Task) => void): void {
    const task = busy.get(worker);
    busy.delete(worker);
    if (task !== undefined) outcome(task);
  }
  const workers = Array.from({ length: threads }, () => {
    const worker = new Worker(WORKER);
    worker.on('message', (report: Report<Job>) => {
      idle.push(worker);
      settle(worker, ({ resolve }) => resolve(report));
      next();
    });
    // A job that throws takes its thread with it; the others go on.
    worker.on('error', (cause) => settle(worker, ({ reject }) => reject(cause)));
    idle.push(worker);
    return worker;
  });

  return {
    do: (job) =>
      new Promise((resolve, reject) => {
        // The report of a job is of the job's own kind.
        waiting.push({ job, resolve: resolve as Task['resolve'], reject });
        next();
      }),
    async cpuSeconds() {
      const usages = await Promise.all(workers.map((worker) => worker.cpuUsage()));
      return usages.reduce((sum, { user, system }) => sum + (user + system) / 1e6, 0);
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.terminate()));
    },
  };
}

export interface SwarmOptions {
  readonly firstSeed: number;
  /** At most so many seeds, */
  readonly seeds: number;
  /** and none is begun after so much simulated time; milliseconds. */
  readonly simulatedMs?: number;
  readonly threads: number;
  /** Draw and judge also what the core does not yet keep. */
  readonly wider?: boolean;
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
  readonly shrunk: Shrunk | null;
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
  const pool = createPool(options.threads);
  try {
    const { failing, ...totals } = await runSeeds(pool, options);
    const cpuSeconds = await pool.cpuSeconds();
    const shrunk = await Promise.all(
      failing.map((one, place) =>
        shrink(pool, one, place, options.wider ?? false, options.shrinks === false ? 0 : MOST_SHRUNK),
      ),
    );
    return { ...totals, cpuSeconds, failing: shrunk };
  } finally {
    await pool.close();
  }
}

type Found = Omit<Failing, 'shrunk'>;

async function runSeeds(
  pool: Pool,
  options: SwarmOptions,
): Promise<Omit<Progress, 'failing'> & { readonly failing: readonly Found[] }> {
  const { firstSeed, simulatedMs = Number.POSITIVE_INFINITY, threads, onProgress } = options;
  const failing: Found[] = [];
  const totals = { seeds: 0, simulatedMs: 0, requests: 0 };
  let nextSeed = firstSeed;

  async function runOneAfterTheOther(): Promise<void> {
    while (nextSeed < firstSeed + options.seeds && totals.simulatedMs < simulatedMs) {
      const seed = nextSeed;
      nextSeed += 1;
      const report = await pool.do({ kind: 'run', seed, wider: options.wider ?? false });
      totals.seeds += 1;
      totals.simulatedMs += report.simulatedMs;
      totals.requests += report.requests;
      if (report.violation !== null) failing.push({ seed, violation: report.violation });
      onProgress?.({ ...totals, failing: failing.length });
    }
  }
  // Two chains for each thread: the next seed is there when one is done.
  await Promise.all(Array.from({ length: 2 * threads }, runOneAfterTheOther));
  return { ...totals, failing: failing.toSorted((one, other) => one.seed - other.seed) };
}

async function shrink(
  pool: Pool,
  found: Found,
  place: number,
  wider: boolean,
  mostShrunk: number,
): Promise<Failing> {
  if (place >= mostShrunk) return { ...found, shrunk: null };
  const plan = planFor(found.seed, wider);
  const job = { kind: 'shrink', plan, mostRuns: RUNS_PER_SHRINK } as const;
  return { ...found, shrunk: (await pool.do(job)).shrunk };
}
