import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Cadenced, planCadence, seconds } from '../../src/core/promise.ts';

const market = (timeoutSeconds: number, renewEveryMs: number | null = null): Cadenced => ({
  market: `T${timeoutSeconds}`,
  timeoutMs: timeoutSeconds * 1000,
  renewEveryMs,
});
const many = (count: number, timeoutSeconds: number) =>
  Array.from({ length: count }, () => market(timeoutSeconds));
const rateOf = (periodsMs: readonly number[]) =>
  periodsMs.reduce((sum, periodMs) => sum + 1000 / periodMs, 0);

describe('the cadence with room to spare', () => {
  test.each([
    [5, 1000],
    [15, 1000],
    // Rounding and the last gap cost it more.
    [20, 1750],
    [60, 6000],
    [120, 10_000],
    [600, 10_000],
  ])(
    'of a timer of %i s is about a tenth of it, at least 1 s and at most 10 s: %i ms',
    (timeoutSeconds, periodMs) => {
      expect(planCadence([market(timeoutSeconds)], 1000)).toEqual({ periodsMs: [periodMs], problems: [] });
    },
  );

  test('is the one that the configuration fixes, where it does', () => {
    expect(planCadence([market(60, 2500), market(60)], 1000).periodsMs).toEqual([2500, 6000]);
  });

  test.each([
    ['settles at 10 s where the whole documented limit may be used', 1000, 10_000],
    ['is three renewals per timeout at half of the limit', 500, 20_000],
  ])('of ten thousand timers of 60 s %s', (_what, perSecond, periodMs) => {
    const { periodsMs, problems } = planCadence(many(10_000, 60), perSecond);
    expect(problems).toEqual([]);
    expect(new Set(periodsMs.map((each) => Math.round(each / 10) * 10))).toEqual(new Set([periodMs]));
  });
});

describe('when the budget is short', () => {
  test('long timers give way before a short one loses a single renewal', () => {
    const markets = [market(5), market(60), market(600), market(600)];
    const freely = rateOf(planCadence(markets, 1000).periodsMs);
    const { periodsMs, problems } = planCadence(markets, freely - 0.1);
    expect(problems).toEqual([]);
    expect(periodsMs.slice(0, 2)).toEqual([1000, 6000]);
    expect(periodsMs[2]).toBeGreaterThan(10_000);
    expect(periodsMs[2]).toBeLessThanOrEqual(60_000);
    expect(rateOf(periodsMs)).toBeCloseTo(freely - 0.1, 3);
  });

  test('every timer then loses the same share of its renewals', () => {
    const markets = [market(30), market(60), market(300)];
    const { periodsMs, problems } = planCadence(markets, 0.4);
    expect(problems).toEqual([]);
    const perTimeout = markets.map(({ timeoutMs }, index) => timeoutMs / (periodsMs[index] ?? 0));
    for (const count of perTimeout) expect(count).toBeCloseTo(perTimeout[0] ?? 0, 6);
    expect(perTimeout[0]).toBeCloseTo(0.4 / (1 / 30 + 1 / 60 + 1 / 300), 3);
  });

  test('three renewals per timeout are the least, and what does not fit even so is a problem with its numbers', () => {
    const { periodsMs, problems } = planCadence(many(100, 60), 4.9);
    expect(periodsMs.every((periodMs) => Math.round(periodMs) === 20_000)).toBe(true);
    expect(problems).toEqual([
      '100 markets need 5.0 renewals a second to fit 3 attempts into every timeout, 4.9 can be carried, with some room left for retries: raise exchange.budgetShare or the timeouts, or take fewer markets',
    ]);
    expect(planCadence(many(100, 60), 5).problems).toEqual([]);
  });

  test('a fixed cadence of fewer than three renewals per timeout is a problem with its numbers', () => {
    expect(planCadence([market(60, 25_000)], 1000).problems).toEqual([
      'T60: a renewal every 25 s fits 2 attempts into a timeout of 60 s; at least 3 must fit: renew at least every 20 s or raise the timeout',
    ]);
    expect(planCadence([market(60, 20_000)], 1000).problems).toEqual([]);
  });
});

describe('for any set of markets and any capacity', () => {
  const timeouts = fc.array(fc.integer({ min: 5, max: 600 }), { minLength: 1, maxLength: 60 });
  const capacity = fc.double({ min: 0.01, max: 200, noNaN: true });

  test('the plan never exceeds the capacity unless it says so, and keeps every period within its bounds', () => {
    fc.assert(
      fc.property(timeouts, capacity, (list, perSecond) => {
        const markets = list.map((one) => market(one));
        const { periodsMs, problems } = planCadence(markets, perSecond);
        expect(problems.length === 0).toBe(rateOf(periodsMs) <= perSecond * (1 + 1e-6));
        const freely = markets.map(({ timeoutMs }) =>
          Math.max(1000, Math.min(timeoutMs / 10, timeoutMs * 0.15 - 1250)),
        );
        const tenEachFit = rateOf(freely) <= perSecond;
        for (const [index, { timeoutMs }] of markets.entries()) {
          const periodMs = periodsMs[index] ?? 0;
          expect(periodMs).toBeGreaterThanOrEqual(1000);
          expect(timeoutMs / periodMs).toBeGreaterThanOrEqual(3 - 1e-9);
          if (tenEachFit) expect(periodMs).toBeLessThanOrEqual(Math.max(10_000, timeoutMs / 10) + 1e-6);
        }
      }),
    );
  });

  test('the shorter of two timers is never renewed less often, and a short budget is used up', () => {
    fc.assert(
      fc.property(timeouts, capacity, (list, perSecond) => {
        const sorted = list.toSorted((one, other) => one - other).map((one) => market(one));
        const { periodsMs, problems } = planCadence(sorted, perSecond);
        expect(periodsMs.toSorted((one, other) => one - other)).toEqual(periodsMs);
        const freely = rateOf(planCadence(sorted, 1e9).periodsMs);
        if (problems.length === 0 && freely > perSecond)
          expect(rateOf(periodsMs)).toBeGreaterThan(perSecond * 0.999);
      }),
    );
  });
});

test('durations read as people write them', () => {
  expect([60_000, 7500, 250, 1234.5678].map(seconds)).toEqual(['60 s', '7.5 s', '0.25 s', '1.235 s']);
});
