import { expect, test } from 'vitest';
import type { Awaited } from '../../src/core/progress.ts';
import type { SettingsOptions } from './core-settings.ts';
import { type Driver, LOST, played } from './driver.ts';

const BEAT = { liveness: { mode: 'beat' } } as const;
const KEEPING = { ...BEAT, shutdown: { policy: 'keep' } } as const;
const lives = (ttlSeconds: number) => ({ liveness: { mode: 'beat', ttlMs: 1000 * ttlSeconds } }) as const;
const LONG = lives(600);
const GUARDED = 'impossible: AAA is guarded again.';
const STAY = 'done: AAA has no timer any more: its orders stay.';
const PAUSED = `${STAY.slice(0, -1)}; it is armed again in 599.5 s.`;
const PERHAPS =
  'done: AAA has no timer any more, and it may have fired before it was deleted: check which orders are left.';
const FIRED = 'done: AAA has no timer any more: it has fired.';
const STOPS = 'impossible: AAA is up to the stop that has begun: the log says what becomes of its timer.';
const KEPT = /^done: AAA keeps its timer, as the p/;
const BY_KEY = ': the exchange refuses the API key (Unauthorized request.); ';
const STANDS = '; until then the timer is not renewed, and fires within ';
const byKey = (is: string, becomes: string) =>
  `impossible: AAA ${is}${BY_KEY}${becomes} as soon as the key is accepted${STANDS}`;
const RUNS_ON = 'has a timer for another ';
const UNDONE = 'impossible: AAA is not cut short: another command or a reload came after the trip.';

const says = (driver: Driver, awaited: Awaited) => {
  const progress = driver.progress(awaited);
  return `${progress.state}: ${progress.says}`;
};

type Row = [what: string, SettingsOptions, script: string, Awaited, says: string | RegExp];
test.each<Row>([
  ['an armed market', {}, 'live 1', 'arm', 'done: AAA is armed and renewed: 58.5 s left now.'],
  ['a market that no answer has come for', {}, 'tick', 'arm', 'waiting: AAA is not confirmed armed yet.'],
  ['an outage', {}, 'live 1, lost 12, arm', 'arm', /^waiting: AAA has a timer for another .* given up\.$/],
  ['a black hole', {}, 'live 1, silence 10, arm', 'arm', `waiting: AAA ${RUNS_ON}`],
  [
    'a refused market',
    {},
    'live 1, refused 20',
    'arm',
    /^impossible: .* and is not renewed: .* Market is not av/,
  ],
  ['one that is asked anew', {}, 'live 1, refused 20, arm', 'arm', `waiting: AAA ${RUNS_ON}`],
  [
    'one that is accepted',
    {},
    'live 1, refused 20, arm, live 1',
    'arm',
    /^done: AAA is armed and renewed: 5/,
  ],
  ['a refused key and an arm', {}, 'live 1, badkey 12, arm', 'arm', byKey('is not renewed', 'it is armed')],
  [
    'a resume whose bot is silent',
    BEAT,
    'beat, live 1, pause 60, live 16, resume',
    'resume',
    'impossible: AAA is not paused, but its bot gives no sign of life: it is armed as soon as its bot beats; it has no timer now.',
  ],
  ['a market that somebody armed meanwhile', {}, 'live 1', 'disarm', GUARDED],
  ['a bot that beats again', BEAT, 'beat, live 1, goodbye, beat', 'goodbye', GUARDED],
  ['a policy that keeps', KEEPING, 'beat, live 1, goodbye', 'goodbye', KEPT],
  ['a goodbye in a stop', BEAT, 'beat, live 1, stop, live 1, goodbye, live 1', 'goodbye', STAY],
  ['a goodbye in a stop that hands over', BEAT, 'beat, live 1, handoff, goodbye', 'goodbye', KEPT],
  ['a goodbye too late for a stop', BEAT, 'beat, live 1, stop, goodbye, lost 9', 'goodbye', STOPS],
  ['a dead bot', BEAT, 'beat, live 1, fail', 'goodbye', /^impossible: AAA keeps its timer: its bot has /],
  [
    'a market that is disarmed while its bot is dead',
    BEAT,
    'beat, live 1, fail, disarm',
    'disarm',
    /^impossible: AAA is disarmed and keeps its timer: its bot has failed; it fires within 6\d(\.\d)? s\.$/,
  ],
  [
    'a delete that a trip overtook',
    BEAT,
    'beat, live 1, disarm, trip',
    'disarm',
    'impossible: AAA is tripped and keeps its timer; it fires within 60.1 s.',
  ],
  ['a timer deleted before its bot failed', BEAT, 'beat, live 1, disarm, live 1, fail', 'disarm', STAY],
  [
    'a refused key and a trip',
    {},
    'live 1, badkey 12, trip',
    'trip',
    byKey('is not cut short yet', 'it is cut short'),
  ],
  [
    'a refused key and a disarm',
    {},
    'live 1, badkey 12, disarm',
    'disarm',
    byKey('still has its timer', 'that is deleted'),
  ],
  ['a refused key that outlasts the timer', {}, 'live 1, badkey 12, disarm, badkey 80', 'disarm', FIRED],
  ['a trip that was taken back', {}, 'live 1, trip, arm, live 2', 'trip', UNDONE],
  ['a trip that a disarm followed', {}, 'live 1, trip, disarm, live 2', 'trip', UNDONE],
  ['a timer that has surely fired', {}, 'live 2, trip, live 30, disarm', 'disarm', FIRED],
  // Confirmed in the last moment for which it was surely armed, and in the one after that.
  ['a timer that cannot have fired', {}, 'start, wait 1, disarm, wait 57.9, deleted', 'disarm', STAY],
  ['a timer that may have fired', {}, 'start, wait 1, disarm, wait 58, deleted', 'disarm', PERHAPS],
  ['a market that never had a timer', {}, 'disarm', 'disarm', STAY],
  ['a lost first renewal', {}, 'tick, lose, disarm, deleted', 'disarm', STAY],
  [
    'a second timer that was never confirmed, after a delete in time',
    {},
    'start, wait 1, disarm, deleted, wait 99, arm, lose, disarm, wait 1, deleted',
    'disarm',
    STAY,
  ],
  [
    'a second disarm after lost deletes',
    {},
    'start, wait 1, disarm, lose, lost 80, disarm',
    'disarm',
    PERHAPS,
  ],
  [
    'a bot back after the timer ran out',
    lives(65),
    'live 2, beat, lost 70, beat, lose, disarm, live 3',
    'disarm',
    PERHAPS,
  ],
  ['a pause', {}, 'live 1, pause 600, live 1', 'pause', PAUSED],
  [
    'a timer that ran out before a pause',
    LONG,
    'beat, live 5, lost 61, pause 600, live 3',
    'pause',
    /left; it is armed again in 59\d(\.\d)? s/,
  ],
  [
    'a timer that ran out before a goodbye',
    LONG,
    'beat, live 5, lost 61, goodbye, live 3',
    'goodbye',
    PERHAPS,
  ],
  ['a first renewal that ran out unconfirmed', {}, 'lost 60, disarm, live 3', 'disarm', PERHAPS],
  [
    'renewals that fired unconfirmed',
    lives(5),
    'beat, lost 10, wait 200, goodbye, live 3',
    'goodbye',
    PERHAPS,
  ],
])('who waits is told plainly of %s', (_what, options, script, awaited, said) => {
  const driver = played(options, script);
  const told = says(driver, awaited);
  if (typeof said === 'string' && said.endsWith('.')) expect(told).toBe(said);
  else expect(told).toMatch(said);
  // The log says the same of each confirmed delete.
  const mayHaveFired = driver.notices('deleted').map((notice) => notice.mayHaveFired);
  if (said === STAY || said === PERHAPS)
    expect(mayHaveFired).toEqual(mayHaveFired.map(() => said === PERHAPS));
});

