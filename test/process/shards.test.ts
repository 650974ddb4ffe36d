import { expect, test } from 'vitest';
import { playShards } from './shard-play.ts';

/** A timeout of 20 s is renewed every 1.75 s. */
const CADENCE_MS = 1750;

test('a fleet grows, loses a shard, and shrinks: no timer fires, and no market is without an owner', {
  timeout: 90_000,
}, async (context) => {
  const played = await playShards(context, {
    markets: 120,
    timeoutSeconds: 20,
    handoverSeconds: 3,
    budgetShare: 0.75,
    restMs: 4000,
  });
  const { log, ...seen } = played;
  expect(seen, log).toMatchObject({ fired: 0, owned: 120 });
  expect(seen.moved, 'what the fourth shard had').toBeGreaterThan(120 / 4 / 2);
  // Twice the cadence leaves room for a loaded machine; a market that nobody owns waits for its timer.
  expect(seen.longestGapMs, log).toBeLessThan(2 * CADENCE_MS);
  expect(seen.longestGapOfKilledMs, log).toBeLessThan(15_000);
});
