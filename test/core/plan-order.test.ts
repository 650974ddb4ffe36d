import { describe, expect, test } from 'vitest';
import { dueAt } from '../../src/core/due.ts';
import { isThrottled } from '../../src/core/rate.ts';
import { coreSettings, type SettingsOptions } from './core-settings.ts';
import {
  BAD_KEY,
  createDriver,
  type Driver,
  HTTP_500,
  LOST,
  NO_MARKET,
  NOT_SENT,
  ping,
  type Write,
} from './driver.ts';

const names = (writes: readonly Write[]) => writes.map(({ market }) => market);
const operate = (driver: Driver, does: 'trip' | 'disarm' | 'arm', ...markets: string[]) =>
  driver.feed({ kind: 'operate', command: { does, markets, forMs: 0 } });

/**
 * Markets that are all due now, one request at a time. By name: the seconds that are left of 60; null for one that was
 * never armed, and a number below 0 for one that has lapsed.
 */
function dueAtOnce(left: Readonly<Record<string, number | null>>, afterMs = 5000): Driver {
  const driver = createDriver({ markets: Object.keys(left) });
  driver.live(afterMs);
  const { state } = driver;
  for (const [name, seconds] of Object.entries(left)) {
    const market = driver.market(name);
    dueAt(driver.state, market, driver.now().monoMs);
    market.confirmedOnce = seconds !== null;
    market.belief.notBeforeLifeMs = seconds === null ? null : state.lifeMs + seconds * 1000;
    market.belief.notBeforeAwakeMs = seconds === null ? null : driver.now().monoMs + seconds * 1000;
  }
  driver.take();
  return driver;
}
function orderOf(left: Readonly<Record<string, number | null>>, afterMs?: number): string[] {
  const driver = dueAtOnce(left, afterMs);
  const { length } = driver.writes;
  driver.live(400);
  return names(driver.writes.slice(length));
}

describe('of several markets that are due at once', () => {
  test('those that press go first, then new ones, then those with time, then what has lapsed', () => {
    // How long the daemon runs by then makes no difference.
    for (const afterMs of [5000, 65_000]) {
      const order = orderOf({ GONE: -1, TIME: 50, NEW: null, HALF: 27 }, afterMs);
      expect(order).toEqual(['HALF', 'NEW', 'TIME', 'GONE']);
    }
  });

  test('one with more than half of its time left does not press', () => {
    expect(orderOf({ TIME: 33, NEW: null })).toEqual(['NEW', 'TIME']);
  });

  test('new ones go in the order of the configuration', () => {
    expect(orderOf({ ONE: null, TWO: null, THREE: null })).toEqual(['ONE', 'TWO', 'THREE']);
  });

  test('one that presses goes before a delete, and a delete before one that has time', () => {
    const driver = dueAtOnce({ GONE: 50, TIME: 50, HALF: 20 });
    operate(driver, 'disarm', 'GONE');
    driver.live(400);
    expect(names(driver.writes.slice(-3))).toEqual(['HALF', 'GONE', 'TIME']);
  });

  test('one that presses goes before a delete where nothing else is due', () => {
    const driver = dueAtOnce({ GONE: 50, HALF: 20 });
    operate(driver, 'disarm', 'GONE');
    driver.live(400);
    expect(names(driver.writes.slice(-2))).toEqual(['HALF', 'GONE']);
  });
});

describe('the last attempt before the deadline', () => {
  /** How long before the deadline attempts left, at a round trip of 100 ms, the last one first. */
  function leftMs(answer: (driver: Driver, write: Write) => void, markets = ['AAA:30']): number[] {
    const driver = createDriver({ markets, nonce: markets.length > 1 ? 'window' : 'increasing' });
    driver.live(4000, 100);
    const untilMs = Math.min(
      ...driver.state.markets.map(({ belief }) => (belief.notBeforeLifeMs ?? 0) - driver.state.lifeMs),
    );
    const endMs = driver.state.now.monoMs - driver.now().monoMs + driver.sinceStartMs() + untilMs;
    driver.live(40_000, 100, (write) => answer(driver, write));
    return driver.writes
      .map(({ atMs }) => endMs - atMs)
      .filter((ms) => ms > 0)
      .toReversed();
  }

  test('leaves time for a quarter of a round trip over a connection that is open', () => {
    const [ms] = leftMs((driver, write) => driver.settle(write, NOT_SENT));
    expect(ms).toBeGreaterThan(23);
    expect(ms).toBeLessThan(27);
  });

  test('leaves time to open a connection where the one before ran into its time-out', () => {
    const [ms] = leftMs((driver, write) => driver.settle(write, LOST));
    expect(ms).toBeGreaterThan(148);
    expect(ms).toBeLessThan(152);
  });

  test('of an outage leaves time for four round trips', () => {
    const markets = ['AAA:30', 'BBB:30', 'CCC:30'];
    const all = leftMs((driver, write) => driver.settle(write, NOT_SENT), markets);
    expect(all.filter((ms) => ms > 395 && ms < 405)).toHaveLength(1);
  });
});

