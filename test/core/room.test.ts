import { describe, expect, test } from 'vitest';
import { describe as describeState } from '../../src/core/describe.ts';
import { dueAt } from '../../src/core/due.ts';
import { roomInWindow } from '../../src/core/rate.ts';
import type { SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver, type Write } from './driver.ts';

const many = (count: number, timeoutSeconds = 600) =>
  Array.from({ length: count }, (_, index) => `M${index}:${timeoutSeconds}`);
const budgetOf = (requests: number) => ({ requests, windowMs: 10_000 });
const asked = (driver: Driver) => driver.effects.filter((effect) => effect.kind === 'acquire');
const grant = (driver: Driver, permits: number) => driver.feed({ kind: 'granted', permits, how: 'in-turn' });
const disarm = (driver: Driver, ...markets: string[]) =>
  driver.feed({ kind: 'operate', command: { does: 'disarm', markets, forMs: 0 } });
const deletesOf = (writes: readonly Write[]) =>
  writes.filter(({ timeoutSeconds }) => timeoutSeconds === null);

/** A key that was accepted before, more connections than anybody needs, and a limiter that does what a test says. */
function limited(options: SettingsOptions, limiter: 'open' | 'manual' = 'manual') {
  const driver = createDriver({ nonce: 'window', connections: 1000, ...options }, limiter);
  driver.state.authorisedOnce = true;
  return driver;
}

/** So many timers that have lost more than half of their time, as after an outage: they keep to no pace. */
function pressing(
  count: number,
  requests: number,
  limiter?: 'open' | 'manual',
  options: SettingsOptions = {},
) {
  const driver = limited({ markets: many(count), budget: budgetOf(requests), ...options }, limiter);
  const { state } = driver;
  for (const { belief } of state.markets) {
    belief.notBeforeLifeMs = state.lifeMs + 200_000;
    belief.notBeforeAwakeMs = state.now.monoMs + 200_000;
    belief.confirmedUntilMs = state.now.monoMs + 201_000;
    belief.notAfterMs = belief.confirmedUntilMs;
  }
  driver.tick();
  return driver;
}

describe('what the limiter lets go late', () => {
  test('goes at once, all of it', () => {
    const driver = limited({ markets: many(3) });
    driver.tick();
    driver.move({ monoMs: 5 });
    grant(driver, 3);
    expect(driver.take()).toHaveLength(3);
  });

  test('leaves room for the deletes of a stop', () => {
    const driver = pressing(120, 100);
    const [first] = asked(driver);
    driver.move({ monoMs: 5 });
    grant(driver, first?.permits ?? 0);
    for (const write of driver.take()) driver.apply(write);
    driver.feed({ kind: 'stop', policy: 'delete', why: 'test' });
    grant(driver, 100);
    expect(deletesOf(driver.take()).length).toBeGreaterThan(0);
  });

  test('is used by the next as soon as the one before has had time to be answered', () => {
    const driver = createDriver({ markets: ['AAA', 'BBB'] }, 'manual');
    driver.tick();
    for (let armed = 0; armed < 2; armed += 1) {
      grant(driver, 1);
      driver.move({ monoMs: 20 });
      driver.apply(driver.takeOne());
    }
    for (const market of driver.state.markets) dueAt(driver.state, market, driver.now().monoMs);
    driver.tick();
    driver.move({ monoMs: 5 });
    const { length } = asked(driver);
    grant(driver, 2);
    const { atMs } = driver.takeOne();
    expect(asked(driver)).toHaveLength(length);
    // At a round trip of 20 ms nobody waits much longer than for four of them.
    driver.wait(200);
    expect(driver.takeOne().atMs - atMs).toBeLessThan(150);
  });

  test('leaves nothing to ask for where the budget has no room', () => {
    const driver = pressing(120, 100);
    const [first] = asked(driver);
    grant(driver, first?.permits ?? 0);
    expect(driver.take()).toHaveLength(first?.permits ?? 0);
    expect(asked(driver)).toHaveLength(1);
  });

  test('is asked for by the connections that are free', () => {
    const driver = limited({ markets: many(10), connections: 4 });
    driver.tick();
    expect(asked(driver)).toMatchObject([{ permits: 4 }]);
  });

  test('counts what takes a connection of its own beside the one that is free', () => {
    const driver = createDriver({ markets: ['AAA', 'BBB'] }, 'manual');
    driver.tick();
    grant(driver, 1);
    driver.apply(driver.takeOne());
    grant(driver, 1);
    driver.apply(driver.takeOne());
    driver.wait(500);
    for (const market of driver.state.markets) dueAt(driver.state, market, driver.now().monoMs);
    driver.market('AAA').timedOut = true;
    const { length } = asked(driver);
    driver.tick();
    expect(asked(driver).slice(length)).toMatchObject([{ permits: 2 }]);
  });
});

