import { expect, test } from 'vitest';
import type { Awaited } from '../../src/core/progress.ts';
import type { SettingsOptions } from './core-settings.ts';
import { BAD_KEY, createDriver, type Driver, LOST } from './driver.ts';

const WATCHED = { liveness: { mode: 'beat' } } as const;
const KEEPING = { ...WATCHED, shutdown: { policy: 'keep' } } as const;
const GUARDED = 'impossible: AAA is guarded again.';
const STAY = 'done: AAA has no timer any more: its orders stay.';

const says = (driver: Driver, awaited: Awaited) => {
  const progress = driver.progress(awaited);
  return `${progress.state}: ${progress.says}`;
};

function armed(options: SettingsOptions = {}): Driver {
  const driver = createDriver(options);
  if (options.liveness !== undefined) driver.say('beat');
  driver.live(1000);
  return driver;
}

/** Tells the market's timer to be deleted by a command, or by the bot. */
function end(driver: Driver, by: 'disarm' | 'goodbye'): void {
  if (by === 'disarm') driver.operate('disarm');
  else driver.say('goodbye');
}

type Row = [what: string, SettingsOptions, ((driver: Driver) => unknown)[], Awaited, says: string | RegExp];
test.each<Row>([
  ['an armed market', {}, [], 'arm', 'done: AAA is armed and renewed: 58.5 s left now.'],
  ['a market that somebody armed meanwhile', {}, [], 'disarm', GUARDED],
  ['a bot that beats again', WATCHED, [(d) => d.say('goodbye'), (d) => d.say('beat')], 'goodbye', GUARDED],
  [
    'a policy that keeps',
    KEEPING,
    [(d) => d.say('goodbye')],
    'goodbye',
    /^done: AAA keeps its timer, as the p/,
  ],
  [
    'a dead bot',
    WATCHED,
    [(d) => d.say('fail')],
    'goodbye',
    /^impossible: AAA keeps its timer: its bot has /,
  ],
  [
    'a market that is disarmed while its bot is dead',
    WATCHED,
    [(d) => d.say('fail'), (d) => d.operate('disarm')],
    'disarm',
    /^impossible: AAA keeps its timer: its bot has failed; it fires within 6\d(\.\d)? s\.$/,
  ],
  [
    'a delete that a trip overtook',
    WATCHED,
    [(d) => d.operate('disarm'), (d) => d.operate('trip')],
    'disarm',
    'impossible: AAA is tripped and keeps its timer; it fires within 60.1 s.',
  ],
  [
    'a timer that was deleted before its bot failed',
    WATCHED,
    [(d) => d.operate('disarm'), (d) => d.live(1000), (d) => d.say('fail')],
    'disarm',
    STAY,
  ],
])('who waits is told plainly of %s', (_what, options, happens, awaited, said) => {
  const driver = armed(options);
  for (const happen of happens) happen(driver);
  expect(says(driver, awaited)).toMatch(said);
});

test('a market that no answer has come for is waited for, and no time is claimed for it', () => {
  const driver = createDriver();
  driver.tick();
  expect(says(driver, 'arm')).toBe('waiting: AAA is not confirmed armed yet.');
});

test('while a stop goes on nothing else is promised, and neither a command nor a reload changes anything', () => {
  const driver = armed();
  driver.stop('keep');
  for (const awaited of ['arm', 'trip', 'remove', 'disarm'] as const)
    expect(says(driver, awaited)).toBe('impossible: AAA is left alone: the daemon is stopping.');
  driver.operate('disarm');
  driver.reload({ markets: ['BBB'] });
  expect([driver.notices('held'), driver.notices('reloaded')]).toEqual([[], []]);
});

test('a market that leaves is waited for until its timer is gone, and cannot be armed', () => {
  const driver = armed({ markets: ['AAA', 'BBB'] });
  driver.reload({ markets: ['BBB'] });
  expect(says(driver, 'remove')).toBe('waiting: AAA leaves: its timer is not confirmed deleted yet.');
  expect(says(driver, 'arm')).toBe('impossible: AAA is no longer configured.');
  driver.reload({ markets: ['AAA', 'BBB'] });
  expect(says(driver, 'remove')).toBe('done: AAA is configured again.');
});

test('a trip is done when it is confirmed, with the moment by which the orders are cancelled', () => {
  const driver = armed();
  driver.operate('trip');
  expect(says(driver, 'trip')).toBe('waiting: AAA is not confirmed cut short yet.');
  const [, cut] = driver.writes.slice(-2);
  if (cut === undefined) throw new Error('no trip');
  driver.move({ monoMs: 100 });
  driver.apply(cut);
  expect(says(driver, 'trip')).toBe('done: AAA is cut short: its orders are cancelled within 6.1 s.');
  const firesByWallMs = driver.now().wallMs + 5000 * (1 + 200e-6) + 1000;
  expect(driver.notices('tripped')).toEqual([
    { kind: 'tripped', market: 'AAA', why: 'tripped', durationMs: 100, firesByWallMs },
  ]);
  driver.wait(7000);
  expect(says(driver, 'trip')).toBe('done: AAA has no timer any more: it has fired.');
});

