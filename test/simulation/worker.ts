import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { importPlanted } from './planting.ts';
import * as production from './run.ts';
import { shrinkPlan } from './shrink.ts';
import type { Job, Report } from './threads.ts';

// It computes for minutes: what waits for an answer beside it goes first. On Linux this is of the thread alone.
setPriority(5);

async function carryOut({ plan, shrinks, planted }: Job): Promise<Report> {
  const { runPlan } =
    planted === undefined ? production : await importPlanted<typeof production>('run.ts', planted);
  const { violation, ...done } = runPlan(plan);
  if (violation === null || shrinks !== true) return { ...done, violation, shrunk: null };
  const shrunk = shrinkPlan(plan, (simpler) => {
    const broken = runPlan(simpler).violation;
    return broken?.invariant === violation.invariant ? broken : null;
  });
  return { ...done, violation, shrunk };
}

/** The other end of a pool: carries out one job after the other. */
parentPort?.on('message', (job: Job) => void carryOut(job).then((report) => parentPort?.postMessage(report)));
