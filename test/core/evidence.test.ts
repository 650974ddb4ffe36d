import { describe, expect, test } from 'vitest';
import type { SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver, NO_MARKET, watched } from './driver.ts';

type Liveness = NonNullable<SettingsOptions['liveness']>;

/** A bot that nobody has heard of yet. */
function unheard(liveness: Liveness) {
  const driver = createDriver({ liveness: { mode: 'beat', ...liveness } });
  driver.tick();
  return driver;
}
const states = (driver: Driver) => driver.notices('bot').map(({ state }) => state);
/** The moments of renewals while the bot is silent, from now on, answered at once. */
const renewalsIn = (driver: Driver, forMs: number) => {
  const { length } = driver.writes;
  driver.live(forMs);
  return driver.writes.slice(length).map(({ atMs }) => atMs);
};

describe('a bot that has not been heard of yet', () => {
  test('has its timers armed at once, and renewed for the start-up grace and no longer', () => {
    const driver = unheard({ startupGraceMs: 20_000 });
    const lastMs = Math.max(...renewalsIn(driver, 60_000));
    expect(driver.writes[0]?.atMs).toBe(0);
    expect(lastMs).toBeGreaterThan(14_000);
    expect(lastMs).toBeLessThanOrEqual(20_000);
    const [suspended] = driver.notices('suspended');
    expect(suspended).toMatchObject({ market: 'AAA', why: 'bot_stale', firesByWallMs: expect.any(Number) });
    expect(driver.notices('bot')).toEqual([
      { kind: 'bot', bot: 'bot', state: 'stale', firesByWallMs: suspended?.firesByWallMs },
    ]);
  });

  test('ends its grace with its first word, also where that is dated to before the start', () => {
    const driver = unheard({ ttlMs: 10_000 });
    driver.live(500);
    driver.say('beat', 'bot', 12_000);
    expect(states(driver)).toEqual(['stale']);
    expect(renewalsIn(driver, 30_000)).toEqual([]);
  });
});

test.each(['window', 'increasing'] as const)(
  'a timer that has fired is told of once, also while requests have no answer (%s nonces)',
  (nonce) => {
    const driver = watched({ liveness: { ttlMs: 5000 }, markets: ['AAA:10'], nonce });
    driver.live(4000);
    for (let ms = 0; ms < 15_000; ms += 1000) {
      driver.say('beat');
      driver.suffer(1000, null);
    }
    driver.suffer(60_000, null);
    expect(driver.notices('lapsed').length + driver.notices('fired').length).toBeLessThanOrEqual(2);
  },
);

describe('evidence', () => {
  test('carries renewals for its lifetime to the millisecond, on the word of the last beat', () => {
    const driver = watched({ markets: ['AAA:10'] });
    driver.live(7000);
    driver.say('beat');
    const lastMs = Math.max(...renewalsIn(driver, 60_000));
    expect(lastMs).toBeLessThanOrEqual(22_000);
    expect(lastMs).toBeGreaterThan(20_900);
  });

  test('of one bot says nothing about another', () => {
    const driver = createDriver({ liveness: { mode: 'beat' }, markets: ['AAA:60:maker', 'BBB:60:taker'] });
    driver.say('beat', 'taker');
    for (let beat = 0; beat < 20; beat += 1) {
      driver.say('beat', 'maker');
      driver.live(3000);
    }
    expect(driver.of('AAA', 50_000)).not.toEqual([]);
    expect(driver.of('BBB', 16_000)).toEqual([]);
    const suspended = driver.notices('suspended');
    expect(suspended).toMatchObject([{ market: 'BBB', why: 'bot_stale' }]);
    expect(driver.notices('bot').at(-1)).toMatchObject({ firesByWallMs: suspended[0]?.firesByWallMs });
    driver.say('beat', 'taker');
    expect(driver.notices('resumed').map(({ market }) => market)).toEqual(['BBB']);
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
    const driver = watched();
    driver.live(1000);
    driver.move({ monoMs: 10, ...clocks });
    driver.tick();
    expect(states(driver)).toEqual(['alive', 'stale']);
    expect(renewalsIn(driver, 20_000)).toEqual([]);
  });

  test('makes everything due at once when it comes back, but for what an operator has paused', () => {
    const driver = watched({ markets: ['AAA', 'BBB', 'CCC'] });
    driver.live(1000);
    driver.operate('pause', ['BBB'], 600_000);
    driver.live(40_000);
    driver.say('beat');
    driver.live(100);
    expect(new Set(driver.writes.slice(-2).map(({ market }) => market))).toEqual(new Set(['AAA', 'CCC']));
    expect(driver.notices('resumed').map(({ market }) => market)).toEqual(['AAA', 'CCC']);
  });
});

