import { describe, expect, test } from 'vitest';
import { createDriver, type Driver, HTTP_500 } from './driver.ts';
import { reload } from './reloading.ts';

const BUDGET = { requests: 200, windowMs: 10_000 };
const many = (count: number, seconds = 60) =>
  Array.from({ length: count }, (_, index) => `M${index}:${seconds}`);
const fleet = (count: number, seconds?: number) =>
  createDriver({ markets: many(count, seconds), nonce: 'window', budget: BUDGET });

/** When each market was written, by its name. */
function momentsOf({ writes }: Driver): Map<string, number[]> {
  const moments = new Map<string, number[]>();
  for (const { market, atMs } of writes) moments.set(market, [...(moments.get(market) ?? []), atMs]);
  return moments;
}
function longestGapMs(driver: Driver): number {
  const gaps = [...momentsOf(driver).values()].flatMap((times) =>
    times.slice(1).map((atMs, place) => atMs - (times[place] ?? 0)),
  );
  return Math.max(...gaps);
}

describe('a fleet', () => {
  test('that needs a small part of the budget is armed at once', () => {
    const driver = fleet(30);
    driver.live(500);
    expect(momentsOf(driver).size).toBe(30);
  });

  test('that needs all of it is armed in turns within one period, and renewed as evenly from the first time on', () => {
    const driver = fleet(180);
    driver.live(60_000);
    const moments = [...momentsOf(driver).values()];
    const { periodMs } = driver.market('M0');
    expect(moments).toHaveLength(180);
    expect(Math.max(...moments.map(([first = Number.NaN]) => first))).toBeLessThan(periodMs * 1.1);
    expect(longestGapMs(driver)).toBeLessThan(periodMs * 1.1);
    // As often as the period says, and no more.
    expect(driver.writes.length).toBeLessThan((180 * 60_000 * 1.1) / periodMs);
  });

  test('that was down for half of its time is renewed as fast as the whole budget allows', () => {
    const driver = fleet(150);
    driver.live(60_000);
    driver.live(35_000, 20, (write) => driver.settle(write, HTTP_500));
    const { length } = driver.writes;
    driver.live(6000);
    expect(new Set(driver.writes.slice(length).map(({ market }) => market)).size).toBe(150);
  });
});

test('a market that comes with a reload is armed before those that have time, however little the pace allows', () => {
  const driver = fleet(180);
  driver.live(30_000);
  const { length } = driver.writes;
  reload(driver, { markets: [...many(180), 'NEW:60'], nonce: 'window', budget: BUDGET });
  driver.live(1000);
  expect(driver.writes.slice(length).map(({ market }) => market)).toContain('NEW');
});
