import { describe, expect, test } from 'vitest';
import { carriedPerSecond, planCadence } from '../../src/core/promise.ts';
import { THROTTLED } from '../core/driver.ts';
import { type Bench, createBench, many } from './bench.ts';

const busiest = (bench: Bench, windowMs: number) => {
  let most = 0;
  let first = 0;
  for (const [last, { atMs }] of bench.writes.entries()) {
    while ((bench.writes[first]?.atMs ?? 0) <= atMs - windowMs) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
};

describe('the rate', () => {
  test('stays within the budget while 120 markets are armed, lose the exchange and find it again', () => {
    const budget = { requests: 120, windowMs: 10_000 };
    const bench = createBench({ markets: many(120, 60), nonce: 'window', budget });
    bench.start(40_000);
    bench.strike({ kind: 'lost' }, 30_000);
    bench.run(100_000);
    expect(busiest(bench, 10_000)).toBeLessThanOrEqual(120);
    expect(bench.book.fired).toEqual([]);
    expect(bench.book.timers.size).toBe(120);
  });

  test.each([
    [280, 20],
    [276, 200],
  ])('has room for all %i markets that fit the plan, at a round trip of %i ms', (count, roundTripMs) => {
    const budget = { requests: 150, windowMs: 10_000 };
    const bench = createBench({ markets: many(count, 60), nonce: 'window', budget, roundTripMs });
    const { problems } = planCadence(bench.settings.markets, carriedPerSecond(bench.settings, roundTripMs));
    expect(problems).toEqual([]);
    bench.start(50_000);
    // None waits while the others are renewed again and again.
    expect(bench.book.timers.size).toBe(count);
  });
});

describe('a gateway that throttles', () => {
  test('everything for 40 s costs no timer of 60 s, and few requests', () => {
    const bench = createBench({ markets: many(20, 60), nonce: 'window' });
    bench.start(20_000);
    bench.strike({ kind: 'fails', outcome: THROTTLED }, 40_000);
    const before = bench.writes.length;
    bench.run(40_000);
    expect(bench.writes.length - before).toBeLessThanOrEqual(30);
    bench.run(30_000);
    expect(bench.book.fired).toEqual([]);
  });
});
