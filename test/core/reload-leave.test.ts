import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../src/core/events.ts';
import type { SettingsOptions } from './core-settings.ts';
import {
  armed as armedDriver,
  createDriver,
  type Driver,
  HTTP_500,
  LOST,
  NO_MARKET,
  NOT_SENT,
} from './driver.ts';

/** A stop, and a reload that takes a market out, leave its timer armed. */
const KEEP = { shutdown: { policy: 'keep' } } as const;
const WATCHED = { liveness: { mode: 'beat', ttlMs: 600_000 } } as const;
const TRIPPING = { liveness: { mode: 'beat', onStale: 'trip' } } as const;

/** Two markets whose timers are armed and whose writes were looked at. */
const armed = (options: SettingsOptions = {}) => armedDriver({ markets: ['AAA', 'BBB'], ...options });
/** Takes AAA out. */
const takeOut = (driver: Driver, options: SettingsOptions = {}) =>
  driver.reload({ markets: ['BBB'], ...options });
const takeIn = (driver: Driver, options: SettingsOptions = {}) =>
  driver.reload({ markets: ['AAA', 'BBB'], ...options });
/** The markets that were removed, and what became of their timers. */
const removed = (driver: Driver) => driver.notices('removed').map(({ market, how }) => `${market} ${how}`);
/** Takes AAA out with its timer left armed, and in again after `awayMs`. */
function away(awayMs: number): Driver {
  const driver = armed(KEEP);
  takeOut(driver, KEEP);
  driver.live(awayMs);
  takeIn(driver, KEEP);
  return driver;
}
/** Whatever of AAA nobody has answered comes to this. */
function answerAll(driver: Driver, outcome: Outcome): void {
  for (const write of driver.of('AAA')) driver.settle(write, outcome);
}
const lapsed = (driver: Driver) => driver.notices('lapsed').map(({ market }) => market);

