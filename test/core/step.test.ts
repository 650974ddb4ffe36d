import { describe, expect, test } from 'vitest';
import { createDriver, type Driver, type Write } from './driver.ts';

const HOUR_MS = 3_600_000;
const since = (driver: Driver, fromMs: number) => driver.writes.filter(({ atMs }) => atMs >= fromMs);
const names = (writes: readonly Write[]) => writes.map(({ market }) => market).toSorted();
const three = ['AAA:60', 'BBB:60', 'CCC:60'];

describe('time that was lost', () => {
  /** Three markets that are well, and not due. */
  function well() {
    const driver = createDriver({ markets: three });
    driver.live(12_500);
    return driver;
  }

  test.each([
    ['a stall', { monoMs: 3000 }, [{ kind: 'stall', what: 'stall', byMs: expect.any(Number) }]],
    ['a sleep', { monoMs: 10, bootMs: 3000, wallMs: 3000 }, [{ kind: 'stall', what: 'suspend', byMs: 2990 }]],
    [
      'a step of an hour ahead',
      { monoMs: 10, wallMs: HOUR_MS },
      [{ kind: 'stall', what: 'clock-step', byMs: HOUR_MS - 10 }],
    ],
  ] as const)('(%s) makes everything due at once, once, and is told', (_what, clocks, told) => {
    const driver = well();
    driver.move(clocks);
    const fromMs = driver.sinceStartMs();
    driver.live(300);
    expect(names(since(driver, fromMs))).toEqual(['AAA', 'BBB', 'CCC']);
    expect(driver.notices('stall')).toEqual(told);
    driver.live(60_000);
    const perMinute = since(driver, fromMs + 300).length;
    expect(perMinute).toBeGreaterThanOrEqual(27);
    expect(perMinute).toBeLessThanOrEqual(33);
    expect(driver.notices('lapsed')).toEqual([]);
    expect(driver.notices('overdue')).toEqual([]);
  });

  test('by a step of an hour back is told, and nothing is due earlier or later for it', () => {
    const undisturbed = well();
    const driver = well();
    driver.move({ monoMs: 10, wallMs: -HOUR_MS });
    undisturbed.move({ monoMs: 10 });
    driver.live(30_000);
    undisturbed.live(30_000);
    expect(driver.notices('stall')).toEqual([{ kind: 'stall', what: 'clock-step', byMs: -HOUR_MS - 10 }]);
    expect(driver.writes.map(({ atMs }) => atMs)).toEqual(undisturbed.writes.map(({ atMs }) => atMs));
  });

  test('is no stall while it is 250 ms or less', () => {
    const driver = well();
    driver.move({ monoMs: driver.state.wakeAtMs - driver.now().monoMs + 250 });
    driver.tick();
    expect(driver.notices('stall')).toEqual([]);
    driver.move({ monoMs: driver.state.wakeAtMs - driver.now().monoMs + 251 });
    driver.tick();
    expect(driver.notices('stall')).toEqual([{ kind: 'stall', what: 'stall', byMs: 251 }]);
  });

  test('keeps the order of the deadlines after a step of an hour ahead', () => {
    const driver = createDriver({ markets: ['AAA:600', 'BBB:60', 'CCC:10'] });
    driver.live(12_500);
    driver.move({ monoMs: 10, wallMs: HOUR_MS });
    const fromMs = driver.sinceStartMs();
    driver.live(300);
    expect(since(driver, fromMs).map(({ market }) => market)).toEqual(['CCC', 'BBB', 'AAA']);
  });

  test('hurries no market that the exchange has refused', () => {
    const driver = createDriver({ markets: ['WRONG:60', 'AAA:60'] });
    driver.live(5500, 20, (write) => {
      if (write.market === 'AAA') driver.apply(write);
      else driver.settle(write, { kind: 'refused', code: 31, detail: 'Market is not available.' });
    });
    driver.move({ monoMs: 10, bootMs: 9000, wallMs: 9000 });
    const fromMs = driver.sinceStartMs();
    driver.live(300);
    expect(names(since(driver, fromMs))).toEqual(['AAA']);
  });

  test('leaves answers that lie in the socket a moment to be read before their requests are given up', () => {
    const driver = createDriver({ markets: ['AAA:60'] });
    driver.arm();
    driver.wait(6000);
    const write = driver.takeOne();
    driver.move({ monoMs: 20_000 });
    driver.tick();
    expect(driver.effects.filter(({ kind }) => kind === 'abort')).toEqual([]);
    driver.apply(write);
    expect(driver.market('AAA').stats.renewals).toBe(2);
  });
});

