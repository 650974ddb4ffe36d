import { describe, expect, test } from 'vitest';
import { describeNotice } from '../../src/telemetry/events.ts';
import { armed, createDriver, type Driver, LOST, NO_MARKET } from './driver.ts';

const heldAs = (driver: Driver) => driver.notices('held').map(({ why }) => why);

/** One or more armed markets whose bot lives for 15 s from now on. */
function beating(liveness: object = {}) {
  const driver = armed({ liveness: { mode: 'beat', ...liveness } });
  driver.say('beat');
  return driver;
}

describe('disarm', () => {
  test('deletes the timer and leaves the market alone, the others go on', () => {
    const driver = armed({ markets: ['AAA', 'BBB'] });
    driver.operate('disarm', ['AAA']);
    expect(driver.progress('disarm').state).toBe('waiting');
    expect(driver.written(30_000, 'AAA')).toEqual([null]);
    expect(driver.of('BBB', 2000).length).toBeGreaterThan(3);
    const says = 'AAA has no timer any more: its orders stay.';
    expect(driver.progress('disarm')).toEqual({ market: 'AAA', state: 'done', says });
    expect(driver.notices('held')).toMatchObject([{ market: 'AAA', why: 'disarmed', untilWallMs: null }]);
  });

  test('is repeated until the exchange confirms it, also where a stop would keep the timer', () => {
    const driver = armed({ shutdown: { policy: 'keep' } });
    driver.operate('disarm');
    driver.settle(driver.takeOne(), LOST);
    driver.wait(600);
    const second = driver.takeOne();
    expect(second.timeoutSeconds).toBeNull();
    expect(driver.progress('disarm').state).toBe('waiting');
    driver.settle(second, { kind: 'deleted' });
    expect(driver.progress('disarm').state).toBe('done');
    driver.written(0);
    expect(driver.written(20_000)).toEqual([]);
  });

  test('is not carried out while a bot is dead, and is once it lives again', () => {
    const driver = beating();
    driver.live(16_000);
    driver.operate('disarm');
    expect(driver.take()).toEqual([]);
    driver.say('beat');
    expect(driver.written(3000)).toEqual([null]);
  });

  test('before its bot was heard lets the timer fire, and no bot is called dead for it', () => {
    const driver = armed({ markets: ['AAA:10'], liveness: { mode: 'beat' } });
    driver.operate('disarm');
    driver.live(30_000);
    const [fired] = driver.notices('fired');
    if (fired === undefined) throw new Error('it has not fired');
    expect(driver.look().bots).toMatchObject([{ state: 'starting' }]);
    expect(describeNotice(fired, [], driver.now()).msg).toMatch(
      /because it was disarmed or paused before its bot was heard\.$/,
    );
  });
});