test.each([
  ['in time', 0, 60_000, STAY],
  ['too late', 55_000, 0, PERHAPS],
])(
  'a delete that was confirmed %s says what becomes of the orders, and no later answer changes it',
  (_when, beforeMs, afterMs, said) => {
    const driver = played({}, 'start, wait 1, disarm');
    const write = driver.takeOne();
    driver.wait(4000);
    const others = driver.take();
    driver.wait(beforeMs);
    for (const other of others) driver.settle(other, { kind: 'deleted' });
    driver.wait(afterMs);
    driver.settle(write, { kind: 'deleted' });
    const mayHaveFired = driver.notices('deleted').map((notice) => notice.mayHaveFired);
    expect(mayHaveFired.length).toBeGreaterThan(2);
    expect(mayHaveFired).toEqual(mayHaveFired.map(() => said === PERHAPS));
    expect(says(driver, 'disarm')).toBe(said);
  },
);

test('while a stop goes on nothing else is promised, and neither a command nor a reload changes anything', () => {
  const driver = played({}, 'live 1, keep');
  for (const awaited of ['arm', 'trip', 'remove', 'disarm'] as const)
    expect(says(driver, awaited)).toBe(STOPS);
  driver.operate('disarm');
  driver.reload({ markets: ['BBB'] });
  expect([driver.notices('held'), driver.notices('reloaded')]).toEqual([[], []]);
});

test('a market that leaves is waited for until its timer is gone, and cannot be armed', () => {
  const driver = played({ markets: ['AAA', 'BBB'] }, 'live 1');
  driver.reload({ markets: ['BBB'] });
  expect(says(driver, 'remove')).toBe('waiting: AAA leaves: its timer is not confirmed deleted yet.');
  expect(says(driver, 'arm')).toBe('impossible: AAA is no longer configured.');
  driver.reload({ markets: ['AAA', 'BBB'] });
  expect(says(driver, 'remove')).toBe('done: AAA is configured again.');
});

const UNDELETED = [expect.objectContaining({ kind: 'fired', market: 'AAA', why: 'undeleted' })];

test.each(['disarm', 'goodbye'] as const)(
  'a timer that runs out before a delete of it is confirmed is told of, once (%s)',
  (by) => {
    const driver = played(BEAT, `beat, live 1, ${by}, lost 50`);
    expect(driver.notices('fired')).toEqual([]);
    driver.suffer(30_000, LOST);
    expect(driver.notices('fired')).toEqual(UNDELETED);
    const dead = played(BEAT, `beat, live 1, ${by}, lost 1, fail, live 80`);
    expect(dead.notices('fired')).toEqual(UNDELETED);
    expect(says(dead, by)).toBe(PERHAPS);
  },
);

test('a pause is shown with the moment of its end, and ends then', () => {
  const driver = played({}, 'live 1');
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
