import { describe, expect, test } from 'vitest';
import { progressOf } from '../../src/core/commands.ts';
import { type SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver, LOST } from './driver.ts';

function armed(options: SettingsOptions = {}): Driver {
  const driver = createDriver(options);
  driver.tick();
  driver.live(2000);
  driver.take();
  return driver;
}
let seen = 0;
function reload(driver: Driver, options: SettingsOptions) {
  seen = driver.writes.length;
  return driver.reload(options);
}
const names = (driver: Driver) => driver.state.markets.map(({ settings }) => settings.market);
/** What is written for the market from the last reload, or the last look, on. */
function writtenOf(driver: Driver, market: string, forMs: number): (number | null)[] {
  driver.live(forMs);
  const from = seen;
  seen = driver.writes.length;
  return driver.writes
    .slice(from)
    .filter((write) => write.market === market)
    .map(({ timeoutSeconds }) => timeoutSeconds);
}

test('what is the same goes on as if nothing had happened', () => {
  const driver = armed({ markets: ['AAA', 'BBB'] });
  const due = driver.state.markets.map(({ nextMs }) => nextMs);
  reload(driver, { markets: ['AAA', 'BBB'] });
  expect(driver.take()).toEqual([]);
  expect(driver.state.markets.map(({ nextMs }) => nextMs)).toEqual(due);
  expect(driver.notices('reloaded')).toEqual([{ kind: 'reloaded', added: [], removed: [], changed: [] }]);
});

test('a new market is armed at once', () => {
  const driver = armed();
  reload(driver, { markets: ['AAA', 'BBB:30'] });
  expect(driver.takeOne()).toMatchObject({ market: 'BBB', timeoutSeconds: 30 });
  driver.live(1000);
  expect(driver.market('BBB').belief.notBefore?.lifeMs).not.toBeNull();
});

test('a market that is gone has its timer deleted, and is forgotten when that is confirmed', () => {
  const driver = armed({ markets: ['AAA', 'BBB'] });
  reload(driver, { markets: ['BBB'] });
  const write = driver.takeOne();
  expect(write).toMatchObject({ market: 'AAA', timeoutSeconds: null });
  expect(names(driver)).toEqual(['BBB', 'AAA']);
  driver.settle(write, { kind: 'deleted' });
  expect(names(driver)).toEqual(['BBB']);
  expect(driver.notices('removed')).toEqual([{ kind: 'removed', market: 'AAA', how: 'deleted' }]);
});

test('a market that is gone is renewed once more in full under the policy handoff', () => {
  const driver = armed({ markets: ['AAA', 'BBB'], shutdown: { policy: 'handoff' } });
  reload(driver, { markets: ['BBB'], shutdown: { policy: 'handoff' } });
  expect(writtenOf(driver, 'AAA', 20_000)).toEqual([60]);
  expect(names(driver)).toEqual(['BBB']);
});

test('a market that comes back before it has left is guarded again', () => {
  const driver = armed({ markets: ['AAA', 'BBB'] });
  reload(driver, { markets: ['BBB'] });
  driver.settle(driver.takeOne(), LOST);
  reload(driver, { markets: ['BBB', 'AAA'] });
  expect(writtenOf(driver, 'AAA', 2000)[0]).toBe(60);
  expect(names(driver)).toEqual(['BBB', 'AAA']);
});

describe('another timeout', () => {
  test('is asked for at once', () => {
    const driver = armed({ markets: ['AAA:60'] });
    reload(driver, { markets: ['AAA:30'] });
    expect(driver.takeOne()).toMatchObject({ timeoutSeconds: 30 });
    expect(driver.notices('reloaded')).toEqual([
      { kind: 'reloaded', added: [], removed: [], changed: ['AAA'] },
    ]);
  });

  test('that is shorter is believed from the moment of writing, that is longer from its confirmation', () => {
    const driver = armed({ markets: ['AAA:600'] });
    const left = () => (driver.market('AAA').belief.notBefore?.lifeMs ?? 0) - driver.state.lifeMs;
    expect(left()).toBeGreaterThan(590_000);
    reload(driver, { markets: ['AAA:10'] });
    expect(left()).toBeLessThan(9001);
    driver.settle(driver.takeOne(), LOST);
    reload(driver, { markets: ['AAA:300'] });
    expect(left()).toBeLessThan(9001);
    driver.live(1000);
    expect(left()).toBeGreaterThan(290_000);
  });
});

