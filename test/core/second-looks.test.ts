import { describe, expect, test } from 'vitest';
import { dueAt } from '../../src/core/due.ts';
import { coreSettings, type SettingsOptions } from './core-settings.ts';
import {
  createDriver,
  type Driver,
  HTTP_500,
  LOST,
  NOT_SENT,
  noticesIn,
  SERVER_EPOCH,
  STALE_NONCE,
  type Write,
} from './driver.ts';

const TRIP = { mode: 'beat', ttlMs: 15_000, onStale: 'trip' } as const;

const say = (driver: Driver, says: 'beat' | 'goodbye' | 'fail', bot = 'bot', agoMs = 0) =>
  driver.feed({ kind: 'evidence', bot, says, agoMs });
const cuts = (driver: Driver) => driver.writes.filter(({ timeoutSeconds }) => timeoutSeconds === 5);
const stateOf = (driver: Driver, bot = 'bot') => driver.state.bots.get(bot)?.state;

function watched(options: SettingsOptions = {}): Driver {
  const driver = createDriver({ ...options, liveness: TRIP });
  for (const bot of driver.state.bots.keys()) say(driver, 'beat', bot);
  driver.live(1000);
  driver.take();
  return driver;
}

function operate(driver: Driver, does: 'arm' | 'disarm') {
  return driver.feed({ kind: 'operate', command: { does, markets: null, forMs: 0 } });
}

describe('a bot that failed', () => {
  test('does not end well any more: its goodbye deletes nothing', () => {
    const driver = watched();
    say(driver, 'fail');
    say(driver, 'goodbye');
    expect(stateOf(driver)).toBe('failed');
    driver.live(20_000);
    expect(driver.writes.some(({ timeoutSeconds }) => timeoutSeconds === null)).toBe(false);
  });

  test('stays failed when a beat comes in that is too old to count', () => {
    const driver = watched();
    say(driver, 'fail');
    say(driver, 'beat', 'bot', 20_000);
    expect(stateOf(driver)).toBe('failed');
  });

  test('is not tripped by a stop that has begun', () => {
    const driver = watched();
    driver.feed({ kind: 'stop', policy: 'keep', why: 'SIGTERM' });
    say(driver, 'fail');
    driver.live(5000);
    expect(cuts(driver)).toEqual([]);
  });

  test('does not cut a timer that an operator took out of guard', () => {
    const driver = watched();
    operate(driver, 'disarm');
    for (const write of driver.take()) driver.settle(write, LOST);
    say(driver, 'fail');
    driver.live(5000, 20, (write) => driver.settle(write, LOST));
    expect(cuts(driver)).toEqual([]);
  });

  test('cuts the timer of a market that a reload gives to it', () => {
    const driver = watched({ markets: ['AAA:60:one', 'BBB:60:two'] });
    say(driver, 'fail', 'two');
    driver.live(1000);
    expect(cuts(driver).map(({ market }) => market)).toEqual(['BBB']);
    driver.feed({
      kind: 'reload',
      settings: coreSettings({ markets: ['AAA:60:two', 'BBB:60:two'], liveness: TRIP }),
    });
    driver.live(1000);
    expect(cuts(driver).map(({ market }) => market)).toEqual(['BBB', 'AAA']);
  });

  test('is told of once, also when its market is held and released meanwhile', () => {
    const driver = watched();
    say(driver, 'fail');
    say(driver, 'fail');
    operate(driver, 'disarm');
    operate(driver, 'arm');
    expect(driver.notices('suspended')).toHaveLength(1);
    expect(driver.notices('bot').filter(({ state }) => state === 'failed')).toHaveLength(1);
  });
});

test('a step of the wall clock makes evidence doubtful, and trips nobody whose bot goes on', () => {
  const driver = watched();
  for (let beats = 0; beats < 20; beats += 1) {
    driver.live(3000);
    say(driver, 'beat');
  }
  driver.move({ monoMs: 1, wallMs: 60_000 });
  driver.live(2000);
  expect(stateOf(driver)).toBe('stale');
  expect(cuts(driver)).toEqual([]);
  say(driver, 'beat');
  driver.live(2000);
  expect(stateOf(driver)).toBe('alive');
});

test('what fired after a trip fired on purpose: the next arming tells of no lapse', () => {
  const driver = watched();
  say(driver, 'fail');
  driver.live(10_000);
  expect(cuts(driver)).toHaveLength(1);
  say(driver, 'beat');
  driver.live(2000, 20, (write) => driver.apply(write, { startTime: SERVER_EPOCH + 60 }));
  expect(driver.notices('lapsed')).toEqual([]);
});

describe('several markets that fail', () => {
  const fail = (driver: Driver, write: Write) => driver.settle(write, HTTP_500);

  test('and one that fails alone, after an answer came, are no outage', () => {
    const driver = createDriver({ markets: ['AAA', 'BBB'], nonce: 'window' });
    driver.arm();
    driver.wait(6000);
    for (const write of driver.take()) fail(driver, write);
    driver.live(10_000);
    driver.live(20_000, 20, (write) => (write.market === 'BBB' ? fail(driver, write) : undefined));
    const alone = driver.notices('attempt-failed').filter(({ market }) => market === 'BBB');
    expect(alone.length).toBeGreaterThan(4);
    expect(driver.notices('outage-began')).toEqual([]);
  });

  test('stay at the first address where nobody says that the others serve the same account', () => {
    const driver = createDriver({ markets: ['AAA', 'BBB'], bases: ['one', 'two'] });
    driver.arm();
    driver.live(60_000, 20, (write) => fail(driver, write));
    expect(driver.notices('outage-began').length).toBeGreaterThan(0);
    expect(driver.writes.every(({ base }) => base === 0)).toBe(true);
  });
});

