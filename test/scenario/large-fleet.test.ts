import { expect, test } from 'vitest';
import { createBench, many } from './bench.ts';

/** A fleet that arms in one burst and then uses most of its budget; when each of its requests was written. */
function runFleet(requests: number, forMs: number): number[][] {
  const bench = createBench({
    markets: many(500, 60),
    nonce: 'window',
    budget: { requests, windowMs: 10_000 },
  });
  bench.start(forMs);
  return [...Map.groupBy(bench.writes, ({ market }) => market).values()].map((writes) =>
    writes.map(({ atMs }) => atMs),
  );
}

test('a fleet that needs most of its budget is armed and renewed in turns, each as often as planned, within the budget', () => {
  const requests = 625;
  const written = runFleet(requests, 60_000);
  // 500 markets, and 625 requests in 10 s at the most, of which a little is left free.
  const periodMs = 8600;
  expect(Math.max(...written.map(([first = Number.NaN]) => first))).toBeLessThan(periodMs);
  const gaps = written.flatMap((times) => times.slice(1).map((at, place) => at - (times[place] ?? 0)));
  expect(Math.max(...gaps)).toBeLessThan(periodMs * 1.05);
  // Once more when nothing of an earlier life can arrive any more; then at the cadence.
  const later = written.flatMap((times) =>
    times.slice(1).flatMap((at, place) => (at < 30_000 ? [] : [at - (times[place] ?? 0)])),
  );
  expect(Math.min(...later)).toBeGreaterThan(periodMs * 0.9);
  const all = written.flat().sort((one, other) => one - other);
  const tooMany = all.filter(
    (at, place) => at - (all[place - requests] ?? Number.NEGATIVE_INFINITY) <= 10_000,
  );
  expect(tooMany).toEqual([]);
});

test('one that cannot be armed within one window leaves the bursts behind: soon each renewal comes after about one cadence', () => {
  const CADENCE_MS = 14_300;
  const written = runFleet(375, 180_000);
  const gaps = written.flatMap((times) =>
    times.slice(1).flatMap((at, place) => (at < 100_000 ? [] : [at - (times[place] ?? 0)])),
  );
  // In bursts that follow one another at the distance of the window a market waits for two of them.
  expect(Math.max(...gaps)).toBeLessThan(CADENCE_MS * 1.25);
  expect(Math.min(...gaps)).toBeGreaterThan(CADENCE_MS * 0.8);
});
