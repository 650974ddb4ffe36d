import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { asker } from './control.ts';
import { guard } from './harness.ts';
import { writeConfig } from './reloading.ts';
import { ownedBy, playShards } from './shard-play.ts';
import { ofKind, renewalsOf } from './simulated-exchange.ts';

/** Renewed every 2 s. */
const TIMEOUT_SECONDS = 20;

test.concurrent('a fleet grows, loses a shard, and shrinks: no timer fires, and no market is without an owner', {
  timeout: 90_000,
}, async (context) => {
  const played = await playShards(context, {
    markets: 30,
    timeoutSeconds: TIMEOUT_SECONDS,
    handoverSeconds: 2,
    budgetShare: 0.75,
    restMs: 1500,
  });
  const { log, ...seen } = played;
  const { moved } = seen;
  expect(seen, log).toMatchObject({ fired: 0, deleted: 0, owned: 30, leftBy: { handed_off: moved } });
  expect(moved, 'what the fourth shard had').toBeGreaterThan(30 / 4 / 2);
  // A market that nobody owns waits for its timer; the room is for a loaded machine.
  expect(seen.longestGapMs, log).toBeLessThan((TIMEOUT_SECONDS * 1000 * 2) / 3);
  expect(seen.takeover.longestGapMs, log).toBeLessThan(15_000);
});

test.concurrent('a shard that is stopped right after it gave markets away renews those once more and deletes none of them', {
  timeout: 60_000,
}, async (context) => {
  const names = Array.from({ length: 8 }, (_, index) => `M${index}_USDT`);
  const { exchange, daemon } = await guard(context, {
    markets: names,
    keyName: 'shard-0.api-key',
    control: true,
  });
  const content = JSON.parse(readFileSync(daemon.configFile, 'utf8')) as object;
  writeConfig(daemon, JSON.stringify({ ...content, shard: { count: 2, handoverSeconds: 60 } }));
  const { body } = await asker(context, daemon.socket)('/v1/reload');
  const { moved } = body as { moved: string[] };
  expect(moved.length).toBeGreaterThan(0);
  // Until the time is over it guards them as before.
  expect([...(await ownedBy(daemon))].toSorted()).toEqual(names);
  const toldMs = await exchange.nowMs();
  daemon.signal('SIGTERM');
  expect((await daemon.exit(20_000)).code).toBe(0);
  const events = await exchange.events();
  const deleted = ofKind(events, 'timer-deleted').map(({ market }) => market);
  expect(deleted.toSorted()).toEqual(names.filter((name) => !moved.includes(name)));
  for (const market of moved)
    expect(
      renewalsOf(events, market).some((atMs) => atMs >= toldMs),
      market,
    ).toBe(true);
});