describe('a refused key', () => {
  const refused = (options: SettingsOptions = {}) => {
    const driver = createDriver(options);
    driver.arm();
    driver.live(30_000, 20, (write) => driver.settle(write, BAD_KEY));
    expect(driver.notices('unauthorised')).toHaveLength(1);
    return driver;
  };

  test('is probed over a fresh connection', () => {
    const driver = refused({ markets: ['AAA:10'] });
    const { length } = driver.writes;
    driver.live(70_000, 20, (write) => driver.settle(write, BAD_KEY));
    expect(driver.writes.slice(length).map(({ fresh }) => fresh)).toEqual([true]);
  });

  test('is probed by nothing where nothing is guarded, and nothing breaks', () => {
    const driver = refused({ markets: ['AAA:10'] });
    driver.live(15_000);
    operate(driver, 'disarm', 'AAA');
    const { length } = driver.writes;
    driver.live(200_000);
    expect(driver.writes.length).toBe(length);
  });

  test('that is good again hurries all but what the exchange refuses', () => {
    const driver = createDriver({ markets: ['AAA:600', 'BBB:600', 'CCC:600', 'WRONG:600'] });
    driver.tick();
    for (let write = driver.take()[0]; write !== undefined; write = driver.take()[0]) {
      if (write.market === 'WRONG') driver.settle(write, NO_MARKET);
      else driver.apply(write);
    }
    while (driver.notices('unauthorised').length === 0)
      driver.live(100, 20, (write) => driver.settle(write, BAD_KEY));
    const { length } = driver.writes;
    driver.feed({ kind: 'credentials-changed' });
    driver.live(500);
    expect(names(driver.writes.slice(length)).toSorted()).toEqual(['AAA', 'BBB', 'CCC']);
  });
});

test('a timer that fires within 5 s by itself is not cut, whatever longer one was lost before it', () => {
  const options = { liveness: { mode: 'beat', ttlMs: 600_000, onStale: 'trip' } } as const;
  const driver = createDriver({ ...options, markets: ['AAA:600'] });
  driver.feed({ kind: 'evidence', bot: 'bot', says: 'beat', agoMs: 0 });
  driver.arm();
  driver.wait(10_100);
  driver.settle(driver.takeOne(), LOST);
  driver.feed({ kind: 'reload', settings: coreSettings({ ...options, markets: ['AAA:6'] }) });
  driver.wait(300);
  driver.apply(driver.takeOne());
  driver.wait(990);
  for (const write of driver.take()) driver.settle(write, NOT_SENT);
  driver.feed({ kind: 'evidence', bot: 'bot', says: 'fail', agoMs: 0 });
  driver.live(10_000, 20, (write) => driver.settle(write, NOT_SENT));
  expect(driver.writes.filter(({ timeoutSeconds }) => timeoutSeconds === 5)).toEqual([]);
});

