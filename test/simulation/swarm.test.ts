import { expect, it } from 'vitest';
import { freshSeed } from './main.ts';
import { runSwarm } from './threads.ts';
import { WIDER } from './wider.ts';

const THREE_MINUTES_MS = 180_000;

// Known seeds tell whether a change broke something. Fresh ones look for what nobody has seen; `npm run simulate` for more.
it.each([
  { seeds: 450, firstSeed: 1000 },
  { seeds: 50, firstSeed: freshSeed() },
])('$seeds seeds, from $firstSeed on, keep every promise', { timeout: 240_000 }, async (range) => {
  process.stdout.write(`The simulation runs ${range.seeds} seeds from ${range.firstSeed} on.\n`);
  const { seeds, simulatedMs, failing } = await runSwarm({ ...range, threads: 2, wider: WIDER });
  expect(failing).toEqual([]);
  expect(seeds).toBe(range.seeds);
  expect(simulatedMs).toBeGreaterThan(range.seeds * THREE_MINUTES_MS);
});
