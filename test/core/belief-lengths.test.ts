import { describe, expect, test } from 'vitest';
import { slackMs } from '../../src/core/state.ts';
import { type SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver, LOST, NOT_SENT, SERVER_EPOCH, type Write } from './driver.ts';

const LIFETIME_MS = 10_000;

const leastMs = (driver: Driver) => slackMs(driver.state, driver.market('AAA'));
const mostMs = (driver: Driver) => (driver.market('AAA').belief.notAfterMs ?? 0) - driver.state.now.monoMs;

/** Two renewals on their way that ask for timers of different lengths, the second 300 ms after the first. */
function twoLengths(nonce: 'increasing' | 'window', first: number, second: number) {
  const options = (seconds: number): SettingsOptions => ({ nonce, markets: [`AAA:${seconds}`] });
  const driver = createDriver(options(first));
  // The key is known to be good, so that requests go side by side.
  driver.state.key.accepted = true;
  driver.tick();
  const one = driver.takeOne();
  driver.move({ monoMs: 600 });
  driver.reload(options(second));
  driver.tick();
  const two = driver.takeOne();
  expect([one.timeoutSeconds, two.timeoutSeconds]).toEqual([first, second]);
  const reload = (seconds: number): Write => {
    driver.move({ monoMs: 600 });
    driver.reload(options(seconds));
    driver.tick();
    return driver.takeOne();
  };
  return { driver, one, two, reload };
}

describe('of two timers of different length', () => {
  test('that were both lost, each counts from when it left', () => {
    const { driver, one, two } = twoLengths('window', 60, 10);
    driver.settle(one, LOST);
    driver.settle(two, LOST);
    expect(mostMs(driver)).toBeCloseTo(LIFETIME_MS - 600 + 61_000 + 12, 0);
  });

  test('a lost one counts no more once a confirmation has fenced it', () => {
    const { driver, one, two, reload } = twoLengths('increasing', 60, 10);
    driver.settle(one, LOST);
    driver.apply(two);
    expect(mostMs(driver)).toBeCloseTo(11_000 + 2, 0);
    const three = reload(15);
    driver.settle(three, LOST);
    expect(mostMs(driver)).toBeCloseTo(LIFETIME_MS + 16_000 + 3, 0);
  });

  test('a newer one that was lost is not fenced by an older confirmation', () => {
    const { driver, one, two } = twoLengths('increasing', 60, 60);
    driver.settle(two, LOST);
    driver.apply(one);
    expect(mostMs(driver)).toBeCloseTo(LIFETIME_MS + 61_000 + 12, 0);
  });

  test('the shortest that was lost may still cut what is confirmed after them', () => {
    const { driver, one, two, reload } = twoLengths('window', 10, 60);
    driver.settle(one, LOST);
    driver.settle(two, LOST);
    driver.apply(reload(120));
    expect(leastMs(driver)).toBeCloseTo(9000 - 2, 0);
  });

  test('an older and longer one that is confirmed last does not lower the latest firing', () => {
    const { driver, one, two } = twoLengths('increasing', 10, 60);
    driver.apply(two);
    driver.move({ monoMs: 100 });
    driver.apply(one);
    expect(mostMs(driver)).toBeCloseTo(61_000 + 12 - 100, 0);
    expect(leastMs(driver)).toBeCloseTo(59_000 - 12 - 100, 0);
  });

  test('an older one that was granted less than it asked for may have been carried out last', () => {
    for (const [nonce, least] of [
      ['window', 9000 - 2],
      ['increasing', 59_000 - 12],
    ] as const) {
      const { driver, one, two } = twoLengths(nonce, 60, 60);
      driver.move({ monoMs: 100 });
      driver.apply(two);
      driver.apply(one, { timeout: 10 });
      expect(leastMs(driver)).toBeCloseTo(least - 100, 0);
    }
  });

  test('an older one that is confirmed last is on its way no more', () => {
    const { driver, one, two } = twoLengths('window', 60, 60);
    driver.apply(two);
    expect(mostMs(driver)).toBeCloseTo(LIFETIME_MS - 600 + 61_000 + 12, 0);
    driver.apply(one);
    expect(mostMs(driver)).toBeCloseTo(61_000 + 12, 0);
  });

  test('an older one is fenced by rising nonces, however short it is', () => {
    const { driver, two } = twoLengths('increasing', 10, 60);
    driver.apply(two);
    expect(leastMs(driver)).toBeCloseTo(59_000 - 12, 0);
  });

  test('an older one cuts the newer from the moment of the newer in a nonce window', () => {
    const { driver, two } = twoLengths('window', 10, 60);
    driver.apply(two);
    expect(leastMs(driver)).toBeCloseTo(9000 - 2, 0);
  });

  test('one that was confirmed while the other was on its way may have been carried out after it', () => {
    const { driver, one, two } = twoLengths('window', 10, 60);
    driver.move({ monoMs: 100 });
    driver.apply(one);
    driver.apply(two);
    expect(leastMs(driver)).toBeCloseTo(9000 - 2 - 100, 0);
    expect(mostMs(driver)).toBeCloseTo(61_000 + 12, 0);
  });

  test('one that was confirmed before the other was written has no say any more', () => {
    const { driver, two, reload } = twoLengths('window', 60, 10);
    driver.move({ monoMs: 100 });
    driver.apply(two);
    driver.apply(reload(60));
    expect(leastMs(driver)).toBeCloseTo(59_000 - 12, 0);
  });

  test('with rising nonces the newer confirmation alone says how long the timer lasts', () => {
    const { driver, one, two } = twoLengths('increasing', 60, 10);
    driver.move({ monoMs: 100 });
    driver.apply(one);
    driver.apply(two);
    expect(mostMs(driver)).toBeCloseTo(11_000 + 2, 0);
  });
});

