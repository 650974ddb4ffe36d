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
const periodOf = (bench: Bench, market: string, fromMs: number) => {
  const moments = bench.writesOf(market, fromMs).map(({ atMs }) => atMs);
  return ((moments.at(-1) ?? 0) - (moments[0] ?? 0)) / Math.max(1, moments.length - 1);
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

  test('of many markets settles at the planned cadence', () => {
    const bench = createBench({
      markets: many(200, 60),
      nonce: 'window',
      connections: 100,
      budget: { requests: 200, windowMs: 10_000 },
    });
    bench.start(45_000);
    expect(bench.book.timers.size).toBe(200);
    const perSecond = bench.writes.filter(({ atMs }) => atMs >= 25_000).length / 20;
    // 200 in 10 s less the fortieth that is kept free.
    expect(perSecond).toBeGreaterThan(18);
    expect(perSecond).toBeLessThanOrEqual(20);
    expect(busiest(bench, 10_000)).toBeLessThanOrEqual(200);
    expect(bench.book.fired).toEqual([]);
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
  test('for a while makes the cadence slower, at most a third of the timeout, and it recovers', () => {
    const bench = createBench({ markets: many(4, 60), nonce: 'window' });
    bench.start(20_000);
    let count = 0;
    bench.rules.push(({ atMs }) => {
      count += 1;
      return atMs < 120_000 && count % 2 === 0 ? { kind: 'fails', outcome: THROTTLED } : null;
    });
    bench.run(100_000);
    expect(bench.noticesOf('throttled').length).toBeGreaterThan(2);
    expect(bench.keeper.state.cadenceFactor).toBeGreaterThan(2);
    expect(periodOf(bench, 'M0', 60_000)).toBeLessThanOrEqual(20_100);
    bench.run(300_000);
    expect(bench.keeper.state.cadenceFactor).toBe(1);
    expect(periodOf(bench, 'M0', 390_000)).toBeCloseTo(6000, -2);
    expect(bench.book.fired).toEqual([]);
  });

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

test('requests one after the other that carry too little arm every market again after an outage all the same', () => {
  // 2.5 renewals per timeout: less than the three that every market is to have.
  const bench = createBench({ markets: many(20, 20), roundTripMs: 400 });
  bench.start(60_000);
  bench.strike({ kind: 'lost' }, 30_000);
  bench.run(120_000);
  const armed = bench.keeper.state.markets.filter(
    ({ belief }) => (belief.notBefore?.lifeMs ?? 0) > bench.keeper.state.lifeMs,
  );
  expect(armed.length).toBeGreaterThanOrEqual(19);
});
