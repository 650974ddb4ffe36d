import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../src/core/events.ts';
import { progressOfGone } from '../../src/core/progress.ts';
import type { SettingsOptions } from './core-settings.ts';
import { armed as armedDriver, type Driver, LOST, NOT_SENT, play, played } from './driver.ts';

/** A stop, and a reload that takes a market out, leave its timer armed. */
const KEEP = { shutdown: { policy: 'keep' } } as const;
const WATCHED = { liveness: { mode: 'beat', ttlMs: 600_000 } } as const;
const TRIPPING = { liveness: { mode: 'beat', onStale: 'trip' } } as const;
const MOVED = { elsewhere: ['AAA'] };
const BOTH = ['AAA', 'BBB'];
const OF_MAKER = ['AAA:60:maker', 'BBB'];

/** Two markets whose timers are armed and whose writes were looked at. */
const armed = (options: SettingsOptions = {}) => armedDriver({ markets: BOTH, ...options });
/** Takes AAA out. */
const takeOut = (driver: Driver, options: SettingsOptions = {}) =>
  driver.reload({ markets: ['BBB'], ...options });
const takeIn = (driver: Driver, options: SettingsOptions = {}) =>
  driver.reload({ markets: BOTH, ...options });
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

const PERHAPS =
  'AAA has no timer any more, and it may have fired before it was deleted: check which orders are left.';
const FIRED = 'AAA has no timer any more: it has fired.';
const SAYS: Readonly<Record<string, string>> = { fired: PERHAPS, deleted_late: PERHAPS };

type Row = [what: string, SettingsOptions, before: string, after: SettingsOptions, then: string, how: string];
test.each<Row>([
  ['no delete was answered until its time was up', {}, 'start', {}, 'lost 80 AAA', 'fired'],
  [
    'no delete was answered, and it is disarmed again',
    {},
    'start, disarm AAA, lost 80 AAA, disarm AAA',
    {},
    'live 1',
    'fired',
  ],
  ['its delete was answered late', {}, 'start', {}, 'lost 59.5 AAA, live 1', 'deleted_late'],
  ['no delete ever left', {}, 'start', {}, 'unsent 80 AAA', 'fired'],
  ['it never had a timer', {}, 'refused 2 AAA', {}, 'tick', 'deleted'],
  ['it never had a timer that could be kept', KEEP, 'refused 2 AAA', KEEP, 'tick', 'deleted'],
  ['another shard has it, and it was disarmed before', {}, 'start, disarm AAA', MOVED, 'live 1', 'deleted'],
  ['another shard has it, and no last renewal came', {}, 'start', MOVED, 'unsent 80', 'kept'],
])('a market that leaves is told of truly where %s', (_what, options, before, after, then, how) => {
  const driver = played({ markets: BOTH, ...options }, before);
  takeOut(driver, after);
  play(driver, then);
  expect(removed(driver)).toEqual([`AAA ${how}`]);
  expect(progressOfGone(driver.state, 'AAA')?.says).toBe(
    then.startsWith('unsent 80 AAA') ? FIRED : SAYS[how],
  );
});

describe('a market that leaves', () => {
  test('is left by a stop that comes right after the reload', () => {
    const driver = play(armed(KEEP), 'live 1');
    takeOut(driver, KEEP);
    play(driver, 'live 0.003, stop, live 2');
    expect(driver.asked(null).map(({ market }) => market)).toEqual(['BBB']);
    expect(removed(driver)).toEqual(['AAA kept']);
    const { firesByWallMs } = driver.notices('removed')[0] ?? {};
    expect(firesByWallMs).toBeGreaterThan(driver.now().wallMs + 50_000);
  });

  test('is promised no cancellation where its timer was never confirmed', () => {
    const driver = played({ markets: BOTH, ...KEEP }, 'lost 3');
    takeOut(driver, KEEP);
    play(driver, 'live 1');
    expect(driver.notices('removed')[0]).toMatchObject({ how: 'kept', confirmed: false });
    expect(progressOfGone(driver.state, 'AAA')?.says).toMatch(
      /^AAA has no confirmed timer: one that may still run fires within [\d.]+ s; else its orders stay\.$/,
    );
  });

  test('comes last in the status, without a promise, for as long as its timer is there', () => {
    const driver = armed({ markets: ['AAA', 'CCC', 'BBB', 'DDD'] });
    driver.reload({ markets: ['BBB', 'DDD'] });
    const seen = driver.look().markets;
    expect(seen.map(({ market, leaving, promise }) => [market, leaving, promise.length])).toEqual([
      ['BBB', false, 4],
      ['DDD', false, 4],
      ['AAA', true, 0],
      ['CCC', true, 0],
    ]);
  });

  test('goes with the daemon when that stops: the stop tells what became of it', () => {
    const driver = armed();
    takeOut(driver);
    play(driver, 'stop, live 2');
    expect(driver.finished()).toEqual([]);
    expect(driver.told('deleted')).toEqual(BOTH);
    expect(removed(driver)).toEqual([]);
  });

  test('for another shard keeps its timer, also where a bot that was dead at the disarming comes back', () => {
    const driver = played({ ...WATCHED, markets: BOTH }, 'start, silence 7, fail, disarm AAA');
    takeOut(driver, { ...WATCHED, elsewhere: ['AAA'] });
    driver.say('beat');
    answerAll(driver, LOST);
    driver.live(5000);
    expect(driver.asked(null)).toEqual([]);
  });

  test('does not go before what is on its way is answered', () => {
    const driver = play(armed(KEEP), 'silence 5');
    takeOut(driver, KEEP);
    expect(removed(driver)).toEqual([]);
    answerAll(driver, LOST);
    driver.live(1000);
    expect(removed(driver)).toEqual(['AAA kept']);
  });

  test('is left to its policy by a command for all markets', () => {
    const driver = play(armed(KEEP), 'silence 7');
    takeOut(driver, KEEP);
    driver.operate('disarm');
    expect(driver.told('held')).toEqual(['BBB']);
  });

  test('is told of by a stop for as long as its timer can fire, through any number of reloads, and no longer', () => {
    const left = (afterMs: number) => {
      const driver = armed(KEEP);
      takeOut(driver, KEEP);
      driver.live(5000);
      takeOut(driver, KEEP);
      driver.live(afterMs);
      driver.stop('keep');
      return driver.finished();
    };
    expect(left(1000)).toEqual(['BBB policy', 'AAA policy']);
    expect(left(80_000)).toEqual(['BBB policy']);
  });

  test('has its timer fire when the daemon sees that of a dead bot, and nothing is said of a lapse', () => {
    const driver = played({ ...WATCHED, markets: OF_MAKER }, 'beat maker, beat bot, live 2, fail maker');
    takeOut(driver, WATCHED);
    driver.live(90_000);
    expect(removed(driver)).toEqual(['AAA kept']);
    expect(driver.told('lapsed')).toEqual([]);
  });
});

