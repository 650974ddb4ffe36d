import { expect, test } from 'vitest';
import { many as marketsOf } from './core-settings.ts';
import { createDriver, type Driver } from './driver.ts';

const CONNECTIONS = 64;

/** Counts how often the core reads something of a market since the last call. */
function countReads({ state }: Driver) {
  let reads = 0;
  state.markets = state.markets.map(
    (market) =>
      new Proxy(market, {
        get(target, name) {
          reads += 1;
          return Reflect.get(target, name);
        },
      }),
  );
  state.byName = new Map(state.markets.map((market) => [market.settings.market, market]));
  return () => {
    const before = reads;
    reads = 0;
    return before;
  };
}

/** All markets are due at once, and as many requests are on their way as there are connections: reads by order and answers. */
function workOf(count: number, nonce: 'increasing' | 'window') {
  const budget = { requests: 100_000, windowMs: 10_000 };
  const driver = createDriver({ markets: marketsOf(count), nonce, connections: CONNECTIONS, budget });
  const read = countReads(driver);
  driver.start();
  // A stall: everything is due at once.
  driver.move({ monoMs: 2000 });
  driver.tick();
  const written = driver.take();
  expect(written).toHaveLength(nonce === 'window' ? CONNECTIONS : 1);
  driver.move({ monoMs: 30 });
  read();
  driver.tick();
  const order = read();
  for (const write of written) driver.answer(write);
  expect(driver.take()).toHaveLength(written.length);
  return { order, answers: read() };
}

test.each(['increasing', 'window'] as const)(
  'while thousands wait for lanes, an answer costs the same however many they are, and their order as much as they are (%s nonces)',
  (nonce) => {
    const [few, many] = [workOf(1000, nonce), workOf(4000, nonce)];
    expect(many.answers).toBeLessThan(1.1 * few.answers);
    // The order of four times as many has a few more comparisons.
    expect(many.order).toBeLessThan(5 * few.order);
  },
);
