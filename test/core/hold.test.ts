import { describe, expect, test } from 'vitest';
import { mayWrite } from '../../src/core/step.ts';
import { describeNotice } from '../../src/telemetry/events.ts';
import { armed, BAD_KEY, createDriver, LOST, NO_MARKET } from './driver.ts';

describe('disarm', () => {
  test('deletes the timer and leaves the market alone, the others go on', () => {
    const driver = armed({ markets: ['AAA', 'BBB'] });
    driver.operate('disarm', ['AAA']);
    expect(driver.progress('disarm').state).toBe('waiting');
    driver.live(30_000);
    const after = driver.writes.filter(({ market, atMs }) => market === 'AAA' && atMs >= 2000);
    expect(after.map(({ timeoutSeconds }) => timeoutSeconds)).toEqual([null]);
    expect(
      driver.writes.filter(({ market, atMs }) => market === 'BBB' && atMs >= 2000).length,
    ).toBeGreaterThan(3);
    expect(driver.progress('disarm')).toEqual({
      market: 'AAA',
      state: 'done',
      says: 'AAA has no timer any more: its orders stay.',
    });
    expect(driver.notices('held')).toEqual([
      { kind: 'held', market: 'AAA', why: 'disarmed', untilWallMs: null },
    ]);
  });

  test('is repeated until the exchange confirms it', () => {
    const driver = armed();
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

  test('outlives a beat: the market is not renewed again, and its delete goes on', () => {
    const driver = armed({ liveness: { mode: 'beat' } });
    driver.say('beat');
    driver.live(1000);
    driver.take();
    driver.operate('disarm');
    const first = driver.takeOne();
    driver.settle(first, LOST);
    driver.say('goodbye');
    driver.say('beat');
    expect(driver.written(3000)).toContain(null);
    expect(driver.progress('disarm').state).toBe('done');
    expect(driver.written(20_000)).toEqual([]);
  });

  test('is not carried out while a bot is dead, and is once it lives again', () => {
    const driver = armed({ liveness: { mode: 'beat' } });
    driver.say('beat');
    driver.live(16_000);
    driver.operate('disarm');
    driver.say('beat');
    expect(driver.written(3000)).toEqual([null]);
  });
});

describe('arm', () => {
  test('guards a disarmed market again at once', () => {
    const driver = armed();
    driver.operate('disarm');
    driver.live(1000);
    driver.operate('arm');
    expect(driver.progress('arm').state).toBe('waiting');
    expect(driver.written(3000)[0]).toBe(60);
    expect(driver.progress('arm').says).toMatch(/^AAA is armed and renewed: 5\d(\.\d)? s left now\.$/);
    expect(driver.notices('released')).toEqual([{ kind: 'released', market: 'AAA', why: 'operator' }]);
  });

  test('stops a delete that has not left yet', () => {
    const driver = armed();
    driver.operate('disarm');
    const { attempt } = driver.takeOne();
    expect(mayWrite(driver.state, attempt, driver.now())).toBe(true);
    driver.operate('arm');
    expect(mayWrite(driver.state, attempt, driver.now())).toBe(false);
  });

  test('writes no renewal beside a delete that has left', () => {
    const driver = armed();
    driver.operate('disarm');
    const deleting = driver.takeOne();
    driver.operate('arm');
    driver.wait(400);
    expect(driver.take()).toEqual([]);
    driver.settle(deleting, { kind: 'deleted' });
    expect(driver.takeOne().timeoutSeconds).toBe(60);
  });

  test('guarantees nothing while a delete of unknown outcome may still land behind the renewal', () => {
    const driver = armed({ nonce: 'window', requestLifetimeMs: 10_000 });
    driver.operate('disarm');
    driver.settle(driver.takeOne(), LOST);
    driver.operate('arm');
    driver.live(5000);
    expect(driver.market('AAA').belief.notBefore).toBeNull();
    driver.live(7000);
    expect(driver.progress('arm').state).toBe('done');
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

  test('shows a refused key no oftener than before', () => {
    const driver = createDriver();
    driver.tick();
    driver.settle(driver.takeOne(), BAD_KEY);
    for (let count = 0; count < 10; count += 1) driver.operate('arm');
    expect(driver.take()).toEqual([]);
    expect(driver.progress('arm')).toMatchObject({ state: 'impossible' });
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
    const startMs = driver.now().monoMs;
    const ends: [string, number][] = [];
    for (let step = 0; step < 70; step += 1) {
      const before = driver.notices('released').length;
      const seconds = Math.round((driver.now().monoMs - startMs) / 1000);
      driver.live(1000);
      for (const { market } of driver.notices('released').slice(before)) ends.push([market, seconds]);
    }
    expect(ends).toEqual([
      ['BBB', 30],
      ['CCC', 40],
      ['AAA', 60],
    ]);
  });

  test('of a market that a reload takes out does not end with an arming', () => {
    const driver = armed({ markets: ['AAA', 'BBB'] });
    driver.operate('pause', ['AAA'], 4000);
    driver.reload({ markets: ['BBB'] });
    driver.wait(10_000);
    expect(driver.notices('released')).toEqual([]);
    driver.live(10_000);
    expect(driver.notices('removed').map(({ market, how }) => [market, how])).toEqual([['AAA', 'deleted']]);
  });

  test('ends when its time is over although the host slept through it', () => {
    const driver = armed();
    driver.operate('pause', null, 60_000);
    driver.live(1000);
    driver.move({ monoMs: 10, bootMs: 70_000, wallMs: 70_000 });
    expect(driver.written(1000)).toEqual([null, 60]);
  });

  test('is not said to need an operator where somebody waits for the timer: it ends by itself', () => {
    const driver = armed();
    driver.operate('pause', null, 600_000);
    driver.live(1000);
    expect(driver.progress('arm')).toMatchObject({
      state: 'impossible',
      says: 'AAA is paused: it is armed when the pause is over.',
    });
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
    expect(driver.notices('held').map(({ why }) => why)).toEqual(['paused']);
  });

  test('does not make a timer in the end for a bot that died meanwhile', () => {
    const driver = armed({ liveness: { mode: 'beat' } });
    driver.say('beat');
    driver.operate('pause', null, 30_000);
    expect(driver.written(60_000)).toEqual([null]);
  });
});

test('a timer that is disarmed before its bot was heard fires, and no bot is called dead for it', () => {
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

test('a deleted timer is not made again to be tripped when the bot dies', () => {
  const driver = armed({ liveness: { mode: 'beat', onStale: 'trip' } });
  driver.say('beat');
  driver.operate('disarm');
  expect(driver.written(40_000)).toEqual([null]);
});

test('a lapse under onLapse hold waits for arm, and arm ends it', () => {
  const driver = armed({ onLapse: 'hold', markets: ['AAA:10'] });
  driver.live(15_000, 20, (write) => driver.settle(write, LOST));
  driver.live(30_000);
  expect(driver.notices('held')).toMatchObject([{ market: 'AAA', why: 'lapsed' }]);
  const before = driver.writes.length;
  driver.live(10_000);
  expect(driver.writes.length).toBe(before);
  driver.operate('arm');
  expect(driver.written(1000)[0]).toBe(10);
});

describe('arm for a bot that is not there', () => {
  test.each([
    ['beat', "its bot gives no sign of life: nothing is renewed before the bot's next beat"],
    ['file', "its bot gives no sign of life: nothing is renewed before the bot's file is touched again"],
    ['http', "its bot gives no sign of life: nothing is renewed before the bot's URL answers well again"],
    ['process', "its bot gives no sign of life: nothing is renewed before the bot's process runs again"],
  ] as const)('says in mode %s what it waits for', (mode, says) => {
    const driver = armed({ liveness: { mode, ttlMs: 5000, startupGraceMs: 0 } });
    driver.live(10_000);
    driver.operate('arm');
    expect(driver.progress('arm')).toEqual({
      market: 'AAA',
      state: 'impossible',
      says: `AAA is not armed, ${says}.`,
    });
  });

  test.each([
    ['goodbye', 'its bot said goodbye'],
    ['fail', 'its bot has failed'],
  ] as const)('after %s says so in words', (word, says) => {
    const driver = armed({ liveness: { mode: 'beat' } });
    driver.say(word);
    driver.operate('arm');
    expect(driver.progress('arm').says).toBe(
      `AAA is not armed, ${says}: nothing is renewed before the bot's next beat.`,
    );
  });
});
