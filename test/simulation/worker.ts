import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { carryOut, type Job } from './threads.ts';

// It computes for minutes: what waits for an answer beside it goes first. On Linux this is of the thread alone.
setPriority(5);

/** The other end of a pool: carries out one job after the other. */
parentPort?.on('message', (job: Job) => parentPort?.postMessage(carryOut(job)));
