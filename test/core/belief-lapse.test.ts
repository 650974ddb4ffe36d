import { describe, expect, test } from 'vitest';
import type { SettingsOptions } from './core-settings.ts';
import { createDriver, HTTP_500, LOST, NOT_SENT, SERVER_EPOCH } from './driver.ts';

/** A timer of 10 s that ends at second 10 of the exchange's clock, and the next renewal of it, unanswered. */
function armed(options: SettingsOptions = {}) {
  const driver = createDriver({ markets: ['AAA:10'], ...options });
  driver.tick();
  driver.apply(driver.takeOne());
  driver.wait(1000);
  return { driver, write: driver.takeOne() };
}

describe('a renewal that starts after the end of the timer before it', () => {
  test.each([
    [9, 0, null],
    // The very second of that end.
    [10, 0, 'possible'],
    [11, 0, 'certain'],
    [12, 2000, 'possible'],
    [13, 2000, 'certain'],
  ] as const)(
    'at second %i of an exchange that may take %i ms to fire is %s',
    (second, delayMs, certainty) => {
      const { driver, write } = armed({ cancellationDelayMs: delayMs });
      driver.apply(write, { startTime: SERVER_EPOCH + second });
      const lapse = {
        kind: 'lapsed',
        market: 'AAA',
        certainty,
        gapMs: 1000,
        unresolved: 0,
        rearms: true,
        held: false,
      };
      expect(driver.notices('lapsed')).toEqual(certainty === null ? [] : [lapse]);
      expect(driver.market('AAA').stats.lapses).toBe(certainty === null ? 0 : 1);
    },
  );
});

describe('a renewal whose answer was lost may have carried the timer over the gap', () => {
  test('so nobody can be certain of a lapse', () => {
    const { driver, write } = armed();
    driver.settle(write, LOST);
    driver.wait(2500);
    driver.apply(driver.takeOne(), { startTime: SERVER_EPOCH + 15 });
    expect(driver.notices('lapsed')).toEqual([
      expect.objectContaining({ certainty: 'possible', unresolved: 1 }),
    ]);
  });

  test('also while it is still in flight', () => {
    const { driver } = armed();
    driver.wait(1000);
    driver.apply(driver.takeOne(), { startTime: SERVER_EPOCH + 15 });
    expect(driver.notices('lapsed')[0]).toMatchObject({ certainty: 'possible', unresolved: 1 });
  });

  test('but one that never left, or was answered since, may not', () => {
    const { driver, write } = armed();
    driver.settle(write, NOT_SENT);
    driver.wait(2500);
    driver.apply(driver.takeOne(), { startTime: SERVER_EPOCH + 15 });
    expect(driver.notices('lapsed')[0]).toMatchObject({ certainty: 'certain', unresolved: 0 });
  });

  test('and the doubt ends with the next confirmation', () => {
    const { driver, write } = armed();
    driver.settle(write, HTTP_500);
    driver.wait(2500);
    driver.apply(driver.takeOne());
    driver.wait(1000);
    driver.apply(driver.takeOne(), { startTime: SERVER_EPOCH + 60 });
    expect(driver.notices('lapsed')[0]).toMatchObject({ certainty: 'certain', unresolved: 0 });
  });
});

describe('one gap', () => {
  test('is reported once, also where time alone had shown it before the answer does', () => {
    const { driver, write } = armed();
    driver.settle(write, NOT_SENT);
    driver.live(40_000, 5, (one) => driver.settle(one, NOT_SENT));
    expect(driver.notices('lapsed')).toEqual([
      expect.objectContaining({ market: 'AAA', certainty: 'certain', unresolved: 0 }),
    ]);
    driver.live(3000);
    expect(driver.notices('renewed').length).toBeGreaterThan(1);
    expect(driver.notices('lapsed')).toHaveLength(1);
    expect(driver.market('AAA').stats.lapses).toBe(1);
  });

  test('that nobody heard of is not claimed while a lost renewal could have bridged it', () => {
    const { driver, write } = armed();
    driver.settle(write, LOST);
    driver.live(15_000, 5, (one) => driver.settle(one, LOST));
    expect(driver.notices('overdue')).toHaveLength(1);
    expect(driver.notices('lapsed')).toEqual([]);
  });

  test('is followed by the next report of the next gap', () => {
    const { driver, write } = armed();
    driver.apply(write, { startTime: SERVER_EPOCH + 11 });
    driver.wait(1000);
    driver.apply(driver.takeOne(), { startTime: SERVER_EPOCH + 50 });
    expect(driver.notices('lapsed')).toHaveLength(2);
    expect(driver.market('AAA').stats.lapses).toBe(2);
  });
});