describe('two addresses of one account', () => {
  const bases = ['https://one.example', 'https://two.example'];

  test('that are both out are tried by different markets', () => {
    const markets = ['AAA', 'BBB', 'CCC', 'DDD'];
    const driver = createDriver({ markets, bases, sameAccount: true, nonce: 'window' });
    driver.arm();
    driver.live(40_000, 20, (write) => driver.settle(write, NOT_SENT));
    expect(driver.notices('outage-began').map(({ base }) => base)).toEqual([0, 1]);
    const at = Map.groupBy(driver.writes.slice(12), ({ atMs }) => atMs);
    const together = [...at.values()].filter(({ length }) => length > 1);
    for (const writes of together) expect(new Set(names(writes)).size).toBe(writes.length);
    expect(new Set(driver.writes.slice(12).map(({ base }) => base))).toEqual(new Set([0, 1]));
  });

  test('of which the first is not pinged well, but carries renewals, are left as they are', () => {
    const driver = createDriver({ bases, sameAccount: true });
    ping(driver, false, 0);
    ping(driver, true, 1);
    driver.live(20_000);
    expect(driver.writes.length).toBeGreaterThan(2);
    expect(new Set(driver.writes.map(({ base }) => base))).toEqual(new Set([0]));
  });

  test('of which the first comes back: it is tried by one market, which is not asked for twice', () => {
    const markets = ['AAA:10', 'BBB:10', 'CCC:10', 'DDD:10'];
    const driver = createDriver({ markets, bases, sameAccount: true, nonce: 'window' });
    driver.arm();
    const firstIsOut = (write: Write) => {
      if (write.base === 0) driver.settle(write, HTTP_500);
      else driver.apply(write);
    };
    ping(driver, false, 0);
    driver.live(10_000, 20, firstIsOut);
    ping(driver, false, 0);
    const before = driver.writes.length;
    driver.live(5000, 20, firstIsOut);
    expect(driver.writes.slice(before).every(({ base }) => base === 1)).toBe(true);
    const { length } = driver.writes;
    ping(driver, true, 0);
    driver.live(3000, 20, firstIsOut);
    const after = driver.writes.slice(length);
    expect(after.some(({ base }) => base === 0)).toBe(true);
    for (const write of after.filter(({ base }) => base === 0)) {
      const soon = after.filter(
        ({ market, atMs }) => market === write.market && Math.abs(atMs - write.atMs) < 5,
      );
      expect(soon).toHaveLength(1);
    }
  });
});

test('a request that takes a connection of its own takes no lane from the others', () => {
  const driver = createDriver({ markets: ['AAA', 'BBB'] });
  driver.live(5000);
  const { monoMs } = driver.now();
  for (const market of driver.state.markets) dueAt(driver.state, market, monoMs + 10);
  driver.market('AAA').timedOut = true;
  driver.take();
  driver.wait(300);
  const writes = driver.take();
  expect(writes.map(({ market, fresh }) => [market, fresh])).toEqual([
    ['AAA', true],
    ['BBB', false],
  ]);
  expect(new Set(writes.map(({ atMs }) => atMs)).size).toBe(1);
});

test('permits that were left over may be spent for a second, and then are asked for anew', () => {
  const asked = (afterMs: number) => {
    const driver = createDriver({}, 'manual');
    driver.tick();
    driver.feed({ kind: 'granted', permits: 2, how: 'in-turn' });
    driver.apply(driver.takeOne());
    dueAt(driver.state, driver.market('AAA'), driver.now().monoMs + afterMs);
    driver.state.nextDueMs = driver.market('AAA').nextMs;
    driver.wait(afterMs + 30);
    return [driver.effects.filter(({ kind }) => kind === 'acquire').length, driver.take().length];
  };
  expect(asked(950)).toEqual([1, 1]);
  expect(asked(1050)).toEqual([2, 0]);
});

test('an attempt that leaves when it is due is said to be 0 ms late', () => {
  const driver = createDriver();
  driver.live(6500);
  expect(driver.notices('attempt').map(({ delayMs }) => delayMs)).toEqual([0, 0]);
});

test('retries keep their larger distance for 5 s after a 429', () => {
  const driver = createDriver();
  driver.tick();
  const throttledAgo = (ms: number) => {
    driver.state.lastThrottledMs = driver.state.now.monoMs - ms;
    return isThrottled(driver.state);
  };
  expect([0, 4999, 5000].map(throttledAgo)).toEqual([true, true, false]);
});

test('a cut that fails is tried again every half second, to the moment', () => {
  const driver = createDriver({ liveness: { mode: 'beat', ttlMs: 600_000, onStale: 'trip' } });
  driver.feed({ kind: 'evidence', bot: 'bot', says: 'beat', agoMs: 0 });
  driver.live(2000);
  const { length } = driver.writes;
  driver.feed({ kind: 'evidence', bot: 'bot', says: 'fail', agoMs: 0 });
  driver.live(5000, 20, (write) => driver.settle(write, NOT_SENT));
  const moments = driver.writes.slice(length).map(({ atMs }) => atMs);
  const gaps = moments.slice(1).map((atMs, place) => atMs - (moments[place] ?? 0));
  expect(gaps.length).toBeGreaterThan(8);
  expect(Math.max(...gaps)).toBeLessThanOrEqual(501);
});
