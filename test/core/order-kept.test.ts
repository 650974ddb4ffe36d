import { describe, expect, test } from 'vitest';
import { dueAt } from '../../src/core/due.ts';
import type { Outcome } from '../../src/core/outcome.ts';
import type { SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver, HTTP_500, type Write } from './driver.ts';

const names = (writes: readonly Write[]) => writes.map(({ market }) => market);
const asked = (driver: Driver) => driver.effects.filter((effect) => effect.kind === 'acquire');
const grant = (driver: Driver, permits: number) => driver.feed({ kind: 'granted', permits, how: 'in-turn' });
const DELETED: Outcome = { kind: 'deleted' };

/** One that is due in so many milliseconds, with so many seconds left of 60. */
type Due = readonly [inMs: number, leftSeconds: number];

/**
 * A host that is so slow that it goes by one order for a while, and a limiter that lets go what a test says. Everything
 * is armed; the order of what is due is made, and nothing was written yet.
 */
function slowHost(due: Readonly<Record<string, Due>>, options: SettingsOptions = {}): Driver {
  const markets = Object.keys(due).map((name) => `${name}:60:${name === 'DEAD' ? 'dead' : 'bot'}`);
  const driver = createDriver({ markets, nonce: 'window', looksPerMs: 0.01, ...options }, 'manual');
  for (const bot of ['bot', 'dead']) driver.feed({ kind: 'evidence', bot, says: 'beat', agoMs: 0 });
  const { state } = driver;
  while (state.markets.some(({ confirmedOnce }) => !confirmedOnce)) {
    grant(driver, 1);
    driver.tick();
    driver.move({ monoMs: 20 });
    for (const write of driver.take()) driver.apply(write);
  }
  // The first order is not that of a host that has never slept.
  driver.move({ monoMs: 10, bootMs: 400, wallMs: 400 });
  driver.tick();
  state.permits = 0;
  state.acquiring = false;
  const nowMs = driver.now().monoMs;
  for (const [name, [inMs, leftSeconds]] of Object.entries(due)) {
    const market = driver.market(name);
    dueAt(driver.state, market, nowMs + inMs);
    market.belief.notBeforeLifeMs = state.lifeMs + leftSeconds * 1000;
    market.belief.notBeforeAwakeMs = nowMs + state.timebase.sleptMs + leftSeconds * 1000;
  }
  driver.tick();
  driver.take();
  return driver;
}
/** What goes when the limiter lets one request go, that much later. */
function goesAfter(driver: Driver, ms: number): string[] {
  driver.move({ monoMs: ms });
  grant(driver, 1);
  return names(driver.take());
}

describe('where finding an order takes long, one order', () => {
  const due = { FIRST: [0, 40], SECOND: [0, 50], URGENT: [10, 5] } as const;

  test('serves for 25 ms: what becomes due meanwhile has its place in the next', () => {
    const driver = slowHost(due);
    expect(goesAfter(driver, 12)).toEqual(['FIRST']);
    expect(goesAfter(driver, 10)).toEqual(['SECOND']);
    const next = slowHost(due);
    expect(goesAfter(next, 12)).toEqual(['FIRST']);
    expect(goesAfter(next, 20)).toEqual(['URGENT']);
  });

  test('that nothing has gone by yet serves for a quarter of a second, or nothing else would be done than look', () => {
    expect(goesAfter(slowHost(due), 200)).toEqual(['FIRST']);
    expect(goesAfter(slowHost(due), 260)).toEqual(['URGENT']);
  });

  test('ends with a sleep of the host', () => {
    const driver = slowHost(due);
    driver.move({ monoMs: 12, bootMs: 400, wallMs: 400 });
    grant(driver, 1);
    expect(names(driver.take())).toEqual(['URGENT']);
  });

  test('may have waited for more time than a permit lives: it is asked for anew', () => {
    const driver = slowHost({ HUNG: [0, 40], NEXT: [0, 50] }, { connections: 1 });
    grant(driver, 2);
    const hung = driver.takeOne();
    expect(hung.market).toBe('HUNG');
    dueAt(driver.state, driver.market('HUNG'), Number.POSITIVE_INFINITY);
    driver.wait(990);
    driver.tick();
    const { length } = asked(driver);
    driver.move({ monoMs: 20 });
    driver.apply(hung);
    expect(driver.take()).toEqual([]);
    expect(asked(driver).slice(length)).toMatchObject([{ permits: 1 }]);
  });
});

