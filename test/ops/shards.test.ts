import { expect, test } from 'vitest';
import { playShards } from '../process/shard-play.ts';

const MARKETS = 2000;
const TIMEOUT_SECONDS = 60;

test('2,000 markets; 3 shards, 4, one killed, 3 again: no timer fires, and every market has an owner', {
  timeout: 300_000,
}, async (context) => {
  const { log, ...seen } = await playShards(context, {
    markets: MARKETS,
    timeoutSeconds: TIMEOUT_SECONDS,
    handoverSeconds: 10,
    budgetShare: 0.75,
    restMs: 10_000,
  });
  console.log(seen);
  expect(seen, log.slice(-3000)).toMatchObject({
    fired: 0,
    deleted: 0,
    owned: MARKETS,
    leftBy: { handed_off: seen.moved },
  });
  expect(Math.abs(seen.moved - MARKETS / 4)).toBeLessThan(MARKETS / 40);
  // A market is renewed once per sixth of its timeout or sooner; the rest is for a host that others load.
  expect(seen.longestGapMs).toBeLessThan((TIMEOUT_SECONDS * 1000) / 3);
  expect(seen.takeover.longestGapMs, 'markets of the killed shard').toBeLessThan(
    (TIMEOUT_SECONDS * 1000) / 2,
  );
});
