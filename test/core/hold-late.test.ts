import { describe, expect, test } from 'vitest';
import { armed, createDriver, type Driver, LOST, watched } from './driver.ts';

const DELETED = { kind: 'deleted' } as const;
const STAY = 'AAA has no timer any more: its orders stay.';
const PERHAPS =
  'AAA has no timer any more, and it may have fired before it was deleted: check which orders are left.';

/** Whether each confirmed delete said that the timer may have fired, and what an operator who waits for it is told. */
const told = (driver: Driver) => ({
  said: driver.notices('deleted').map(({ mayHaveFired }) => mayHaveFired),
  says: driver.progress('disarm').says,
});

/** One timer of 60 s that was written at 0 and confirmed at once, and the delete of it, which has just left. */
function deleting() {
  const driver = createDriver();
  driver.arm();
  driver.wait(1000);
  driver.operate('disarm');
  return { driver, write: driver.takeOne() };
}

test.each([
  ['said to stay to the end of the time for which the timer was surely armed', 57_900, false, STAY],
  ['not said to stay from the moment on at which it may have fired before that', 58_000, true, PERHAPS],
])('orders are %s', (_what, afterMs, mayHaveFired, says) => {
  const { driver, write } = deleting();
  driver.wait(afterMs);
  driver.settle(write, DELETED);
  expect(told(driver)).toEqual({ said: [mayHaveFired], says });
});

describe('orders are said to stay', () => {
  test('whatever answers to a second delete after that', () => {
    const { driver, write } = deleting();
    driver.wait(4000);
    for (const other of driver.take()) driver.settle(other, DELETED);
    driver.wait(60_000);
    driver.settle(write, DELETED);
    expect(told(driver).said.length).toBeGreaterThan(2);
    expect(told(driver)).toEqual({ said: told(driver).said.map(() => false), says: STAY });
  });

  test('where no renewal was ever confirmed, and the first was lost', () => {
    const driver = createDriver();
    driver.tick();
    driver.settle(driver.takeOne(), LOST);
    driver.operate('disarm');
    driver.settle(driver.takeOne(), DELETED);
    expect(told(driver)).toEqual({ said: [false], says: STAY });
  });

  test('where there never was a timer', () => {
    const driver = createDriver();
    driver.operate('disarm');
    expect(told(driver)).toEqual({ said: [], says: STAY });
  });

  test('once a delete was confirmed in time, also where the next timer was never confirmed', () => {
    const { driver, write } = deleting();
    driver.settle(write, DELETED);
    driver.wait(99_000);
    driver.operate('arm');
    driver.settle(driver.takeOne(), LOST);
    driver.operate('disarm');
    driver.wait(1000);
    for (const other of driver.take()) driver.settle(other, DELETED);
    expect(told(driver).said.slice(0, 2)).toEqual([false, false]);
    expect(told(driver).says).toBe(STAY);
  });
});

describe('orders are not said to stay', () => {
  test('where no delete was answered until the timer was over, and the command is given again', () => {
    const { driver, write } = deleting();
    driver.settle(write, LOST);
    driver.suffer(80_000, LOST);
    driver.operate('disarm');
    expect(driver.progress('disarm')).toMatchObject({ state: 'done', says: PERHAPS });
  });

  test('where the timer ran out, its bot was silent and came back, and a delete followed', () => {
    const driver = armed({ liveness: { mode: 'beat', ttlMs: 65_000 } });
    driver.say('beat');
    driver.suffer(70_000, LOST);
    driver.say('beat');
    for (const write of driver.take()) driver.settle(write, LOST);
    driver.operate('pause', null, 600_000);
    driver.live(3000);
    expect(told(driver)).toEqual({ said: [true], says: PERHAPS });
  });

  test('nor by the answer to a second delete', () => {
    const { driver, write } = deleting();
    driver.wait(4000);
    const others = driver.take();
    driver.wait(55_000);
    for (const late of [write, ...others]) driver.settle(late, DELETED);
    expect(told(driver)).toEqual({ said: told(driver).said.map(() => true), says: PERHAPS });
  });

  test.each(['pause', 'goodbye'] as const)('where the timer ran out while it was wanted, by a %s', (end) => {
    const driver = watched({ liveness: { ttlMs: 600_000 } });
    driver.live(5000);
    driver.suffer(61_000, LOST);
    if (end === 'goodbye') driver.say('goodbye');
    else driver.operate('pause', null, 600_000);
    driver.live(3000);
    expect(told(driver).said).toEqual([true]);
    expect(driver.progress(end).says).toBe(PERHAPS);
  });

  test('where no renewal was ever confirmed, and the first may have armed a timer that ran out', () => {
    const driver = createDriver();
    driver.suffer(60_000, LOST);
    driver.operate('disarm');
    driver.live(3000);
    expect(told(driver).said[0]).toBe(true);
    expect(told(driver).says).toBe(PERHAPS);
  });

  test('where no renewal was ever confirmed, and the last must have fired if it armed a timer', () => {
    const driver = watched({ liveness: { ttlMs: 5000 } });
    driver.suffer(10_000, LOST);
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
    expect(told(driver).says).toBe('AAA has no timer any more: it has fired.');
  });
});
