import { expect, it } from 'vitest';
import { freshSeed } from './main.ts';
import { runSwarm } from './threads.ts';
import { WIDER } from './wider.ts';

const SEEDS = 500;
const THREE_MINUTES_MS = 180_000;
const firstSeed = freshSeed();

it(`${SEEDS} seeds, from ${firstSeed} on, keep every promise`, { timeout: 240_000 }, async () => {
  process.stdout.write(`The simulation runs ${SEEDS} seeds from ${firstSeed} on.\n`);
  const { seeds, simulatedMs, failing } = await runSwarm({
    firstSeed,
    seeds: SEEDS,
    threads: 2,
    wider: WIDER,
  });
  expect(failing).toEqual([]);
  expect(seeds).toBe(SEEDS);
  expect(simulatedMs).toBeGreaterThan(SEEDS * THREE_MINUTES_MS);
});
