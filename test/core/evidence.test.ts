import { describe, expect, test } from 'vitest';
import type { SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver, LOST, play, played, watched } from './driver.ts';

type Liveness = NonNullable<SettingsOptions['liveness']>;

/** A bot that nobody has heard of yet. */
function unheard(liveness: Liveness) {
  const driver = played({ liveness: { mode: 'beat', ...liveness } }, 'tick');
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
      { kind: 'bot', bot: 'bot', state: 'stale', firesByWallMs: suspended?.firesByWallMs, unconfirmed: 0 },
    ]);
  });

  test('and whose timers were never confirmed has nothing that surely cancels its orders', () => {
    const options = { markets: ['AAA', 'BBB'], liveness: { mode: 'beat', startupGraceMs: 5000 } } as const;
    const none = play(createDriver(options), 'lost 6');
    const may = { confirmed: false, firesByWallMs: expect.any(Number) };
    expect(none.notices('suspended')).toMatchObject([may, may]);
    expect(none.notices('bot')).toMatchObject([{ firesByWallMs: null, unconfirmed: 2 }]);
    expect(none.look().markets.map(({ state, timer }) => `${state} ${timer}`)).toEqual(
      Array.from({ length: 2 }, () => 'suspended unconfirmed'),
    );
    play(none, 'keep');
    expect(none.notices('stopped')[0]?.left.map(({ confirmed }) => confirmed)).toEqual([false, false]);
    const one = play(createDriver(options), 'lost 6 BBB');
    const [ofAaa, ofBbb] = one.notices('suspended');
    expect([ofAaa?.confirmed, ofBbb?.confirmed]).toEqual([true, false]);
    expect(one.notices('bot')).toMatchObject([{ firesByWallMs: ofAaa?.firesByWallMs, unconfirmed: 1 }]);
  });

  test('ends its grace with its first word, also where that is dated to before the start', () => {
    const driver = unheard({ ttlMs: 10_000 });
    driver.live(500);
    driver.say('beat', 'bot', 12_000);
    expect(states(driver)).toEqual(['stale']);
    expect(renewalsIn(driver, 30_000)).toEqual([]);
  });
});

describe('evidence', () => {
  test('carries renewals for its lifetime to the millisecond, on the word of the last beat', () => {
    const driver = play(watched({ markets: ['AAA:10'] }), 'live 7, beat');
    const lastMs = Math.max(...renewalsIn(driver, 60_000));
    expect(lastMs).toBeLessThanOrEqual(22_000);
    expect(lastMs).toBeGreaterThan(20_900);
  });

  test('of one bot says nothing about another', () => {
    const driver = createDriver({ liveness: { mode: 'beat' }, markets: ['AAA:60:maker', 'BBB:60:taker'] });
    play(driver, `beat taker${', beat maker, live 3'.repeat(20)}`);
    expect(driver.of('AAA', 50_000)).not.toEqual([]);
    expect(driver.of('BBB', 16_000)).toEqual([]);
    const suspended = driver.notices('suspended');
    expect(suspended).toMatchObject([{ market: 'BBB', why: 'bot_stale' }]);
    expect(driver.notices('bot').at(-1)).toMatchObject({ firesByWallMs: suspended[0]?.firesByWallMs });
    driver.say('beat', 'taker');
    expect(driver.told('resumed')).toEqual(['BBB']);
  });

  test.each([
    ['a sleep of the host', { bootMs: 16_000, wallMs: 16_000 }],
    ['a step of the wall clock', { bootMs: 10, wallMs: 16_000 }],
  ])('ages through %s too', (_what, clocks) => {
    const driver = play(watched(), 'live 1');
    driver.move({ monoMs: 10, ...clocks });
    driver.tick();
    expect(states(driver)).toEqual(['alive', 'stale']);
    expect(renewalsIn(driver, 20_000)).toEqual([]);
  });

  test('makes everything due at once when it comes back, but for what an operator has paused', () => {
    const driver = watched({ markets: ['AAA', 'BBB', 'CCC'] });
    play(driver, 'live 1, pause 600 BBB, live 40, beat, live 0.1');
    expect(new Set(driver.writes.slice(-2).map(({ market }) => market))).toEqual(new Set(['AAA', 'CCC']));
    expect(driver.told('resumed')).toEqual(['AAA', 'CCC']);
  });
});

