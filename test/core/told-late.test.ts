import { describe, expect, test } from 'vitest';
import { createDriver } from './driver.ts';

const watched = { mode: 'beat', ttlMs: 15_000, startupGraceMs: 60_000 } as const;

describe('a bot whose only market had another bot for a while', () => {
  /** `maker` says a word, loses its market to `other` for 36 s, and gets it back. */
  function back(says: 'beat' | 'goodbye' | 'fail', onStale: 'expire' | 'trip' = 'expire') {
    const liveness = { ...watched, onStale };
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
