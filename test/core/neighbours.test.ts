import { describe, expect, test } from 'vitest';
import { marketOf } from './core-settings.ts';
import { armed, createDriver, LOST } from './driver.ts';

const names = (count: number, prefix: string, seconds: number) =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}:${seconds}`);

describe('in a nonce window', () => {
  test('a stop guards a timer that would fire while its delete waits for a renewal that may still arrive', () => {
    const driver = armed({ markets: ['AAA:5'], nonce: 'window', shutdown: { budgetMs: 20_000 } });
    driver.live(2000);
    driver.suffer(1000, LOST);
    driver.stop();
    driver.live(20_000);
    expect(driver.finished()).toEqual([]);
    const renewals = driver.writes.filter(({ timeoutSeconds }) => timeoutSeconds !== null);
    expect(renewals.at(-1)?.atMs).toBeGreaterThan(8000);
  });

  test('an exchange that is slow as a whole has no more requests under way than there are connections', () => {
    const driver = createDriver({ markets: names(20, 'M', 60), nonce: 'window', connections: 4 });
    driver.live(30_000, 1000);
    driver.operate('arm');
    let most = 0;
    driver.live(60_000, 1000, (write) => {
      most = Math.max(most, driver.state.attempts.length);
      driver.apply(write);
    });
    expect(most).toBe(4);
  });
});

describe('where renewals one after the other cannot carry all that is asked for', () => {
  function overload(count: number) {
    const markets = names(count, 'M', 5).map((text) => ({ ...marketOf(text), renewEveryMs: 1000 }));
    const driver = createDriver({ markets: [...markets, 'LONG:600'] });
    driver.live(60_000, 250);
    return driver;
  }

  test('every market is armed in the end, and none lapses, where each can have a renewal every 3 s', () => {
    const driver = overload(12);
    expect(driver.notices('all-armed')).toHaveLength(1);
    expect(driver.notices('lapsed')).toEqual([]);
  });

  test.each(['trip', 'disarm'] as const)('a %s goes before every renewal', (does) => {
    const driver = overload(12);
    driver.operate(does, ['LONG']);
    const before = driver.writes.length;
    driver.live(600, 250);
    expect(driver.writes[before]?.market).toBe('LONG');
  });
});
