import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { watched as beating, type Driver, LOST } from './driver.ts';

const watched = (ttlMs = 15_000) => beating({ liveness: { ttlMs }, markets: ['AAA:10'] });
const beat = (driver: Driver, agoMs = 0) => driver.say('beat', 'bot', agoMs);
const stateOf = (driver: Driver) => driver.look().bots[0]?.state;

describe('evidence counts from when it was given', () => {
  test('and not from when it was found', () => {
    const driver = watched(10_000);
    driver.live(5000);
    beat(driver, 4000);
    driver.live(5900);
    expect(stateOf(driver)).toBe('alive');
    driver.live(200);
    expect(stateOf(driver)).toBe('stale');
  });
});

describe('after a stall', () => {
  test('words that had waited in the sockets are as old as the stall', () => {
    const driver = watched();
    driver.live(1000);
    driver.move({ monoMs: 30_000 });
    driver.tick();
    beat(driver);
    expect(stateOf(driver)).toBe('stale');
    driver.live(500);
    beat(driver);
    expect(stateOf(driver)).toBe('stale');
    driver.live(600);
    beat(driver);
    expect(stateOf(driver)).toBe('alive');
  });

  test('shorter than the lifetime of evidence, words that had waited keep the bot alive', () => {
    const driver = watched();
    driver.live(1000);
    driver.move({ monoMs: 5000 });
    beat(driver);
    driver.live(9500);
    expect(stateOf(driver)).toBe('alive');
    driver.live(1000);
    expect(stateOf(driver)).toBe('stale');
  });

  test('a beat that had waited takes back the goodbye before it, and no timer is deleted any more', () => {
    const driver = watched();
    driver.live(1000);
    driver.say('goodbye');
    driver.settle(driver.takeOne(), LOST);
    driver.move({ monoMs: 30_000 });
    beat(driver);
    expect(stateOf(driver)).toBe('stale');
    driver.take();
    driver.live(3000);
    expect(driver.take()).toEqual([]);
  });
});

test('no renewal is ever written when the last word was said longer ago than its lifetime', () => {
  const event = fc.oneof(
    fc.record({ kind: fc.constant('live' as const), forMs: fc.integer({ min: 1, max: 9000 }) }),
    fc.record({ kind: fc.constant('beat' as const), agoMs: fc.integer({ min: 0, max: 6000 }) }),
    fc.record({ kind: fc.constant('stall' as const), forMs: fc.integer({ min: 300, max: 20_000 }) }),
    fc.record({ kind: fc.constant('suspend' as const), forMs: fc.integer({ min: 300, max: 20_000 }) }),
  );
  fc.assert(
    fc.property(fc.array(event, { maxLength: 30 }), (events) => {
      const driver = watched(10_000);
      let trueMs = 0;
      let saidMs = 0;
      const history: { readonly monoMs: number; readonly trueMs: number }[] = [];
      const note = () => history.push({ monoMs: driver.sinceStartMs(), trueMs });
      beat(driver);
      note();
      for (const one of events) {
        const before = driver.writes.length;
        const startMs = driver.sinceStartMs();
        if (one.kind === 'live') {
          driver.live(one.forMs);
          for (const { atMs } of driver.writes.slice(before))
            expect(trueMs + (atMs - startMs) - saidMs).toBeLessThanOrEqual(10_000);
          trueMs += one.forMs;
        } else if (one.kind === 'stall') {
          driver.move({ monoMs: one.forMs });
          trueMs += one.forMs;
        } else if (one.kind === 'suspend') {
          driver.move({ monoMs: 0, bootMs: one.forMs, wallMs: one.forMs });
          trueMs += one.forMs;
        } else {
          // Said that long ago on the monotonic clock, at the latest moment that this can have been.
          const atMono = Math.max(0, driver.sinceStartMs() - one.agoMs);
          const then = history.findLast(({ monoMs }) => monoMs <= atMono);
          saidMs = Math.max(saidMs, (then?.trueMs ?? 0) + (atMono - (then?.monoMs ?? 0)));
          beat(driver, driver.sinceStartMs() - atMono);
        }
        note();
      }
    }),
    { numRuns: 200 },
  );
});
