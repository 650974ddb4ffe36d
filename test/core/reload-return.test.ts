import { describe, expect, test } from 'vitest';
import { onTheirWay } from '../../src/core/state.ts';
import { type SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver, HTTP_500, LOST, NOT_SENT } from './driver.ts';
import { armed, away, idsInFlight } from './reloading.ts';

describe('a market that comes back', () => {
  test('is known to have the timer that it left behind, before anything is answered', () => {
    const driver = away(5000);
    const status = driver.statusOf('AAA');
    expect(status?.state).toBe('armed');
    expect(status?.guaranteedMs).toBeGreaterThan(50_000);
    expect(driver.takeOne()).toMatchObject({ market: 'AAA', timeoutSeconds: 60 });
  });

  test('is armed anew where the timer that it left behind has fired meanwhile, which is no lapse', () => {
    const driver = away(60_000);
    expect(driver.statusOf('AAA')).toMatchObject({ state: 'arming', guaranteedMs: null });
    driver.live(1000);
    expect(driver.statusOf('AAA')?.state).toBe('armed');
    expect(driver.notices('lapsed')).toEqual([]);
    expect(driver.notices('overdue')).toEqual([]);
  });

  test('is overdue when the timer that it left behind runs out before anything was confirmed', () => {
    const driver = away(5000);
    driver.live(70_000, 20, (write) => {
      if (write.market === 'AAA') driver.settle(write, NOT_SENT);
      else driver.apply(write);
    });
    expect(driver.notices('overdue').map(({ market }) => market)).toEqual(['AAA']);
  });

  test('is no lapse when its first renewal comes after the end of the timer that it left behind', () => {
    const driver = away(5000);
    driver.live(70_000, 20, (write) => {
      if (write.market === 'AAA' && driver.sinceStartMs() < 75_000) driver.settle(write, NOT_SENT);
      else driver.apply(write);
    });
    driver.live(5000);
    expect(driver.notices('lapsed')).toHaveLength(1);
  });

  test('reckons with a renewal of before that may still land', () => {
    const window = { nonce: 'window', requestLifetimeMs: 60_000, shutdown: { policy: 'keep' } } as const;
    const driver = armed({ ...window, markets: ['AAA:600', 'BBB'] });
    driver.reload({ ...window, markets: ['AAA:10', 'BBB'] });
    for (const write of driver.take()) driver.settle(write, LOST);
    driver.reload({ ...window, markets: ['BBB'] });
    driver.live(25_000);
    expect(driver.state.byName.has('AAA')).toBe(false);
    driver.reload({ ...window, markets: ['AAA:600', 'BBB'] });
    driver.live(1000);
    expect(driver.statusOf('AAA')?.guaranteedMs).toBeLessThan(10_000);
  });

  test('before it has left is not cut short any more by the trip of before', () => {
    const driver = armed();
    driver.operate('trip', ['AAA']);
    driver.settle(driver.takeOne(), NOT_SENT);
    driver.reload({ markets: ['BBB'] });
    const { length } = driver.writes;
    driver.reload({ markets: ['AAA', 'BBB'] });
    driver.live(10_000);
    const asked = driver.writes.slice(length).filter(({ market }) => market === 'AAA');
    expect(asked.every(({ timeoutSeconds }) => timeoutSeconds === 60)).toBe(true);
    expect(driver.statusOf('AAA')).toMatchObject({ state: 'armed', wanted: true });
  });

  /** A market of 10 s whose delete hangs until its timer has fired comes back; its next renewal is confirmed. */
  function outlived(driver: Driver, options: SettingsOptions = {}): Driver {
    driver.reload({ ...options, markets: ['BBB'] });
    hang(driver, 15_000);
    driver.reload({ ...options, markets: ['AAA:10', 'BBB'] });
    for (const id of idsInFlight(driver)) driver.feed({ kind: 'settled', attempt: id, outcome: NOT_SENT });
    driver.live(2000);
    return driver;
  }
  const hang = (driver: Driver, forMs: number) =>
    driver.live(forMs, 20, (write) => {
      if (write.market !== 'AAA') driver.apply(write);
    });

  test('before it has left has had no lapse, although its timer fired while it was leaving', () => {
    const driver = outlived(armed({ markets: ['AAA:10', 'BBB'] }));
    expect(driver.statusOf('AAA')).toMatchObject({ state: 'armed', lapses: 0 });
    expect(driver.notices('lapsed')).toEqual([]);
  });

  test('before it has left has had no lapse where it was disarmed when its timer fired', () => {
    const driver = armed({ markets: ['AAA:10', 'BBB'] });
    driver.operate('disarm', ['AAA']);
    hang(driver, 15_000);
    outlived(driver);
    expect(driver.statusOf('AAA')).toMatchObject({ state: 'armed', lapses: 0 });
  });

  test('before it has left tells of the lapse that it had while it was guarded', () => {
    const driver = armed({ markets: ['AAA:10', 'BBB'] });
    driver.live(15_000, 20, (write) => {
      if (write.market === 'AAA') driver.settle(write, HTTP_500);
      else driver.apply(write);
    });
    expect(driver.notices('lapsed')).toEqual([]);
    outlived(driver);
    expect(driver.notices('lapsed').map(({ market }) => market)).toEqual(['AAA']);
  });

  test('to a bot that died while it was leaving is cut short, as those that stayed were', () => {
    const watched = { liveness: { mode: 'beat', ttlMs: 600_000, onStale: 'trip' } } as const;
    const driver = armed(watched);
    driver.say('beat');
    driver.live(2000);
    driver.reload({ ...watched, markets: ['BBB'] });
    driver.say('fail');
    driver.tick();
    expect(onTheirWay(driver.market('AAA'))).toHaveLength(1);
    driver.reload({ ...watched, markets: ['AAA', 'BBB'] });
    driver.live(5000, 20, (write) => {
      if (write.timeoutSeconds === null) driver.settle(write, NOT_SENT);
      else driver.apply(write);
    });
    expect(
      driver
        .notices('tripped')
        .map(({ market }) => market)
        .toSorted(),
    ).toEqual(['AAA', 'BBB']);
  });

  test('to a bot that has failed is not cut short by the operator’s word of before', () => {
    const watched = { liveness: { mode: 'beat', ttlMs: 600_000 } } as const;
    const driver = armed(watched);
    driver.operate('trip', ['AAA']);
    driver.say('fail');
    const hung = driver.takeOne();
    driver.reload({ ...watched, markets: ['BBB'] });
    driver.reload({ ...watched, markets: ['AAA', 'BBB'] });
    driver.settle(hung, NOT_SENT);
    driver.live(5000);
    expect(driver.writes.filter(({ timeoutSeconds }) => timeoutSeconds === 5)).toHaveLength(1);
  });

  test('is named once by a stop, and not for the time before as well', () => {
    const driver = away(5000);
    driver.live(1000);
    driver.stop('keep');
    driver.live(1000);
    expect(driver.finished()?.map(({ market }) => market)).toEqual(['AAA', 'BBB']);
  });

  test('to a bot that has died since stays suspended, and is not armed', () => {
    const watched = { liveness: { mode: 'beat', ttlMs: 600_000 } } as const;
    const markets = ['AAA:60:maker', 'BBB'];
    const driver = createDriver({ ...watched, markets });
    for (const bot of ['maker', 'bot']) driver.say('beat', bot);
    driver.live(2000);
    driver.reload({ ...watched, markets: ['BBB'] });
    for (const write of driver.take()) driver.settle(write, LOST);
    driver.say('fail', 'maker');
    const { length } = driver.writes;
    driver.reload({ ...watched, markets });
    driver.live(10_000);
    expect(driver.writes.slice(length).filter(({ market }) => market === 'AAA')).toEqual([]);
    expect(driver.statusOf('AAA')?.state).toBe('suspended');
  });
});