test.each(['trip', 'disarm'] as const)(
  'a refused key makes a %s impossible until it is good again',
  (does) => {
    const driver = armed();
    driver.suffer(12_000, BAD_KEY);
    driver.operate(does);
    expect(says(driver, does)).toBe(
      'impossible: AAA cannot be changed: the exchange refuses the API key (Unauthorized request.).',
    );
  },
);

test.each(['arm', 'disarm'] as const)(
  'a trip that %s undid is no success, whatever becomes of the timer',
  (does) => {
    const driver = armed();
    driver.operate('trip');
    driver.operate(does);
    driver.live(2000);
    expect(says(driver, 'trip')).toBe(
      'impossible: AAA is not cut short: another command or a reload came after the trip.',
    );
  },
);

const UNDELETED = [expect.objectContaining({ kind: 'fired', market: 'AAA', why: 'undeleted' })];

test.each(['disarm', 'goodbye'] as const)(
  'a timer that runs out before a delete of it is confirmed is told of, once (%s)',
  (by) => {
    const driver = armed(WATCHED);
    end(driver, by);
    driver.suffer(50_000, LOST);
    expect(driver.notices('fired')).toEqual([]);
    driver.suffer(30_000, LOST);
    expect(driver.notices('fired')).toEqual(UNDELETED);
  },
);

test.each(['window', 'increasing'] as const)(
  'a timer that ran out is told of also where a delete fails right after that (%s nonces)',
  (nonce) => {
    // Some of these failures come before the core is woken to see that the timer has run out.
    for (let afterMs = 0; afterMs < 6000; afterMs += 100) {
      const driver = armed({ nonce });
      driver.operate('disarm');
      driver.suffer(57_000, LOST);
      driver.wait(afterMs);
      driver.move({ monoMs: 200 });
      driver.live(30_000, 0, (write) => driver.settle(write, LOST));
      expect(driver.notices('fired')).toEqual(UNDELETED);
    }
  },
);

test.each(['disarm', 'goodbye'] as const)(
  'a timer may have been deleted where a delete of it has no answer and its bot dies after that (%s)',
  (by) => {
    const driver = armed(WATCHED);
    end(driver, by);
    driver.suffer(1000, LOST);
    driver.say('fail');
    driver.live(80_000);
    expect(driver.notices('fired')).toEqual(UNDELETED);
    expect(says(driver, by)).toBe(
      'done: AAA has no timer any more, and it may have fired before it was deleted: check which orders are left.',
    );
  },
);

test('a pause is shown with the moment of its end, and ends then', () => {
  const driver = armed();
  const untilWallMs = driver.now().wallMs + 60_000;
  driver.operate('pause', null, 60_000);
  expect(driver.notices('held')).toMatchObject([{ market: 'AAA', why: 'paused', untilWallMs }]);
  driver.move({ monoMs: 20_000 });
  expect(driver.statusOf()?.hold).toEqual({ why: 'paused', untilWallMs });
  driver.move({ monoMs: 41_000 });
  expect(driver.statusOf()?.hold).toEqual({ why: 'paused', untilWallMs: driver.now().wallMs });
  driver.tick();
  expect(driver.notices('released')).toEqual([{ kind: 'released', market: 'AAA', why: 'pause-over' }]);
  driver.operate('disarm');
  expect(driver.statusOf()?.hold).toEqual({ why: 'disarmed', untilWallMs: null });
});

test('a reload says what came, what went and what changed, once', () => {
  const driver = armed({ markets: ['AAA', 'BBB', 'CCC'] });
  for (let times = 0; times < 2; times += 1) driver.reload({ markets: ['AAA', 'BBB:30', 'DDD'] });
  expect(driver.notices('reloaded')).toEqual([
    { kind: 'reloaded', added: ['DDD'], removed: ['CCC'], changed: ['BBB'] },
    { kind: 'reloaded', added: [], removed: [], changed: [] },
  ]);
});

test('a market that comes back after it was disarmed is armed as if it were new', () => {
  const driver = armed({ markets: ['AAA', 'BBB'] });
  driver.operate('disarm');
  driver.reload({ markets: ['BBB'] });
  driver.reload({ markets: ['AAA', 'BBB'] });
  driver.live(2000);
  expect(driver.statusOf()).toMatchObject({ hold: null, state: 'armed' });
});