describe('a market that changes', () => {
  test('is not asked for before its slow probe where the exchange refuses it', () => {
    const driver = played({ markets: BOTH }, 'refused 1 AAA');
    driver.reload({ markets: ['AAA:30', 'BBB'] });
    driver.live(20_000);
    expect(driver.of('AAA')).toHaveLength(1);
  });

  test('to a new bot keeps its full timer for as long as that one has its start-up grace', () => {
    const driver = played({ ...TRIPPING, markets: ['AAA:60:old'] }, 'beat old, live 2');
    driver.reload({ ...TRIPPING, markets: ['AAA:60:new'] });
    const asked = driver.written(10_000);
    expect(asked.length).toBeGreaterThan(1);
    expect(new Set(asked)).toEqual(new Set([60]));
  });

  test('in its timeout alone is not taken for one that has a new bot', () => {
    const driver = play(armed({ ...TRIPPING, markets: ['AAA'] }), 'fail, live 2');
    driver.reload({ ...TRIPPING, markets: ['AAA:90'] });
    driver.live(5000);
    expect(driver.notices('tripped')).toHaveLength(1);
  });
});

describe('a market that comes back', () => {
  test('is known to have the timer that it left behind, and is named once by a stop', () => {
    const driver = away(5000);
    expect(driver.statusOf()?.state).toBe('armed');
    expect(driver.statusOf()?.guaranteedMs).toBeGreaterThan(50_000);
    expect(driver.takeOne()).toMatchObject({ market: 'AAA', timeoutSeconds: 60 });
    play(driver, 'live 1, keep, live 1');
    expect(driver.finished()).toEqual(['AAA policy', 'BBB policy']);
  });

  test('has had no lapse where the timer that it left behind may be firing by then', () => {
    const driver = play(away(58_500), 'live 1');
    expect(driver.told('renewed').filter((market) => market === 'AAA')).toHaveLength(2);
    expect(driver.told('lapsed')).toEqual([]);
  });

  test('is armed anew where the timer that it left behind has fired meanwhile, which is no lapse', () => {
    const driver = away(60_000);
    expect(driver.statusOf()).toMatchObject({ state: 'arming', guaranteedMs: null });
    driver.live(1000);
    expect(driver.statusOf()?.state).toBe('armed');
    expect([driver.told('lapsed'), driver.told('overdue')]).toEqual([[], []]);
  });

  test('is overdue when the timer that it left behind runs out before anything was confirmed, and then lapsed', () => {
    const driver = play(away(5000), 'unsent 70 AAA');
    expect(driver.told('overdue')).toEqual(['AAA']);
    driver.live(5000);
    expect(driver.told('lapsed')).toEqual(['AAA']);
  });

  test('has a lapse that claims no time without a renewal', () => {
    const driver = play(away(1000), 'unsent 70, live 2');
    expect(driver.notices('lapsed')).toMatchObject([{ market: 'AAA', gapMs: null }, { market: 'BBB' }]);
  });

  test('before it has left is not cut short any more by the trip of before', () => {
    const driver = play(armed(), 'trip AAA');
    driver.settle(driver.takeOne(), NOT_SENT);
    takeOut(driver);
    takeIn(driver);
    expect(new Set(driver.written(10_000, 'AAA'))).toEqual(new Set([60]));
    expect(driver.statusOf()).toMatchObject({ state: 'armed', wanted: true });
  });

  test('to a bot that has died since stays suspended, and is not armed', () => {
    const driver = played({ ...WATCHED, markets: OF_MAKER }, 'beat maker, beat bot, live 2');
    takeOut(driver, WATCHED);
    for (const write of driver.take()) driver.settle(write, LOST);
    driver.say('fail', 'maker');
    driver.reload({ ...WATCHED, markets: OF_MAKER });
    expect(driver.written(10_000, 'AAA')).toEqual([]);
    expect(driver.statusOf()?.state).toBe('suspended');
  });
});