describe('a bot that speaks for itself', () => {
  test.each([
    ['goodbye', 'goodbye', 'bot_goodbye'],
    ['fail', 'failed', 'bot_failed'],
  ] as const)('with %s stops its renewals at once, until its next beat', (says, state, why) => {
    const driver = watched({ markets: ['AAA:10'] });
    driver.live(5000);
    driver.say(says);
    expect(renewalsIn(driver, 60_000)).toEqual([]);
    expect(states(driver)).toEqual(['alive', state]);
    expect(driver.notices('suspended')).toMatchObject([{ market: 'AAA', why }]);
    driver.say('beat');
    expect(renewalsIn(driver, 5000).length).toBeGreaterThan(3);
  });

  test('of a failure stays failed, whatever old beat is found, and is told once with when the last timer fires', () => {
    const markets = ['AAA:10', 'BBB:60', 'CCC:30', 'NONE:60'];
    const driver = createDriver({ liveness: { mode: 'beat', ttlMs: 1000 }, markets });
    driver.suffer(2000, NO_MARKET, 'NONE');
    for (const says of ['beat', 'beat', 'fail', 'goodbye', 'fail'] as const) driver.say(says);
    driver.say('beat', 'bot', 1500);
    const suspended = driver.notices('suspended');
    const lastMs = Math.max(...suspended.map(({ firesByWallMs }) => firesByWallMs ?? 0));
    expect(suspended.map(({ market }) => market)).toEqual(['AAA', 'BBB', 'CCC', 'NONE']);
    expect(suspended.map(({ firesByWallMs }) => firesByWallMs === lastMs)).toEqual([
      false,
      true,
      false,
      false,
    ]);
    expect(driver.notices('bot')).toMatchObject([
      { state: 'alive', firesByWallMs: null },
      { state: 'failed', firesByWallMs: lastMs },
    ]);
    driver.say('beat');
    driver.say('goodbye');
    expect(driver.notices('bot').at(-1)).toMatchObject({ state: 'goodbye', firesByWallMs: null });
  });
});

describe('the last question before the first byte', () => {
  test('says yes while the evidence lasts and no the moment it ran out, also between two ticks', () => {
    const driver = watched({ liveness: { ttlMs: 400 } });
    const { attempt } = driver.takeOne();
    driver.move({ monoMs: 200 });
    expect(driver.mayLeave(attempt)).toBe(true);
    driver.tick();
    driver.move({ monoMs: 200 });
    expect(driver.mayLeave(attempt)).toBe(true);
    driver.move({ monoMs: 1 });
    expect(driver.mayLeave(attempt)).toBe(false);
  });

  const ends: readonly [string, (driver: Driver) => unknown][] = [
    ['a stall that nobody has noticed yet', (driver) => driver.move({ monoMs: 1000 })],
    ['a sleep that nobody has noticed yet', (driver) => driver.move({ bootMs: 300, wallMs: 300 })],
    ['a step ahead that nobody has noticed yet', (driver) => driver.move({ wallMs: 300 })],
    ['a step back that nobody has noticed yet', (driver) => driver.move({ wallMs: -3_600_000 })],
    ['a stall that was noticed', (driver) => [driver.move({ monoMs: 1000 }), driver.tick()]],
    ['a goodbye', (driver) => driver.say('goodbye')],
    ['a failure', (driver) => driver.say('fail')],
    ['the beginning of a stop', (driver) => driver.stop('keep')],
  ];
  test.each(ends)('says no after %s', (_what, happen) => {
    const driver = watched();
    const { attempt } = driver.takeOne();
    happen(driver);
    expect(driver.mayLeave(attempt)).toBe(false);
  });

  test('says no to an attempt that was given up, or that nobody knows', () => {
    const driver = watched();
    const { attempt } = driver.takeOne();
    driver.wait(9900);
    expect(driver.mayLeave(attempt)).toBe(true);
    driver.wait(200);
    expect(driver.effects).toContainEqual({ kind: 'abort', attempt });
    expect(driver.mayLeave(attempt)).toBe(false);
    expect(driver.mayLeave(999)).toBe(false);
  });
});

/** A confirmed delete is over: the renewal after it, which may have arrived, fires because the bot has failed. */
function fireUnconfirmed(driver: Driver): void {
  driver.operate('disarm');
  driver.live(1000);
  driver.operate('arm');
  driver.suffer(100, null);
  driver.say('fail');
}

describe('a timer that nobody renews any more', () => {
  test.each([
    ['bot_stale', () => {}],
    ['bot_failed', (driver: Driver) => driver.say('fail')],
    ['tripped', (driver: Driver) => driver.operate('trip')],
    ['bot_failed', (driver: Driver) => fireUnconfirmed(driver)],
  ] as const)('is said to have fired, once, when it surely has: %s', (why, happen) => {
    const driver = watched({ markets: ['AAA:30'] });
    driver.live(5000);
    happen(driver);
    driver.live(120_000);
    expect(driver.notices('fired')).toMatchObject([{ market: 'AAA', why }]);
    expect(driver.notices('lapsed')).toEqual([]);
    if (why === 'tripped') return;
    const firesByWallMs = driver.notices('suspended')[0]?.firesByWallMs ?? 0;
    expect(driver.notices('fired')[0]?.firedByWallMs).toBeLessThanOrEqual(firesByWallMs);
  });
});
