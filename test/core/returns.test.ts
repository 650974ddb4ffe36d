import { describe, expect, test } from 'vitest';
import { describeNothingGuarded } from '../../src/core/view.ts';
import { armed, createDriver, play, played, watched } from './driver.ts';

const LONG = { liveness: { mode: 'beat', ttlMs: 600_000 } } as const;
const TEN = { markets: ['AAA:10'] };

describe('a bot that comes back', () => {
  test('within the life of its timer says nothing of how well renewals are in time', () => {
    const driver = played(LONG, 'beat, live 10, fail, live 20, beat, live 1');
    const ratios = driver.notices('renewed').map(({ slackRatio }) => slackRatio);
    expect(ratios.slice(1, -1).every((ratio) => ratio !== null && ratio > 0.8)).toBe(true);
    expect(ratios.at(-1)).toBeNull();
  });

  test('about when its timer fires may have lost its orders, which no renewal takes back', () => {
    const driver = played({ ...LONG, ...TEN }, 'beat, live 1, fail, live 9.5, beat, live 1');
    expect(driver.statusOf()).toMatchObject({ state: 'armed', lapses: 0 });
    expect(driver.notices('overdue')).toMatchObject([{ market: 'AAA', leftToFire: true }]);
  });

  test('is armed again also where lapses are held', () => {
    const options = { ...TEN, onLapse: 'hold', liveness: { mode: 'beat' } } as const;
    const driver = played(options, 'beat, live 100');
    expect(driver.statusOf()?.state).toBe('suspended');
    play(driver, 'beat, live 10');
    expect(driver.statusOf()?.state).toBe('armed');
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
    while (driver.asked(null).length === 0) live(20);
    live(100);
    driver.operate('resume');
    for (let steps = 0; steps < 750; steps += 1) {
      live(20);
      driver.loseGivenUp();
    }
    const removedMs = driver.asked(null)[0]?.atMs ?? 0;
    const renewals = driver.asked(seconds).map(({ atMs }) => atMs);
    const lastMs = renewals.findLast((atMs) => atMs < removedMs) ?? 0;
    const nextMs = renewals.find((atMs) => atMs > removedMs) ?? Number.POSITIVE_INFINITY;
    expect(nextMs + answerMs / 2).toBeLessThan(lastMs + seconds * 1000);
  },
);

describe('a timer that was not to be renewed is no lapse when it is armed again', () => {
  test('where the answer to its cut came late, and the cut is not written again', () => {
    const driver = play(armed(), 'trip');
    const cut = driver.takeOne();
    driver.wait(4600);
    driver.apply(cut);
    driver.wait(3000);
    expect(driver.take()).toEqual([]);
    play(driver, 'arm, live 3');
    expect(driver.statusOf()).toMatchObject({ state: 'armed', lapses: 0 });
  });

  test.each([
    ['the market was paused, and its bot fell silent after that', 'pause 600, unsent 30'],
    ['the bot failed, and its market was paused after that', 'fail, live 20, pause 600, live 1'],
  ])('where %s', (_what, script) => {
    const driver = watched(TEN);
    play(driver, `live 3, ${script}, beat, resume, live 2`);
    expect(driver.notices('renewed').length).toBeGreaterThan(3);
    expect(driver.notices('lapsed')).toEqual([]);
  });
});

test('a market on its way out is not one of those that nothing is guarded of', () => {
  const driver = play(armed({ markets: ['AAA', 'BBB'] }), 'disarm AAA');
  driver.reload({ markets: ['AAA'] });
  expect(driver.look().markets).toHaveLength(2);
  expect(describeNothingGuarded(driver.look())).toBe('nothing is guarded: AAA is disarmed');
});

test('the end of a stop gives up each request once, and lets none leave that is about to', () => {
  const driver = play(armed({ shutdown: { budgetMs: 4000 } }), 'stop, wait 6');
  const aborted = driver.effects.flatMap((effect) => (effect.kind === 'abort' ? [effect.attempt] : []));
  expect(aborted.length).toBeGreaterThan(0);
  expect(new Set(aborted).size).toBe(aborted.length);
  expect(driver.finished()).toEqual(['AAA unconfirmed']);
  expect(driver.take().some(({ attempt }) => driver.mayLeave(attempt))).toBe(false);
});

describe('a bot whose only market had another bot for a while', () => {
  const beats = (forSeconds: number) =>
    Array(forSeconds / 4)
      .fill('beat other, live 4')
      .join(', ');

  /** `maker` says a word, loses its market to `other` for 36 s, and gets it back. */
  function back(says: 'beat' | 'goodbye', onStale: 'expire' | 'trip' = 'expire') {
    const markets = ['AAA:60:other', 'BBB:60:maker'];
    const liveness = { mode: 'beat', onStale } as const;
    const driver = played({ markets, liveness }, `live 1, beat other, beat maker, ${says} maker, live 1`);
    driver.reload({ markets: ['AAA:60:other', 'BBB:60:other'], liveness });
    play(driver, beats(36));
    driver.reload({ markets, liveness });
    return driver;
  }

  test.each(['beat', 'goodbye'] as const)(
    'could say nothing meanwhile: after a %s of before it has a new start-up grace, and no longer',
    (says) => {
      const driver = play(back(says), beats(56));
      expect(driver.statusOf('BBB')?.state).toBe('armed');
      expect(driver.of('BBB', 38_001)).not.toEqual([]);
      expect(driver.asked(null, 38_001)).toEqual([]);
      play(driver, beats(8));
      expect(driver.statusOf('BBB')?.wanted).toBe(false);
    },
  );

  test('is not taken for dead under onStale: trip', () => {
    expect(play(back('beat', 'trip'), 'live 5').asked(5)).toEqual([]);
  });
});
