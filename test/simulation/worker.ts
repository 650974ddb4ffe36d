import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { importPlanted } from './planting.ts';
import * as run from './run.ts';
import { carryOut, type Job } from './threads.ts';

// It computes for minutes: what waits for an answer beside it goes first. On Linux this is of the thread alone.
setPriority(5);

async function answer(job: Job): Promise<void> {
  const { planted } = job;
  const { runPlan } = planted === undefined ? run : await importPlanted<typeof run>('run.ts', planted);
  parentPort?.postMessage(carryOut(job, runPlan));
}

/** The other end of a pool: carries out one job after the other. */
parentPort?.on('message', (job: Job) => void answer(job));