describe('wake-ups', () => {
  test('come every 500 ms, which is how lost time is noticed, and not much more often for nothing', () => {
    const driver = createDriver({ markets: ['AAA:600'] });
    driver.arm();
    let wakes = 0;
    while (driver.sinceStartMs() < 8000) {
      const aheadMs = driver.state.wakeAtMs - driver.now().monoMs;
      expect(aheadMs).toBeLessThanOrEqual(500);
      expect(aheadMs).toBeGreaterThanOrEqual(0);
      driver.wait(Math.max(aheadMs, 1));
      wakes += 1;
    }
    expect(wakes).toBeLessThanOrEqual(36);
  });

  test('collect what becomes due within 25 ms', () => {
    const driver = createDriver({
      markets: Array.from({ length: 600 }, (_, index) => `M${index}:60`),
      nonce: 'window',
      connections: 1000,
    });
    driver.arm();
    driver.live(6000, 1);
    const from = driver.writes.length;
    driver.live(6000, 1);
    const moments = driver.writes.slice(from).map(({ atMs }) => atMs);
    expect(moments.length).toBeGreaterThanOrEqual(590);
    const wakes = [...new Set(moments)];
    expect(wakes.length).toBeLessThanOrEqual(241);
    expect(wakes.length).toBeGreaterThan(150);
  });
});

describe('the cadence', () => {
  test('follows what requests one after the other can carry, and says so', () => {
    const driver = createDriver({ markets: Array.from({ length: 40 }, (_, index) => `M${index}:60`) });
    driver.live(20_000, 200);
    // 40 markets every 6 s are 6.7 a second; at 200 ms one connection is planned to carry four.
    expect(driver.state.capacityPerSecond).toBeCloseTo(4, 0);
    expect(driver.notices('cadence').at(-1)).toMatchObject({
      kind: 'cadence',
      capacityPerSecond: expect.closeTo(4, 1),
      detail: expect.stringContaining('carries 4.0 renewals a second at an answer time of 200.0 ms'),
    });
    expect(driver.market('M7').periodMs).toBeGreaterThan(9900);
    driver.live(60_000, 200);
    expect(driver.notices('lapsed')).toEqual([]);
  });

  test('does not follow it where several requests may be in flight', () => {
    const driver = createDriver({
      markets: Array.from({ length: 40 }, (_, index) => `M${index}:60`),
      nonce: 'window',
    });
    driver.live(20_000, 200);
    expect(driver.notices('cadence')).toEqual([]);
    expect(driver.market('M7').periodMs).toBe(6000);
  });

  test('says what cannot be kept when the way has become too long', () => {
    const driver = createDriver({ markets: Array.from({ length: 40 }, (_, index) => `M${index}:5`) });
    driver.live(20_000, 100);
    expect(driver.notices('cadence').at(-1)?.detail).toContain('40 markets need 24.0 renewals a second');
  });
});

describe('all armed', () => {
  test('is said once, when the last market is confirmed', () => {
    const driver = createDriver({ markets: three });
    driver.live(45, 20);
    expect(driver.notices('all-armed')).toEqual([]);
    driver.live(60_000);
    expect(driver.notices('all-armed')).toEqual([
      { kind: 'all-armed', markets: 3, sinceStartMs: expect.closeTo(60, 3) },
    ]);
  });
});
