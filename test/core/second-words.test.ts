import { describe, expect, test } from 'vitest';
import { mayWrite } from '../../src/core/step.ts';
import { describeNothingGuarded, describe as describeState } from '../../src/core/view.ts';
import { coreSettings } from './core-settings.ts';
import { createDriver, type Driver, NOT_SENT, SERVER_EPOCH } from './driver.ts';

const say = (driver: Driver, says: 'beat' | 'goodbye' | 'fail') =>
  driver.feed({ kind: 'evidence', bot: 'bot', says, agoMs: 0 });
const operate = (driver: Driver, does: 'disarm' | 'arm' | 'pause' | 'resume', ...markets: string[]) =>
  driver.feed({ kind: 'operate', command: { does, markets, forMs: 600_000 } });
/** Lets time pass, and nothing reaches the exchange. */
const cutOff = (driver: Driver, forMs: number) =>
  driver.live(forMs, 20, (write) => driver.settle(write, NOT_SENT));

describe('a timer that fired on purpose is no lapse when it is armed again', () => {
  const watched = { markets: ['AAA:10'], liveness: { mode: 'beat', ttlMs: 15_000 } } as const;

  test('where the market was paused, and its bot fell silent after that', () => {
    const driver = createDriver(watched);
    say(driver, 'beat');
    driver.live(3000);
    operate(driver, 'pause', 'AAA');
    cutOff(driver, 30_000);
    say(driver, 'beat');
    operate(driver, 'resume', 'AAA');
    driver.live(2000);
    expect(driver.notices('renewed').length).toBeGreaterThan(3);
    expect(driver.notices('lapsed')).toEqual([]);
  });

  test('where the bot failed, and its market was paused after that', () => {
    const driver = createDriver(watched);
    say(driver, 'beat');
    driver.live(3000);
    say(driver, 'fail');
    driver.live(20_000);
    operate(driver, 'pause', 'AAA');
    driver.live(1000);
    say(driver, 'beat');
    operate(driver, 'resume', 'AAA');
    driver.live(2000);
    expect(driver.notices('renewed').length).toBeGreaterThan(3);
    expect(driver.notices('lapsed')).toEqual([]);
  });

  test('where the confirmation of its cut waited through a stall', () => {
    const driver = createDriver({ liveness: { mode: 'beat', ttlMs: 60_000, onStale: 'trip' } });
    say(driver, 'beat');
    driver.live(2000);
    driver.take();
    say(driver, 'fail');
    driver.tick();
    const cut = driver.takeOne();
    expect(cut.timeoutSeconds).toBe(5);
    driver.move({ monoMs: 20_000 });
    driver.apply(cut, { startTime: SERVER_EPOCH + 2 });
    driver.live(2000);
    say(driver, 'beat');
    driver.live(2000);
    expect(driver.writes.at(-1)?.timeoutSeconds).toBe(60);
    expect(driver.notices('lapsed')).toEqual([]);
  });
});

test('a cycle that the death of the bot cut off is not part of the next one', () => {
  const driver = createDriver({ liveness: { mode: 'beat', ttlMs: 600_000 } });
  say(driver, 'beat');
  driver.live(5900);
  cutOff(driver, 2000);
  say(driver, 'fail');
  driver.live(20_000);
  say(driver, 'beat');
  driver.live(1000);
  expect(driver.notices('renewed').at(-1)?.cycleMs).toBeLessThan(1000);
});

test('arming what nobody took out of guard releases nothing, and hides no lapse', () => {
  const driver = createDriver({ markets: ['AAA:10'] });
  driver.live(3000);
  // The guarantee has run out, and the timer has not surely fired yet.
  cutOff(driver, 9200);
  operate(driver, 'arm', 'AAA');
  cutOff(driver, 900);
  driver.live(5000);
  expect(driver.notices('released')).toEqual([]);
  expect(driver.notices('lapsed')).toHaveLength(1);
});

test('what an operator disarms is deleted, also where a stop would keep it', () => {
  const driver = createDriver({ shutdown: { policy: 'keep' } });
  driver.arm();
  operate(driver, 'disarm', 'AAA');
  expect(driver.takeOne().timeoutSeconds).toBeNull();
});

test('a market on its way out is not one of those that nothing is guarded of', () => {
  const driver = createDriver({ markets: ['AAA', 'BBB'] });
  driver.live(1000);
  operate(driver, 'disarm', 'AAA');
  driver.feed({ kind: 'reload', settings: coreSettings({ markets: ['AAA'] }) });
  expect(driver.state.markets).toHaveLength(2);
  expect(describeNothingGuarded(describeState(driver.state, driver.now()))).toBe(
    'nothing is guarded: AAA is disarmed',
  );
});

test('what is still about to be written when a stop ends may not be', () => {
  const driver = createDriver({ shutdown: { budgetMs: 2000 } });
  driver.arm();
  driver.feed({ kind: 'stop', policy: 'delete', why: 'test' });
  while (driver.finished() === null) driver.wait(100);
  expect(driver.finished()).toMatchObject([{ market: 'AAA', why: 'unconfirmed' }]);
  for (const { attempt } of driver.take()) expect(mayWrite(driver.state, attempt, driver.now())).toBe(false);
});
