import { describe, expect, test } from 'vitest';
import { slackMs } from '../../src/core/state.ts';
import type { SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver, LOST } from './driver.ts';

const DRIFT_MS = 12;
const LIFETIME_MS = 10_000;

const leastMs = (driver: Driver) => Math.round(slackMs(driver.state, driver.market('AAA')));
const mostMs = (driver: Driver) => {
  const { notAfterMs } = driver.market('AAA').belief;
  return notAfterMs === null ? null : Math.round(notAfterMs - driver.state.now.monoMs);
};

/** An armed market with two renewals in flight; the first one was written 1 s ago. */
function twoInFlight(options: SettingsOptions) {
  const driver = createDriver({ markets: ['AAA:10'], ...options });
  driver.arm();
  driver.wait(1000);
  const first = driver.takeOne();
  driver.wait(1000);
  const second = driver.takeOne();
  return { driver, first, second };
}

describe('answers out of order', () => {
  test('the older one that comes last guarantees nothing', () => {
    const { driver, first, second } = twoInFlight({ nonce: 'window' });
    driver.apply(second);
    const before = leastMs(driver);
    driver.apply(first);
    expect(leastMs(driver)).toBe(before);
    expect(driver.notices('renewed').at(-1)).toBe(driver.notices('renewed')[1]);
    expect(driver.market('AAA').stats.renewals).toBe(2);
  });

  test('the older one that comes last may have been carried out last, and covers as much', () => {
    const { driver, first, second } = twoInFlight({ nonce: 'window' });
    driver.apply(second);
    driver.move({ monoMs: 1500 });
    driver.apply(first);
    expect(mostMs(driver)).toBeGreaterThanOrEqual(11_000);
  });

  test('the older one that fails last is no failure of the market any more', () => {
    const { driver, first, second } = twoInFlight({});
    driver.apply(second);
    driver.settle(first, LOST);
    expect(driver.market('AAA').streak).toBe(0);
    expect(driver.market('AAA').lastProblem).toBeNull();
    expect(driver.notices('attempt-failed').at(-1)?.streak).toBe(0);
  });
});

describe('with rising nonces', () => {
  test('an accepted renewal ends the doubt about one that is still in flight', () => {
    const { driver, first, second } = twoInFlight({ nonce: 'increasing' });
    driver.apply(second);
    expect(mostMs(driver)).toBe(11_000 + 2);
    driver.settle(first, LOST);
    expect(driver.market('AAA').belief).toMatchObject({ writes: [{ status: 'confirmed' }] });
  });

  test('a confirmed delete leaves nothing behind, whatever was lost before', () => {
    const { driver, first, second } = twoInFlight({ nonce: 'increasing' });
    driver.settle(first, LOST);
    driver.settle(second, LOST);
    driver.stop();
    driver.settle(driver.takeOne(), { kind: 'deleted' });
    expect(driver.finished()).toEqual([]);
  });
});

describe('in a nonce window', () => {
  test('a lost renewal may still arrive for its whole lifetime, whatever was accepted since', () => {
    const { driver, first, second } = twoInFlight({ nonce: 'window' });
    driver.settle(first, LOST);
    driver.apply(second);
    expect(mostMs(driver)).toBe(LIFETIME_MS - 1000 + 11_000 + 2);
  });

  test('but not longer than its lifetime', () => {
    const { driver, first, second } = twoInFlight({ nonce: 'window', requestLifetimeMs: 950 });
    driver.settle(first, LOST);
    driver.apply(second);
    expect(mostMs(driver)).toBe(11_000 + 2);
  });

  test('a delete that is confirmed before a lost renewal has died out leaves a doubt', () => {
    const { driver, first, second } = twoInFlight({ nonce: 'window', shutdown: { budgetMs: 1500 } });
    driver.settle(first, LOST);
    driver.settle(second, LOST);
    driver.stop();
    driver.settle(driver.takeOne(), { kind: 'deleted' });
    expect(driver.finished()).toEqual([expect.objectContaining({ market: 'AAA', why: 'unconfirmed' })]);
    const sinceMs = driver.sinceStartMs() - second.atMs;
    expect(mostMs(driver)).toBe(Math.round(LIFETIME_MS - sinceMs + 11_000 + 2));
  });
});

describe('what ends or shortens a timer', () => {
  test('a delete does its worst when it is written, and its loss does not give anything back', () => {
    const driver = createDriver();
    driver.arm();
    driver.stop();
    const write = driver.takeOne();
    expect(driver.market('AAA').belief.notBefore).toBeNull();
    const before = mostMs(driver);
    driver.settle(write, LOST);
    expect(driver.market('AAA').belief.notBefore).toBeNull();
    expect(mostMs(driver)).toBe(before);
  });

  const trip = { nonce: 'window', liveness: { mode: 'beat', onStale: 'trip' } } as const;

  test('a trip leaves no more than 4 s guaranteed from the moment it is written', () => {
    const driver = createDriver(trip);
    driver.say('beat');
    driver.apply(driver.takeOne());
    driver.say('fail');
    driver.tick();
    expect(driver.takeOne().timeoutSeconds).toBe(5);
    expect(leastMs(driver)).toBe(4000 - 1);
    expect(mostMs(driver)).toBe(61_000 + DRIFT_MS);
  });

  /** A tripped market whose bot came back while the trip was under way. */
  function revived(nonce: 'window' | 'increasing') {
    const driver = createDriver({ ...trip, nonce });
    driver.say('beat');
    driver.apply(driver.takeOne());
    driver.say('fail');
    driver.tick();
    const cut = driver.takeOne();
    driver.move({ monoMs: 10 });
    driver.say('beat');
    return { driver, cut };
  }

  test('a trip is never overtaken by the renewal of a bot that came back, which follows in time', () => {
    const { driver, cut } = revived('window');
    expect(driver.take()).toEqual([]);
    driver.apply(cut);
    driver.wait(300);
    driver.apply(driver.takeOne());
    expect(leastMs(driver)).toBeGreaterThan(57_000);
  });

  test('a lost trip may still cut the timer of a later renewal, for as long as it may be under way', () => {
    const { driver, cut } = revived('window');
    driver.settle(cut, LOST);
    for (let renewal = driver.take()[0]; driver.sinceStartMs() < 12_000; renewal = driver.take()[0]) {
      if (renewal !== undefined) driver.apply(renewal);
      if (renewal !== undefined && renewal.atMs < 9000) expect(leastMs(driver)).toBeLessThanOrEqual(4000);
      driver.wait(100);
    }
    expect(leastMs(driver)).toBeGreaterThan(50_000);
  });
});
