import { expect, test } from 'vitest';
import { armed, type Driver, NOT_SENT, ping, played } from './driver.ts';

const pings = (driver: Driver) => driver.effects.filter(({ kind }) => kind === 'ping').length;

test('pings go out at the start and every 5 s', () => {
  const driver = played({}, 'live 20.5');
  expect(pings(driver)).toBe(1 + 4);
});

test('pings go out every half second while the address is down, and 5 s apart again when it is up', () => {
  const driver = played({ markets: ['AAA:600'] }, 'start');
  const before = pings(driver);
  ping(driver, false);
  expect(pings(driver)).toBe(before);
  driver.live(5000);
  expect(pings(driver) - before).toBeGreaterThanOrEqual(9);
  expect(pings(driver) - before).toBeLessThanOrEqual(11);
  ping(driver, true);
  const after = pings(driver);
  driver.live(20_000);
  expect(pings(driver) - after).toBeLessThanOrEqual(5);
});

test('pings that come back let a failing market try again at once, and pings that stay well hurry nobody', () => {
  const driver = played({}, 'start');
  ping(driver, true);
  driver.wait(6000);
  driver.settle(driver.takeOne(), NOT_SENT);
  driver.wait(1000);
  ping(driver, true);
  expect(driver.take()).toEqual([]);
  ping(driver, false);
  expect(driver.take()).toEqual([]);
  ping(driver, true);
  expect(driver.takeOne().market).toBe('AAA');
});

test('pings say when the address goes and comes', () => {
  const driver = played({}, 'tick');
  for (const ok of [true, true, false, false, true]) ping(driver, ok);
  expect(driver.notices('pinged').map(({ changed }) => changed)).toEqual([true, false, true, false, true]);
  expect(driver.look().bases[0]).toMatchObject({ up: true, pingMs: 5, lastProblem: null });
  ping(driver, false);
  expect(driver.look().bases[0]).toMatchObject({ up: false, pingMs: null, lastProblem: 'no pong' });
});

test('a ping that is given up after a newer one was answered is counted, and no news', () => {
  const driver = armed();
  ping(driver, true);
  driver.wait(1000);
  driver.feed({ kind: 'pinged', base: 0, ok: false, latencyMs: 3000, reason: 'timeout', detail: 'no pong' });
  expect(driver.notices('pinged').at(-1)).toMatchObject({ ok: false, changed: false });
  expect(driver.look().bases[0]?.up).toBe(true);
});

test('an outage begins with a ping', () => {
  const driver = armed({ markets: ['AAA:60', 'BBB:60'] });
  let before = pings(driver);
  while (driver.notices('outage-began').length === 0) {
    before = pings(driver);
    driver.suffer(20, NOT_SENT);
  }
  expect(pings(driver)).toBe(before + 1);
});

const TWO = { markets: ['AAA:10', 'BBB:10'] };
test.each([
  [
    'ends an outage where all bots are silent',
    { ...TWO, liveness: { mode: 'beat' } } as const,
    'beat, live 1',
    1,
  ],
  ['ends one where all was disarmed', TWO, 'live 1, disarm', 1],
  ['ends none where a renewal is wanted', TWO, 'live 1, disarm AAA', 0],
] as const)('a ping that is answered %s', (_what, options, script, ended) => {
  const driver = played(options, `${script}, unsent 60`);
  expect(driver.notices('outage-began')).toHaveLength(1);
  driver.wait(20);
  ping(driver, true);
  expect(driver.notices('outage-ended')).toHaveLength(ended);
  expect(driver.look().bases[0]?.outage).toBe(ended === 0);
});

test('a ping that was sent before an outage began does not end it', () => {
  const driver = played({ ...TWO, liveness: { mode: 'beat', ttlMs: 5000 } }, 'beat, live 1, unsent 16');
  driver.feed({ kind: 'pinged', base: 0, ok: true, latencyMs: 30_000, reason: null, detail: '' });
  expect(driver.look().bases[0]?.outage).toBe(true);
});
