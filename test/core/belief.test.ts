import { describe, expect, test } from 'vitest';
import { slackMs } from '../../src/core/state.ts';
import {
  BAD_KEY,
  createDriver,
  type Driver,
  GARBAGE,
  HTTP_500,
  LOST,
  NO_MARKET,
  NOT_SENT,
  STALE_NONCE,
  THROTTLED,
} from './driver.ts';

/** Both clocks may be wrong by 200 ppm each; a minute of it is 12 ms. */
const DRIFT_MS = 12;

/** Guaranteed for so long, and surely over after so long; milliseconds from now. */
function ends(driver: Driver, name = 'AAA') {
  const market = driver.market(name);
  const { notBefore, notAfterMs } = market.belief;
  return {
    leastMs: notBefore === null ? null : Math.round(slackMs(driver.state, market)),
    mostMs: notAfterMs === null ? null : Math.round(notAfterMs - driver.state.now.monoMs),
  };
}

describe('a confirmed renewal', () => {
  test('is guaranteed from the moment of writing and not from the reply', () => {
    const driver = createDriver();
    driver.tick();
    const write = driver.takeOne();
    driver.move({ monoMs: 400 });
    driver.apply(write);
    expect(ends(driver).leastMs).toBe(60_000 - 1000 - 400 - DRIFT_MS);
  });

  test('has surely fired T + 1 + s after the reply', () => {
    const driver = createDriver({ cancellationDelayMs: 2000 });
    driver.tick();
    const write = driver.takeOne();
    driver.move({ monoMs: 400 });
    driver.apply(write);
    expect(ends(driver).mostMs).toBe(60_000 + DRIFT_MS + 1000 + 2000);
  });

  test('is guaranteed on every clock that may have run: after a sleep hardly anything of it is left', () => {
    const driver = createDriver({ liveness: { mode: 'beat' } });
    driver.arm();
    driver.say('fail');
    driver.move({ monoMs: 10, bootMs: 58_000, wallMs: 58_000 });
    driver.tick();
    expect(ends(driver).leastMs).toBe(1000 - DRIFT_MS);
    // How long orders may still rest is counted on the clock that is surely not too fast.
    expect(ends(driver).mostMs).toBe(61_000 + DRIFT_MS - 10);
  });
});

describe('before any answer', () => {
  test('a written renewal may fire as late as its lifetime and timeout from now, and guarantees nothing', () => {
    const driver = createDriver({ requestLifetimeMs: 7000, cancellationDelayMs: 500 });
    driver.tick();
    expect(ends(driver)).toEqual({ leastMs: null, mostMs: 7000 + 60_000 + DRIFT_MS + 1000 + 500 });
  });

  test('a later renewal takes nothing from the one that was confirmed', () => {
    const driver = createDriver();
    driver.arm();
    const { leastMs } = ends(driver);
    driver.wait(6000);
    expect(driver.take()).toHaveLength(1);
    expect(ends(driver).leastMs).toBe((leastMs ?? 0) - 6000);
  });
});

describe('an answer that says nothing about the outcome', () => {
  test.each([
    ['a lost reply', LOST],
    ['a server error', HTTP_500],
    ['a gateway that throttles', THROTTLED],
    ['a garbled success', GARBAGE],
  ])('(%s) guarantees nothing and moves the latest moment on', (_what, outcome) => {
    const driver = createDriver();
    driver.arm();
    const before = ends(driver);
    driver.wait(6000);
    const write = driver.takeOne();
    driver.move({ monoMs: 100 });
    driver.settle(write, outcome);
    expect(ends(driver)).toEqual({
      leastMs: (before.leastMs ?? 0) - 6100,
      mostMs: 10_000 + 61_000 + DRIFT_MS - 100,
    });
  });
});

describe('a request that was surely not carried out', () => {
  test.each([
    ['refused market', NO_MARKET],
    ['stale nonce', STALE_NONCE],
    ['refused key', BAD_KEY],
    ['refused connection', NOT_SENT],
  ])('(%s) leaves no trace in the belief about an armed timer', (_what, outcome) => {
    const driver = createDriver();
    driver.arm();
    const before = ends(driver);
    driver.wait(6000);
    const write = driver.takeOne();
    const effects = driver.settle(write, outcome);
    // A stale nonce is answered with the next attempt at once: that one leaves its own trace.
    const again = effects.some(({ kind }) => kind === 'write');
    expect(ends(driver)).toEqual({
      leastMs: (before.leastMs ?? 0) - 6000,
      mostMs: again ? 10_000 + 61_000 + DRIFT_MS : (before.mostMs ?? 0) - 6000,
    });
  });

  test('leaves the trace of an earlier one alone, whose outcome nobody knows', () => {
    const driver = createDriver();
    driver.tick();
    const first = driver.takeOne();
    driver.settle(first, LOST);
    const lostMs = ends(driver).mostMs ?? 0;
    driver.wait(500);
    const second = driver.takeOne();
    driver.settle(second, NO_MARKET);
    expect(ends(driver).mostMs).toBeGreaterThanOrEqual(lostMs - 500);
  });
});

describe('an answer of the exchange that is not what was asked for', () => {
  function answered(timer: { timeout?: number; types?: readonly string[] | null }) {
    const driver = createDriver({
      markets: [{ market: 'AAA', timeoutMs: 60_000, types: ['spot'], renewEveryMs: null, bot: 'bot' }],
    });
    driver.tick();
    const write = driver.takeOne();
    driver.apply(write, timer);
    return driver;
  }

  test('with a shorter timer guarantees the shorter time, says so, and still covers the longer', () => {
    const driver = answered({ timeout: 30 });
    expect(ends(driver)).toEqual({ leastMs: 29_000 - DRIFT_MS / 2, mostMs: 61_000 + DRIFT_MS });
    expect(driver.notices('altered')).toEqual([
      {
        kind: 'altered',
        market: 'AAA',
        detail: 'the exchange answered with a timer of 30 s instead of 60 s',
      },
    ]);
  });

  test('with a longer timer guarantees what was asked for and covers the longer', () => {
    expect(ends(answered({ timeout: 90 }))).toEqual({ leastMs: 59_000 - DRIFT_MS, mostMs: 91_000 + 18 });
  });

  test('with other order types says which', () => {
    expect(answered({ types: ['margin', 'spot'] }).notices('altered')[0]?.detail).toBe(
      'the exchange answered with order types margin, spot instead of spot',
    );
    expect(answered({ types: null }).notices('altered')[0]?.detail).toBe(
      'the exchange answered with order types spot, margin, futures instead of spot',
    );
    expect(answered({ types: ['margin'] }).notices('altered')).toHaveLength(1);
    expect(answered({ types: [] }).notices('altered')[0]?.detail).toContain(
      'order types none instead of spot',
    );
    expect(answered({ types: ['spot'] }).notices('altered')).toEqual([]);
  });

  test('is reported once and not with every renewal', () => {
    const driver = answered({ timeout: 30 });
    driver.live(20_000, 20, (write) => driver.apply(write, { timeout: 30 }));
    expect(driver.notices('renewed').length).toBeGreaterThan(2);
    expect(driver.notices('altered')).toHaveLength(1);
  });
});
