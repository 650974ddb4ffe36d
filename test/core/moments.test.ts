import { describe, expect, test } from 'vitest';
import { describe as describeState } from '../../src/core/describe.ts';
import { mayWrite } from '../../src/core/step.ts';
import { coreSettings } from './core-settings.ts';
import { createDriver, type Driver, HTTP_500, LOST, NO_MARKET, NOT_SENT, SERVER_EPOCH } from './driver.ts';

const say = (driver: Driver, says: 'beat' | 'goodbye' | 'fail', bot = 'bot') =>
  driver.feed({ kind: 'evidence', bot, says, agoMs: 0 });
const statusOf = (driver: Driver, name: string) =>
  describeState(driver.state, driver.now()).markets.find(({ market }) => market === name);

describe('a guarantee that runs out while the last attempt is on its way', () => {
  /** Is it said `afterMs` after that attempt was written? */
  function isSaid(afterMs: number, roundTripMs: number | null): boolean {
    const driver = createDriver({ markets: ['AAA:60'] });
    driver.live(5900, roundTripMs ?? 20);
    driver.state.roundTripMs = roundTripMs;
    driver.wait(200);
    const write = driver.takeOne();
    const { belief } = driver.market('AAA');
    belief.notBeforeLifeMs = driver.state.lifeMs - 1000;
    belief.notBeforeAwakeMs = belief.notBeforeLifeMs;
    driver.state.guardedUntilAwakeMs = belief.notBeforeAwakeMs;
    driver.move({ monoMs: write.atMs + afterMs - driver.sinceStartMs() });
    driver.tick();
    return driver.notices('overdue').length > 0;
  }

  test.each([
    [10, 40],
    [40, 160],
    [2, 20],
    [null, 20],
    [100, 250],
  ])('at a round trip of %s ms is said when no answer came within %i ms', (roundTripMs, patienceMs) => {
    expect(isSaid(patienceMs - 1, roundTripMs)).toBe(false);
    expect(isSaid(patienceMs, roundTripMs)).toBe(true);
  });
});

describe('a lapse that is certain without any answer', () => {
  test('is said with the time since the last confirmation', () => {
    const driver = createDriver({ markets: ['AAA:10'] });
    driver.live(5500);
    driver.live(30_000, 20, (write) => driver.settle(write, NOT_SENT));
    const [lapse] = driver.notices('lapsed');
    expect(lapse?.certainty).toBe('certain');
    expect(lapse?.gapMs).toBeGreaterThan(11_000);
    expect(lapse?.gapMs).toBeLessThan(12_000);
    expect(driver.notices('lapsed')).toHaveLength(1);
    expect(driver.notices('overdue')).toHaveLength(1);
  });

  test('takes the market out of guard where the configuration says so', () => {
    const driver = createDriver({ markets: ['AAA:10'], onLapse: 'hold' });
    driver.live(5500);
    driver.live(30_000, 20, (write) => driver.settle(write, NOT_SENT));
    expect(driver.notices('held').map(({ why }) => why)).toEqual(['lapsed']);
    expect(statusOf(driver, 'AAA')?.wanted).toBe(false);
  });
});

describe('a step of the wall clock', () => {
  test('brings the slow probe of a refused market no nearer: the exchange knows nothing of it', () => {
    const driver = createDriver({ markets: ['AAA', 'BBB'] });
    driver.tick();
    driver.settle(driver.takeOne(), NO_MARKET);
    driver.live(1000);
    const { length } = driver.writes;
    driver.move({ monoMs: 10, wallMs: 120_000 });
    driver.live(20_000);
    expect(driver.writes.slice(length).some(({ market }) => market === 'AAA')).toBe(false);
  });
});

describe('new credentials', () => {
  test('where the old ones were good say nothing of a key that is good again', () => {
    const driver = createDriver();
    driver.live(1000);
    driver.feed({ kind: 'credentials-changed' });
    expect(describeState(driver.state, driver.now()).authorised).toBe(true);
    driver.live(20_000);
    expect(driver.notices('authorised-again')).toEqual([]);
  });
});

test('a reload leaves the key as proven as it was: requests still go together', () => {
  const markets = ['AAA', 'BBB', 'CCC'];
  const driver = createDriver({ markets, nonce: 'window' });
  driver.live(1000);
  driver.take();
  driver.feed({
    kind: 'reload',
    settings: coreSettings({ markets: markets.map((name) => `${name}:30`), nonce: 'window' }),
  });
  expect(driver.take()).toHaveLength(3);
});

