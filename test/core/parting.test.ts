import { describe, expect, test } from 'vitest';
import { coreSettings, marketOf, type SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver, NO_MARKET } from './driver.ts';

/** The configuration is read again: `elsewhere` went to another shard, and is guarded here no longer than a moment. */
function moveAway(driver: Driver, markets: string[], elsewhere: string[], options: SettingsOptions = {}) {
  const handover = { elsewhere: elsewhere.map((market) => marketOf(market)), forMs: 100 };
  driver.feed({ kind: 'reload', settings: coreSettings({ ...options, markets, handover }) });
}
const names = (driver: Driver) => driver.state.markets.map(({ settings }) => settings.market);

describe('a market that another shard has by now', () => {
  test('is renewed for the last time when it is due, and then let go of', () => {
    const driver = createDriver({ markets: ['AAA', 'BBB'] });
    driver.live(7000);
    const { length } = driver.writes;
    moveAway(driver, ['BBB'], ['AAA']);
    const last = () => driver.writes.slice(length).filter(({ market }) => market === 'AAA');
    driver.live(3500);
    expect(last()).toEqual([]);
    expect(names(driver)).toContain('AAA');
    driver.live(2000);
    expect(last().map(({ timeoutSeconds }) => timeoutSeconds)).toEqual([60]);
    expect(names(driver)).toEqual(['BBB']);
  });

  test('is let go of at once where the exchange refuses it', () => {
    const driver = createDriver({ markets: ['AAA', 'BBB'] });
    driver.live(2000, 20, (write) => {
      if (write.market === 'AAA') driver.settle(write, NO_MARKET);
      else driver.apply(write);
    });
    moveAway(driver, ['BBB'], ['AAA']);
    driver.live(1500);
    expect(names(driver)).toEqual(['BBB']);
  });

  test('is let go of at once where its bot has failed', () => {
    const driver = createDriver({ markets: ['AAA:60:gone', 'BBB'], liveness: { mode: 'beat' } });
    for (const bot of ['gone', 'bot']) driver.feed({ kind: 'evidence', bot, says: 'beat', agoMs: 0 });
    driver.live(7000);
    driver.feed({ kind: 'evidence', bot: 'gone', says: 'fail', agoMs: 0 });
    moveAway(driver, ['BBB'], ['AAA:60:gone'], { liveness: { mode: 'beat' } });
    driver.live(1500);
    expect(names(driver)).toEqual(['BBB']);
  });
});

test('those that stay are renewed more often once the last of those that went has gone, and not before', () => {
  const all = Array.from({ length: 15 }, (_, index) => `M${index}`);
  const options = { nonce: 'window', budget: { requests: 10, windowMs: 10_000 } } as const;
  const driver = createDriver({ ...options, markets: all });
  driver.live(60_000);
  moveAway(driver, all.slice(0, 10), all.slice(10), options);
  const { periodMs } = driver.market('M0');
  const periods = new Map<number, number>();
  for (let second = 0; second < 30; second += 1) {
    driver.live(1000);
    periods.set(names(driver).length, driver.market('M0').periodMs);
  }
  expect(periods.size).toBeGreaterThan(3);
  for (const [count, ms] of periods) {
    if (count > 10) expect(ms).toBe(periodMs);
    else expect(ms).toBeLessThan(periodMs * 0.8);
  }
  expect(names(driver)).toHaveLength(10);
});
