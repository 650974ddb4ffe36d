import { describe, expect, test } from 'vitest';
import { mayWrite } from '../../src/core/step.ts';
import type { SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver, HTTP_500, NO_MARKET, SERVER_EPOCH } from './driver.ts';

type Liveness = NonNullable<SettingsOptions['liveness']>;

function watched(liveness: Liveness = {}, options: SettingsOptions = {}) {
  const driver = createDriver({ ...options, liveness: { mode: 'beat', ...liveness } });
  driver.tick();
  return driver;
}
const states = (driver: Driver) => driver.notices('bot').map(({ state }) => state);
/** Renewals while the bot is silent, from now on, answered at once. */
const renewalsIn = (driver: Driver, forMs: number) => {
  const before = driver.writes.length;
  driver.live(forMs);
  return driver.writes.slice(before);
};

test('a renewal that arrives after the timer of a silent bot has fired tells of no lapse', () => {
  const driver = watched({ ttlMs: 8000 }, { markets: ['AAA:10'], nonce: 'increasing' });
  driver.apply(driver.takeOne());
  driver.say('beat');
  driver.wait(1500);
  const [late] = driver.take();
  if (late === undefined) throw new Error('no renewal was written');
  driver.wait(11_000);
  expect(states(driver)).toEqual(['alive', 'stale']);
  driver.apply(late, { startTime: SERVER_EPOCH + 12 });
  expect(driver.notices('lapsed')).toEqual([]);
});

describe('a bot that has not been heard of yet', () => {
  test('has its timers armed at once, and renewed for the start-up grace and no longer', () => {
    const driver = watched({ startupGraceMs: 20_000 });
    const writes = renewalsIn(driver, 60_000);
    expect(driver.writes[0]?.atMs).toBe(0);
    expect(Math.max(...writes.map(({ atMs }) => atMs))).toBeGreaterThan(14_000);
    expect(Math.max(...writes.map(({ atMs }) => atMs))).toBeLessThanOrEqual(20_000);
    const [suspended] = driver.notices('suspended');
    expect(suspended).toMatchObject({ market: 'AAA', why: 'bot_stale', firesByWallMs: expect.any(Number) });
    expect(driver.notices('bot')).toEqual([
      { kind: 'bot', bot: 'bot', state: 'stale', firesByWallMs: suspended?.firesByWallMs },
    ]);
  });

  test('and is heard of within its grace goes by its evidence from then on', () => {
    const driver = watched({ startupGraceMs: 60_000, ttlMs: 10_000 });
    driver.live(5000);
    driver.say('beat');
    const writes = renewalsIn(driver, 60_000);
    expect(Math.max(...writes.map(({ atMs }) => atMs))).toBeLessThanOrEqual(15_000);
    expect(states(driver)).toEqual(['alive', 'stale']);
  });

  test('and whose first beat waited for longer than its lifetime is silent, whatever is left of the grace', () => {
    const driver = watched({ startupGraceMs: 60_000, ttlMs: 10_000 });
    driver.live(500);
    driver.move({ monoMs: 12_000 });
    driver.say('beat');
    expect(states(driver)).toEqual(['stale']);
    expect(renewalsIn(driver, 30_000)).toEqual([]);
  });

  test('keeps its grace where the evidence is older than the start of the daemon', () => {
    const driver = watched({ startupGraceMs: 60_000, ttlMs: 10_000 });
    driver.live(500);
    driver.feed({ kind: 'evidence', bot: 'bot', says: 'beat', agoMs: 12_000 });
    expect(states(driver)).toEqual([]);
    expect(renewalsIn(driver, 30_000)).not.toEqual([]);
  });
});

test.each(['window', 'increasing'] as const)(
  'a timer that has fired is told of once, also while requests have no answer (%s nonces)',
  (nonce) => {
    const driver = watched({ ttlMs: 5000 }, { markets: ['AAA:10'], nonce });
    driver.live(4000);
    for (let ms = 0; ms < 15_000; ms += 1000) {
      driver.say('beat');
      driver.live(1000, 20, () => {});
    }
    driver.live(60_000, 20, () => {});
    expect(driver.notices('lapsed').length + driver.notices('fired').length).toBeLessThanOrEqual(2);
  },
);

