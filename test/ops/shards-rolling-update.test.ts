import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { stageFor } from '../process/harness.ts';
import { sleep } from '../process/program.ts';
import { eventsIn, longestGapMs, ofKind, renewalsOf } from '../process/simulated-exchange.ts';

/** How often a market is renewed: what each of three shards makes of its part of the limit. */
const CADENCE_MS = 14_300;
const NAMES = Array.from({ length: 10_000 }, (_, index) => `M${index}_USDT`);
/** The time that a stop has where nothing is said, in which such a shard renews some of its markets, and enough for all. */
const STOP_SECONDS = [8, 30, 30];
/** How long the process of a successor may take to be there, on a host that others load. */
const START_MS = 10_000;
/** By so much the renewals of a cadence may be late on such a host. */
const LATE_MS = 10_000;

const keyOf = (shard: number) => ({ key: `key-of-shard-${shard}`, secret: `secret-of-shard-${shard}` });

/** An exchange as a process, and the means to start shards against it. */
async function stageFleet(context: TestContext) {
  const stage = stageFor(context);
  const eventLog = join(stage.directory, 'events');
  const keyFile = join(stage.directory, 'keys.json');
  writeFileSync(keyFile, JSON.stringify([0, 1, 2].map(keyOf)));
  const exchange = await stage.exchangeProcess(['--keys', keyFile, '--event-log', eventLog]);
  const start = async (index: number) => {
    const config = {
      exchange: { nonce: 'window', budgetShare: 0.75 },
      defaults: { timeoutSeconds: 60 },
      shard: { index, count: 3, handoverSeconds: 20 },
      shutdown: { policy: 'handoff', budgetSeconds: STOP_SECONDS[index] },
    };
    const key = { ...keyOf(index), keyName: `shard-${index}.api-key` };
    const daemon = await stage.daemon({ exchange: exchange.url, markets: NAMES, config, ...key });
    await daemon.ready(180_000);
    return daemon;
  };
  return { exchange, start, events: () => eventsIn(eventLog) };
}

/**
 * A shard writes its last renewals as fast as its part of the limit allows, one cadence for all, those with the least
 * left first; its successor arms as fast, in the order of the configuration. So what was renewed once more waits for two
 * cadences and a start. What the time for the stop was too short for had its last renewal up to a cadence before, and its
 * turn comes up to a cadence after the start.
 */
test('ten thousand markets, a rolling update of three shards under policy handoff: no timer fires, none is deleted, and those that had the time renewed all of theirs once more', {
  timeout: 420_000,
}, async (context) => {
  const { exchange, start, events } = await stageFleet(context);
  const shards = await Promise.all([0, 1, 2].map(start));
  const armedMs = await exchange.nowMs();
  // The first one is told to stop in the middle of a round.
  await sleep(CADENCE_MS / 2);
  const stopped: { own: readonly string[]; leftMs: number; endedMs: number }[] = [];
  for (const [index, daemon] of shards.entries()) {
    const own = (await daemon.markets()).map(({ market }) => market);
    const leftMs = await exchange.nowMs();
    daemon.signal('SIGTERM');
    expect((await daemon.exit(60_000)).code).toBe(0);
    stopped.push({ own, leftMs, endedMs: await exchange.nowMs() });
    await start(index);
  }
  const endMs = await exchange.nowMs();

  const seen = events();
  for (const kind of ['timer-fired', 'timer-deleted', 'request-refused'] as const)
    expect(ofKind(seen, kind).length, kind).toBe(0);
  expect(new Set(stopped.flatMap(({ own }) => own))).toEqual(new Set(NAMES));
  const byMarket = Map.groupBy(seen, (event) => ('market' in event ? event.market : ''));
  const eventsOf = (market: string) => byMarket.get(market) ?? [];
  for (const [index, { own, leftMs, endedMs }] of stopped.entries()) {
    const hasTime = STOP_SECONDS[index] !== 8;
    const gapsMs = own.map((market) => longestGapMs(eventsOf(market), market, armedMs, endMs));
    const longestMs = Math.max(...gapsMs);
    const renewalsOfOwn = own.map((market) => renewalsOf(eventsOf(market), market));
    const renewed = renewalsOfOwn.filter((all) => all.some((atMs) => atMs > leftMs && atMs <= endedMs));
    const lastMs = Math.max(...renewalsOfOwn.map((all) => all.findLast((atMs) => atMs <= endedMs) ?? 0));
    const nextMs = renewalsOfOwn.map((all) => all.find((atMs) => atMs > endedMs) ?? Number.POSITIVE_INFINITY);
    // From its last renewal, of whichever market, to the first of its successor, and until each market had one.
    const ownerlessMs = Math.min(...nextMs) - lastMs;
    const untilAllMs = Math.max(...nextMs) - Math.min(...nextMs);
    const renewedAtStop = renewed.length;
    console.log({ shard: index, markets: own.length, renewedAtStop, longestMs, ownerlessMs, untilAllMs });
    expect(ownerlessMs).toBeLessThan(CADENCE_MS);
    expect(untilAllMs).toBeLessThan(CADENCE_MS + LATE_MS);
    expect(renewed.length).toBeGreaterThanOrEqual(hasTime ? own.length : own.length / 3);
    expect(longestMs).toBeLessThan(2 * CADENCE_MS + (hasTime ? 0 : 8000) + START_MS + LATE_MS);
  }
});
