import { describe, expect, test } from 'vitest';
import { boundsOf, describePromise } from '../../src/core/promise.ts';
import { coreSettings, marketOf } from './core-settings.ts';

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
      'If the bot dies, its spot and margin orders are cancelled after at most 86 s.',
      'If this daemon, the host or the network dies, the spot and margin orders are cancelled after at most 71 s.',
    ]);
  });

  test('says plainly that without evidence a dead bot keeps its orders', () => {
    expect(describePromise(coreSettings(), marketOf('AAA:60'), 6000)[2]).toBe(
      'Nobody watches the bot (liveness mode none): if it dies, its orders stay for as long as this daemon runs.',
    );
  });
});
