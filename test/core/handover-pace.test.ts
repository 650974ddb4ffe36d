import { expect, test } from 'vitest';
import { ownerOf } from '../../src/config/config.ts';
import { coreSettings, marketOf } from './core-settings.ts';
import { createDriver } from './driver.ts';

const NAMES = Array.from({ length: 400 }, (_, index) => `M${index}`);
/** A market is renewed each 14.3 s where the shards have as many as part. */
const CADENCE_MS = 14_300;
const HANDOVER_MS = 20_000;

/** A shard's part of the limit, which all of it uses. */
const budgetOf = (count: number) => ({ requests: Math.floor(300 / count), windowMs: 10_000 });

/** The first shard of `count`, with the part of the limit of one of `parts`. */
function shardOf(count: number, parts: number) {
  const isOwn = (market: string) => ownerOf(market, count) === 0;
  const elsewhere = NAMES.filter((market) => !isOwn(market)).map((market) => marketOf(market));
  return {
    markets: NAMES.filter(isOwn),
    nonce: 'window',
    budget: budgetOf(parts),
    handover: { elsewhere, forMs: HANDOVER_MS },
  } as const;
}

test('while a fleet that uses its whole share grows and shrinks, no market waits for longer than two cadences', () => {
  const driver = createDriver(shardOf(3, 3));
  const resize = (count: number, parts: number) =>
    driver.feed({ kind: 'reload', settings: coreSettings(shardOf(count, parts)) });
  driver.live(60_000, 3);
  resize(4, 4);
  driver.live(HANDOVER_MS + 60_000, 3);
  resize(3, 4);
  driver.live(HANDOVER_MS + 30_000, 3);
  driver.feed({ kind: 'budget', budget: budgetOf(3) });
  driver.live(60_000, 3);
  const byMarket = Map.groupBy(driver.writes, ({ market }) => market);
  const always = NAMES.filter((market) => ownerOf(market, 4) === 0);
  const gaps = always.flatMap((market) => {
    const moments = byMarket.get(market)?.map(({ atMs }) => atMs) ?? [];
    return moments.slice(1).map((atMs, place) => atMs - (moments[place] ?? 0));
  });
  expect(Math.max(...gaps)).toBeLessThan(2 * CADENCE_MS);
});
