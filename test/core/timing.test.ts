import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { boundsOf, type Cadenced, describePromise, planCadence } from '../../src/core/promise.ts';
import { coreSettings, marketOf } from './core-settings.ts';

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
      expect(planCadence([market(timeoutSeconds)], 1000)).toMatchObject({
        periodsMs: [periodMs],
        problems: [],
      });
    },
  );

  test('is the one that the configuration fixes, where it does', () => {
    expect(planCadence([market(60, 2500), market(60)], 1000).periodsMs).toEqual([2500, 6000]);
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

  test('three renewals per timeout are the least, and what does not fit even so is a problem with its numbers', () => {
    const { periodsMs, problems } = planCadence(many(100, 60), 4.9);
    expect(periodsMs.every((periodMs) => Math.round(periodMs) === 20_000)).toBe(true);
    expect(problems).toEqual([
      '100 markets need 5.0 renewals a second to fit 3 attempts into every timeout, 4.9 can be carried, with some room left for retries: raise the timeouts, take fewer markets, or carry more by exchange.budgetShare, nonce: window or a shorter way to the exchange',
    ]);
    expect(planCadence(many(100, 60), 5).problems).toEqual([]);
  });

  test('a fixed cadence of fewer than three renewals per timeout is a problem with its numbers', () => {
    expect(planCadence([market(60, 25_000)], 1000).problems).toEqual([
      'T60: a renewal every 25 s fits 2 attempts into a timeout of 60 s; at least 3 must fit: renew at least every 20 s or raise the timeout',
    ]);
    expect(planCadence([market(60, 20_000)], 1000).problems).toEqual([]);
    // What it advises is taken: rounded up it would not be.
    const [advice = ''] = planCadence([market(5, 1667)], 1000).problems;
    expect(advice).toMatch(/renew at least every 1\.666 s or/);
    expect(planCadence([market(5, 1666)], 1000).problems).toEqual([]);
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

describe('the promise for one market', () => {
  test.each([
    // W = T - 1 - P - d - g with d = 0.2 s and g = 0.25 s.
    [60, 6000, 52_550],
    [5, 1000, 2550],
    [600, 10_000, 588_550],
    // What leaves nothing to survive promises nothing, and not less.
    [5, 4000, 0],
  ])('T = %i s at a cadence of %i ms survives an outage of %i ms', (timeoutSeconds, periodMs, survivesMs) => {
    expect(boundsOf(coreSettings(), timeoutSeconds * 1000, periodMs).survivesMs).toBe(survivesMs);
  });

  test.each([
    ['whatever ends the timer', {}],
    // An exchange that is away cannot be asked to cut the timer.
    ['no sooner with onStale: trip', { onStale: 'trip' }],
  ] as const)('orders are cancelled within H + l + T + 1 + s, %s', (_what, liveness) => {
    const settings = coreSettings({
      cancellationDelayMs: 2000,
      requestLifetimeMs: 7000,
      liveness: { mode: 'beat', ttlMs: 15_000, ...liveness },
    });
    expect(boundsOf(settings, 60_000, 6000)).toMatchObject({
      botDeathMs: 15_000 + 7000 + 60_000 + 1000 + 2000,
      // The grace of a daemon that starts anew.
      unheardMs: 60_000 + 7000 + 60_000 + 1000 + 2000,
      daemonDeathMs: 7000 + 60_000 + 1000 + 2000,
    });
  });
});

describe('the promise in words', () => {
  test('names the market, the order types and every number', () => {
    const market = marketOf('BTC_USDT:60', ['spot', 'margin']);
    const settings = coreSettings({ markets: [market], liveness: { mode: 'beat' } });
    expect(describePromise(settings, market, 6000)).toEqual([
      'BTC_USDT: renewed every 6 s, timer of 60 s.',
      'An outage of the exchange shorter than 52.55 s cancels nothing.',
      'If the bot dies, its spot and margin orders are cancelled after at most 86 s; if this daemon starts anew after that, at most 131 s after its start.',
      'If this daemon, the host or the network dies, the spot and margin orders are cancelled after at most 71 s.',
    ]);
  });

  test('says plainly that without evidence a dead bot keeps its orders', () => {
    expect(describePromise(coreSettings(), marketOf('AAA:60'), 6000)[2]).toBe(
      'Nobody watches the bot (liveness mode none): if it dies, its orders stay for as long as this daemon runs.',
    );
  });
});