describe('arm', () => {
  test('guards a disarmed market again at once', () => {
    const driver = armed();
    driver.operate('disarm');
    driver.live(1000);
    driver.operate('arm');
    expect(driver.statusOf()?.state).toBe('arming');
    expect(driver.progress('arm').state).toBe('waiting');
    expect(driver.written(3000)[0]).toBe(60);
    expect(driver.progress('arm').says).toMatch(/^AAA is armed and renewed: 5\d(\.\d)? s left now\.$/);
    expect(driver.notices('released')).toEqual([{ kind: 'released', market: 'AAA', why: 'operator' }]);
  });

  test('stops a delete that has not left yet, and writes no renewal beside one that has', () => {
    const driver = armed();
    driver.operate('disarm');
    const deleting = driver.takeOne();
    expect(driver.mayLeave(deleting.attempt)).toBe(true);
    driver.operate('arm');
    expect(driver.mayLeave(deleting.attempt)).toBe(false);
    driver.wait(400);
    expect(driver.take()).toEqual([]);
    driver.settle(deleting, { kind: 'deleted' });
    expect(driver.takeOne().timeoutSeconds).toBe(60);
  });

  test('asks the exchange at once about a market that it refused', () => {
    const driver = createDriver();
    driver.tick();
    driver.settle(driver.takeOne(), NO_MARKET);
    driver.wait(2000);
    expect(driver.take()).toEqual([]);
    driver.operate('arm');
    driver.settle(driver.takeOne(), NO_MARKET);
    expect(driver.progress('arm').says).toBe('AAA is refused by the exchange: Market is not available.');
  });

  test('ends a lapse under onLapse hold, which waits for it', () => {
    const driver = armed({ onLapse: 'hold', markets: ['AAA:10'] });
    driver.suffer(15_000, LOST);
    driver.live(30_000);
    expect(heldAs(driver)).toEqual(['lapsed']);
    driver.written(0);
    expect(driver.written(10_000)).toEqual([]);
    driver.operate('arm');
    expect(driver.written(1000)[0]).toBe(10);
  });

  test.each([
    ['beat', null, "its bot gives no sign of life: nothing is renewed before the bot's next beat"],
    [
      'file',
      null,
      "its bot gives no sign of life: nothing is renewed before the bot's file is touched again",
    ],
    [
      'http',
      null,
      "its bot gives no sign of life: nothing is renewed before the bot's URL answers well again",
    ],
    [
      'process',
      null,
      "its bot gives no sign of life: nothing is renewed before the bot's process runs again",
    ],
    ['beat', 'goodbye', "its bot said goodbye: nothing is renewed before the bot's next beat"],
    ['beat', 'fail', "its bot has failed: nothing is renewed before the bot's next beat"],
  ] as const)('says in mode %s, after %s, what a bot that is not there has to do', (mode, word, what) => {
    const driver = armed({ liveness: { mode, ttlMs: 5000, startupGraceMs: 0 } });
    if (word !== null) driver.say(word);
    driver.live(10_000);
    driver.operate('arm');
    const says = `AAA is not armed, ${what}.`;
    expect(driver.progress('arm')).toEqual({ market: 'AAA', state: 'impossible', says });
  });
});

describe('pause', () => {
  test('ends for each market at its own time, whichever was paused first', () => {
    const driver = armed({ markets: ['AAA', 'BBB', 'CCC'] });
    driver.operate('pause', ['AAA'], 60_000);
    driver.operate('pause', ['BBB'], 20_000);
    driver.operate('pause', ['CCC'], 40_000);
    driver.operate('disarm', ['BBB']);
    driver.operate('arm', ['BBB']);
    driver.operate('pause', ['BBB'], 30_000);
    const ends: string[] = [];
    for (let seconds = 0; seconds < 70; seconds += 1) {
      const before = driver.notices('released').length;
      driver.live(1000);
      for (const { market } of driver.notices('released').slice(before)) ends.push(`${market} ${seconds}`);
    }
    expect(ends).toEqual(['BBB 30', 'CCC 40', 'AAA 60']);
  });

  test.each([100, 300, 500, 501])(
    'ends in time while the answers of %d markets come without a break',
    (count) => {
      const markets = Array.from({ length: count }, (_, index) => `M${index}:60`);
      const ping = { everyMs: 60_000, timeoutMs: 3000 };
      const driver = armed({ markets, nonce: 'window', ping });
      driver.live(30_000);
      driver.operate('pause', ['M0'], 1000);
      driver.live(1550);
      expect(driver.notices('released')).toHaveLength(1);
    },
  );

  test('is not said to need an operator where somebody waits for the timer: it ends by itself', () => {
    const driver = armed();
    driver.operate('pause', null, 600_000);
    driver.live(1000);
    const says = 'AAA is paused: it is armed when the pause is over.';
    expect(driver.progress('arm')).toMatchObject({ state: 'impossible', says });
  });

  test('is ended by resume, which touches nothing else', () => {
    const driver = armed({ markets: ['AAA', 'BBB'] });
    driver.operate('pause', ['AAA'], 600_000);
    driver.operate('disarm', ['BBB']);
    driver.live(1000);
    driver.operate('resume');
    driver.live(1000);
    expect(driver.progress('resume', 'AAA').state).toBe('done');
    expect(driver.progress('resume', 'BBB').says).toBe('BBB is disarmed: it stays so until you arm it.');
  });

  test('arms no market in the end that was disarmed for good', () => {
    const driver = armed();
    driver.operate('disarm');
    driver.operate('pause', null, 5000);
    expect(driver.written(20_000)).toEqual([]);
    expect(driver.progress('pause').state).toBe('impossible');
  });

  test('stays a pause where the timer had run out before it, also under onLapse hold', () => {
    const driver = createDriver({ markets: ['AAA:10'], onLapse: 'hold' });
    driver.arm();
    driver.wait(9500);
    driver.operate('pause', null, 600_000);
    driver.wait(60_000);
    expect(driver.notices('lapsed')).toMatchObject([{ market: 'AAA', held: false }]);
    expect(heldAs(driver)).toEqual(['paused']);
  });

  test('does not make a timer in the end for a bot that died meanwhile', () => {
    const driver = beating();
    driver.operate('pause', null, 30_000);
    expect(driver.written(60_000)).toEqual([null]);
  });
});