describe('evidence', () => {
  test('carries renewals for its lifetime to the millisecond, on the word of the last beat', () => {
    const driver = watched({ ttlMs: 15_000 }, { markets: ['AAA:10'] });
    driver.say('beat');
    driver.live(7000);
    driver.say('beat');
    const writes = renewalsIn(driver, 60_000);
    const lastMs = Math.max(...writes.map(({ atMs }) => atMs));
    expect(lastMs).toBeLessThanOrEqual(22_000);
    expect(lastMs).toBeGreaterThan(20_900);
  });

  test('of one bot says nothing about another', () => {
    const driver = watched({}, { markets: ['AAA:60:maker', 'BBB:60:taker'] });
    driver.say('beat', 'maker');
    driver.say('beat', 'taker');
    for (let beat = 0; beat < 20; beat += 1) {
      driver.live(3000);
      driver.say('beat', 'maker');
    }
    const late = driver.writes.filter(({ atMs }) => atMs > 16_000).map(({ market }) => market);
    expect(new Set(late)).toEqual(new Set(['AAA']));
    expect(driver.notices('suspended')).toMatchObject([{ market: 'BBB', why: 'bot_stale' }]);
  });

  test('of a bot that no market names is nothing', () => {
    const driver = watched();
    driver.live(100);
    expect(driver.say('beat', 'nobody')).toEqual([]);
  });

  test.each([
    ['a sleep of the host', { bootMs: 16_000, wallMs: 16_000 }],
    ['a step of the wall clock', { bootMs: 10, wallMs: 16_000 }],
  ])('ages through %s too', (_what, clocks) => {
    const driver = watched({ ttlMs: 15_000 });
    driver.say('beat');
    driver.live(1000);
    driver.move({ monoMs: 10, ...clocks });
    driver.tick();
    expect(states(driver)).toEqual(['alive', 'stale']);
    expect(renewalsIn(driver, 20_000)).toEqual([]);
  });

  test('makes everything due at once when it comes back', () => {
    const driver = watched({}, { markets: ['AAA', 'BBB'] });
    driver.say('beat');
    driver.live(40_000);
    driver.take();
    driver.say('beat');
    driver.live(100);
    expect(driver.writes.slice(-2).map(({ market }) => market)).toEqual(['AAA', 'BBB']);
    expect(driver.notices('resumed').map(({ market }) => market)).toEqual(['AAA', 'BBB']);
  });

  test('is not said to bring back what an operator has paused', () => {
    const driver = watched({}, { markets: ['AAA', 'BBB'] });
    driver.say('beat');
    driver.live(1000);
    driver.operate('pause', ['AAA'], 600_000);
    driver.live(40_000);
    driver.say('beat');
    expect(driver.notices('resumed').map(({ market }) => market)).toEqual(['BBB']);
  });

  test('that comes back begins a new cycle: what was being tried before it went does not count', () => {
    const driver = watched({}, { markets: ['AAA:60'] });
    driver.say('beat');
    driver.live(11_000);
    driver.live(3000, 20, (write) => driver.settle(write, HTTP_500));
    driver.say('goodbye');
    driver.live(60_000);
    driver.say('beat');
    driver.live(100);
    expect(driver.notices('renewed').at(-1)?.cycleMs).toBeLessThanOrEqual(30);
  });
});

describe('a bot that speaks for itself', () => {
  test.each([
    ['goodbye', 'goodbye', 'bot_goodbye'],
    ['fail', 'failed', 'bot_failed'],
  ] as const)('with %s stops its renewals at once, until its next beat', (says, state, why) => {
    const driver = watched({}, { markets: ['AAA:10'] });
    driver.say('beat');
    driver.live(5000);
    driver.say(says);
    expect(renewalsIn(driver, 60_000)).toEqual([]);
    expect(states(driver)).toEqual(['alive', state]);
    expect(driver.notices('suspended')).toMatchObject([{ market: 'AAA', why }]);
    driver.say('beat');
    expect(renewalsIn(driver, 5000).length).toBeGreaterThan(3);
  });

  test('of a failure stays failed, whatever old beat is found, and is told once with when the last timer fires', () => {
    const driver = watched({ ttlMs: 1000 }, { markets: ['AAA:10', 'BBB:60', 'CCC:30', 'NONE:60'] });
    driver.live(2000, 20, (write) =>
      write.market === 'NONE' ? driver.settle(write, NO_MARKET) : driver.apply(write),
    );
    for (const says of ['beat', 'beat', 'fail', 'goodbye', 'fail'] as const) driver.say(says);
    driver.feed({ kind: 'evidence', bot: 'bot', says: 'beat', agoMs: 1500 });
    const suspended = driver.notices('suspended');
    const lastMs = Math.max(...suspended.map(({ firesByWallMs }) => firesByWallMs ?? 0));
    expect(suspended.map(({ market, firesByWallMs }) => [market, firesByWallMs === lastMs])).toEqual([
      ['AAA', false],
      ['BBB', true],
      ['CCC', false],
      ['NONE', false],
    ]);
    expect(driver.notices('bot')).toMatchObject([
      { state: 'alive', firesByWallMs: null },
      { state: 'failed', firesByWallMs: lastMs },
    ]);
    driver.say('beat');
    driver.say('goodbye');
    expect(driver.notices('bot').at(-1)).toMatchObject({ state: 'goodbye', firesByWallMs: null });
  });

  test('while its first renewal is on its way has a timer that fires on purpose, which is no lapse', () => {
    const driver = watched();
    driver.say('beat');
    const first = driver.takeOne();
    driver.say('fail');
    driver.apply(first);
    driver.live(70_000);
    expect(driver.notices('fired')).toMatchObject([{ market: 'AAA', why: 'bot_failed' }]);
    expect(driver.notices('lapsed')).toEqual([]);
  });
});