describe('a market that leaves', () => {
  test.each([2, 501])('of %d is left by a stop that comes right after the reload', (count) => {
    const all = Array.from({ length: count }, (_, index) => `M${index}:60`);
    const driver = armed({ ...KEEP, markets: all });
    while (driver.state.attempts.size > 0) driver.live(1);
    driver.tick();
    driver.reload({ ...KEEP, markets: all.slice(1) });
    driver.live(3);
    driver.take();
    driver.stop('delete');
    expect(driver.take().filter(({ market }) => market === 'M0')).toEqual([]);
    expect(removed(driver)).toEqual(['M0 kept']);
  });

  test('comes last in the status, without a promise, for as long as its timer is there', () => {
    const driver = armed({ markets: ['AAA', 'CCC', 'BBB', 'DDD'] });
    driver.reload({ markets: ['BBB', 'DDD'] });
    expect(
      driver.look().markets.map(({ market, leaving, promise }) => [market, leaving, promise.length]),
    ).toEqual([
      ['BBB', false, 4],
      ['DDD', false, 4],
      ['AAA', true, 0],
      ['CCC', true, 0],
    ]);
  });

  test('goes with the daemon when that stops: the stop tells what became of it', () => {
    const driver = armed();
    takeOut(driver);
    driver.stop();
    driver.live(2000);
    expect(driver.finished()).toEqual([]);
    expect(driver.notices('deleted').map(({ market }) => market)).toEqual(['AAA', 'BBB']);
    expect(removed(driver)).toEqual([]);
  });

  test('is not said to have been deleted where no delete was answered until its time was up', () => {
    const taken = armed();
    takeOut(taken);
    taken.suffer(80_000, LOST, 'AAA');
    expect(removed(taken)).toEqual(['AAA fired']);

    const disarmed = armed();
    disarmed.operate('disarm', ['AAA']);
    disarmed.suffer(80_000, LOST, 'AAA');
    disarmed.operate('disarm', ['AAA']);
    takeOut(disarmed);
    disarmed.live(1000);
    expect(removed(disarmed)).toEqual(['AAA fired']);
  });

  test('is not surely said to have lapsed where a delete without an answer may have come first', () => {
    const driver = armed({ markets: ['AAA:30', 'BBB:30'] });
    driver.suffer(40_000, LOST);
    takeOut(driver, { markets: ['BBB:30'] });
    driver.suffer(60_000, LOST);
    expect(driver.notices('lapsed').find(({ market }) => market === 'AAA')?.certainty).toBe('possible');
    expect(removed(driver)).toEqual(['AAA fired']);
  });

  test.each([{}, KEEP])('that never had a timer goes at once, and nothing is left of it (%j)', (policy) => {
    const driver = createDriver({ ...policy, markets: ['AAA', 'BBB'] });
    driver.suffer(2000, NO_MARKET, 'AAA');
    takeOut(driver, policy);
    expect(removed(driver)).toEqual(['AAA deleted']);
  });

  test('for another shard is not said to be handed off, or left armed, where it was not', () => {
    const deleted = armed();
    deleted.operate('disarm', ['AAA']);
    takeOut(deleted, { elsewhere: ['AAA'] });
    deleted.live(1000);
    expect(removed(deleted)).toEqual(['AAA deleted']);

    const unrenewed = armed();
    takeOut(unrenewed, { elsewhere: ['AAA'] });
    unrenewed.suffer(80_000, NOT_SENT);
    expect(removed(unrenewed)).toEqual(['AAA kept']);
  });

  test('for another shard keeps its timer, also where a bot that was dead at the disarming comes back', () => {
    const driver = createDriver({ ...WATCHED, markets: ['AAA', 'BBB'] });
    driver.arm();
    driver.suffer(7000, null);
    driver.say('fail');
    driver.operate('disarm', ['AAA']);
    takeOut(driver, { ...WATCHED, elsewhere: ['AAA'] });
    driver.say('beat');
    answerAll(driver, LOST);
    driver.live(5000);
    expect(driver.writes.filter(({ timeoutSeconds }) => timeoutSeconds === null)).toEqual([]);
  });

  test('does not go before what is on its way is answered', () => {
    const driver = armed(KEEP);
    driver.suffer(5000, null);
    takeOut(driver, KEEP);
    expect(removed(driver)).toEqual([]);
    answerAll(driver, LOST);
    driver.live(1000);
    expect(removed(driver)).toEqual(['AAA kept']);
  });

  test('is not renewed where another shard takes it over while its timer is being deleted', () => {
    const driver = armed();
    takeOut(driver);
    driver.settle(driver.takeOne(), LOST);
    const { length } = driver.of('AAA');
    for (const elsewhere of [['AAA'], [], ['AAA']]) {
      takeOut(driver, { elsewhere });
      driver.live(1000);
    }
    expect(driver.of('AAA')).toHaveLength(length);
    expect(removed(driver)).toEqual(['AAA kept']);
  });

  test.each([
    ['was handed off', [['AAA'], []], [60]],
    ['was being deleted', [[], ['AAA'], ['AAA']], []],
  ])('for another shard is not deleted by the reloads that follow, where it %s', (_what, reloads, asked) => {
    const driver = armed();
    driver.suffer(7000, null, 'AAA');
    for (const elsewhere of reloads) takeOut(driver, { elsewhere });
    answerAll(driver, LOST);
    expect(driver.written(2000, 'AAA')).toEqual(asked);
  });

  test('is left to its policy by a command for all markets', () => {
    const driver = armed(KEEP);
    driver.suffer(7000, null);
    takeOut(driver, KEEP);
    driver.operate('disarm');
    expect(driver.notices('held').map(({ market }) => market)).toEqual(['BBB']);
  });

  test('is told of by a stop for as long as its timer can fire, through any number of reloads, and no longer', () => {
    const left = (afterMs: number) => {
      const driver = armed(KEEP);
      takeOut(driver, KEEP);
      driver.live(5000);
      takeOut(driver, KEEP);
      driver.live(afterMs);
      driver.stop('keep');
      return driver.finished()?.map(({ market }) => market);
    };
    expect(left(1000)).toEqual(['BBB', 'AAA']);
    expect(left(80_000)).toEqual(['BBB']);
  });

  test('is not remembered for ever: a hundred that came and went leave nothing behind', () => {
    const driver = armed(KEEP);
    for (let round = 0; round < 20; round += 1) {
      driver.reload({ ...KEEP, markets: ['BBB', `M${round}:5`] });
      driver.live(20_000);
    }
    expect(driver.state.leftBehind.size).toBeLessThanOrEqual(1);
  });

  test('has its timer fire when the daemon sees that of a dead bot, and nothing is said of a lapse', () => {
    const driver = createDriver({ ...WATCHED, markets: ['AAA:10:maker', 'BBB'] });
    for (const bot of ['maker', 'bot']) driver.say('beat', bot);
    driver.live(2000);
    driver.say('fail', 'maker');
    takeOut(driver, WATCHED);
    driver.live(30_000);
    expect(removed(driver)).toEqual(['AAA kept']);
    expect(lapsed(driver)).toEqual([]);
  });
});

