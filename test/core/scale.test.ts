import { describe, expect, test } from 'vitest';
import { many as marketsOf } from './core-settings.ts';
import { createDriver, type Driver, play } from './driver.ts';

const CONNECTIONS = 64;
const WORK = ['renewals', 'deletes of a stop', 'deletes of a reload'] as const;

/** Counts how often the core reads something of a market, and the list of what is on its way, since the last call. */
function countReads({ state }: Driver) {
  const reads = { markets: 0, attempts: 0 };
  const counted = state.markets.map(
    (market) =>
      new Proxy(market, {
        get(target, name) {
          reads.markets += 1;
          return Reflect.get(target, name);
        },
      }),
  );
  state.markets = counted;
  state.byName = new Map(counted.map((market) => [market.settings.market, market]));
  const { attempts } = state;
  Object.defineProperty(state, 'attempts', {
    get() {
      reads.attempts += 1;
      return attempts;
    },
  });
  return () => {
    const before = { ...reads };
    Object.assign(reads, { markets: 0, attempts: 0 });
    return before;
  };
}

/** All markets are due at once, and as many requests are on their way as there are connections. */
function workOf(count: number, nonce: 'increasing' | 'window', what: (typeof WORK)[number]) {
  const markets = marketsOf(count);
  const budget = { requests: 100_000, windowMs: 10_000 };
  const driver = createDriver({ markets, nonce, connections: CONNECTIONS, budget });
  const read = countReads(driver);
  driver.start();
  // A stall: everything is due at once.
  driver.move({ monoMs: 2000 });
  if (what === 'renewals') driver.tick();
  else if (what === 'deletes of a stop') driver.stop();
  else driver.reload({ markets: markets.slice(0, count / 2), nonce, connections: CONNECTIONS, budget });
  const written = driver.take();
  const lanes = nonce === 'window' ? CONNECTIONS : 1;
  expect(written).toHaveLength(lanes);
  driver.move({ monoMs: 30 });
  read();
  driver.tick();
  expect(driver.take()).toEqual([]);
  const order = read();
  for (const write of written) driver.answer(write);
  expect(driver.take()).toHaveLength(lanes);
  return { order, answers: read() };
}

const CASES = (['increasing', 'window'] as const).flatMap((nonce) => WORK.map((what) => ({ nonce, what })));

describe.each(CASES)('while thousands wait for lanes, nonces $nonce, $what', ({ nonce, what }) => {
  const few = workOf(1000, nonce, what);
  const many = workOf(4000, nonce, what);

  test('an answer costs the same, however many they are, and their order as much as they are', () => {
    expect(many.answers.markets).toBeLessThan(1.1 * few.answers.markets);
    expect(many.answers.attempts).toBeLessThan(1.1 * few.answers.attempts);
    // The order of four times as many has a few more comparisons; lanes are looked for once.
    expect(many.order.markets).toBeLessThan(5 * few.order.markets);
    expect(many.order.attempts).toBeLessThan(1.1 * few.order.attempts);
  });
});

test('a look at dead bots costs as much as their markets are, and a beat right after it as little as one', () => {
  const lookOf = (count: number) => {
    const markets = Array.from({ length: count }, (_, index) => `M${index}:60:bot${index}`);
    const driver = createDriver({
      markets,
      nonce: 'window',
      liveness: { mode: 'beat', startupGraceMs: 1000 },
    });
    driver.live(2000);
    const read = countReads(driver);
    play(driver, 'move 0.03, tick');
    const look = read().markets;
    driver.say('beat', 'unknown');
    return { look, beat: read().markets };
  };
  const [few, many] = [lookOf(600), lookOf(2400)];
  expect(many.look).toBeLessThan(5 * few.look);
  expect(many.beat).toBeLessThan(10);
});
