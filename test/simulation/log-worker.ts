import { parentPort } from 'node:worker_threads';
import { planOf } from '../../src/simulation/swarm.ts';
import { runPlan } from '../../src/simulation/world.ts';

/** Answers a seed with the event log of its run. */
parentPort?.on('message', (seed: number) => {
  const lines: string[] = [];
  runPlan(planOf(seed), { onLine: (line) => lines.push(line) });
  parentPort?.postMessage(lines);
});
