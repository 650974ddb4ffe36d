import { expect, test } from 'vitest';
import { carriedPerSecond, planCadence } from '../../src/core/promise.ts';
import { coreSettings, many } from './core-settings.ts';
import { createDriver, gapsBetween } from './driver.ts';

test.each([
  [280, 20],
  [276, 200],
])(
  'a budget has room for all %i markets that fit the plan, at a round trip of %i ms',
  (count, roundTripMs) => {
    const budget = { requests: 150, windowMs: 10_000 };
    const options = { markets: many(count), nonce: 'window', budget } as const;
    const settings = coreSettings(options);
    expect(planCadence(settings.markets, carriedPerSecond(settings, roundTripMs)).problems).toEqual([]);
    const driver = createDriver(options, { earlierLife: true });
    driver.live(50_000, roundTripMs);
    // None waits while the others are renewed again and again.
    expect(driver.look().markets.filter(({ state }) => state !== 'armed')).toEqual([]);
  },
);

/** 500 markets that arm in one burst and then use most of the budget; when the requests of each were written. */
function runFleet(requests: number, forMs: number): number[][] {
  const budget = { requests, windowMs: 10_000 };
  const driver = createDriver({ markets: many(500), nonce: 'window', budget }, { earlierLife: true });
  driver.live(forMs);
  const written = Map.groupBy(driver.writes, ({ market }) => market);
  expect(written.size).toBe(500);
  return [...written.values()].map((writes) => writes.map(({ atMs }) => atMs));
}
/** The times between two requests of a market of which the later one was written from then on. */
const gapsFrom = (written: readonly number[][], fromMs: number) =>
  written.flatMap((moments) =>
    gapsBetween(moments).filter((_, place) => (moments[place + 1] ?? 0) >= fromMs),
  );

test('a fleet that needs most of its budget is armed and renewed in turns, each as often as planned, within the budget', () => {
  const requests = 625;
  const written = runFleet(requests, 60_000);
  // 500 markets, and 625 requests in 10 s at the most, of which a little is left free.
  const periodMs = 8600;
  expect(Math.max(...written.map(([first = Number.NaN]) => first))).toBeLessThan(periodMs);
  expect(Math.max(...gapsFrom(written, 0))).toBeLessThan(periodMs * 1.05);
  // Once more when nothing of an earlier life can arrive any more; then at the cadence.
  expect(Math.min(...gapsFrom(written, 30_000))).toBeGreaterThan(periodMs * 0.9);
  const all = written.flat().sort((one, other) => one - other);
  const tooMany = all.filter(
    (at, place) => at - (all[place - requests] ?? Number.NEGATIVE_INFINITY) <= 10_000,
  );
  expect(tooMany).toEqual([]);
});

test('one that cannot be armed within one window leaves the bursts behind: soon each renewal comes after about one cadence', () => {
  const CADENCE_MS = 14_300;
  const gaps = gapsFrom(runFleet(375, 180_000), 100_000);
  // In bursts that follow one another at the distance of the window a market waits for two of them.
  expect(Math.max(...gaps)).toBeLessThan(CADENCE_MS * 1.25);
  expect(Math.min(...gaps)).toBeGreaterThan(CADENCE_MS * 0.8);
});
