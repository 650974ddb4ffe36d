import { expect, it } from 'vitest';
import { runSwarm } from '../../src/simulation/swarm-run.ts';

const THREE_MINUTES_MS = 180_000;

it('500 seeds keep every promise', { timeout: 240_000 }, async () => {
  const { seeds, simulatedMs, failing } = await runSwarm({ firstSeed: 1, seeds: 500, threads: 2 });
  expect(failing).toEqual([]);
  expect(seeds).toBe(500);
  expect(simulatedMs).toBeGreaterThan(500 * THREE_MINUTES_MS);
});

it('a seed that breaks a promise comes back with a smaller plan that does the same', async () => {
  const options = { firstSeed: 1, seeds: 2, threads: 2, flaw: 'belief-of-two-timeouts' } as const;
  const { failing } = await runSwarm(options);
  expect(failing.map(({ seed }) => seed)).toEqual([1, 2]);
  for (const { violation, shrunk } of failing) {
    expect(violation.invariant).toBe('1 belief');
    expect(shrunk?.violation.invariant).toBe('1 belief');
    expect(shrunk?.plan.markets).toHaveLength(1);
  }
});
