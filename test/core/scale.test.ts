import { describe, expect, test } from 'vitest';
import type { MarketState } from '../../src/core/state.ts';
import { createDriver, type Driver } from './driver.ts';

const CONNECTIONS = 64;

/** How often the core read something of a market, and of the list of requests that are on their way. */
interface Work {
  readonly markets: number;
  readonly attempts: number;
}

/** Counts what is read from now on. Returns what was read since the last call. */
function countReads({ state }: Driver): () => Work {
  let markets = 0;
  let attempts = 0;
  const counted = (market: MarketState) =>
    new Proxy(market, {
      get(target, name) {
        markets += 1;
        return Reflect.get(target, name);
      },
    });
  state.markets = state.markets.map(counted);
  state.byName = new Map(state.markets.map((market) => [market.settings.market, market]));
  const { attempts: list } = state;
  Object.defineProperty(state, 'attempts', {
    get() {
      attempts += 1;
      return list;
    },
  });
  return () => {
    const work = { markets, attempts };
    markets = 0;
    attempts = 0;
    return work;
  };
}

/** All markets are due at once, and as many requests are on their way as there are connections. */
function workOf(markets: number, nonce: 'increasing' | 'window') {
  const driver = createDriver({
    markets: Array.from({ length: markets }, (_, index) => `M${index}:60`),
    nonce,
    connections: CONNECTIONS,
    budget: { requests: 100_000, windowMs: 10_000 },
  });
  const read = countReads(driver);
  driver.arm();
  expect(driver.notices('renewed')).toHaveLength(markets);
  // A stall: everything is due at once.
  driver.move({ monoMs: 2000 });
  driver.tick();
  const written = driver.take();
  const lanes = nonce === 'window' ? CONNECTIONS : 1;
  expect(written).toHaveLength(lanes);
  driver.move({ monoMs: 30 });
  read();
  driver.tick();
  expect(driver.take()).toEqual([]);
  const order = read();
  for (const write of written) driver.apply(write);
  expect(driver.take()).toHaveLength(lanes);
  const answers = read();
  return { order, answer: { markets: answers.markets / lanes, attempts: answers.attempts / lanes } };
}

describe.each(['increasing', 'window'] as const)(
  'while thousands of markets wait for lanes, nonces %s',
  (nonce) => {
    const few = workOf(1000, nonce);
    const many = workOf(4000, nonce);

    test('an answer costs the same, however many they are', () => {
      expect(many.answer.markets).toBeLessThan(1.1 * few.answer.markets);
      expect(many.answer.attempts).toBeLessThan(1.1 * few.answer.attempts);
    });

    test('their order costs as much as they are, and lanes are looked for once', () => {
      // The order of four times as many has a few more comparisons.
      expect(many.order.markets).toBeLessThan(5 * few.order.markets);
      expect(many.order.attempts).toBeLessThan(1.1 * few.order.attempts);
    });
  },
);
