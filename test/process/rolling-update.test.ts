import { expect, test } from 'vitest';
import { ownedBy, stageFleet } from './shard-play.ts';
import { longestGapMs, ofKind, renewalsOf } from './simulated-exchange.ts';

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
    keys: 'shared',
    policy: 'handoff',
  });
  const { exchange, names, start, events } = fleet;
  const shards = await Promise.all([0, 1, 2].map((index) => start(index, 3)));
  const armedMs = await exchange.nowMs();
  const stops: { readonly own: ReadonlySet<string>; readonly fromMs: number; readonly toMs: number }[] = [];
  for (const [index, daemon] of shards.entries()) {
    const own = await ownedBy(daemon);
    const fromMs = await exchange.nowMs();
    daemon.signal('SIGTERM');
    expect((await daemon.exit(30_000)).code, `shard ${index}`).toBe(0);
    stops.push({ own, fromMs, toMs: await exchange.nowMs() });
    await start(index, 3);
  }
  const endMs = await exchange.nowMs();
  const seen = events();
  expect(ofKind(seen, 'timer-fired')).toEqual([]);
  expect(ofKind(seen, 'timer-deleted')).toEqual([]);
  for (const { own, fromMs, toMs } of stops) {
    const left = [...own].filter(
      (market) => !renewalsOf(seen, market).some((atMs) => atMs >= fromMs && atMs <= toMs),
    );
    expect(left, 'not renewed while its shard stopped').toEqual([]);
  }
  // The room is for a loaded machine, on which a process takes seconds to start.
  const longest = names.reduce(
    (most, market) => Math.max(most, longestGapMs(seen, market, armedMs, endMs)),
    0,
  );
  expect(longest).toBeLessThan((TIMEOUT_SECONDS * 1000 * 3) / 4);
});