describe('what is remembered', () => {
  test('of a lost delete ends with the next renewal, where nonces rise', () => {
    const driver = createDriver();
    driver.arm();
    driver.operate('disarm');
    driver.settle(driver.takeOne(), LOST);
    driver.operate('arm');
    driver.wait(300);
    driver.apply(driver.takeOne());
    expect(leastMs(driver)).toBeGreaterThan(58_000);
  });

  test('of a timer that was deleted makes no trip: a dead bot gets no new timer', () => {
    const driver = createDriver({ liveness: { mode: 'beat', onStale: 'trip' } });
    driver.say('beat');
    driver.apply(driver.takeOne());
    driver.say('goodbye');
    driver.settle(driver.takeOne(), { kind: 'deleted' });
    driver.say('fail');
    driver.live(20_000);
    expect(driver.writes.filter(({ timeoutSeconds }) => timeoutSeconds === 5)).toEqual([]);
  });

  test('of a lost renewal keeps a trip going that would otherwise find nothing to cut', () => {
    const driver = createDriver({ liveness: { mode: 'beat', onStale: 'trip', ttlMs: 100_000 } });
    driver.say('beat');
    driver.apply(driver.takeOne());
    driver.live(50_000, 20, (write) => driver.settle(write, NOT_SENT));
    driver.live(7000, 20, (write) => driver.settle(write, LOST));
    driver.say('fail');
    driver.live(3000, 20, (write) => driver.settle(write, LOST));
    expect(driver.writes.some(({ timeoutSeconds }) => timeoutSeconds === 5)).toBe(true);
  });
});

test('a renewal that is still on its way and newer leaves no doubt about a lapse before it', () => {
  const { driver, one } = twoLengths('increasing', 60, 60);
  driver.market('AAA').belief.server = { startTime: SERVER_EPOCH - 70, cancellationTime: SERVER_EPOCH - 10 };
  driver.apply(one);
  expect(driver.notices('lapsed')).toEqual([
    expect.objectContaining({ certainty: 'certain', unresolved: 0 }),
  ]);
});

test('a lapse within the cancellation delay and a second is never certain, however short the delay', () => {
  const driver = createDriver({ cancellationDelayMs: 50 });
  driver.arm();
  driver.wait(6000);
  driver.apply(driver.takeOne(), { startTime: SERVER_EPOCH + 61 });
  expect(driver.notices('lapsed').map(({ certainty }) => certainty)).toEqual(['possible']);
});
