import { expect, test } from 'vitest';
import type { Awaited } from '../../src/core/progress.ts';
import { coreSettings, type SettingsOptions } from './core-settings.ts';
import { BAD_KEY, createDriver, type Driver, LOST, SERVER_EPOCH } from './driver.ts';

const WATCHED: SettingsOptions = { liveness: { mode: 'beat', ttlMs: 15_000 } };

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

test('an armed market says for how long, in tenths of a second', () => {
  expect(says(armed(), 'arm')).toBe('done: AAA is armed and renewed: 58.5 s left now.');
});

test('a market that no answer has come for is waited for, and no time is claimed for it', () => {
  const driver = createDriver();
  driver.tick();
  expect(says(driver, 'arm')).toBe('waiting: AAA is not confirmed armed yet.');
});

test('while a stop goes on nothing else is promised, whatever is asked for', () => {
  const driver = armed();
  driver.stop('keep');
  for (const awaited of ['arm', 'trip', 'remove', 'disarm'] as const)
    expect(says(driver, awaited)).toBe('impossible: AAA is left alone: the daemon is stopping.');
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
  expect(driver.notices('tripped')).toEqual([
    {
      kind: 'tripped',
      market: 'AAA',
      why: 'tripped',
      durationMs: 100,
      firesByWallMs: driver.now().wallMs + 5000 * (1 + 200e-6) + 1000,
    },
  ]);
  driver.wait(7000);
  expect(says(driver, 'trip')).toBe('done: AAA has no timer any more: it has fired.');
});

test('a refused key makes a trip and a delete impossible until it is good again', () => {
  for (const does of ['trip', 'disarm'] as const) {
    const driver = armed();
    driver.live(12_000, 20, (write) => driver.settle(write, BAD_KEY));
    driver.operate(does);
    expect(says(driver, does)).toBe(
      'impossible: AAA cannot be changed: the exchange refuses the API key (Unauthorized request.).',
    );
  }
});

test('a market that somebody armed meanwhile is not deleted', () => {
  expect(says(armed(), 'disarm')).toBe('impossible: AAA is guarded again.');
});

test('a trip that another command undid is no success, whatever becomes of the timer', () => {
  for (const does of ['arm', 'disarm'] as const) {
    const driver = armed();
    driver.operate('trip');
    driver.operate(does);
    driver.live(2000);
    expect(says(driver, 'trip')).toBe(
      'impossible: AAA is not cut short: another command or a reload came after the trip.',
    );
  }
});

test('a delete that a trip overtook says that the market is tripped, and blames no bot', () => {
  const driver = armed();
  driver.operate('disarm');
  driver.operate('trip');
  expect(says(driver, 'disarm')).toBe(
    'impossible: AAA is tripped and keeps its timer; it fires within 60.1 s.',
  );
});

test('a timer that was deleted has not fired, also where the bot fails after that', () => {
  const driver = armed(WATCHED);
  driver.operate('disarm');
  driver.live(1000);
  driver.say('fail');
  expect(says(driver, 'disarm')).toBe('done: AAA has no timer any more: its orders stay.');
});

test('a timer that runs out before a delete of it is confirmed is told of, once', () => {
  for (const end of ['disarm', 'goodbye'] as const) {
    const driver = armed(end === 'disarm' ? {} : WATCHED);
    if (end === 'disarm') driver.operate('disarm');
    else driver.say('goodbye');
    driver.live(50_000, 20, (write) => driver.settle(write, LOST));
    expect(driver.notices('fired')).toEqual([]);
    driver.live(30_000, 20, (write) => driver.settle(write, LOST));
    expect(driver.notices('fired')).toMatchObject([{ market: 'AAA', why: 'undeleted' }]);
  }
});

test('a timer that ran out is told of also where a delete fails right after that', () => {
  for (const nonce of ['window', 'increasing'] as const) {
    // Some of these failures come before the core is woken to see that the timer has run out.
    for (let afterMs = 0; afterMs < 6000; afterMs += 100) {
      const driver = armed({ nonce });
      driver.operate('disarm');
      driver.live(57_000, 20, (write) => driver.settle(write, LOST));
      driver.wait(afterMs);
      driver.move({ monoMs: 200 });
      driver.live(30_000, 0, (write) => driver.settle(write, LOST));
      expect(driver.notices('fired')).toMatchObject([{ market: 'AAA', why: 'undeleted' }]);
    }
  }
});

