import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { runPlan } from './run.ts';
import { planOf } from './swarm.ts';
import { planFor } from './wider.ts';

const SEEDS = [3, 17, 42, 170];
const MAIN = fileURLToPath(new URL('main.ts', import.meta.url));

function logOf(seed: number, plan = planOf(seed)): string[] {
  const lines: string[] = [];
  runPlan(plan, { onLine: (line) => lines.push(line) });
  return lines;
}

describe('two runs of one seed give the same event log, byte for byte', () => {
  it.each(SEEDS)('one after the other: seed %i', (seed) => {
    const first = logOf(seed);
    expect(first.length).toBeGreaterThan(50);
    expect(logOf(seed)).toEqual(first);
  });

  it('whatever ran before them', () => {
    const first = logOf(SEEDS[0] ?? 0);
    for (const seed of SEEDS.slice(1)) runPlan(planOf(seed));
    expect(logOf(SEEDS[0] ?? 0)).toEqual(first);
  });

  it('on a thread of its own', async () => {
    const worker = new Worker(new URL('log-worker.ts', import.meta.url));
    for (const seed of SEEDS) {
      worker.postMessage(seed);
      expect(await once(worker, 'message')).toEqual([logOf(seed)]);
    }
    await worker.terminate();
  });

  it('in a process of its own', () => {
    const [seed = 0] = SEEDS;
    const arguments_ = [MAIN, 'simulate', '--seed', String(seed), '--log'];
    const output = execFileSync(process.execPath, arguments_, { encoding: 'utf8', maxBuffer: 2 ** 26 });
    const lines = output.trimEnd().split('\n');
    expect(lines.at(-1)).toMatch(/^seed 3: \d+\.\d+ s simulated, \d+ requests, every promise held\.$/);
    expect(lines.slice(0, -1)).toEqual(logOf(seed, planFor(seed, true)));
  });
});
