import { expect, test } from 'vitest';
import { dueAt } from '../../src/core/due.ts';
import { createDriver, type Driver, type Write } from './driver.ts';

const names = (writes: readonly Write[]) => writes.map(({ market }) => market);
const ROUND_TRIP_MS = 20;

/**
 * Two timers are due, the limiter lets no request go yet, and the host is so slow that the order serves for 25 ms.
 * SHORT has so much time left.
 */
function orderedWithLeft(shortMs: number): Driver {
  const driver = createDriver({ markets: ['SHORT', 'LONG'], nonce: 'window', looksPerMs: 0.01 }, 'manual');
  driver.tick();
  const grant = () => driver.feed({ kind: 'granted', permits: 2, how: 'in-turn' });
  grant();
  driver.move({ monoMs: ROUND_TRIP_MS });
  for (const write of driver.take()) driver.apply(write);
  driver.wait(1000);
  driver.take();
  const { state } = driver;
  for (const [name, leftMs] of [
    ['SHORT', shortMs],
    ['LONG', 30_000],
  ] as const) {
    const market = driver.market(name);
    dueAt(driver.state, market, driver.now().monoMs);
    market.belief.notBeforeLifeMs = state.lifeMs + leftMs;
    market.belief.notBeforeAwakeMs = driver.now().monoMs + leftMs;
  }
  driver.tick();
  return driver;
}

function whenLetGoAfter(driver: Driver, ms: number): string[] {
  driver.move({ monoMs: ms });
  driver.feed({ kind: 'granted', permits: 1, how: 'in-turn' });
  return names(driver.take());
}

test('what was most urgent when the order was made goes first while its timer can be saved', () => {
  expect(whenLetGoAfter(orderedWithLeft(ROUND_TRIP_MS + 15), 10)).toEqual(['SHORT']);
});

test('a timer that can be saved no longer when its turn comes gives its place to one that can', () => {
  expect(whenLetGoAfter(orderedWithLeft(ROUND_TRIP_MS + 5), 10)).toEqual(['LONG']);
});

test('a timer that gave its place away has one in the next order', () => {
  const driver = orderedWithLeft(ROUND_TRIP_MS + 5);
  whenLetGoAfter(driver, 10);
  driver.move({ monoMs: 250 });
  driver.tick();
  driver.feed({ kind: 'granted', permits: 1, how: 'in-turn' });
  expect(names(driver.take())).toContain('SHORT');
});

test('a timer that was lost before the order was made keeps its place', () => {
  const driver = orderedWithLeft(ROUND_TRIP_MS - 5);
  expect(whenLetGoAfter(driver, 10)).toEqual(['LONG']);
  driver.feed({ kind: 'granted', permits: 1, how: 'in-turn' });
  expect(names(driver.take())).toEqual(['SHORT']);
});

test('a fleet that was never armed gives no place away: it is armed as fast as answers come', () => {
  const markets = Array.from({ length: 300 }, (_, index) => `M${index}:600`);
  const driver = createDriver({ markets, looksPerMs: 12, budget: { requests: 50_000, windowMs: 10_000 } });
  driver.live(12_000, ROUND_TRIP_MS);
  // One request after the other: 300 round trips.
  expect(driver.notices('all-armed')[0]?.sinceStartMs).toBeLessThan(300 * ROUND_TRIP_MS * 1.1);
});
