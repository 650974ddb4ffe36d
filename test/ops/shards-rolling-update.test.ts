import { expect, test } from 'vitest';
import { sleep } from '../process/program.ts';
import { byMarket, ownedBy, stageFleet } from '../process/shard-play.ts';
import { longestGapMs, ofKind, renewalsOf } from '../process/simulated-exchange.ts';

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
  const { exchange, names, start, events } = await stageFleet(context, MARKETS, STOP_SECONDS);
  const shards = await Promise.all([0, 1, 2].map((index) => start(index, 3)));
  const armedMs = await exchange.nowMs();
  // The first one is told to stop in the middle of a round.
  await sleep(CADENCE_MS / 2);
  const stopped: { own: ReadonlySet<string>; leftMs: number; endedMs: number }[] = [];
  for (const [index, daemon] of shards.entries()) {
    const own = await ownedBy(daemon);
    const leftMs = await exchange.nowMs();
    daemon.signal('SIGTERM');
    expect((await daemon.exit(60_000)).code).toBe(0);
    stopped.push({ own, leftMs, endedMs: await exchange.nowMs() });
    await start(index, shards.length);
  }
  const endMs = await exchange.nowMs();

  const seen = events();
  for (const kind of ['timer-fired', 'timer-deleted', 'request-refused'] as const)
    expect(ofKind(seen, kind).length, kind).toBe(0);
  expect(new Set(stopped.flatMap(({ own }) => [...own]))).toEqual(new Set(names));
  const eventsOf = byMarket(seen);
  for (const [index, { own, leftMs, endedMs }] of stopped.entries()) {
    const hasTime = STOP_SECONDS[index] !== 8;
    const gapsMs = [...own].map((market) => longestGapMs(eventsOf(market), market, armedMs, endMs));
    const renewed = [...own].filter((market) =>
      renewalsOf(eventsOf(market), market).some((atMs) => atMs > leftMs && atMs <= endedMs),
    );
    const longestMs = Math.max(...gapsMs);
    const renewalsOfOwn = [...own].map((market) => renewalsOf(eventsOf(market), market));
    const lastMs = Math.max(...renewalsOfOwn.map((all) => all.findLast((atMs) => atMs <= endedMs) ?? 0));
    const nextMs = renewalsOfOwn.map((all) => all.find((atMs) => atMs > endedMs) ?? Number.POSITIVE_INFINITY);
    // From its last renewal, of whichever market, to the first of its successor, and until each market had one.
    const ownerlessMs = Math.min(...nextMs) - lastMs;
    const untilAllMs = Math.max(...nextMs) - Math.min(...nextMs);
    const renewedAtStop = renewed.length;
    console.log({ shard: index, markets: own.size, renewedAtStop, longestMs, ownerlessMs, untilAllMs });
    expect(ownerlessMs).toBeLessThan(CADENCE_MS);
    expect(untilAllMs).toBeLessThan(CADENCE_MS + LATE_MS);
    expect(renewed.length).toBeGreaterThanOrEqual(hasTime ? own.size : own.size / 3);
    expect(longestMs).toBeLessThan(2 * CADENCE_MS + (hasTime ? 0 : 8000) + START_MS + LATE_MS);
  }
});
