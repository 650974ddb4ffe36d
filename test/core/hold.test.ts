import { describe, expect, test } from 'vitest';
import { describeNotice } from '../../src/telemetry/events.ts';
import { many, type SettingsOptions } from './core-settings.ts';
import { armed, createDriver, NO_MARKET, play, played } from './driver.ts';

const BEAT = { liveness: { mode: 'beat' } } as const;
const LONG = { liveness: { mode: 'beat', ttlMs: 600_000 } } as const;

type Row = [what: string, options: SettingsOptions, script: string, asked: (number | null)[]];
test.each<Row>([
  ['a disarm for a bot that is dead', BEAT, 'beat, live 16, disarm, live 1', []],
  ['a disarm for a bot that lives again', BEAT, 'beat, live 16, disarm, live 1, beat', [null]],
  ['a pause whose bot dies meanwhile', BEAT, 'beat, pause 30', [null]],
  ['a pause of what was disarmed for good', {}, 'disarm, pause 5', []],
  ['a trip of a timer that is no longer than that', { markets: ['AAA:5'] }, 'trip', []],
  ['a resume after a trip, which arm alone undoes', BEAT, 'beat, trip, live 1, beat, resume', []],
])(
  '%s asks for this and nothing else, however long one waits (%j, %s): %j',
  (_what, options, script, asked) => {
    expect(play(armed(options), script).written(60_000)).toEqual(asked);
  },
);

