import { expect, it } from 'vitest';
import { freshSeed, runSwarm } from './threads.ts';

const THREE_MINUTES_MS = 180_000;

// Known seeds hold long before fresh ones do: the first seed is drawn, and printed for whoever wants to repeat the run.
it('500 fresh seeds keep every promise', { timeout: 600_000 }, async () => {
  const range = { seeds: 500, firstSeed: freshSeed() };
  process.stdout.write(`The simulation runs ${range.seeds} seeds from ${range.firstSeed} on.\n`);
  const { seeds, simulatedMs, failing } = await runSwarm({ ...range, threads: 2, shrinks: true });
  expect(failing).toEqual([]);
  expect(seeds).toBe(range.seeds);
  expect(simulatedMs).toBeGreaterThan(range.seeds * THREE_MINUTES_MS);
});