describe('a bot that speaks for itself', () => {
  test.each([
    ['goodbye', 'goodbye', 'bot_goodbye'],
    ['fail', 'failed', 'bot_failed'],
  ] as const)('with %s stops its renewals at once, until its next beat', (says, state, why) => {
    const driver = play(watched({ markets: ['AAA:10'] }), 'live 5');
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
    play(driver, 'refused 2 NONE, beat, beat, fail, goodbye, fail');
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
    play(driver, 'beat, goodbye');
    expect(driver.notices('bot').at(-1)).toMatchObject({ state: 'goodbye', firesByWallMs: null });
  });
});

describe('the last question before the first byte', () => {
  test('says yes while the evidence lasts and no the moment it ran out, also between two ticks', () => {
    const driver = watched({ liveness: { ttlMs: 400 } });
    const { attempt } = driver.takeOne();
    driver.move({ monoMs: 200 });
    expect(driver.mayLeave(attempt)).toBe(true);
    play(driver, 'tick, move 0.2');
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

describe('a timer that nobody renews any more', () => {
  test.each([
    ['bot_stale', 'tick'],
    ['bot_failed', 'fail'],
    ['tripped', 'trip'],
    // A confirmed delete is over: the renewal after it, which may have arrived, fires because the bot has failed.
    ['bot_failed', 'disarm, live 1, arm, silence 0.1, fail'],
  ])('is said to have fired, once, when it surely has: %s (%s)', (why, script) => {
    const driver = play(watched({ markets: ['AAA:30'] }), `live 5, ${script}, live 120`);
    expect(driver.notices('fired')).toMatchObject([{ market: 'AAA', why }]);
    expect(driver.notices('lapsed')).toEqual([]);
    if (why === 'tripped') return;
    const firesByWallMs = driver.notices('suspended')[0]?.firesByWallMs ?? 0;
    expect(driver.notices('fired')[0]?.firedByWallMs).toBeLessThanOrEqual(firesByWallMs);
  });
});

const beating = (ttlMs = 15_000) => watched({ liveness: { ttlMs }, markets: ['AAA:10'] });
const beat = (driver: Driver, agoMs = 0) => driver.say('beat', 'bot', agoMs);
const stateOf = (driver: Driver) => driver.look().bots[0]?.state;

describe('after a stall', () => {
  test('words that had waited in the sockets are as old as the stall', () => {
    const driver = play(beating(), 'live 1, move 30, tick');
    beat(driver);
    expect(stateOf(driver)).toBe('stale');
    driver.live(500);
    beat(driver);
    expect(stateOf(driver)).toBe('stale');
    driver.live(600);
    beat(driver);
    expect(stateOf(driver)).toBe('alive');
  });

  test('shorter than the lifetime of evidence, words that had waited keep the bot alive', () => {
    const driver = play(beating(), 'live 1, move 5');
    beat(driver);
    driver.live(9500);
    expect(stateOf(driver)).toBe('alive');
    driver.live(1000);
    expect(stateOf(driver)).toBe('stale');
  });

  test('a beat that had waited takes back the goodbye before it, and no timer is deleted any more', () => {
    const driver = play(beating(), 'live 1, goodbye');
    driver.settle(driver.takeOne(), LOST);
    driver.move({ monoMs: 30_000 });
    beat(driver);
    expect(stateOf(driver)).toBe('stale');
    driver.take();
    driver.live(3000);
    expect(driver.take()).toEqual([]);
  });
});
