import { describe, expect, test } from 'vitest';
import { describeNothingGuarded } from '../../src/core/view.ts';
import type { SettingsOptions } from './core-settings.ts';
import { armed, createDriver, type Driver, LOST, NOT_SENT, SERVER_EPOCH, watched } from './driver.ts';

const TRIP = { liveness: { onStale: 'trip' } } as const;
const LONG = { liveness: { ttlMs: 600_000 } } as const;

/** Armed, with a renewal on its way. */
function renewing(options: SettingsOptions = {}) {
  const driver = watched(options);
  driver.live(1000);
  driver.wait(5500);
  return { driver, renewal: driver.takeOne() };
}
/** A bot that was heard of and a timer that is armed. */
function living(options: SettingsOptions = {}, forMs = 3000) {
  const driver = watched(options);
  driver.live(forMs);
  return driver;
}

describe('a bot that comes back', () => {
  test('within the life of its timer says nothing of how well renewals are in time', () => {
    const driver = living(LONG, 10_000);
    driver.say('fail');
    driver.live(20_000);
    driver.say('beat');
    driver.live(1000);
    const ratios = driver.notices('renewed').map(({ slackRatio }) => slackRatio);
    expect(ratios.slice(1, -1).every((ratio) => ratio !== null && ratio > 0.8)).toBe(true);
    expect(ratios.at(-1)).toBeNull();
  });

  test('has had one lapse, where its last renewal came late and fired on purpose after that', () => {
    const driver = watched({ ...LONG, markets: ['AAA:10'] });
    driver.arm();
    driver.wait(1100);
    const hung = driver.takeOne();
    driver.wait(9500);
    for (const write of driver.take()) driver.settle(write, NOT_SENT);
    driver.say('fail');
    driver.apply(hung, { startTime: SERVER_EPOCH + 11 });
    expect(driver.statusOf()?.lapses).toBe(1);
    driver.live(30_000);
    driver.say('beat');
    driver.live(1000);
    expect(driver.statusOf()).toMatchObject({ state: 'armed', lapses: 1 });
  });

  test('about when its timer fires may have lost its orders, which no renewal takes back', () => {
    const driver = living({ ...LONG, markets: ['AAA:10'] }, 1000);
    driver.say('fail');
    driver.live(9500);
    driver.say('beat');
    driver.live(1000);
    expect(driver.statusOf()).toMatchObject({ state: 'armed', lapses: 0 });
    expect(driver.notices('overdue')).toMatchObject([{ market: 'AAA', leftToFire: true }]);
  });
});

test.each([
  [5, 1500, 'increasing'],
  [10, 3000, 'increasing'],
  [5, 1500, 'window'],
  [10, 3000, 'window'],
] as const)(
  'a timer of %i s is renewed in time after a pause whose delete was never answered: answers take %i ms, nonces %s',
  (seconds, answerMs, nonce) => {
    const driver = createDriver({ markets: [`AAA:${seconds}`], nonce });
    const live = (forMs: number) =>
      driver.live(forMs, answerMs, (write) => write.timeoutSeconds !== null && driver.apply(write));
    live(40_000);
    driver.operate('pause', null, 60_000);
    const removed = () => driver.writes.find(({ timeoutSeconds }) => timeoutSeconds === null);
    while (removed() === undefined) live(20);
    live(100);
    driver.operate('resume');
    for (let steps = 0; steps < 750; steps += 1) {
      live(20);
      driver.loseGivenUp();
    }
    const removedMs = removed()?.atMs ?? 0;
    const renewals = driver.writes
      .filter(({ timeoutSeconds }) => timeoutSeconds !== null)
      .map(({ atMs }) => atMs);
    const lastMs = renewals.findLast((atMs) => atMs < removedMs) ?? 0;
    const nextMs = renewals.find((atMs) => atMs > removedMs) ?? Number.POSITIVE_INFINITY;
    expect(nextMs + answerMs / 2).toBeLessThan(lastMs + seconds * 1000);
  },
);

describe('a timer that was not to be renewed is no lapse when it is armed again', () => {
  test('where the answer to its cut came late, and the cut is not written again', () => {
    const driver = armed();
    driver.operate('trip');
    const cut = driver.takeOne();
    driver.wait(4600);
    driver.apply(cut);
    driver.wait(3000);
    expect(driver.take()).toEqual([]);
    driver.operate('arm');
    driver.live(3000);
    expect(driver.statusOf()).toMatchObject({ state: 'armed', lapses: 0 });
  });

  const ends: readonly [string, (driver: Driver) => void][] = [
    [
      'the market was paused, and its bot fell silent after that',
      (driver) => {
        driver.operate('pause', null, 600_000);
        driver.suffer(30_000, NOT_SENT);
      },
    ],
    [
      'the bot failed, and its market was paused after that',
      (driver) => {
        driver.say('fail');
        driver.live(20_000);
        driver.operate('pause', null, 600_000);
        driver.live(1000);
      },
    ],
  ];
  test.each(ends)('where %s', (_what, fire) => {
    const driver = living({ markets: ['AAA:10'] });
    fire(driver);
    driver.say('beat');
    driver.operate('resume');
    driver.live(2000);
    expect(driver.notices('renewed').length).toBeGreaterThan(3);
    expect(driver.notices('lapsed')).toEqual([]);
  });
});

