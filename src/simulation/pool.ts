import { Worker } from 'node:worker_threads';
import type { Job, Report } from './job.ts';

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