describe('disarm', () => {
  test('deletes the timer and leaves the market alone, the others go on', () => {
    const driver = play(armed({ markets: ['AAA', 'BBB'] }), 'disarm AAA');
    expect(driver.progress('disarm').state).toBe('waiting');
    expect(driver.written(30_000, 'AAA')).toEqual([null]);
    expect(driver.of('BBB', 2000).length).toBeGreaterThan(3);
    const says = 'AAA has no timer any more: its orders stay.';
    expect(driver.progress('disarm')).toEqual({ market: 'AAA', state: 'done', says });
    expect(driver.notices('held')).toMatchObject([{ market: 'AAA', why: 'disarmed', untilWallMs: null }]);
  });

  test('is repeated until the exchange confirms it, also where a stop would keep the timer', () => {
    const driver = play(armed({ shutdown: { policy: 'keep' } }), 'disarm, lose, wait 0.6');
    const second = driver.takeOne();
    expect(second.timeoutSeconds).toBeNull();
    expect(driver.progress('disarm').state).toBe('waiting');
    driver.settle(second, { kind: 'deleted' });
    expect(driver.progress('disarm').state).toBe('done');
    driver.written(0);
    expect(driver.written(20_000)).toEqual([]);
  });

  test('before its bot was heard lets the timer fire, and no bot is called dead for it', () => {
    const driver = play(armed({ ...BEAT, markets: ['AAA:10'] }), 'disarm, live 30');
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
    const driver = play(armed(), 'disarm, live 1, arm');
    expect(driver.statusOf()?.state).toBe('arming');
    expect(driver.progress('arm').state).toBe('waiting');
    expect(driver.written(3000)[0]).toBe(60);
    expect(driver.progress('arm').says).toMatch(/^AAA is armed and renewed: 5\d(\.\d)? s left now\.$/);
    expect(driver.notices('released')).toEqual([{ kind: 'released', market: 'AAA', why: 'operator' }]);
  });

  test('stops a delete that has not left yet, and writes no renewal beside one that has', () => {
    const driver = play(armed(), 'disarm');
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
    const driver = played({}, 'tick');
    driver.settle(driver.takeOne(), NO_MARKET);
    driver.wait(2000);
    expect(driver.take()).toEqual([]);
    driver.operate('arm');
    expect([driver.statusOf()?.state, driver.progress('arm').state]).toEqual(['rejected', 'waiting']);
    driver.settle(driver.takeOne(), NO_MARKET);
    expect(driver.progress('arm').says).toBe('AAA is refused by the exchange: Market is not available.');
  });

  test('ends a lapse under onLapse hold, which waits for it', () => {
    const driver = play(armed({ onLapse: 'hold', markets: ['AAA:10'] }), 'lost 15, live 30');
    expect(driver.notices('held').map(({ why }) => why)).toEqual(['lapsed']);
    driver.written(0);
    expect(driver.written(10_000)).toEqual([]);
    driver.operate('arm');
    expect(driver.written(1000)[0]).toBe(10);
  });

  test('undoes a trip, is over when the whole timeout is confirmed, and leaves no low slack behind', () => {
    const driver = play(armed(), 'trip, live 1, arm');
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

  test('is done with an exchange that grants another time than it was asked for', () => {
    const driver = armed();
    driver.live(10_000, 20, (write) => driver.apply(write, { timeout: 30 }));
    expect(driver.progress('arm')).toMatchObject({ state: 'done' });
  });

  test.each([
    ['beat', 'tick', 'gives no sign of life: it is armed as soon as its bot beats'],
    ['file', 'tick', 'gives no sign of life: it is armed as soon as its bot touches its file'],
    ['http', 'tick', 'gives no sign of life: it is armed as soon as its bot answers well'],
    ['process', 'tick', 'gives no sign of life: it is armed as soon as its bot runs'],
    ['beat', 'goodbye', 'said goodbye: it is armed as soon as its bot beats'],
    ['beat', 'fail', 'has failed: it is armed as soon as its bot beats'],
  ] as const)('says in mode %s, after %s, what a bot that is not there has to do', (mode, word, what) => {
    const driver = armed({ liveness: { mode, ttlMs: 5000, startupGraceMs: 0 } });
    play(driver, `${word}, live 10, arm`);
    const { state, says } = driver.progress('arm');
    expect(state).toBe('impossible');
    expect(says).toContain(`AAA is to be armed, but its bot ${what}; `);
  });
});

describe('pause', () => {
  test('ends for each market at its own time, whichever was paused first', () => {
    const driver = armed({ markets: ['AAA', 'BBB', 'CCC'] });
    play(driver, 'pause 60 AAA, pause 20 BBB, pause 40 CCC, disarm BBB, arm BBB, pause 30 BBB');
    const ends: string[] = [];
    for (let seconds = 0; seconds < 70; seconds += 1) {
      const before = driver.told('released').length;
      driver.live(1000);
      for (const market of driver.told('released').slice(before)) ends.push(`${market} ${seconds}`);
    }
    expect(ends).toEqual(['BBB 30', 'CCC 40', 'AAA 60']);
  });

  test('ends in time while the answers of 500 markets come without a break', () => {
    const ping = { everyMs: 60_000, timeoutMs: 3000 };
    const driver = armed({ markets: many(500), nonce: 'window', ping });
    play(driver, 'live 30, pause 1 M0, live 1.55');
    expect(driver.notices('released')).toHaveLength(1);
  });

  test('is not said to need an operator where somebody waits for the timer: it ends by itself', () => {
    const driver = play(armed(), 'pause 600, live 1');
    const says = 'AAA is paused: it is armed when the pause is over.';
    expect(driver.progress('arm')).toMatchObject({ state: 'impossible', says });
  });

  test('is ended by resume, which touches nothing else', () => {
    const driver = play(
      armed({ markets: ['AAA', 'BBB'] }),
      'pause 600 AAA, disarm BBB, live 1, resume, live 1',
    );
    expect(driver.progress('resume', 'AAA').state).toBe('done');
    expect(driver.progress('resume', 'BBB').says).toBe('BBB is disarmed: it stays so until you arm it.');
  });

  test('of what was disarmed for good is impossible', () => {
    expect(play(armed(), 'disarm, pause 5, live 20').progress('pause').state).toBe('impossible');
  });

  test('stays a pause where the timer had run out before it, also under onLapse hold', () => {
    const driver = play(
      createDriver({ markets: ['AAA:10'], onLapse: 'hold' }),
      'start, wait 9.5, pause 600, wait 60',
    );
    expect(driver.notices('lapsed')).toMatchObject([{ market: 'AAA', held: false }]);
    expect(driver.notices('held').map(({ why }) => why)).toEqual(['paused']);
  });
});

describe('trip', () => {
  test.each([
    ['beat, trip'],
    // The orders shall go.
    ['beat, disarm, live 1, trip'],
    ['beat, fail, trip'],
  ])('asks for 5 s once, however long one waits, is told of once, is no lapse, and is done: %s', (script) => {
    const driver = play(armed(LONG), script);
    expect(driver.written(60_000)).toEqual([5]);
    expect([driver.told('tripped'), driver.told('lapsed')]).toEqual([['AAA'], []]);
    expect(driver.progress('trip').state).toBe('done');
  });
});

test('nothing is said to have fired where only an earlier life of the daemon may have armed a timer', () => {
  const driver = play(createDriver({ nonce: 'window', ...BEAT }, { earlierLife: true }), 'fail, live 120');
  expect(driver.notices('fired')).toEqual([]);
});
