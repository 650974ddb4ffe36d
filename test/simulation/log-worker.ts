import { parentPort } from 'node:worker_threads';
import { runPlan } from './run.ts';
import { planOf } from './swarm.ts';

/** Answers a seed with the event log of its run. */
parentPort?.on('message', (seed: number) => {
  const lines: string[] = [];
  runPlan(planOf(seed), { onLine: (line) => lines.push(line) });
  parentPort?.postMessage(lines);
});