describe('trip', () => {
  const stages: readonly [string, (driver: Driver) => unknown][] = [
    ['of a bot that lives', () => {}],
    ['that was deleted, for the orders shall go', (driver) => [driver.operate('disarm'), driver.live(1000)]],
    ['of a dead bot', (driver) => driver.say('fail')],
  ];
  test.each(stages)('cuts the timer %s to 5 s, once, and renews it no more', (_what, prepare) => {
    const driver = beating({ ttlMs: 600_000 });
    prepare(driver);
    driver.operate('trip');
    expect(driver.written(30_000)).toEqual([5]);
    expect(driver.notices('tripped')).toHaveLength(1);
    expect(driver.notices('lapsed')).toEqual([]);
    expect(driver.progress('trip').state).toBe('done');
  });

  test.each([true, false])(
    'is not undone by a stop, which waits for its confirmation (confirmed before: %s)',
    (before) => {
      const driver = armed();
      driver.operate('trip');
      const cut = driver.takeOne();
      if (before) driver.apply(cut);
      driver.stop();
      expect(driver.finished() === null).toBe(!before);
      driver.apply(cut);
      expect(driver.take()).toEqual([]);
      expect(driver.finished()).toEqual([expect.objectContaining({ market: 'AAA', why: 'policy' })]);
    },
  );

  test('of a market whose timer is no longer than that leaves it to fire', () => {
    const driver = armed({ markets: ['AAA:5'] });
    driver.operate('trip');
    expect(driver.written(10_000)).toEqual([]);
    expect(driver.progress('trip').state).toBe('done');
  });

  test('is undone by arm alone', () => {
    const driver = beating();
    driver.operate('trip');
    driver.live(1000);
    driver.say('beat');
    driver.operate('resume');
    expect(driver.written(2000)).toEqual([]);
    driver.operate('arm');
    expect(driver.written(2000)[0]).toBe(60);
  });

  test('is over for who arms when the whole timeout is confirmed, and leaves no low slack behind', () => {
    const driver = armed();
    driver.operate('trip');
    driver.live(1000);
    driver.operate('arm');
    expect(driver.progress('arm').state).toBe('waiting');
    expect(driver.progress('arm').says).toMatch(
      /^AAA has a timer for another [23](\.\d)? s, and is not confirmed renewed yet\.$/,
    );
    driver.live(5000);
    expect(driver.progress('arm').state).toBe('done');
    expect(driver.progress('arm').says).toMatch(/^AAA is armed and renewed: 5\d/);
    const slacks = driver.notices('renewed').flatMap(({ slackRatio }) => slackRatio ?? []);
    expect(Math.min(...slacks)).toBeGreaterThan(0.8);
  });
});

test('arm is done with an exchange that grants another time than it was asked for', () => {
  const driver = armed();
  driver.live(10_000, 20, (write) => driver.apply(write, { timeout: 30 }));
  expect(driver.progress('arm')).toMatchObject({ state: 'done' });
});

test('a delete in a nonce window waits until no cut can arrive behind it', () => {
  const driver = armed({ nonce: 'window' });
  driver.operate('trip');
  driver.settle(driver.takeOne(), LOST);
  const lostMs = driver.sinceStartMs();
  driver.operate('disarm');
  driver.live(12_000);
  const deletes = driver.writes.filter(({ timeoutSeconds }) => timeoutSeconds === null);
  expect(deletes.map(({ atMs }) => atMs - lostMs)).toEqual([expect.closeTo(10_000, -2)]);
});

test('nothing is said to have fired where only an earlier life of the daemon may have armed a timer', () => {
  const driver = createDriver({ nonce: 'window', liveness: { mode: 'beat' } }, { earlierLife: true });
  driver.say('fail');
  driver.live(120_000);
  expect(driver.notices('fired')).toEqual([]);
});