test('a market on its way out is not one of those that nothing is guarded of', () => {
  const driver = armed({ markets: ['AAA', 'BBB'] });
  driver.operate('disarm', ['AAA']);
  driver.reload({ markets: ['AAA'] });
  expect(driver.look().markets).toHaveLength(2);
  expect(describeNothingGuarded(driver.look())).toBe('nothing is guarded: AAA is disarmed');
});

test('the end of a stop gives up each request once, and lets none leave that is about to', () => {
  const driver = armed({ shutdown: { budgetMs: 4000 } });
  driver.stop();
  driver.wait(6000);
  const aborted = driver.effects.flatMap((effect) => (effect.kind === 'abort' ? [effect.attempt] : []));
  expect(aborted.length).toBeGreaterThan(0);
  expect(new Set(aborted).size).toBe(aborted.length);
  expect(driver.finished()).toMatchObject([{ market: 'AAA', why: 'unconfirmed' }]);
  expect(driver.take().some(({ attempt }) => driver.mayLeave(attempt))).toBe(false);
});

describe('a bot that fails while a stop waits to delete its timer', () => {
  function stopping() {
    const { driver, renewal } = renewing(TRIP);
    driver.stop();
    driver.wait(600);
    driver.tick();
    driver.wait(1);
    driver.say('beat');
    return { driver, renewal };
  }

  test('leaves it to fire where no delete was written', () => {
    const { driver, renewal } = stopping();
    driver.say('fail');
    driver.apply(renewal);
    driver.wait(1000);
    expect(driver.take()).toEqual([]);
    expect(driver.finished()).toEqual([expect.objectContaining({ market: 'AAA', why: 'policy' })]);
  });

  test('names it as unconfirmed where a delete may be on its way, and writes no other one', () => {
    const { driver, renewal } = stopping();
    driver.apply(renewal);
    driver.settle(driver.takeOne(), LOST);
    driver.say('fail');
    driver.wait(1000);
    expect(driver.take()).toEqual([]);
    expect(driver.finished()).toEqual([expect.objectContaining({ market: 'AAA', why: 'unconfirmed' })]);
  });
});

describe('a bot whose only market had another bot for a while', () => {
  /** `maker` says a word, loses its market to `other` for 36 s, and gets it back. */
  function back(says: 'beat' | 'goodbye' | 'fail', onStale: 'expire' | 'trip' = 'expire') {
    const liveness = { mode: 'beat', onStale } as const;
    const driver = createDriver({ markets: ['AAA:60:other', 'BBB:60:maker'], liveness });
    driver.live(1000);
    for (const bot of ['other', 'maker']) driver.say('beat', bot);
    if (says !== 'beat') driver.say(says, 'maker');
    driver.live(1000);
    const beatFor = (forMs: number) => {
      for (let waitedMs = 0; waitedMs < forMs; waitedMs += 4000) {
        driver.say('beat', 'other');
        driver.live(4000);
      }
    };
    driver.reload({ markets: ['AAA:60:other', 'BBB:60:other'], liveness });
    beatFor(36_000);
    driver.reload({ markets: ['AAA:60:other', 'BBB:60:maker'], liveness });
    return { driver, beatFor };
  }

  test.each(['beat', 'goodbye'] as const)(
    'could say nothing meanwhile: after a %s of before it has a new start-up grace, and no longer',
    (says) => {
      const { driver, beatFor } = back(says);
      beatFor(56_000);
      const { writes } = driver;
      expect(driver.statusOf('BBB')?.state).toBe('armed');
      expect(writes.filter(({ market, atMs }) => market === 'BBB' && atMs > 38_000)).not.toHaveLength(0);
      expect(
        writes.filter(({ timeoutSeconds, atMs }) => timeoutSeconds === null && atMs > 38_000),
      ).toHaveLength(0);
      beatFor(8000);
      expect(driver.statusOf('BBB')?.wanted).toBe(false);
    },
  );

  test('stays dead where it had failed before', () => {
    const { driver, beatFor } = back('fail');
    const { length } = driver.writes;
    beatFor(20_000);
    expect(driver.writes.slice(length).map(({ market }) => market)).not.toContain('BBB');
  });

  test('is not taken for dead under onStale: trip', () => {
    const { driver } = back('beat', 'trip');
    driver.live(5000);
    expect(driver.writes.filter(({ timeoutSeconds }) => timeoutSeconds === 5)).toEqual([]);
  });
});