describe('a market that changes', () => {
  test('is not asked for before its slow probe where the exchange refuses it', () => {
    const driver = createDriver({ markets: ['AAA', 'BBB'] });
    driver.suffer(1000, NO_MARKET, 'AAA');
    driver.reload({ markets: ['AAA:30', 'BBB'] });
    driver.live(20_000);
    expect(driver.of('AAA')).toHaveLength(1);
  });

  test('to a new bot keeps its full timer for as long as that one has its start-up grace', () => {
    const driver = createDriver({ ...TRIPPING, markets: ['AAA:60:old'] });
    driver.say('beat', 'old');
    driver.live(2000);
    driver.reload({ ...TRIPPING, markets: ['AAA:60:new'] });
    const asked = driver.written(10_000);
    expect(asked.length).toBeGreaterThan(1);
    expect(new Set(asked)).toEqual(new Set([60]));
  });

  test('in its timeout alone is not taken for one that has a new bot', () => {
    const driver = armed({ ...TRIPPING, markets: ['AAA'] });
    driver.say('fail');
    driver.live(2000);
    driver.reload({ ...TRIPPING, markets: ['AAA:90'] });
    driver.live(5000);
    expect(driver.notices('tripped')).toHaveLength(1);
  });
});

describe('a market that comes back', () => {
  test('is known to have the timer that it left behind, and is named once by a stop', () => {
    const driver = away(5000);
    const status = driver.statusOf();
    expect(status?.state).toBe('armed');
    expect(status?.guaranteedMs).toBeGreaterThan(50_000);
    expect(driver.takeOne()).toMatchObject({ market: 'AAA', timeoutSeconds: 60 });
    driver.live(1000);
    driver.stop('keep');
    driver.live(1000);
    expect(driver.finished()?.map(({ market }) => market)).toEqual(['AAA', 'BBB']);
  });

  test('has had no lapse where the timer that it left behind may be firing by then', () => {
    const driver = away(58_500);
    driver.live(1000);
    expect(driver.notices('renewed').filter(({ market }) => market === 'AAA')).toHaveLength(2);
    expect(lapsed(driver)).toEqual([]);
  });

  test('is armed anew where the timer that it left behind has fired meanwhile, which is no lapse', () => {
    const driver = away(60_000);
    expect(driver.statusOf()).toMatchObject({ state: 'arming', guaranteedMs: null });
    driver.live(1000);
    expect(driver.statusOf()?.state).toBe('armed');
    expect([lapsed(driver), driver.notices('overdue')]).toEqual([[], []]);
  });

  test('is overdue when the timer that it left behind runs out before anything was confirmed, and then lapsed', () => {
    const driver = away(5000);
    driver.suffer(70_000, NOT_SENT, 'AAA');
    expect(driver.notices('overdue').map(({ market }) => market)).toEqual(['AAA']);
    driver.live(5000);
    expect(lapsed(driver)).toEqual(['AAA']);
  });

  test('reckons with a renewal of before that may still land', () => {
    const window = { ...KEEP, nonce: 'window', requestLifetimeMs: 60_000 } as const;
    const driver = armed({ ...window, markets: ['AAA:600', 'BBB'] });
    driver.reload({ ...window, markets: ['AAA:10', 'BBB'] });
    for (const write of driver.take()) driver.settle(write, LOST);
    takeOut(driver, window);
    driver.live(25_000);
    expect(driver.statusOf()).toBeUndefined();
    driver.reload({ ...window, markets: ['AAA:600', 'BBB'] });
    driver.live(1000);
    expect(driver.statusOf()?.guaranteedMs).toBeLessThan(10_000);
  });

  test('before it has left is not cut short any more by the trip of before', () => {
    const driver = armed();
    driver.operate('trip', ['AAA']);
    driver.settle(driver.takeOne(), NOT_SENT);
    takeOut(driver);
    takeIn(driver);
    expect(new Set(driver.written(10_000, 'AAA'))).toEqual(new Set([60]));
    expect(driver.statusOf()).toMatchObject({ state: 'armed', wanted: true });
  });

  /** A market of 10 s whose delete hangs until its timer has fired comes back; its next renewal is confirmed. */
  function outlived(before: (driver: Driver) => void) {
    const driver = armed({ markets: ['AAA:10', 'BBB'] });
    before(driver);
    takeOut(driver);
    driver.suffer(15_000, null, 'AAA');
    takeIn(driver, { markets: ['AAA:10', 'BBB'] });
    answerAll(driver, NOT_SENT);
    driver.live(2000);
    return { lapsed: lapsed(driver), lapses: driver.statusOf()?.lapses, state: driver.statusOf()?.state };
  }

  test('before it has left tells of the lapse that it had while it was guarded, and of none while it was not', () => {
    const none = { lapsed: [], lapses: 0, state: 'armed' };
    expect(outlived(() => {})).toEqual(none);
    const disarmed = outlived((driver) => {
      driver.operate('disarm', ['AAA']);
      driver.suffer(15_000, null, 'AAA');
    });
    expect(disarmed).toEqual(none);
    const failed = outlived((driver) => {
      driver.suffer(15_000, HTTP_500, 'AAA');
      expect(lapsed(driver)).toEqual([]);
    });
    expect(failed).toEqual({ lapsed: ['AAA'], lapses: 1, state: 'armed' });
  });

  test('to a bot that died while it was leaving is cut short, as those that stayed were', () => {
    const driver = armed(TRIPPING);
    driver.say('beat');
    driver.live(2000);
    takeOut(driver, TRIPPING);
    driver.say('fail');
    driver.tick();
    takeIn(driver, TRIPPING);
    driver.live(5000, 20, (write) =>
      write.timeoutSeconds === null ? driver.settle(write, NOT_SENT) : driver.apply(write),
    );
    const tripped = driver.notices('tripped').map(({ market }) => market);
    expect(tripped.toSorted()).toEqual(['AAA', 'BBB']);
  });

  test('to a bot that has failed is not cut short by the operator’s word of before', () => {
    const driver = armed(WATCHED);
    driver.operate('trip', ['AAA']);
    driver.say('fail');
    const hung = driver.takeOne();
    takeOut(driver, WATCHED);
    takeIn(driver, WATCHED);
    driver.settle(hung, NOT_SENT);
    driver.live(5000);
    expect(driver.writes.filter(({ timeoutSeconds }) => timeoutSeconds === 5)).toHaveLength(1);
  });

  test('to a bot that has died since stays suspended, and is not armed', () => {
    const markets = ['AAA:60:maker', 'BBB'];
    const driver = createDriver({ ...WATCHED, markets });
    for (const bot of ['maker', 'bot']) driver.say('beat', bot);
    driver.live(2000);
    takeOut(driver, WATCHED);
    for (const write of driver.take()) driver.settle(write, LOST);
    driver.say('fail', 'maker');
    driver.reload({ ...WATCHED, markets });
    expect(driver.written(10_000, 'AAA')).toEqual([]);
    expect(driver.statusOf()?.state).toBe('suspended');
  });
});

test('a lapse of a market that came back, and was not renewed since, claims no time without a renewal', () => {
  const driver = away(1000);
  driver.suffer(70_000, NOT_SENT);
  driver.live(2000);
  expect(driver.notices('lapsed')).toMatchObject([{ market: 'AAA', gapMs: null }, { market: 'BBB' }]);
});
