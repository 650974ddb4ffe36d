import { describe, expect, test } from 'vitest';
import { describe as describeState } from '../../src/core/describe.ts';
import { marketOf } from './core-settings.ts';
import { createDriver, type Driver, THROTTLED } from './driver.ts';

const statusOf = (driver: Driver) => describeState(driver.state, driver.now());
const many = (count: number) => Array.from({ length: count }, (_, index) => `M${index}:60`);

describe('the cadence of requests one after the other', () => {
  test('stays as it is while the round trip changes only a little', () => {
    const driver = createDriver({ markets: many(20) });
    driver.live(30_000, 100);
    const { capacityPerSecond } = statusOf(driver);
    driver.live(60_000, 102);
    expect(statusOf(driver).capacityPerSecond).toBe(capacityPerSecond);
    driver.live(60_000, 130);
    expect(statusOf(driver).capacityPerSecond).toBeLessThan(capacityPerSecond * 0.9);
  });

  test('says that it follows, slower and quicker, also where the last market has a pace of its own', () => {
    const fixed = { ...marketOf('OWN:60'), renewEveryMs: 10_000 };
    const driver = createDriver({ markets: [...many(20), fixed] });
    driver.live(20_000, 20);
    const said = driver.notices('cadence').length;
    driver.live(100_000, 350);
    expect(driver.notices('cadence').length).toBeGreaterThan(said);
    const slower = driver.notices('cadence').length;
    const { periodMs } = driver.market('M0');
    driver.live(100_000, 20);
    expect(driver.market('M0').periodMs).toBeLessThan(periodMs * 0.8);
    expect(driver.notices('cadence').length).toBeGreaterThan(slower);
    expect(driver.market('OWN').periodMs).toBe(10_000);
  });
});

test('after throttling the cadence recovers by a quarter every 5 s, beginning 10 s after the last 429', () => {
  const driver = createDriver({ markets: ['AAA:5'] });
  driver.arm();
  const factors = new Map<number, number>();
  let throttled = 0;
  for (let second = 0; second < 40; second += 1) {
    driver.live(1000, 20, (write) => {
      if (driver.sinceStartMs() < 9400 || throttled > 0) driver.apply(write);
      else {
        throttled = driver.sinceStartMs();
        driver.settle(write, THROTTLED);
      }
    });
    factors.set(second + 1, statusOf(driver).cadenceFactor);
  }
  expect(throttled).toBeGreaterThan(9400);
  expect(throttled).toBeLessThan(11_000);
  const steps = [...factors].filter(([second, factor]) => factors.get(second - 1) !== factor);
  const down = steps.filter(([second]) => second > 12);
  expect(down.map(([, factor]) => factor)).toEqual([1.25, 1]);
  const [first = 0, second = 0] = down.map(([at]) => at);
  expect(second - first).toBe(5);
  expect(first * 1000 - throttled).toBeLessThan(16_100);
});
