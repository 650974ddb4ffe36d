import { expect, test } from 'vitest';
import { sleep } from '../process/program.ts';
import { byMarket, rollShards, stageFleet, takeoverOf } from '../process/shard-play.ts';
import { longestGapMs, ofKind } from '../process/simulated-exchange.ts';

/** How often a market is renewed: what each of three shards makes of its part of the limit. */
const CADENCE_MS = 14_300;
const MARKETS = 10_000;
/** The time that a stop has where nothing is said, in which such a shard renews some of its markets, and enough for all. */
const STOP_SECONDS = [8, 30, 30];

/** How long the process of a successor may take to be there, on a host that others load. */
const START_MS = 10_000;
/** By so much the renewals of a cadence may be late on such a host. */
const LATE_MS = 10_000;

/**
 * A shard writes its last renewals as fast as its part of the limit allows, one cadence for all, those with the least
 * left first; its successor arms as fast, in the order of the configuration. So what was renewed once more waits for two
 * cadences and a start. What the time for the stop was too short for had its last renewal up to a cadence before, and its
 * turn comes up to a cadence after the start.
 */
test('ten thousand markets, a rolling update of three shards under policy handoff: no timer fires, none is deleted, and those that had the time renewed all of theirs once more', {
  timeout: 420_000,
}, async (context) => {
  const fleet = await stageFleet(context, {
    markets: MARKETS,
    timeoutSeconds: 60,
    handoverSeconds: 20,
    budgetShare: 0.75,
    policy: 'handoff',
    stopSeconds: STOP_SECONDS,
  });
  const { exchange, names, start, events } = fleet;
  const shards = await Promise.all([0, 1, 2].map((index) => start(index, 3)));
  const armedMs = await exchange.nowMs();
  // The first one is told to stop in the middle of a round.
  await sleep(CADENCE_MS / 2);
  const stopped = await rollShards(fleet, shards);
  const endMs = await exchange.nowMs();

  const seen = events();
  const eventsOf = byMarket(seen);
  const takeovers = stopped.map((shard) => takeoverOf(eventsOf, shard));
  const longestMs = names.reduce(
    (most, market) => Math.max(most, longestGapMs(eventsOf(market), market, armedMs, endMs)),
    0,
  );
  console.log({ longestMs, takeovers, shards: stopped.map(({ own }) => own.size) });
  expect(ofKind(seen, 'timer-fired').length, 'timer-fired').toBe(0);
  expect(ofKind(seen, 'timer-deleted').length, 'timer-deleted').toBe(0);
  expect(ofKind(seen, 'request-refused').length, 'request-refused').toBe(0);
  expect(stopped.map(({ code }) => code)).toEqual([0, 0, 0]);
  expect(stopped.reduce((sum, { own }) => sum + own.size, 0)).toBe(MARKETS);
  for (const [index, { own }] of stopped.entries()) {
    const { renewedAtStop = 0, ownerlessMs, untilAllMs, longestGapMs: gapMs } = takeovers[index] ?? {};
    const stopMs = (STOP_SECONDS[index] ?? 0) * 1000;
    const hasTime = stopMs > CADENCE_MS + LATE_MS;
    const what = `shard ${index}`;
    expect(ownerlessMs, what).toBeLessThan(CADENCE_MS);
    expect(untilAllMs, what).toBeLessThan(CADENCE_MS + LATE_MS);
    expect(renewedAtStop, what).toBeGreaterThanOrEqual(hasTime ? own.size : own.size / 3);
    expect(gapMs, what).toBeLessThan(2 * CADENCE_MS + (hasTime ? 0 : stopMs) + START_MS + LATE_MS);
  }
  expect(longestMs).toBeLessThan(2 * CADENCE_MS + 8000 + START_MS + LATE_MS);
});
