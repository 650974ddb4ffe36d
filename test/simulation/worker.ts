import { parentPort } from 'node:worker_threads';
import { carryOut, type Job } from './threads.ts';

/** The other end of a pool: carries out one job after the other. */
parentPort?.on('message', (job: Job) => parentPort?.postMessage(carryOut(job)));