test.each([
  [2, 1],
  [10, 8],
])(
  'for what presses %i connections ask the limiter on, however little the pace allows',
  (connections, on) => {
    // Slow enough to go by one order.
    const driver = pressing(20, 20, 'manual', { connections, looksPerMs: 0.01 });
    expect(asked(driver)).toMatchObject([{ permits: connections }]);
    grant(driver, 2);
    expect(driver.take()).toHaveLength(2);
    expect(asked(driver).slice(1)).toMatchObject([{ permits: on }]);
  },
);

describe('while the connection is taken, the limiter is asked for the next request', () => {
  /** Slow enough to go by one order. One request after the other is written, `count` of them. */
  function written(driver: Driver, count: number): number {
    for (let number = 1; number < count; number += 1) {
      grant(driver, 1);
      driver.move({ monoMs: 1 });
      driver.apply(driver.takeOne());
    }
    const { length } = asked(driver);
    grant(driver, 1);
    driver.takeOne();
    return asked(driver).length - length;
  }

  test('as far as the budget has room for it', () => {
    const asksAfter = (count: number) =>
      written(pressing(20, 6, 'manual', { connections: 1, looksPerMs: 0.01 }), count);
    expect([3, 4, 5].map(asksAfter)).toEqual([1, 1, 0]);
  });

  test('as far as the pace allows it', () => {
    const asksAfter = (count: number) => {
      const driver = limited({ markets: many(7), budget: budgetOf(10), connections: 1, looksPerMs: 0.01 });
      driver.tick();
      return written(driver, count);
    };
    // The planned renewals leave room for two at once.
    expect([1, 2].map(asksAfter)).toEqual([1, 0]);
  });
});

test('the last request that the budget has room for may be a delete', () => {
  const driver = pressing(99, 100, 'open');
  driver.live(500);
  expect(driver.writes).toHaveLength(99);
  expect(roomInWindow(driver.state)).toBe(1);
  disarm(driver, 'M0');
  expect(deletesOf(driver.take())).toHaveLength(1);
});

describe('a budget that becomes another one, because shards share the limit', () => {
  const change = (driver: Driver, requests: number) =>
    driver.feed({ kind: 'budget', budget: budgetOf(requests) });

  test('holds for what the limiter was asked for before', () => {
    const driver = pressing(150, 200);
    expect(asked(driver)).toMatchObject([{ permits: 150 }]);
    change(driver, 100);
    grant(driver, 150);
    const { length } = driver.take();
    expect(length).toBeGreaterThan(90);
    // Something is left for deletes.
    expect(length).toBeLessThanOrEqual(98);
  });

  test('changes the cadence at once', () => {
    const driver = createDriver({ markets: many(60, 60), nonce: 'window' });
    driver.live(1000);
    const periodMs = () => describeState(driver.state, driver.now()).markets[0]?.periodMs ?? 0;
    expect(periodMs()).toBe(6000);
    change(driver, 50);
    expect(periodMs()).toBeGreaterThan(10_000);
    change(driver, 5000);
    expect(periodMs()).toBe(6000);
  });
});

test('a delete that an operator asks for has its room behind timers that press', () => {
  const driver = pressing(120, 100, 'open');
  driver.live(1000);
  expect(roomInWindow(driver.state)).toBeGreaterThan(0);
  const { length } = driver.writes;
  disarm(driver, 'M0');
  driver.live(1000);
  expect(deletesOf(driver.writes.slice(length)).map(({ market }) => market)).toEqual(['M0']);
});