describe('the guarantee', () => {
  test('running out is said once, with the moment, and before the lapse is known', () => {
    const { driver, write } = armed();
    driver.settle(write, HTTP_500);
    driver.live(8500, 5, (one) => driver.settle(one, HTTP_500));
    expect(driver.notices('overdue')).toEqual([
      {
        kind: 'overdue',
        market: 'AAA',
        expiryWallMs: expect.closeTo(SERVER_EPOCH * 1000 + 9000 - 2, 0),
        leftToFire: false,
      },
    ]);
  });

  test('running out is said again after it was good again', () => {
    const { driver, write } = armed();
    driver.settle(write, NOT_SENT);
    driver.live(12_000, 5, (one) => driver.settle(one, NOT_SENT));
    driver.live(3000);
    driver.live(15_000, 5, (one) => driver.settle(one, NOT_SENT));
    expect(driver.notices('overdue')).toHaveLength(2);
  });
});

test('a renewal whose answer comes when its own time is up arms nothing', () => {
  const { driver, write } = armed();
  driver.move({ monoMs: 12_000 });
  driver.apply(write, { startTime: SERVER_EPOCH + 1 });
  expect(driver.notices('renewed').map(({ first }) => first)).toEqual([true, false]);
});

test('a lapse that is found after the bot has died is not said to be armed again', () => {
  const { driver, write } = armed({ liveness: { mode: 'beat', ttlMs: 60_000 } });
  driver.settle(write, NOT_SENT);
  driver.live(9000, 5, (one) => driver.settle(one, NOT_SENT));
  driver.say('fail');
  driver.live(30_000, 5, (one) => driver.settle(one, NOT_SENT));
  expect(driver.notices('lapsed')).toMatchObject([{ rearms: false, held: false }]);
});

test('a lapse of a market that leaves is not said to be armed again', () => {
  const options = { markets: ['AAA:30', 'BBB:30'], shutdown: { policy: 'handoff' } } as const;
  const driver = createDriver(options);
  driver.arm();
  driver.reload({ ...options, markets: ['BBB:30'] });
  driver.live(50_000, 5, (one) => driver.settle(one, NOT_SENT));
  expect(driver.notices('lapsed')).toContainEqual(
    expect.objectContaining({ market: 'AAA', rearms: false, held: false }),
  );
});

describe('onLapse: hold', () => {
  test('renews no more after a lapse, and says that it does not', () => {
    const { driver, write } = armed({ onLapse: 'hold' });
    driver.apply(write, { startTime: SERVER_EPOCH + 60 });
    expect(driver.notices('lapsed')[0]).toMatchObject({ certainty: 'certain', rearms: false, held: true });
    driver.live(60_000);
    expect(driver.writes).toHaveLength(2);
  });

  test('makes no new timer after a lapse that time alone has shown', () => {
    const { driver, write } = armed({ onLapse: 'hold' });
    driver.settle(write, NOT_SENT);
    driver.live(40_000, 5, (one) => driver.settle(one, NOT_SENT));
    expect(driver.notices('lapsed')[0]).toMatchObject({ rearms: false });
    driver.take();
    driver.live(20_000);
    expect(driver.take()).toEqual([]);
  });
});

test('nothing is overdue while the answer to the last renewal in time is on its way', () => {
  const driver = createDriver({ markets: ['AAA:5'] });
  driver.live(2500);
  // Every renewal fails until the last one before the guarantee ends, which is answered just after that.
  driver.live(4500, 20, (write) => {
    if (write.atMs < 5900) driver.settle(write, HTTP_500);
    else driver.apply(write);
  });
  expect(driver.notices('attempt-failed').length).toBeGreaterThan(3);
  expect(driver.notices('overdue')).toEqual([]);
});
