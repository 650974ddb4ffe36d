import { expect, test } from 'vitest';
import { asker } from './control.ts';
import { guard } from './harness.ts';
import { endBy, eventually } from './program.ts';
import { deletedIn, ofKind, renewalsOf } from './simulated-exchange.ts';

// Fleets that grow and shrink are played in the simulation, and as processes in `test/ops/shards-rolling-update.test.ts`.
test.concurrent('a shard guards markets that it gave away until the handover is over, renews them once more and leaves them; one that is stopped meanwhile does so at once', {
  timeout: 60_000,
}, async (context) => {
  const names = Array.from({ length: 8 }, (_, index) => `M${index}_USDT`);
  const { exchange, daemon } = await guard(context, {
    markets: names,
    keyName: 'shard-0.api-key',
    control: true,
  });
  const ask = asker(context, daemon.socket);
  const resize = async (count: number, handoverSeconds: number) => {
    daemon.configure({ shard: { count, handoverSeconds } });
    const { body } = await ask('/v1/reload');
    return { moved: (body as { moved: string[] }).moved, atMs: await exchange.nowMs() };
  };
  const lastRenewals = async (markets: readonly string[]) => {
    const events = await exchange.events();
    return markets.map((market) => renewalsOf(events, market).at(-1) ?? 0);
  };
  const { moved, atMs } = await resize(2, 2);
  const kept = names.filter((name) => !moved.includes(name));
  expect(Math.min(moved.length, kept.length)).toBeGreaterThan(0);
  expect((await daemon.markets()).map(({ market }) => market).toSorted()).toEqual(names);
  await eventually('the end of the handover', 20_000, async () => {
    const how = { how: 'handed_off' };
    return (await daemon.metric('killswitch_markets_removed_total', how)) === moved.length;
  });
  expect(Math.min(...(await lastRenewals(moved)))).toBeGreaterThan(atMs + 1500);

  await resize(1, 2);
  await daemon.ready();
  const again = await resize(2, 60);
  expect(await endBy(daemon)).toBe(0);
  expect(Math.min(...(await lastRenewals(moved)))).toBeGreaterThanOrEqual(again.atMs);
  expect(await deletedIn(exchange)).toEqual(kept);
  expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);
});