describe('the last question before the first byte', () => {
  /** A renewal that was allowed, and whose connection is still being opened. */
  function waiting(liveness: Liveness = {}) {
    const driver = watched(liveness);
    driver.say('beat');
    const { attempt } = driver.takeOne();
    return { driver, allowed: () => mayWrite(driver.state, attempt, driver.now()) };
  }

  test('says yes while the evidence lasts and no the moment it ran out, also between two ticks', () => {
    const { driver, allowed } = waiting({ ttlMs: 400 });
    driver.move({ monoMs: 200 });
    expect(allowed()).toBe(true);
    driver.tick();
    driver.move({ monoMs: 200 });
    expect(allowed()).toBe(true);
    driver.move({ monoMs: 1 });
    expect(allowed()).toBe(false);
  });

  test('says no after a stall that nobody has noticed yet', () => {
    const { driver, allowed } = waiting();
    driver.move({ monoMs: 1000 });
    expect(allowed()).toBe(false);
  });

  test.each([
    ['a sleep', { bootMs: 300, wallMs: 300 }],
    ['a step ahead', { bootMs: 10, wallMs: 300 }],
    ['a step back', { bootMs: 10, wallMs: -3_600_000 }],
  ])('says no after %s that nobody has noticed yet', (_what, clocks) => {
    const { driver, allowed } = waiting();
    driver.move({ monoMs: 10, ...clocks });
    expect(allowed()).toBe(false);
  });

  test('says no after a stall that was noticed', () => {
    const { driver, allowed } = waiting();
    driver.move({ monoMs: 1000 });
    driver.tick();
    expect(allowed()).toBe(false);
  });

  test.each(['goodbye', 'fail'] as const)('says no after %s', (says) => {
    const { driver, allowed } = waiting();
    driver.say(says);
    expect(allowed()).toBe(false);
  });

  test('says no once a stop has begun', () => {
    const { driver, allowed } = waiting();
    driver.stop('keep');
    expect(allowed()).toBe(false);
  });

  test('says no to an attempt that was given up, or that nobody knows', () => {
    const { driver, allowed } = waiting();
    driver.wait(9900);
    expect(allowed()).toBe(true);
    driver.wait(200);
    expect(driver.effects.filter(({ kind }) => kind === 'abort').length).toBeGreaterThan(0);
    expect(allowed()).toBe(false);
    expect(mayWrite(driver.state, 999, driver.now())).toBe(false);
  });
});

describe('a timer that nobody renews any more', () => {
  test.each([
    ['bot_stale', (driver: Driver) => [driver]],
    ['bot_failed', (driver: Driver) => driver.say('fail')],
    ['tripped', (driver: Driver) => driver.operate('trip')],
  ] as const)('is said to have fired, once, when it surely has: %s', (why, happen) => {
    const driver = watched({ ttlMs: 15_000 }, { markets: ['AAA:30'] });
    driver.say('beat');
    driver.live(5000);
    happen(driver);
    driver.live(120_000);
    const [fired, ...others] = driver.notices('fired');
    expect(others).toEqual([]);
    expect(fired).toMatchObject({ market: 'AAA', why });
    const [suspended] = driver.notices('suspended');
    expect(driver.notices('lapsed')).toEqual([]);
    if (why === 'tripped') return;
    expect(fired?.firedByWallMs).toBeLessThanOrEqual(suspended?.firesByWallMs ?? 0);
  });

  test('is not said to have fired after a goodbye that deleted it, nor where it is wanted', () => {
    const driver = watched({ ttlMs: 15_000 }, { markets: ['AAA:30'] });
    driver.say('beat');
    driver.live(5000);
    driver.say('goodbye');
    driver.live(60_000);
    expect(driver.notices('deleted')).toHaveLength(1);
    expect(driver.notices('fired')).toEqual([]);
  });

  test('says it again for the next timer', () => {
    const driver = watched({ ttlMs: 15_000 }, { markets: ['AAA:30'] });
    for (let life = 0; life < 2; life += 1) {
      driver.say('beat');
      driver.live(90_000);
    }
    expect(driver.notices('fired')).toHaveLength(2);
  });
});