describe('a success', () => {
  test('ends the need for a fresh connection', () => {
    const driver = createDriver();
    driver.arm();
    driver.wait(6000);
    driver.settle(driver.takeOne(), LOST);
    driver.wait(6000);
    const second = driver.takeOne();
    expect(second.fresh).toBe(true);
    driver.apply(second);
    driver.wait(7000);
    expect(driver.take()[0]?.fresh).toBe(false);
  });

  test('gives stale nonces their three quick tries back', () => {
    const driver = createDriver();
    driver.arm();
    for (let round = 0; round < 2; round += 1) {
      driver.wait(6500);
      const from = driver.sinceStartMs();
      for (let tries = 0; tries < 3; tries += 1) driver.settle(driver.takeOne(), STALE_NONCE);
      driver.apply(driver.takeOne());
      expect(driver.sinceStartMs()).toBe(from);
    }
  });

  test('with a much shorter timer than asked for is followed by three attempts within it', () => {
    const driver = createDriver();
    driver.tick();
    driver.apply(driver.takeOne(), { timeout: 13 });
    driver.wait(3900);
    expect(driver.take()).toEqual([]);
    driver.wait(200);
    expect(driver.take()).toHaveLength(1);
  });

  test('with a timer that is only a little shorter leaves the cadence as it is', () => {
    const driver = createDriver();
    driver.tick();
    driver.apply(driver.takeOne(), { timeout: 40 });
    driver.wait(5900);
    expect(driver.take()).toEqual([]);
    driver.wait(200);
    expect(driver.take()).toHaveLength(1);
  });
});

test("another market's success does not end a streak of failures", () => {
  const driver = createDriver({ markets: ['AAA', 'BBB'], nonce: 'window' });
  driver.arm();
  driver.live(30_000, 20, (write) =>
    write.market === 'AAA' ? driver.settle(write, NOT_SENT) : driver.apply(write),
  );
  const streaks = driver.notices('attempt-failed').map(({ streak }) => streak);
  expect(streaks.length).toBeGreaterThan(3);
  expect(streaks).toEqual(streaks.map((_, place) => place + 1));
});

test('two gaps are two lapses', () => {
  const driver = createDriver({ markets: ['AAA:10'], requestLifetimeMs: 0 });
  driver.arm();
  for (let gap = 1; gap <= 2; gap += 1) {
    driver.live(20_000, 20, (write) => driver.settle(write, NOT_SENT));
    expect(driver.notices('lapsed')).toHaveLength(gap);
    driver.live(2000);
  }
  expect(driver.market('AAA').lapses).toBe(2);
});

test('an attempt is given as long as answers may take: the smoothed round trip and four deviations, thrice', () => {
  const driver = createDriver({ markets: ['AAA:5'] });
  driver.tick();
  const first = driver.takeOne();
  driver.move({ monoMs: 200 });
  driver.apply(first);
  driver.wait(900);
  const [attempt] = driver.market('AAA').inFlight;
  // 200 ms and 4 x 100 ms.
  expect((attempt?.deadlineMs ?? 0) - (attempt?.writtenMs ?? 0)).toBeCloseTo(1800, 0);
});

describe('the last requests of a budget', () => {
  /** One market that is due, with so much of the budget of 100 used up. */
  function spent(requests: number): Driver {
    const driver = createDriver({ budget: { requests: 100, windowMs: 10_000 } });
    driver.arm();
    driver.live(4000);
    driver.take();
    driver.state.settled.splice(0);
    driver.state.settledHead = 0;
    driver.state.settled.push(...Array.from({ length: requests }, () => driver.now().monoMs));
    dueAt(driver.state, driver.market('AAA'), driver.now().monoMs);
    return driver;
  }

  test('are kept back for the most urgent renewal and for deletes, the very last one for deletes', () => {
    const urgent = spent(98);
    urgent.tick();
    expect(urgent.take()).toHaveLength(1);
    const renewal = spent(99);
    renewal.tick();
    expect(renewal.take()).toEqual([]);
    const deletion = spent(99);
    operate(deletion, 'disarm');
    expect(deletion.take().map(({ timeoutSeconds }) => timeoutSeconds)).toEqual([null]);
    const nothing = spent(100);
    operate(nothing, 'disarm');
    expect(nothing.take()).toEqual([]);
  });

  test('are waited for until the window has room again, and no longer', () => {
    const driver = spent(100);
    const fromMs = driver.sinceStartMs();
    driver.wait(9900);
    expect(driver.take()).toEqual([]);
    driver.wait(700);
    expect(driver.take()[0]?.atMs).toBeCloseTo(fromMs + 10_000 + 2, -1);
  });
});

test('a limiter that let a request go past it is hardly waited for, until it answers again', () => {
  const driver = createDriver({ nonce: 'window' }, 'manual');
  const asked = (effects: ReturnType<Driver['feed']>) =>
    effects.flatMap((effect) => (effect.kind === 'acquire' ? [effect.withinMs] : []));
  expect(asked(driver.tick())).toEqual([250]);
  const granted = driver.feed({ kind: 'granted', permits: 1, how: 'overdue' });
  expect(noticesIn(granted, 'limiter-bypassed')).toEqual([{ kind: 'limiter-bypassed', permits: 1 }]);
  driver.settle(driver.takeOne(), NOT_SENT);
  driver.move({ monoMs: 600 });
  expect(asked(driver.tick())).toEqual([50]);
  const inTurn = driver.feed({ kind: 'granted', permits: 1, how: 'in-turn' });
  expect(noticesIn(inTurn, 'limiter-bypassed')).toEqual([]);
  driver.settle(driver.takeOne(), NOT_SENT);
  driver.move({ monoMs: 600 });
  expect(asked(driver.tick())).toEqual([250]);
});
