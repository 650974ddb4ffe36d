import { describe, expect, test } from 'vitest';
import { describe as describeState } from '../../src/core/view.ts';
import { marketOf } from './core-settings.ts';
import { createDriver, type Driver, HTTP_500, NOT_SENT, SERVER_EPOCH } from './driver.ts';

const say = (driver: Driver, says: 'beat' | 'goodbye' | 'fail', bot = 'bot') =>
  driver.feed({ kind: 'evidence', bot, says, agoMs: 0 });
const statusOf = (driver: Driver, name: string) =>
  describeState(driver.state, driver.now()).markets.find(({ market }) => market === name);

describe('a word that is heard after two stalls', () => {
  /** With `betweenMs` between a stall of 10 s and one of 3 s; evidence lives for 12 s. */
  function heard(betweenMs: number) {
    const driver = createDriver({ liveness: { mode: 'beat', ttlMs: 12_000 } });
    say(driver, 'beat');
    driver.live(1000);
    driver.move({ monoMs: 10_000 });
    driver.tick();
    driver.move({ monoMs: betweenMs });
    driver.tick();
    driver.move({ monoMs: 3000 });
    say(driver, 'beat');
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
    say(driver, 'beat');
    driver.live(10_000);
    say(driver, 'fail');
    driver.live(20_000);
    say(driver, 'beat');
    driver.live(1000);
    const ratios = driver.notices('renewed').map(({ slackRatio }) => slackRatio);
    expect(ratios.slice(1, -1).every((ratio) => ratio !== null && ratio > 0.8)).toBe(true);
    expect(ratios.at(-1)).toBeNull();
  });

  test('has had one lapse, where its last renewal came late and fired on purpose after that', () => {
    const driver = createDriver({ ...watched, markets: ['AAA:10'] });
    say(driver, 'beat');
    driver.arm();
    driver.wait(1100);
    const hung = driver.takeOne();
    driver.wait(9500);
    for (const write of driver.take()) driver.settle(write, NOT_SENT);
    say(driver, 'fail');
    driver.apply(hung, { startTime: SERVER_EPOCH + 11 });
    expect(statusOf(driver, 'AAA')?.lapses).toBe(1);
    driver.live(30_000);
    say(driver, 'beat');
    driver.live(1000);
    expect(statusOf(driver, 'AAA')).toMatchObject({ state: 'armed', lapses: 1 });
  });
});

test('a cut whose answer comes late is not written again, and what fired after it is no lapse', () => {
  const driver = createDriver();
  driver.live(2000);
  driver.take();
  driver.feed({ kind: 'operate', command: { does: 'trip', markets: null, forMs: 0 } });
  const cut = driver.takeOne();
  driver.wait(4600);
  driver.apply(cut);
  driver.wait(3000);
  expect(driver.take()).toEqual([]);
  driver.feed({ kind: 'operate', command: { does: 'arm', markets: null, forMs: 0 } });
  driver.live(3000);
  expect(statusOf(driver, 'AAA')).toMatchObject({ state: 'armed', lapses: 0 });
});

test('a cadence of a third of the timeout is kept as it is', () => {
  const driver = createDriver({ markets: [{ ...marketOf('AAA:60'), renewEveryMs: 20_000 }] });
  driver.live(200_000);
  const moments = driver.writes.map(({ atMs }) => atMs);
  const gaps = moments.slice(1).map((atMs, place) => Math.round(atMs - (moments[place] ?? 0)));
  expect(gaps.length).toBeGreaterThan(8);
  expect(Math.min(...gaps)).toBeGreaterThan(19_900);
});

test('a timer that was deleted has not lapsed, however late the last renewal before that was', () => {
  const driver = createDriver({ markets: ['AAA:10'] });
  driver.live(5100);
  driver.live(9500, 20, (write) => driver.settle(write, HTTP_500));
  driver.feed({ kind: 'operate', command: { does: 'disarm', markets: null, forMs: 0 } });
  driver.live(30_000);
  driver.feed({ kind: 'operate', command: { does: 'arm', markets: null, forMs: 0 } });
  driver.live(3000);
  expect(statusOf(driver, 'AAA')).toMatchObject({ state: 'armed', lapses: 0 });
  expect(driver.notices('overdue')).toHaveLength(1);
});
