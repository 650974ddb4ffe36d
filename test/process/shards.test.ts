import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { DaemonProcess } from './daemon.ts';
import { guard } from './harness.ts';
import { endBy, eventually, said, sleep } from './program.ts';
import { reloadBySignal, writeConfig } from './reloading.ts';
import { byMarket, ownedBy, stageFleet } from './shard-play.ts';
import { deletedIn, longestGapMs, ofKind, renewalsOf } from './simulated-exchange.ts';

const MARKETS = 30;
const HANDOVER_SECONDS = 2;
/** How long the fleet stays as it is between two changes: the shards have more markets than part for a while. */
const REST_MS = 1500;

test.concurrent('a fleet grows from three shards to four, loses one for a moment, and shrinks: no timer fires, and no market is without an owner', {
  timeout: 90_000,
}, async (context) => {
  const { exchange, names, configOf, start, ...fleet } = await stageFleet(context, {
    markets: MARKETS,
    // Renewed every 2 s.
    timeoutSeconds: 20,
    handoverSeconds: HANDOVER_SECONDS,
    // What moves is handed off all the same.
    policy: 'delete',
    requestLifetimeSeconds: 1,
  });
  const resize = async (count: number, ...shards: readonly DaemonProcess[]) => {
    for (const [index, daemon] of shards.entries()) {
      const text = JSON.parse(readFileSync(daemon.configFile, 'utf8')) as object;
      writeConfig(daemon, JSON.stringify({ ...text, ...configOf(index, count) }));
      await reloadBySignal(daemon, 'reload-applied');
    }
  };

  const [first, second, third] = await Promise.all([start(0, 3), start(1, 3), start(2, 3)]);
  const armedMs = await exchange.nowMs();
  await sleep(REST_MS);
  const fourth = await start(3, 4);
  const moved = await fourth.metric('killswitch_shard_markets');
  await resize(4, first, second, third);
  // It is killed out of its usual round: that is found again after the last renewals of what moved.
  await sleep(HANDOVER_SECONDS * 1000 + 2 * REST_MS);

  // Some that it hands over may wait for their last renewal there: the fourth guards them as well.
  const own = (await ownedBy(second)).difference(await ownedBy(fourth));
  const leftMs = await exchange.nowMs();
  second.signal('SIGKILL');
  await second.exit();
  const again = await start(1, 4);
  const backMs = await exchange.nowMs();
  await sleep(REST_MS);

  await resize(3, first, again, third, fourth);
  const left = (how?: string) => fourth.metric('killswitch_markets_removed_total', how ? { how } : {});
  await eventually('the fourth shard has left its markets', 90_000, async () => (await left()) >= moved);
  const handedOff = await left('handed_off');
  fourth.signal('SIGTERM');
  await fourth.exit(30_000);
  const aloneMs = await exchange.nowMs();
  await sleep(2 * REST_MS);
  const endMs = await exchange.nowMs();

  const events = fleet.events();
  const eventsOf = byMarket(events);
  const log = [first, second, third, fourth, again].map(said).join('\n');
  expect(ofKind(events, 'timer-fired'), log).toEqual([]);
  expect(ofKind(events, 'timer-deleted'), log).toEqual([]);
  expect(moved, 'what the fourth shard had').toBeGreaterThan(MARKETS / 4 / 2);
  expect(handedOff, log).toBe(moved);
  for (const market of names) {
    expect(renewalsOf(eventsOf(market), market).at(-1), market).toBeGreaterThan(aloneMs);
    // A market that nobody owns waits for its timer; the room is for a loaded machine.
    const gapMs = (fromMs: number, toMs: number) => longestGapMs(eventsOf(market), market, fromMs, toMs);
    const isOwn = own.has(market);
    const guardedMs = isOwn ? Math.max(gapMs(armedMs, leftMs), gapMs(backMs, endMs)) : gapMs(armedMs, endMs);
    expect(guardedMs, `${market}\n${log}`).toBeLessThan(13_300);
    expect(gapMs(armedMs, endMs), `${market}\n${log}`).toBeLessThan(15_000);
  }
});

test.concurrent('a shard that is stopped right after it gave markets away renews those once more and deletes none of them', {
  timeout: 60_000,
}, async (context) => {
  const names = Array.from({ length: 8 }, (_, index) => `M${index}_USDT`);
  const { exchange, daemon } = await guard(context, { markets: names, keyName: 'shard-0.api-key' });
  const content = JSON.parse(readFileSync(daemon.configFile, 'utf8')) as object;
  writeConfig(daemon, JSON.stringify({ ...content, shard: { count: 2, handoverSeconds: 60 } }));
  await reloadBySignal(daemon, 'reload-applied');
  // Until the time is over it guards them as before.
  expect([...(await ownedBy(daemon))].toSorted()).toEqual(names);
  const toldMs = await exchange.nowMs();
  expect(await endBy(daemon)).toBe(0);
  const deleted = await deletedIn(exchange);
  expect(deleted.length).toBeGreaterThan(0);
  const moved = names.filter((name) => !deleted.includes(name));
  expect(moved.length).toBeGreaterThan(0);
  const events = await exchange.events();
  for (const market of moved)
    expect(renewalsOf(events, market).at(-1), market).toBeGreaterThanOrEqual(toldMs);
});