test('a timer may have been deleted where a delete of it has no answer and its bot dies after that', () => {
  for (const end of ['disarm', 'goodbye'] as const) {
    const driver = armed(WATCHED);
    if (end === 'disarm') driver.operate('disarm');
    else driver.say('goodbye');
    driver.live(1000, 20, (write) => driver.settle(write, LOST));
    driver.say('fail');
    driver.live(80_000);
    expect(driver.notices('fired')).toMatchObject([{ market: 'AAA', why: 'undeleted' }]);
    expect(says(driver, end)).toBe(
      'done: AAA has no timer any more, and it may have fired before it was deleted: check which orders are left.',
    );
  }
});

test('nor is it surely said to have fired where it was overdue before the delete', () => {
  const driver = armed({ liveness: { ...WATCHED.liveness, ttlMs: 600_000 } });
  const lose = (forMs: number) => driver.live(forMs, 20, (write) => driver.settle(write, LOST));
  lose(65_000);
  driver.say('goodbye');
  lose(90_000);
  expect(driver.notices('lapsed')).toMatchObject([{ certainty: 'possible' }]);
  expect(says(driver, 'goodbye')).toMatch(/^done: AAA has no timer any more, and it may have fired/);
});

test("a dead bot's timer is kept, for as long as it says", () => {
  const driver = armed(WATCHED);
  driver.say('fail');
  expect(says(driver, 'goodbye')).toMatch(/^impossible: AAA keeps its timer: its bot has failed/);
  driver.operate('disarm');
  expect(says(driver, 'disarm')).toMatch(
    /^impossible: AAA keeps its timer: its bot has failed; it fires within 6\d(\.\d)? s\.$/,
  );
});

test('a bot that beats after its goodbye is guarded again, which nobody has armed', () => {
  const driver = armed(WATCHED);
  driver.say('goodbye');
  driver.say('beat');
  expect(says(driver, 'goodbye')).toBe('impossible: AAA is guarded again.');
});

test('a goodbye under another policy keeps the timer, and that is what was asked for', () => {
  const driver = armed({ ...WATCHED, shutdown: { policy: 'keep' } });
  driver.say('goodbye');
  expect(says(driver, 'goodbye')).toMatch(
    /^done: AAA keeps its timer, as the policy says; it fires within 6\d(\.\d)? s\.$/,
  );
});

test('a pause is shown with the moment of its end, and ends then', () => {
  const driver = armed();
  const endWallMs = driver.now().wallMs + 60_000;
  driver.operate('pause', null, 60_000);
  expect(driver.notices('held')).toEqual([
    { kind: 'held', market: 'AAA', why: 'paused', untilWallMs: endWallMs },
  ]);
  driver.move({ monoMs: 20_000 });
  expect(driver.statusOf()?.hold).toEqual({ why: 'paused', untilWallMs: endWallMs });
  driver.move({ monoMs: 41_000 });
  expect(driver.statusOf()?.hold).toEqual({ why: 'paused', untilWallMs: driver.now().wallMs });
  driver.tick();
  expect(driver.notices('released')).toEqual([{ kind: 'released', market: 'AAA', why: 'pause-over' }]);
  driver.operate('disarm');
  expect(driver.statusOf()?.hold).toEqual({ why: 'disarmed', untilWallMs: null });
});

test('neither a command nor a reload changes anything during a stop', () => {
  const driver = armed();
  driver.stop('keep');
  driver.operate('disarm');
  driver.reload({ markets: ['BBB'] });
  expect([driver.notices('held'), driver.notices('reloaded')]).toEqual([[], []]);
});

test('a new key is tried at once, and an answer to the old one says nothing about it', () => {
  const driver = armed();
  driver.wait(5100);
  const [old] = driver.take();
  if (old === undefined) throw new Error('no renewal');
  driver.move({ monoMs: 50 });
  driver.feed({ kind: 'credentials-changed' });
  driver.settle(old, BAD_KEY);
  expect(driver.notices('unauthorised')).toEqual([]);
});

test('a timer that fired while nobody wanted it, after its guarantee had run out in an outage, is a lapse', () => {
  const driver = armed({ markets: ['AAA:10'] });
  driver.live(9500, 20, (write) => driver.settle(write, LOST));
  driver.operate('disarm');
  driver.live(30_000, 20, (write) => driver.settle(write, LOST));
  driver.operate('arm');
  driver.live(1000, 20, (write) => driver.apply(write, { startTime: SERVER_EPOCH + 60 }));
  expect(driver.notices('lapsed')).toHaveLength(1);
});

test('a reload says what came, what went and what changed, once', () => {
  const driver = armed({ markets: ['AAA', 'BBB', 'CCC'] });
  const next = coreSettings({ markets: ['AAA', 'BBB:30', 'DDD'] });
  driver.feed({ kind: 'reload', settings: next });
  driver.feed({ kind: 'reload', settings: next });
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
  expect(driver.market('AAA').hold).toBeNull();
  driver.live(2000);
  expect(driver.statusOf()?.state).toBe('armed');
});
