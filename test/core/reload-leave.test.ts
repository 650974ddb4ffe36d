import { describe, expect, test } from 'vitest';
import { onTheirWay } from '../../src/core/state.ts';
import { type SettingsOptions } from './core-settings.ts';
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

/** Two markets whose timers are armed and whose writes were looked at. */
const armed = (options: SettingsOptions = {}) => armedDriver({ markets: ['AAA', 'BBB'], ...options });
/** The markets that were removed, and what became of their timers. */
const removed = (driver: Driver) => driver.notices('removed').map(({ market, how }) => [market, how]);
/** Takes AAA out with its timer left armed, and in again after `awayMs`. */
function away(awayMs: number, options: SettingsOptions = KEEP): Driver {
  const driver = armed(options);
  driver.reload({ ...options, markets: ['BBB'] });
  driver.live(awayMs);
  driver.reload({ ...options, markets: ['AAA', 'BBB'] });
  return driver;
}
/** The attempts of AAA that nobody has answered; a copy, since answers change the list. */
const idsInFlight = (driver: Driver) => onTheirWay(driver.market('AAA')).map(({ id }) => id);

describe('a market that leaves', () => {
  test('comes last in the status, without a promise, for as long as its timer is there', () => {
    const driver = armed({ markets: ['AAA', 'CCC', 'BBB', 'DDD'] });
    driver.reload({ markets: ['BBB', 'DDD'] });
    const { markets } = driver.look();
    expect(markets.map(({ market, leaving, promise }) => [market, leaving, promise.length])).toEqual([
      ['BBB', false, 4],
      ['DDD', false, 4],
      ['AAA', true, 0],
      ['CCC', true, 0],
    ]);
  });

  test('goes with the daemon when that stops: the stop tells what became of it', () => {
    const driver = armed();
    driver.reload({ markets: ['BBB'] });
    driver.stop();
    driver.live(2000);
    expect(driver.finished()).toEqual([]);
    expect(driver.notices('deleted').map(({ market }) => market)).toEqual(['AAA', 'BBB']);
    expect(removed(driver)).toEqual([]);
  });

  test('is not said to have been deleted where no delete was answered until its time was up', () => {
    const lost = (driver: Driver) =>
      driver.live(80_000, 20, (write) =>
        write.market === 'BBB' ? driver.apply(write) : driver.settle(write, LOST),
      );
    const taken = armed();
    taken.reload({ markets: ['BBB'] });
    lost(taken);
    expect(removed(taken)).toEqual([['AAA', 'fired']]);

    const disarmed = armed();
    const disarm = () => disarmed.operate('disarm', ['AAA']);
    disarm();
    lost(disarmed);
    disarm();
    disarmed.reload({ markets: ['BBB'] });
    disarmed.live(1000);
    expect(removed(disarmed)).toEqual([['AAA', 'fired']]);
  });

  test('is not surely said to have lapsed where a delete without an answer may have come first', () => {
    const driver = armed({ markets: ['AAA:30', 'BBB:30'] });
    const lose = (forMs: number) => driver.live(forMs, 20, (write) => driver.settle(write, LOST));
    lose(40_000);
    driver.reload({ markets: ['BBB:30'] });
    lose(60_000);
    expect(driver.notices('lapsed').find(({ market }) => market === 'AAA')?.certainty).toBe('possible');
    expect(removed(driver)).toEqual([['AAA', 'fired']]);
  });

  test('that never had a timer is left as it is under policy keep', () => {
    const driver = createDriver({ ...KEEP, markets: ['AAA', 'BBB'] });
    driver.tick();
    driver.settle(driver.takeOne(), NO_MARKET);
    driver.live(2000, 20, (write) =>
      write.market === 'BBB' ? driver.apply(write) : driver.settle(write, NO_MARKET),
    );
    driver.reload({ ...KEEP, markets: ['BBB'] });
    driver.live(1000);
    expect(removed(driver)).toEqual([['AAA', 'deleted']]);
  });

  test('for another shard is not said to be handed off, or left armed, where it was not', () => {
    const deleted = createDriver({ markets: ['AAA', 'BBB'] });
    deleted.arm();
    deleted.operate('disarm', ['AAA']);
    deleted.reload({ markets: ['BBB'], movedAway: ['AAA'] });
    deleted.live(1000);
    expect(removed(deleted)).toEqual([['AAA', 'deleted']]);

    const unrenewed = armed({ markets: ['AAA', 'BBB'] });
    unrenewed.reload({ markets: ['BBB'], movedAway: ['AAA'] });
    unrenewed.live(80_000, 20, (write) => unrenewed.settle(write, NOT_SENT));
    expect(removed(unrenewed)).toEqual([['AAA', 'kept']]);
  });

  test('for another shard keeps its timer, also where a bot that was dead at the disarming comes back', () => {
    const watched = { liveness: { mode: 'beat', ttlMs: 600_000 } } as const;
    const driver = createDriver({ ...watched, markets: ['AAA', 'BBB'] });
    driver.arm();
    driver.live(7000, 20, () => {});
    driver.say('fail');
    driver.operate('disarm', ['AAA']);
    driver.reload({ ...watched, markets: ['BBB'], movedAway: ['AAA'] });
    driver.say('beat');
    for (const id of idsInFlight(driver)) driver.feed({ kind: 'settled', attempt: id, outcome: LOST });
    driver.live(5000);
    expect(driver.writes.filter(({ timeoutSeconds }) => timeoutSeconds === null)).toEqual([]);
  });

  test('does not go before what is on its way is answered', () => {
    const driver = armed(KEEP);
    driver.live(5000, 20, () => {});
    expect(onTheirWay(driver.market('AAA')).length).toBeGreaterThan(0);
    driver.reload({ ...KEEP, markets: ['BBB'] });
    expect(removed(driver)).toEqual([]);
    for (const id of idsInFlight(driver)) driver.feed({ kind: 'settled', attempt: id, outcome: LOST });
    driver.live(1000);
    expect(removed(driver)).toEqual([['AAA', 'kept']]);
  });

  test('is not renewed where another shard takes it over while its timer is being deleted', () => {
    const driver = armed();
    driver.reload({ markets: ['BBB'] });
    driver.settle(driver.takeOne(), LOST);
    const { length } = driver.writes;
    for (const movedAway of [['AAA'], [], ['AAA']]) {
      driver.reload({ markets: ['BBB'], movedAway });
      driver.live(1000);
    }
    expect(driver.writes.slice(length).filter(({ market }) => market === 'AAA')).toEqual([]);
    expect(removed(driver)).toEqual([['AAA', 'kept']]);
  });

  test.each([
    ['was handed off', [['AAA'], []], [60]],
    ['was being deleted', [[], ['AAA'], ['AAA']], []],
  ])('for another shard is not deleted by the reloads that follow, where it %s', (_what, reloads, asked) => {
    const driver = armed();
    driver.live(7000, 20, (write) => {
      if (write.market === 'BBB') driver.apply(write);
    });
    for (const movedAway of reloads) driver.reload({ markets: ['BBB'], movedAway });
    const { length } = driver.writes;
    for (const id of idsInFlight(driver)) driver.feed({ kind: 'settled', attempt: id, outcome: LOST });
    driver.live(2000);
    const ofAAA = driver.writes.slice(length).filter(({ market }) => market === 'AAA');
    expect(ofAAA.map(({ timeoutSeconds }) => timeoutSeconds)).toEqual(asked);
  });

  test('is left to its policy by a command for all markets', () => {
    const driver = armed(KEEP);
    driver.live(7000, 20, () => {});
    driver.reload({ ...KEEP, markets: ['BBB'] });
    driver.operate('disarm');
    expect(driver.notices('held').map(({ market }) => market)).toEqual(['BBB']);
  });

  test('goes at once where no timer of it can exist', () => {
    const driver = createDriver({ markets: ['AAA', 'BBB'] });
    driver.tick();
    driver.apply(driver.takeOne());
    driver.settle(driver.takeOne(), NO_MARKET);
    driver.reload({ markets: ['AAA'] });
    expect(removed(driver)).toEqual([['BBB', 'deleted']]);
  });

  test('is told of by a stop for as long as its timer can fire, through any number of reloads, and no longer', () => {
    const left = (afterMs: number) => {
      const driver = armed(KEEP);
      driver.reload({ ...KEEP, markets: ['BBB'] });
      driver.live(5000);
      driver.reload({ ...KEEP, markets: ['BBB'] });
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
    const watched = { liveness: { mode: 'beat', ttlMs: 600_000 } } as const;
    const driver = createDriver({ ...watched, markets: ['AAA:10:maker', 'BBB'] });
    for (const bot of ['maker', 'bot']) driver.say('beat', bot);
    driver.live(2000);
    driver.say('fail', 'maker');
    driver.reload({ ...watched, markets: ['BBB'] });
    driver.live(30_000);
    expect(removed(driver)).toEqual([['AAA', 'kept']]);
    expect(driver.notices('lapsed')).toEqual([]);
  });
});

describe('a market that changes', () => {
  test('is not asked for before its slow probe where the exchange refuses it', () => {
    const driver = createDriver({ markets: ['AAA', 'BBB'] });
    driver.tick();
    driver.settle(driver.takeOne(), NO_MARKET);
    driver.live(1000);
    driver.take();
    driver.reload({ markets: ['AAA:30', 'BBB'] });
    driver.live(20_000);
    expect(driver.writes.filter(({ market }) => market === 'AAA')).toHaveLength(1);
  });

  test('to a new bot keeps its full timer for as long as that one has its start-up grace', () => {
    const watched = { liveness: { mode: 'beat', onStale: 'trip' } } as const;
    const driver = createDriver({ ...watched, markets: ['AAA:60:old'] });
    driver.say('beat', 'old');
    driver.live(2000);
    const { length } = driver.writes;
    driver.reload({ ...watched, markets: ['AAA:60:new'] });
    driver.live(10_000);
    const asked = driver.writes.slice(length).map(({ timeoutSeconds }) => timeoutSeconds);
    expect(asked.length).toBeGreaterThan(1);
    expect(new Set(asked)).toEqual(new Set([60]));
  });

  test('in its timeout alone is not taken for one that has a new bot', () => {
    const watched = { liveness: { mode: 'beat', onStale: 'trip', ttlMs: 5000 } } as const;
    const driver = armed({ ...watched, markets: ['AAA:60'] });
    driver.say('fail');
    driver.live(2000);
    expect(driver.notices('tripped')).toHaveLength(1);
    driver.reload({ ...watched, markets: ['AAA:90'] });
    driver.live(5000);
    expect(driver.notices('tripped')).toHaveLength(1);
  });
});

describe('a market that comes back', () => {
  test('is known to have the timer that it left behind, before anything is answered', () => {
    const driver = away(5000);
    const status = driver.statusOf('AAA');
    expect(status?.state).toBe('armed');
    expect(status?.guaranteedMs).toBeGreaterThan(50_000);
    expect(driver.takeOne()).toMatchObject({ market: 'AAA', timeoutSeconds: 60 });
  });

  test('has had no lapse where the timer that it left behind may be firing by then', () => {
    const driver = away(58_500);
    driver.live(1000);
    expect(driver.notices('renewed').filter(({ market }) => market === 'AAA')).toHaveLength(2);
    expect(driver.notices('lapsed')).toEqual([]);
  });

  test('is armed anew where the timer that it left behind has fired meanwhile, which is no lapse', () => {
    const driver = away(60_000);
    expect(driver.statusOf('AAA')).toMatchObject({ state: 'arming', guaranteedMs: null });
    driver.live(1000);
    expect(driver.statusOf('AAA')?.state).toBe('armed');
    expect(driver.notices('lapsed')).toEqual([]);
    expect(driver.notices('overdue')).toEqual([]);
  });

  test('is overdue when the timer that it left behind runs out before anything was confirmed', () => {
    const driver = away(5000);
    driver.live(70_000, 20, (write) => {
      if (write.market === 'AAA') driver.settle(write, NOT_SENT);
      else driver.apply(write);
    });
    expect(driver.notices('overdue').map(({ market }) => market)).toEqual(['AAA']);
  });

  test('is no lapse when its first renewal comes after the end of the timer that it left behind', () => {
    const driver = away(5000);
    driver.live(70_000, 20, (write) => {
      if (write.market === 'AAA' && driver.sinceStartMs() < 75_000) driver.settle(write, NOT_SENT);
      else driver.apply(write);
    });
    driver.live(5000);
    expect(driver.notices('lapsed')).toHaveLength(1);
  });

  test('reckons with a renewal of before that may still land', () => {
    const window = { nonce: 'window', requestLifetimeMs: 60_000, shutdown: { policy: 'keep' } } as const;
    const driver = armed({ ...window, markets: ['AAA:600', 'BBB'] });
    driver.reload({ ...window, markets: ['AAA:10', 'BBB'] });
    for (const write of driver.take()) driver.settle(write, LOST);
    driver.reload({ ...window, markets: ['BBB'] });
    driver.live(25_000);
    expect(driver.state.byName.has('AAA')).toBe(false);
    driver.reload({ ...window, markets: ['AAA:600', 'BBB'] });
    driver.live(1000);
    expect(driver.statusOf('AAA')?.guaranteedMs).toBeLessThan(10_000);
  });

  test('before it has left is not cut short any more by the trip of before', () => {
    const driver = armed();
    driver.operate('trip', ['AAA']);
    driver.settle(driver.takeOne(), NOT_SENT);
    driver.reload({ markets: ['BBB'] });
    const { length } = driver.writes;
    driver.reload({ markets: ['AAA', 'BBB'] });
    driver.live(10_000);
    const asked = driver.writes.slice(length).filter(({ market }) => market === 'AAA');
    expect(asked.every(({ timeoutSeconds }) => timeoutSeconds === 60)).toBe(true);
    expect(driver.statusOf('AAA')).toMatchObject({ state: 'armed', wanted: true });
  });

  /** A market of 10 s whose delete hangs until its timer has fired comes back; its next renewal is confirmed. */
  function outlived(driver: Driver, options: SettingsOptions = {}): Driver {
    driver.reload({ ...options, markets: ['BBB'] });
    hang(driver, 15_000);
    driver.reload({ ...options, markets: ['AAA:10', 'BBB'] });
    for (const id of idsInFlight(driver)) driver.feed({ kind: 'settled', attempt: id, outcome: NOT_SENT });
    driver.live(2000);
    return driver;
  }
  const hang = (driver: Driver, forMs: number) =>
    driver.live(forMs, 20, (write) => {
      if (write.market !== 'AAA') driver.apply(write);
    });

  test('before it has left has had no lapse, although its timer fired while it was leaving', () => {
    const driver = outlived(armed({ markets: ['AAA:10', 'BBB'] }));
    expect(driver.statusOf('AAA')).toMatchObject({ state: 'armed', lapses: 0 });
    expect(driver.notices('lapsed')).toEqual([]);
  });

  test('before it has left has had no lapse where it was disarmed when its timer fired', () => {
    const driver = armed({ markets: ['AAA:10', 'BBB'] });
    driver.operate('disarm', ['AAA']);
    hang(driver, 15_000);
    outlived(driver);
    expect(driver.statusOf('AAA')).toMatchObject({ state: 'armed', lapses: 0 });
  });

  test('before it has left tells of the lapse that it had while it was guarded', () => {
    const driver = armed({ markets: ['AAA:10', 'BBB'] });
    driver.live(15_000, 20, (write) => {
      if (write.market === 'AAA') driver.settle(write, HTTP_500);
      else driver.apply(write);
    });
    expect(driver.notices('lapsed')).toEqual([]);
    outlived(driver);
    expect(driver.notices('lapsed').map(({ market }) => market)).toEqual(['AAA']);
  });

  test('to a bot that died while it was leaving is cut short, as those that stayed were', () => {
    const watched = { liveness: { mode: 'beat', ttlMs: 600_000, onStale: 'trip' } } as const;
    const driver = armed(watched);
    driver.say('beat');
    driver.live(2000);
    driver.reload({ ...watched, markets: ['BBB'] });
    driver.say('fail');
    driver.tick();
    expect(onTheirWay(driver.market('AAA'))).toHaveLength(1);
    driver.reload({ ...watched, markets: ['AAA', 'BBB'] });
    driver.live(5000, 20, (write) => {
      if (write.timeoutSeconds === null) driver.settle(write, NOT_SENT);
      else driver.apply(write);
    });
    expect(
      driver
        .notices('tripped')
        .map(({ market }) => market)
        .toSorted(),
    ).toEqual(['AAA', 'BBB']);
  });

  test('to a bot that has failed is not cut short by the operator’s word of before', () => {
    const watched = { liveness: { mode: 'beat', ttlMs: 600_000 } } as const;
    const driver = armed(watched);
    driver.operate('trip', ['AAA']);
    driver.say('fail');
    const hung = driver.takeOne();
    driver.reload({ ...watched, markets: ['BBB'] });
    driver.reload({ ...watched, markets: ['AAA', 'BBB'] });
    driver.settle(hung, NOT_SENT);
    driver.live(5000);
    expect(driver.writes.filter(({ timeoutSeconds }) => timeoutSeconds === 5)).toHaveLength(1);
  });

  test('is named once by a stop, and not for the time before as well', () => {
    const driver = away(5000);
    driver.live(1000);
    driver.stop('keep');
    driver.live(1000);
    expect(driver.finished()?.map(({ market }) => market)).toEqual(['AAA', 'BBB']);
  });

  test('to a bot that has died since stays suspended, and is not armed', () => {
    const watched = { liveness: { mode: 'beat', ttlMs: 600_000 } } as const;
    const markets = ['AAA:60:maker', 'BBB'];
    const driver = createDriver({ ...watched, markets });
    for (const bot of ['maker', 'bot']) driver.say('beat', bot);
    driver.live(2000);
    driver.reload({ ...watched, markets: ['BBB'] });
    for (const write of driver.take()) driver.settle(write, LOST);
    driver.say('fail', 'maker');
    const { length } = driver.writes;
    driver.reload({ ...watched, markets });
    driver.live(10_000);
    expect(driver.writes.slice(length).filter(({ market }) => market === 'AAA')).toEqual([]);
    expect(driver.statusOf('AAA')?.state).toBe('suspended');
  });
});
