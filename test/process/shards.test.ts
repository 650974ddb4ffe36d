import { expect, test } from 'vitest';
import { playShards } from './shard-play.ts';

/** Renewed every 2 s. */
const TIMEOUT_SECONDS = 20;

test('a fleet grows, loses a shard, and shrinks: no timer fires, and no market is without an owner', {
  timeout: 90_000,
}, async (context) => {
  const played = await playShards(context, {
    markets: 120,
    timeoutSeconds: TIMEOUT_SECONDS,
    handoverSeconds: 3,
    budgetShare: 0.75,
    restMs: 4000,
  });
  const { log, ...seen } = played;
  expect(seen, log).toMatchObject({ fired: 0, deleted: 0, owned: 120 });
  expect(seen.moved, 'what the fourth shard had').toBeGreaterThan(120 / 4 / 2);
  // A market that nobody owns waits for its timer; the room is for a loaded machine.
  expect(seen.longestGapMs, log).toBeLessThan((TIMEOUT_SECONDS * 1000 * 2) / 3);
  expect(seen.takeover.longestGapMs, log).toBeLessThan(15_000);
});
