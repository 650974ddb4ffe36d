import { describe, expect, test } from 'vitest';
import { many } from './core-settings.ts';
import { createDriver, type Driver, play, played, type Write } from './driver.ts';

const HOUR_MS = 3_600_000;
const since = (driver: Driver, fromMs: number) => driver.writes.filter(({ atMs }) => atMs >= fromMs);
const names = (writes: readonly Write[]) => writes.map(({ market }) => market);

describe('time that was lost', () => {
  /** Three markets that are well, and not due. */
  function well() {
    const driver = played({ markets: ['AAA:60', 'BBB:60', 'CCC:60'] }, 'live 12.5');
    return driver;
  }

  test.each([
    ['a sleep', { monoMs: 10, bootMs: 3000, wallMs: 3000 }, { what: 'suspend', byMs: 2990 }],
    ['a step of an hour ahead', { monoMs: 10, wallMs: HOUR_MS }, { what: 'clock-step', byMs: HOUR_MS - 10 }],
  ] as const)('(%s) makes everything due at once, once, and is told', (_what, clocks, told) => {
    const driver = well();
    driver.move(clocks);
    const fromMs = driver.sinceStartMs();
    driver.live(300);
    expect(names(since(driver, fromMs)).toSorted()).toEqual(['AAA', 'BBB', 'CCC']);
    expect(driver.notices('stall')).toEqual([{ kind: 'stall', ...told }]);
    driver.live(60_000);
    const perMinute = since(driver, fromMs + 300).length;
    expect(perMinute).toBeGreaterThanOrEqual(27);
    expect(perMinute).toBeLessThanOrEqual(33);
    expect([driver.notices('lapsed'), driver.notices('overdue')]).toEqual([[], []]);
  });

  test('by a stall is told, and only what is due is renewed', () => {
    const driver = well();
    driver.move({ monoMs: 3000 });
    const fromMs = driver.sinceStartMs();
    driver.live(300);
    expect(driver.notices('stall')).toEqual([{ kind: 'stall', what: 'stall', byMs: expect.any(Number) }]);
    expect(since(driver, fromMs).length).toBeLessThan(3);
    driver.live(6000);
    expect(new Set(names(since(driver, fromMs)))).toEqual(new Set(['AAA', 'BBB', 'CCC']));
  });

  test('by a stall of 300 ms in every second makes no more renewals than there are without', () => {
    const renewals = [0, 300].map((stallMs) => {
      const driver = createDriver({ markets: many(100), nonce: 'window' });
      driver.live(12_500);
      const before = driver.writes.length;
      for (let second = 0; second < 60; second += 1) {
        driver.move({ monoMs: stallMs });
        driver.live(1000 - stallMs);
      }
      expect(driver.notices('lapsed')).toEqual([]);
      return driver.writes.length - before;
    });
    expect(renewals[1]).toBeLessThanOrEqual(1.1 * (renewals[0] ?? 0));
  });

  test('by a stall says nothing about the exchange: answers that lie in the socket meanwhile are no outage', () => {
    const driver = createDriver({ markets: many(100), nonce: 'window' });
    driver.live(12_500);
    driver.take();
    driver.wait(300);
    const asked = driver.take();
    expect(asked.length).toBeGreaterThan(3);
    driver.move({ monoMs: 700 });
    driver.tick();
    for (const write of asked) driver.apply(write);
    expect(driver.notices('outage-began')).toEqual([]);
    // Silence that goes on after it is one.
    driver.wait(1000);
    expect(driver.notices('outage-began')).toHaveLength(1);
  });

  test('by a step of an hour back is told, and nothing is due earlier or later for it', () => {
    const [driver, undisturbed] = [well(), well()];
    driver.move({ monoMs: 10, wallMs: -HOUR_MS });
    undisturbed.move({ monoMs: 10 });
    for (const one of [driver, undisturbed]) one.live(30_000);
    expect(driver.notices('stall')).toEqual([{ kind: 'stall', what: 'clock-step', byMs: -HOUR_MS - 10 }]);
    expect(driver.writes.map(({ atMs }) => atMs)).toEqual(undisturbed.writes.map(({ atMs }) => atMs));
  });

  test('keeps the order of the deadlines after a step of an hour ahead', () => {
    const driver = played({ markets: ['AAA:600', 'BBB:60', 'CCC:10'] }, 'live 12.5');
    driver.move({ monoMs: 10, wallMs: HOUR_MS });
    const fromMs = driver.sinceStartMs();
    driver.live(300);
    expect(names(since(driver, fromMs))).toEqual(['CCC', 'BBB', 'AAA']);
  });

  test('hurries no market that the exchange has refused', () => {
    const driver = played({ markets: ['WRONG:60', 'AAA:60'] }, 'refused 5.5 WRONG');
    driver.move({ monoMs: 10, bootMs: 9000, wallMs: 9000 });
    const fromMs = driver.sinceStartMs();
    driver.live(300);
    expect(names(since(driver, fromMs))).toEqual(['AAA']);
  });

  test('leaves answers that lie in the socket a moment to be read before their requests are given up', () => {
    const driver = played({}, 'start, wait 6');
    const write = driver.takeOne();
    play(driver, 'move 20, tick');
    expect(driver.effects.filter(({ kind }) => kind === 'abort')).toEqual([]);
    driver.apply(write);
    expect(driver.statusOf()?.renewals).toBe(2);
  });
});

test('a wall clock that is set to and fro every second makes no storm', () => {
  const driver = played({ markets: many(4) }, 'live 10.5');
  const fromMs = driver.sinceStartMs();
  for (let second = 1; second <= 30; second += 1) {
    driver.move({ wallMs: second % 2 === 0 ? 5000 : -5000 });
    driver.live(1000);
  }
  expect(since(driver, fromMs).length).toBeLessThanOrEqual(15 * 4 + 20);
  expect([driver.notices('lapsed'), driver.notices('overdue')]).toEqual([[], []]);
});

test('wake-ups come every 500 ms, and collect what becomes due within 25 ms', () => {
  const driver = played({ markets: many(600), nonce: 'window', connections: 1000 }, 'start');
  driver.live(6000, 1);
  const { length } = driver.writes;
  driver.live(6000, 1);
  const moments = driver.writes.slice(length).map(({ atMs }) => atMs);
  expect(moments.length).toBeGreaterThanOrEqual(590);
  expect(new Set(moments).size).toBeLessThanOrEqual(241);
  expect(new Set(moments).size).toBeGreaterThan(150);
  const idle = played({ markets: ['AAA:600'] }, 'start');
  expect(idle.state.wakeAtMs - idle.now().monoMs).toBeLessThanOrEqual(500);
});
