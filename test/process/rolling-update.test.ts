import { expect, test } from 'vitest';
import { rollShards, stageFleet } from './shard-play.ts';
import { byMarket, takeoverOf } from './shard-takeover.ts';
import { longestGapMs, ofKind } from './simulated-exchange.ts';

const TIMEOUT_SECONDS = 20;
const MARKETS = 90;

test('a rolling update under policy handoff: no timer fires, none is deleted, and each shard renews once more before it goes', {
  timeout: 90_000,
}, async (context) => {
  const fleet = await stageFleet(context, {
    markets: MARKETS,
    timeoutSeconds: TIMEOUT_SECONDS,
    handoverSeconds: 3,
    budgetShare: 0.75,
    policy: 'handoff',
  });
  const { exchange, names, start, events } = fleet;
  const shards = await Promise.all([0, 1, 2].map((index) => start(index, 3)));
  const armedMs = await exchange.nowMs();
  const stopped = await rollShards(fleet, shards);
  const endMs = await exchange.nowMs();
  const seen = events();
  expect(ofKind(seen, 'timer-fired')).toEqual([]);
  expect(ofKind(seen, 'timer-deleted')).toEqual([]);
  for (const [index, shard] of stopped.entries()) {
    expect(shard.code, `shard ${index}`).toBe(0);
    const { renewedAtStop } = takeoverOf(byMarket(seen), shard);
    expect(renewedAtStop, `by shard ${index}, while it stopped`).toBe(shard.own.size);
  }
  // The room is for a loaded machine, on which a process takes seconds to start.
  const longest = names.reduce(
    (most, market) => Math.max(most, longestGapMs(seen, market, armedMs, endMs)),
    0,
  );
  expect(longest).toBeLessThan((TIMEOUT_SECONDS * 1000 * 3) / 4);
});
