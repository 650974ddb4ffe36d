import { describe, expect, test } from 'vitest';
import { plannedPerSecond, reserved, roomAtMs, roomInWindow } from '../../src/core/rate.ts';
import { coreSettings } from './core-settings.ts';
import { createDriver, LOST } from './driver.ts';

const many = (count: number) => Array.from({ length: count }, (_, index) => `M${index}:600`);
const planned = (requests: number) =>
  plannedPerSecond(coreSettings({ budget: { requests, windowMs: 10_000 } }), 100);

// At a round trip of 100 ms the window is a fiftieth longer than the limit says, and 2 ms for the drift of clocks.
describe('renewals are planned for', () => {
  test('the budget less a fiftieth where it is large', () => {
    expect(planned(10_000)).toBeCloseTo(980 / 1.0202, 6);
    expect(planned(5000)).toBeCloseTo(490 / 1.0202, 6);
  });

  test('the budget less a tenth where it is small: a lapsed timer must find a place', () => {
    expect(planned(10)).toBeCloseTo(0.9 / 1.0202, 6);
    expect(planned(50)).toBeCloseTo(4.5 / 1.0202, 6);
    expect(planned(100)).toBeCloseTo(9.5 / 1.0202, 6);
  });
});

describe('the sliding window', () => {
  const budget = { requests: 100, windowMs: 10_000 };

  test('has the whole budget at first, and less by each request that was written', () => {
    const driver = createDriver({ markets: many(30), nonce: 'window', budget });
    expect(roomInWindow(driver.state)).toBe(100);
    driver.arm();
    expect(roomInWindow(driver.state)).toBe(70);
  });

  test('gives a request back a window after its answer: until then the exchange may have counted it', () => {
    const driver = createDriver({ markets: many(1), nonce: 'window', budget });
    driver.live(50, 20);
    expect(driver.writes).toHaveLength(1);
    const backMs = roomAtMs(driver.state) - driver.now().monoMs + driver.sinceStartMs();
    expect(backMs).toBe(20 + 10_000 + 2);
    driver.move({ monoMs: backMs - driver.sinceStartMs() - 1 });
    driver.state.now = driver.now();
    expect(roomInWindow(driver.state)).toBe(99);
    driver.move({ monoMs: 1 });
    driver.state.now = driver.now();
    expect(roomInWindow(driver.state)).toBe(100);
  });

  test('counts a request for as long as it is on its way, and one that was given up from then on', () => {
    const driver = createDriver({ markets: many(1), nonce: 'window', budget });
    driver.tick();
    const write = driver.takeOne();
    driver.move({ monoMs: 12_000 });
    driver.state.now = driver.now();
    expect(roomInWindow(driver.state)).toBe(99);
    driver.settle(write, LOST);
    const others = driver.take().length;
    driver.move({ monoMs: 10_001 });
    driver.state.now = driver.now();
    expect(roomInWindow(driver.state)).toBe(99 - others);
    driver.move({ monoMs: 1 });
    driver.state.now = driver.now();
    expect(roomInWindow(driver.state)).toBe(100 - others);
  });

  /** So many requests of long ago, and so many of now. */
  function remembered(gone: number, open: number) {
    const driver = createDriver({ budget: { requests: 10_000, windowMs: 10_000 } });
    const { settled, now } = driver.state;
    for (let count = 0; count < gone; count += 1) settled.push(now.monoMs - 20_000);
    for (let count = 0; count < open; count += 1) settled.push(now.monoMs);
    return { room: roomInWindow(driver.state), roomAgain: roomInWindow(driver.state), kept: settled.length };
  }

  test.each([
    [9000, 10, 10],
    [6000, 5000, 5000],
    [5000, 6000, 11_000],
    [100, 10, 110],
  ])('with %i requests that are gone and %i that count remembers %i', (gone, open, kept) => {
    expect(remembered(gone, open)).toEqual({ room: 10_000 - open, roomAgain: 10_000 - open, kept });
  });

  test('forgets what is long gone', () => {
    const driver = createDriver({ markets: ['AAA:5'], budget });
    driver.live(3 * 3_600_000);
    expect(driver.writes.length).toBeGreaterThan(10_000);
    expect(driver.state.settled.length).toBeLessThan(8500);
    expect(roomInWindow(driver.state)).toBeGreaterThanOrEqual(89);
    expect(roomInWindow(driver.state)).toBeLessThanOrEqual(91);
  });
});

test.each([
  [10_000, 16],
  [500, 10],
  [10, 1],
])('of %i requests %i are kept back for deletes and the most urgent renewal', (requests, count) => {
  const driver = createDriver({ budget: { requests, windowMs: 10_000 } });
  expect(reserved(driver.state)).toBe(count);
});
