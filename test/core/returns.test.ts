import { describe, expect, test } from 'vitest';
import { mayWrite } from '../../src/core/step.ts';
import { describeNothingGuarded } from '../../src/core/view.ts';
import { createDriver, type Driver, HTTP_500, NOT_SENT, SERVER_EPOCH } from './driver.ts';

describe('a word that is heard after two stalls', () => {
  /** With `betweenMs` between a stall of 10 s and one of 3 s; evidence lives for 12 s. */
  function heard(betweenMs: number) {
    const driver = createDriver({ liveness: { mode: 'beat', ttlMs: 12_000 } });
    driver.say('beat');
    driver.live(1000);
    driver.move({ monoMs: 10_000 });
    driver.tick();
    driver.move({ monoMs: betweenMs });
    driver.tick();
    driver.move({ monoMs: 3000 });
    driver.say('beat');
    return driver.state.bots.get('bot')?.state;
  }

  test('may have waited since the first, where the sockets were not read in between', () => {
    expect(heard(100)).toBe('stale');
  });

  test('has waited since the second at most, where there was time to read them', () => {
    expect(heard(240)).toBe('alive');
  });
});

describe('a bot that comes back', () => {
  const watched = { liveness: { mode: 'beat', ttlMs: 600_000 } } as const;

  test('within the life of its timer says nothing of how well renewals are in time', () => {
    const driver = createDriver(watched);
    driver.say('beat');
    driver.live(10_000);
    driver.say('fail');
    driver.live(20_000);
    driver.say('beat');
    driver.live(1000);
    const ratios = driver.notices('renewed').map(({ slackRatio }) => slackRatio);
    expect(ratios.slice(1, -1).every((ratio) => ratio !== null && ratio > 0.8)).toBe(true);
    expect(ratios.at(-1)).toBeNull();
  });

  test('has had one lapse, where its last renewal came late and fired on purpose after that', () => {
    const driver = createDriver({ ...watched, markets: ['AAA:10'] });
    driver.say('beat');
    driver.arm();
    driver.wait(1100);
    const hung = driver.takeOne();
    driver.wait(9500);
    for (const write of driver.take()) driver.settle(write, NOT_SENT);
    driver.say('fail');
    driver.apply(hung, { startTime: SERVER_EPOCH + 11 });
    expect(driver.statusOf('AAA')?.lapses).toBe(1);
    driver.live(30_000);
    driver.say('beat');
    driver.live(1000);
    expect(driver.statusOf('AAA')).toMatchObject({ state: 'armed', lapses: 1 });
  });
});

test('a bot that comes back about when its timer fires may have lost its orders, which no renewal takes back', () => {
  const driver = createDriver({ liveness: { mode: 'beat', ttlMs: 600_000 }, markets: ['AAA:10'] });
  driver.say('beat');
  driver.live(1000);
  driver.say('fail');
  driver.live(9500);
  driver.say('beat');
  driver.live(1000);
  expect(driver.statusOf('AAA')).toMatchObject({ state: 'armed', lapses: 0 });
  expect(driver.notices('overdue')).toMatchObject([{ market: 'AAA', leftToFire: true }]);
});

test('a cut whose answer comes late is not written again, and what fired after it is no lapse', () => {
  const driver = createDriver();
  driver.live(2000);
  driver.take();
  driver.operate('trip');
  const cut = driver.takeOne();
  driver.wait(4600);
  driver.apply(cut);
  driver.wait(3000);
  expect(driver.take()).toEqual([]);
  driver.operate('arm');
  driver.live(3000);
  expect(driver.statusOf('AAA')).toMatchObject({ state: 'armed', lapses: 0 });
});

test('a timer that was deleted has not lapsed, however late the last renewal before that was', () => {
  const driver = createDriver({ markets: ['AAA:10'] });
  driver.live(5100);
  driver.live(9500, 20, (write) => driver.settle(write, HTTP_500));
  driver.operate('disarm');
  driver.live(30_000);
  driver.operate('arm');
  driver.live(3000);
  expect(driver.statusOf('AAA')).toMatchObject({ state: 'armed', lapses: 0 });
  expect(driver.notices('overdue')).toHaveLength(1);
});