describe('a delete during a stop', () => {
  const watched = { liveness: { mode: 'beat', ttlMs: 1000 }, shutdown: { budgetMs: 60_000 } } as const;

  test('may be written after the evidence ran out: it was decided when the stop began', () => {
    const driver = createDriver(watched);
    say(driver, 'beat');
    driver.arm();
    driver.feed({ kind: 'stop', policy: 'delete', why: 'test' });
    driver.wait(1);
    say(driver, 'beat');
    const { attempt } = driver.takeOne();
    expect(mayWrite(driver.state, attempt, driver.now())).toBe(true);
    driver.wait(1200);
    say(driver, 'fail');
    const [again = { attempt }] = driver.take();
    expect(mayWrite(driver.state, again.attempt, driver.now())).toBe(true);
  });

  test('may not be written after the evidence ran out where the daemon goes on', () => {
    const driver = createDriver(watched);
    say(driver, 'beat');
    driver.arm();
    say(driver, 'beat');
    driver.feed({ kind: 'operate', command: { does: 'disarm', markets: null, forMs: 0 } });
    const { attempt } = driver.takeOne();
    expect(mayWrite(driver.state, attempt, driver.now())).toBe(true);
    driver.wait(1200);
    expect(mayWrite(driver.state, attempt, driver.now())).toBe(false);
  });
});

describe('what fired on purpose', () => {
  test('while the market was paused is neither overdue nor a lapse, and the next gap is told of again', () => {
    const driver = createDriver({ markets: ['AAA:10'] });
    driver.live(5500);
    driver.live(20_000, 20, (write) => driver.settle(write, NOT_SENT));
    expect([driver.notices('overdue').length, driver.notices('lapsed').length]).toEqual([1, 1]);
    driver.live(10_000);
    driver.feed({ kind: 'operate', command: { does: 'pause', markets: null, forMs: 30_000 } });
    driver.live(45_000);
    expect(statusOf(driver, 'AAA')?.state).toBe('armed');
    driver.live(20_000, 20, (write) => driver.settle(write, NOT_SENT));
    expect([driver.notices('overdue').length, driver.notices('lapsed').length]).toEqual([2, 2]);
  });
});

test('a timer that fired while its confirmation waited through a stall has lapsed, and is told of', () => {
  const watched = { liveness: { mode: 'beat', ttlMs: 15_000 } } as const;
  const driver = createDriver({ ...watched, markets: ['AAA:10'] });
  say(driver, 'beat');
  driver.arm();
  driver.wait(1100);
  const write = driver.takeOne();
  driver.move({ monoMs: 20_000 });
  driver.apply(write, { startTime: SERVER_EPOCH + 1 });
  say(driver, 'beat');
  say(driver, 'beat');
  driver.live(3000);
  say(driver, 'beat');
  driver.live(3000);
  expect(statusOf(driver, 'AAA')?.lapses).toBe(1);
});

test('a cycle that a pause cut off is not part of the next one', () => {
  const driver = createDriver();
  driver.live(5900);
  driver.live(2000, 20, (write) => driver.settle(write, HTTP_500));
  driver.feed({ kind: 'operate', command: { does: 'pause', markets: null, forMs: 30_000 } });
  driver.live(29_000);
  driver.live(5000);
  const cycles = driver.notices('renewed').map(({ cycleMs }) => cycleMs);
  expect(cycles.at(-1)).toBeLessThan(1000);
});

test('a status before the first answer counts nothing', () => {
  const driver = createDriver();
  expect(statusOf(driver, 'AAA')).toMatchObject({
    renewals: 0,
    failures: 0,
    failureStreak: 0,
    lapses: 0,
    lastProblem: null,
    state: 'arming',
  });
});

test('the round trip is measured as steady where it shrinks as where it grows', () => {
  const steady = (first: number, second: number) => {
    const driver = createDriver({ markets: ['AAA:5'] });
    driver.live(20_000, first);
    driver.live(1500, second);
    return driver.state.roundTripDeviationMs;
  };
  expect(steady(100, 20)).toBeGreaterThan(15);
  expect(steady(20, 100)).toBeGreaterThan(15);
});

test('a cut that is confirmed is not written again', () => {
  const driver = createDriver({ liveness: { mode: 'beat', ttlMs: 600_000, onStale: 'trip' } });
  say(driver, 'beat');
  driver.live(2000);
  say(driver, 'fail');
  driver.live(30_000);
  expect(driver.writes.filter(({ timeoutSeconds }) => timeoutSeconds === 5)).toHaveLength(1);
  expect(driver.notices('lapsed')).toEqual([]);
});

test('a delete that is confirmed ends the streak of failures before it', () => {
  const driver = createDriver();
  driver.live(5900);
  driver.live(2000, 20, (write) => driver.settle(write, LOST));
  expect(statusOf(driver, 'AAA')?.failureStreak).toBeGreaterThan(0);
  driver.feed({ kind: 'operate', command: { does: 'disarm', markets: null, forMs: 0 } });
  driver.live(2000);
  expect(statusOf(driver, 'AAA')).toMatchObject({ failureStreak: 0, lastProblem: null });
});