test('a market that moves to a dead bot is not renewed, and to a living one is', () => {
  const watched = { liveness: { mode: 'beat', startupGraceMs: 1000 } } as const;
  const driver = armed({ ...watched, markets: ['AAA:60:dead', 'BBB:60:live'] });
  driver.say('beat', 'live');
  reload(driver, { ...watched, markets: ['AAA:60:live', 'BBB:60:dead'] });
  driver.take();
  expect(writtenOf(driver, 'BBB', 10_000)).toEqual([]);
  expect(['AAA', 'BBB'].map((name) => driver.market(name).goal)).toEqual(['guard', 'leave']);
});

test('a bot that is new has its start-up grace from the reload on, and one without markets is forgotten', () => {
  const watched = { liveness: { mode: 'beat', startupGraceMs: 30_000 } } as const;
  const driver = armed({ ...watched, markets: ['AAA:60:old'] });
  driver.live(60_000);
  reload(driver, { ...watched, markets: ['BBB:60:new'] });
  expect(writtenOf(driver, 'BBB', 20_000).length).toBeGreaterThan(2);
  driver.live(80_000);
  expect(driver.look().bots.map(({ bot }) => bot)).toEqual(['new']);
});

test('a bot that has no markets any more is not told of: that it says nothing is what was asked of it', () => {
  const watched = { liveness: { mode: 'beat' } } as const;
  const driver = armed({ ...watched, markets: ['AAA:60:maker', 'BBB:60:other'] });
  for (const bot of ['maker', 'other']) driver.say('beat', bot);
  reload(driver, { ...watched, markets: ['BBB:60:other'] });
  driver.live(120_000);
  expect(driver.notices('bot').map(({ bot, state }) => [bot, state])).toEqual([
    ['maker', 'alive'],
    ['other', 'alive'],
    ['other', 'stale'],
  ]);
});
test('the cadence follows the number of markets', () => {
  const few = { budget: { requests: 10, windowMs: 10_000 } };
  const driver = armed({ ...few, markets: ['AAA'] });
  const before = driver.market('AAA').periodMs;
  reload(driver, { ...few, markets: ['AAA', 'BBB', 'CCC', 'DDD', 'EEE', 'FFF', 'GGG', 'HHH', 'III'] });
  expect(driver.market('AAA').periodMs).toBeGreaterThan(before * 1.3);
});

test('a shorter lifetime of evidence counts at once', () => {
  const driver = armed({ liveness: { mode: 'beat' } });
  driver.say('beat');
  driver.live(5000);
  reload(driver, { liveness: { mode: 'beat', ttlMs: 4000 } });
  expect(writtenOf(driver, 'AAA', 20_000)).toEqual([]);
});

test('after a stall, with a budget that is nearly used up, what leaves and what is new does not wait for the rest', () => {
  const names = Array.from({ length: 150 }, (_, index) => `M${index}:120`);
  const options = { nonce: 'window', budget: { requests: 100, windowMs: 10_000 } } as const;
  const driver = armed({ ...options, markets: names });
  driver.live(120_000);
  driver.move({ monoMs: 600 });
  driver.tick();
  const fromMs = driver.sinceStartMs();
  driver.operate('disarm', ['M5']);
  reload(driver, { ...options, markets: [...names.slice(0, -1), 'NEW:120'] });
  driver.live(30_000);
  const after = driver.writes.filter(({ atMs }) => atMs >= fromMs);
  expect(after.some(({ market, timeoutSeconds }) => market === 'M5' && timeoutSeconds === null)).toBe(true);
  expect(after.some(({ market, timeoutSeconds }) => market === 'M149' && timeoutSeconds === null)).toBe(true);
  expect(after.some(({ market }) => market === 'NEW')).toBe(true);
});

test('a market with a new timeout is waited for until the new one is confirmed', () => {
  const driver = createDriver({ markets: ['AAA:60'] });
  driver.tick();
  driver.live(2000);
  driver.reload({ markets: ['AAA:30'] });
  expect(progressOf(driver.state, 'arm', driver.market('AAA')).state).toBe('waiting');
  driver.live(1000);
  expect(progressOf(driver.state, 'arm', driver.market('AAA'))).toMatchObject({
    state: 'done',
    says: expect.stringMatching(/^AAA is armed and renewed: 2\d/),
  });
});
