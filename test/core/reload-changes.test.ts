import { describe, expect, test } from 'vitest';
import { describe as describeState } from '../../src/core/describe.ts';
import { coreSettings, marketOf, type SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver, HTTP_500, NO_MARKET } from './driver.ts';

function armed(options: SettingsOptions = {}): Driver {
  const driver = createDriver({ markets: ['AAA', 'BBB'], ...options });
  driver.tick();
  driver.live(2000);
  driver.take();
  return driver;
}
const reload = (driver: Driver, options: SettingsOptions) =>
  driver.feed({ kind: 'reload', settings: coreSettings(options) });
const statusOf = (driver: Driver, name: string) =>
  describeState(driver.state, driver.now()).markets.find(({ market }) => market === name);
const removed = (driver: Driver) => driver.notices('removed').map(({ market, how }) => [market, how]);

describe('a market that changes', () => {
  test('is not asked for before its slow probe where the exchange refuses it', () => {
    const driver = createDriver({ markets: ['AAA', 'BBB'] });
    driver.tick();
    driver.settle(driver.takeOne(), NO_MARKET);
    driver.live(1000);
    driver.take();
    reload(driver, { markets: ['AAA:30', 'BBB'] });
    driver.live(20_000);
    expect(driver.writes.filter(({ market }) => market === 'AAA')).toHaveLength(1);
  });

  test('to a new bot keeps its full timer for as long as that one has its start-up grace', () => {
    const watched = { liveness: { mode: 'beat', onStale: 'trip' } } as const;
    const driver = createDriver({ ...watched, markets: ['AAA:60:old'] });
    driver.feed({ kind: 'evidence', bot: 'old', says: 'beat', agoMs: 0 });
    driver.live(2000);
    const { length } = driver.writes;
    reload(driver, { ...watched, markets: ['AAA:60:new'] });
    driver.live(10_000);
    const asked = driver.writes.slice(length).map(({ timeoutSeconds }) => timeoutSeconds);
    expect(asked.length).toBeGreaterThan(1);
    expect(new Set(asked)).toEqual(new Set([60]));
  });

  test('in its timeout alone is not taken for one that has a new bot', () => {
    const watched = { liveness: { mode: 'beat', onStale: 'trip', ttlMs: 5000 } } as const;
    const driver = armed({ ...watched, markets: ['AAA:60'] });
    driver.feed({ kind: 'evidence', bot: 'bot', says: 'fail', agoMs: 0 });
    driver.live(2000);
    expect(driver.notices('tripped')).toHaveLength(1);
    reload(driver, { ...watched, markets: ['AAA:90'] });
    driver.live(5000);
    expect(driver.notices('tripped')).toHaveLength(1);
  });
});

describe('after a handover', () => {
  const FOR_MS = 10_000;
  const few = { budget: { requests: 10, windowMs: 10_000 } };
  /** Eight markets, of which four go to another shard. */
  function handedOver(): Driver {
    const driver = createDriver({ ...few, markets: many(8) });
    driver.live(30_000);
    const handover = { elsewhere: many(4).map((market) => marketOf(market)), forMs: FOR_MS };
    reload(driver, { ...few, markets: many(8).slice(4), handover });
    return driver;
  }
  const many = (count: number) => Array.from({ length: count }, (_, index) => `M${index}:60`);

  test('the rest is renewed as often as if the others had never been there', () => {
    const driver = handedOver();
    const periodOf = () => driver.market('M7').periodMs;
    const before = periodOf();
    driver.live(FOR_MS + 30_000);
    expect(driver.state.markets.map(({ settings }) => settings.market)).toEqual(['M4', 'M5', 'M6', 'M7']);
    expect(periodOf()).toBeLessThan(before * 0.8);
    expect(statusOf(driver, 'M7')?.promise[0]).toContain('M7: renewed every');
    const alone = createDriver({ ...few, markets: many(8).slice(4) });
    alone.live(30_000);
    expect(periodOf()).toBeCloseTo(alone.market('M7').periodMs, -2);
    expect(driver.market('M7').phaseMs).toBeCloseTo(alone.market('M7').phaseMs, -2);
  });

  test('what leaves stands behind what stays, and is counted by nothing', () => {
    const driver = handedOver();
    driver.live(FOR_MS + 300, 5000);
    const { markets } = describeState(driver.state, driver.now());
    expect(markets.map(({ market }) => market)).toEqual(['M4', 'M5', 'M6', 'M7', 'M0', 'M1', 'M2', 'M3']);
    expect(markets.map(({ promise }) => promise.length)).toEqual([4, 4, 4, 4, 0, 0, 0, 0]);
  });

  test('markets that went one after the other leave one after the other, and those that stay keep their promise', () => {
    const driver = createDriver({ markets: ['AAA:30', 'BBB:40', 'CCC:50'] });
    driver.live(5000);
    for (const elsewhere of [['AAA:30'], ['AAA:30', 'BBB:40']]) {
      const handover = { elsewhere: elsewhere.map((market) => marketOf(market)), forMs: FOR_MS };
      reload(driver, { markets: ['CCC:50', 'BBB:40'].slice(0, 3 - elsewhere.length), handover });
      driver.live(5000);
    }
    driver.live(2000);
    expect(removed(driver)).toEqual([['AAA', 'handed_off']]);
    expect(statusOf(driver, 'BBB')?.promise[0]).toContain('BBB');
    expect(statusOf(driver, 'CCC')?.promise[0]).toContain('CCC');
    driver.live(5000);
    expect(driver.state.markets.map(({ settings }) => settings.market)).toEqual(['CCC']);
  });

  test('a stop in the middle of it ends it: nothing is handed over twice', () => {
    const driver = handedOver();
    driver.live(FOR_MS - 1000);
    driver.feed({ kind: 'stop', policy: 'keep', why: 'test' });
    driver.live(20_000);
    expect(driver.notices('handed-over')).toEqual([]);
  });

  test('a market that the other shard has, and this one never had, is none of this one’s', () => {
    const driver = armed({ markets: ['BBB'] });
    const handover = { elsewhere: [marketOf('NEVER')], forMs: FOR_MS };
    reload(driver, { markets: ['BBB'], handover });
    driver.live(5000);
    expect(driver.state.byName.has('NEVER')).toBe(false);
  });

  test('a market that is leaving for good does not stay because another shard has it now', () => {
    const driver = armed();
    reload(driver, { markets: ['BBB'] });
    driver.settle(driver.takeOne(), HTTP_500);
    const handover = { elsewhere: [marketOf('AAA')], forMs: FOR_MS };
    reload(driver, { markets: ['BBB'], handover });
    driver.live(5000);
    expect(removed(driver)).toEqual([['AAA', 'deleted']]);
    expect(driver.notices('reloaded').at(-1)).toMatchObject({ added: [], moved: [] });
  });

  test('a market of this one’s own is not taken for another shard’s', () => {
    const driver = armed();
    const handover = { elsewhere: [marketOf('AAA')], forMs: FOR_MS };
    reload(driver, { handover, markets: ['AAA', 'BBB'] });
    expect(driver.notices('reloaded').at(-1)).toMatchObject({ moved: [] });
    expect(statusOf(driver, 'AAA')?.handedOverInMs).toBeNull();
    expect(driver.state.markets).toHaveLength(2);
  });
});