/** Lets time pass, and nothing reaches the exchange. */
const cutOff = (driver: Driver, forMs: number) =>
  driver.live(forMs, 20, (write) => driver.settle(write, NOT_SENT));

describe('a timer that fired on purpose is no lapse when it is armed again', () => {
  const watched = { markets: ['AAA:10'], liveness: { mode: 'beat', ttlMs: 15_000 } } as const;

  test('where the market was paused, and its bot fell silent after that', () => {
    const driver = createDriver(watched);
    driver.say('beat');
    driver.live(3000);
    driver.operate('pause', ['AAA'], 600_000);
    cutOff(driver, 30_000);
    driver.say('beat');
    driver.operate('resume', ['AAA'], 600_000);
    driver.live(2000);
    expect(driver.notices('renewed').length).toBeGreaterThan(3);
    expect(driver.notices('lapsed')).toEqual([]);
  });

  test('where the bot failed, and its market was paused after that', () => {
    const driver = createDriver(watched);
    driver.say('beat');
    driver.live(3000);
    driver.say('fail');
    driver.live(20_000);
    driver.operate('pause', ['AAA'], 600_000);
    driver.live(1000);
    driver.say('beat');
    driver.operate('resume', ['AAA'], 600_000);
    driver.live(2000);
    expect(driver.notices('renewed').length).toBeGreaterThan(3);
    expect(driver.notices('lapsed')).toEqual([]);
  });

  test('where the confirmation of its cut waited through a stall', () => {
    const driver = createDriver({ liveness: { mode: 'beat', ttlMs: 60_000, onStale: 'trip' } });
    driver.say('beat');
    driver.live(2000);
    driver.take();
    driver.say('fail');
    driver.tick();
    const cut = driver.takeOne();
    expect(cut.timeoutSeconds).toBe(5);
    driver.move({ monoMs: 20_000 });
    driver.apply(cut, { startTime: SERVER_EPOCH + 2 });
    driver.live(2000);
    driver.say('beat');
    driver.live(2000);
    expect(driver.writes.at(-1)?.timeoutSeconds).toBe(60);
    expect(driver.notices('lapsed')).toEqual([]);
  });
});

test('arming what nobody took out of guard releases nothing, and hides no lapse', () => {
  const driver = createDriver({ markets: ['AAA:10'] });
  driver.live(3000);
  // The guarantee has run out, and the timer has not surely fired yet.
  cutOff(driver, 9200);
  driver.operate('arm', ['AAA'], 600_000);
  cutOff(driver, 900);
  driver.live(5000);
  expect(driver.notices('released')).toEqual([]);
  expect(driver.notices('lapsed')).toHaveLength(1);
});

test('what an operator disarms is deleted, also where a stop would keep it', () => {
  const driver = createDriver({ shutdown: { policy: 'keep' } });
  driver.arm();
  driver.operate('disarm', ['AAA'], 600_000);
  expect(driver.takeOne().timeoutSeconds).toBeNull();
});

test('a market on its way out is not one of those that nothing is guarded of', () => {
  const driver = createDriver({ markets: ['AAA', 'BBB'] });
  driver.live(1000);
  driver.operate('disarm', ['AAA'], 600_000);
  driver.reload({ markets: ['AAA'] });
  expect(driver.state.markets).toHaveLength(2);
  expect(describeNothingGuarded(driver.look())).toBe('nothing is guarded: AAA is disarmed');
});

test('what is still about to be written when a stop ends may not be', () => {
  const driver = createDriver({ shutdown: { budgetMs: 2000 } });
  driver.arm();
  driver.stop();
  while (driver.finished() === null) driver.wait(100);
  expect(driver.finished()).toMatchObject([{ market: 'AAA', why: 'unconfirmed' }]);
  for (const { attempt } of driver.take()) expect(mayWrite(driver.state, attempt, driver.now())).toBe(false);
});