describe('of what waits in an order', () => {
  test('one whose turn comes when it can be saved no longer is found by the next order, at once', () => {
    const driver = slowHost({ SHORT: [0, 0.025], LONG: [0, 30] });
    expect(goesAfter(driver, 10)).toEqual(['LONG']);
    const { length } = asked(driver);
    driver.wait(30);
    expect(asked(driver)).toHaveLength(length + 1);
    grant(driver, 1);
    expect(names(driver.take())).toEqual(['SHORT']);
  });

  test('a retry is not written once the attempt before it was answered', () => {
    const driver = slowHost({ AAA: [0, 40], BBB: [0, 50] });
    grant(driver, 1);
    const first = driver.takeOne();
    dueAt(driver.state, driver.market('AAA'), driver.now().monoMs);
    driver.tick();
    driver.move({ monoMs: 5 });
    driver.apply(first);
    grant(driver, 2);
    expect(names(driver.take())).toEqual(['BBB']);
  });

  test('a renewal is not written once its bot is found silent', () => {
    const driver = slowHost({ AAA: [0, 50] }, { liveness: { mode: 'beat', ttlMs: 1000 } });
    driver.wait(570);
    driver.tick();
    driver.move({ monoMs: 20 });
    grant(driver, 1);
    expect(driver.notices('bot').at(-1)?.state).toBe('stale');
    expect(driver.take()).toEqual([]);
  });

  test('a timer that is to be cut goes before the renewals that wait with it', () => {
    const driver = slowHost(
      { DEAD: [5000, 50], AAA: [0, 50] },
      { liveness: { mode: 'beat', ttlMs: 60_000, onStale: 'trip' } },
    );
    driver.feed({ kind: 'evidence', bot: 'dead', says: 'fail', agoMs: 0 });
    driver.tick();
    expect(goesAfter(driver, 5)).toEqual(['DEAD']);
  });
});

describe('the next in the order goes', () => {
  /** `FIRST` is on its way, the others wait for its connection, and URGENT has become due since. */
  function waiting(due: Readonly<Record<string, Due>>): { readonly driver: Driver; readonly first: Write } {
    const driver = slowHost(due, { connections: 1 });
    grant(driver, 10);
    const first = driver.takeOne();
    driver.move({ monoMs: 15 });
    return { driver, first };
  }
  const due = { FIRST: [0, 40], SECOND: [0, 50], URGENT: [10, 5] } as const;

  test('with the answer of a renewal, while one that failed asks for a new order', () => {
    const good = waiting(due);
    expect(good.first.market).toBe('FIRST');
    good.driver.apply(good.first);
    expect(names(good.driver.take())).toEqual(['SECOND']);
    const bad = waiting(due);
    bad.driver.settle(bad.first, HTTP_500);
    expect(names(bad.driver.take())).toEqual(['URGENT']);
  });

  test('and not with an answer that nobody waits for any more', () => {
    const { driver, first } = waiting(due);
    driver.apply({ ...first, attempt: 1 });
    expect(driver.take()).toEqual([]);
  });

  test('for one connection the limiter is asked for one request, while the one before is on its way', () => {
    const driver = slowHost({ FIRST: [0, 40], SECOND: [0, 50], THIRD: [0, 55] }, { connections: 1 });
    const { length } = asked(driver);
    grant(driver, 1);
    const first = driver.takeOne();
    expect(asked(driver).slice(length)).toMatchObject([{ permits: 1 }]);
    driver.move({ monoMs: 5 });
    driver.apply(first);
    expect(driver.take()).toEqual([]);
    grant(driver, 1);
    expect(names(driver.take())).toEqual(['SECOND']);
  });

  test('also the last that waits, which is asked for while the one before is on its way', () => {
    const driver = createDriver({ markets: ['AAA', 'BBB'] }, 'manual');
    driver.tick();
    driver.move({ monoMs: 5 });
    grant(driver, 1);
    const first = driver.takeOne();
    expect(asked(driver)).toMatchObject([{ permits: 1 }, { permits: 1 }]);
    grant(driver, 1);
    driver.move({ monoMs: 20 });
    driver.apply(first);
    expect(driver.takeOne().market).toBe('BBB');
  });

  test.each([
    ['delete', (driver: Driver, write: Write) => driver.settle(write, DELETED)],
    ['handoff', (driver: Driver, write: Write) => driver.apply(write)],
  ] as const)(
    'and what a stop writes (%s) as well: the answers do not each make all markets be looked at again',
    (policy, answer) => {
      const driver = slowHost({ AAA: [5000, 50], BBB: [5000, 50], CCC: [5000, 50] }, { connections: 1 });
      driver.feed({ kind: 'stop', policy, why: 'test' });
      grant(driver, 10);
      const lookedMs = driver.state.plannedMs;
      for (const name of ['AAA', 'BBB', 'CCC']) {
        const write = driver.takeOne();
        expect(write.market).toBe(name);
        driver.move({ monoMs: 5 });
        answer(driver, write);
        if (name !== 'CCC') expect(driver.state.plannedMs).toBe(lookedMs);
      }
      expect(driver.finished()?.every(({ why }) => why === 'policy')).toBe(true);
    },
  );
});
