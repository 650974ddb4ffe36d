import { describe, expect, test } from 'vitest';
import { armed, createDriver, type Driver, LOST } from './driver.ts';

const STAY = 'AAA has no timer any more: its orders stay.';
const PERHAPS =
  'AAA has no timer any more, and it may have fired before it was deleted: check which orders are left.';
const FIRED = 'AAA has no timer any more: it has fired.';
const DELETED = { kind: 'deleted' } as const;

/** Only what was written right now. */
function lose(driver: Driver, forMs: number): void {
  driver.live(forMs, 20, (write) => driver.settle(write, LOST));
}
const said = (driver: Driver) => driver.notices('deleted').map(({ mayHaveFired }) => mayHaveFired);

/** One timer of 60 s that was written at 0 and confirmed at once, and the delete of it, which has just left. */
function deleting() {
  const driver = createDriver();
  driver.arm();
  driver.wait(1000);
  driver.operate('disarm');
  return { driver, write: driver.takeOne() };
}

describe('orders are said to stay', () => {
  test('to the end of the time for which the timer was surely armed', () => {
    const { driver, write } = deleting();
    driver.wait(57_900);
    driver.settle(write, DELETED);
    expect(said(driver)).toEqual([false]);
    expect(driver.progress('disarm').says).toBe(STAY);
  });

  test('whatever answers to a second delete after that', () => {
    const { driver, write } = deleting();
    driver.wait(4000);
    for (const other of driver.take()) driver.settle(other, DELETED);
    driver.wait(60_000);
    driver.settle(write, DELETED);
    expect(said(driver).length).toBeGreaterThan(2);
    expect(said(driver).some(Boolean)).toBe(false);
    expect(driver.progress('disarm').says).toBe(STAY);
  });

  test('where no renewal was ever confirmed, and the first was lost', () => {
    const driver = createDriver();
    driver.tick();
    driver.settle(driver.takeOne(), LOST);
    driver.operate('disarm');
    driver.settle(driver.takeOne(), DELETED);
    expect(said(driver)).toEqual([false]);
    expect(driver.progress('disarm').says).toBe(STAY);
  });

  test('where there never was a timer', () => {
    const driver = createDriver();
    driver.operate('disarm');
    expect(driver.progress('disarm').says).toBe(STAY);
  });

  test('again, once a timer was armed and deleted in time after one that may have fired', () => {
    const { driver, write } = deleting();
    driver.wait(59_000);
    driver.settle(write, DELETED);
    driver.operate('arm');
    driver.live(3000);
    driver.operate('disarm');
    driver.live(1000);
    expect(said(driver).slice(-1)).toEqual([false]);
    expect(driver.progress('disarm').says).toBe(STAY);
  });
});

describe('orders are said to stay once a delete was confirmed in time', () => {
  test('also where the next timer was never confirmed', () => {
    const driver = createDriver();
    driver.arm();
    driver.wait(1000);
    driver.operate('disarm');
    driver.settle(driver.takeOne(), DELETED);
    driver.wait(99_000);
    driver.operate('arm');
    driver.settle(driver.takeOne(), LOST);
    driver.operate('disarm');
    driver.wait(1000);
    for (const write of driver.take()) driver.settle(write, DELETED);
    expect(said(driver).slice(0, 2)).toEqual([false, false]);
    expect(driver.progress('disarm').says).toBe(STAY);
  });
});

describe('orders are not said to stay', () => {
  test('where no delete was answered until the timer was over, and the command is given again', () => {
    const { driver, write } = deleting();
    driver.settle(write, LOST);
    lose(driver, 80_000);
    driver.operate('disarm');
    expect(driver.progress('disarm')).toMatchObject({ state: 'done', says: PERHAPS });
  });

  test('where the timer ran out, its bot was silent and came back, and a delete followed', () => {
    const driver = armed({ liveness: { mode: 'beat', ttlMs: 65_000 } });
    driver.say('beat');
    driver.take();
    lose(driver, 70_000);
    driver.say('beat');
    for (const write of driver.take()) driver.settle(write, LOST);
    driver.operate('pause', null, 600_000);
    driver.live(3000);
    expect(said(driver)).toEqual([true]);
    expect(driver.progress('pause').says).toBe(PERHAPS);
  });

  test('from the moment on at which the timer may have fired before its delete was confirmed', () => {
    const { driver, write } = deleting();
    driver.wait(58_000);
    driver.settle(write, DELETED);
    expect(said(driver)).toEqual([true]);
    expect(driver.progress('disarm').says).toBe(PERHAPS);
  });

  test('nor by the answer to a second delete', () => {
    const { driver, write } = deleting();
    driver.wait(4000);
    const others = driver.take();
    driver.wait(55_000);
    for (const late of [write, ...others]) driver.settle(late, DELETED);
    expect(said(driver).every(Boolean)).toBe(true);
    expect(driver.progress('disarm').says).toBe(PERHAPS);
  });

  test('where the deletes before it were lost, whichever answers first', () => {
    const { driver, write } = deleting();
    driver.settle(write, LOST);
    lose(driver, 60_000);
    driver.live(3000);
    expect(said(driver)[0]).toBe(true);
    expect(driver.progress('disarm').says).toBe(PERHAPS);
    driver.operate('disarm');
    driver.live(1000);
    expect(driver.progress('disarm').says).toBe(PERHAPS);
  });

  test('where the timer ran out while it was wanted, as in an outage', () => {
    const driver = armed();
    lose(driver, 61_000);
    driver.operate('pause', null, 600_000);
    driver.live(3000);
    expect(said(driver)).toEqual([true]);
    expect(driver.progress('pause').says).toBe(PERHAPS);
  });

  test('by a goodbye either', () => {
    const driver = armed({ liveness: { mode: 'beat', ttlMs: 600_000 } });
    driver.say('beat');
    driver.live(5000);
    lose(driver, 61_000);
    driver.say('goodbye');
    driver.live(3000);
    expect(said(driver)).toEqual([true]);
    expect(driver.progress('goodbye').says).toBe(PERHAPS);
  });

  test('where no renewal was ever confirmed, and the first may have armed a timer that ran out', () => {
    const driver = createDriver();
    lose(driver, 60_000);
    driver.operate('disarm');
    driver.live(3000);
    expect(said(driver)[0]).toBe(true);
    expect(driver.progress('disarm').says).toBe(PERHAPS);
  });

  test('where no renewal was ever confirmed, and the last must have fired if it armed a timer', () => {
    const driver = createDriver({ liveness: { mode: 'beat', ttlMs: 5000 } });
    driver.say('beat');
    lose(driver, 10_000);
    driver.wait(200_000);
    driver.say('goodbye');
    driver.live(3000);
    expect(driver.progress('goodbye').says).toBe(PERHAPS);
  });

  test('of a market whose timer has surely fired', () => {
    const driver = armed();
    driver.operate('trip');
    driver.live(30_000);
    driver.operate('disarm');
    expect(driver.progress('disarm').says).toBe(FIRED);
  });
});
