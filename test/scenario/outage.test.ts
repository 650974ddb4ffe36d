import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../src/core/events.ts';
import { boundsOf } from '../../src/core/promise.ts';
import { createRandom } from '../../src/simulator/random.ts';
import { many } from '../core/core-settings.ts';
import { BAD_KEY, gaps, HTTP_500, NO_MARKET, NOT_SENT } from '../core/driver.ts';
import { type Bench, createBench, type Fate, started, TWO_ADDRESSES } from './bench.ts';

const BLACK_HOLE: Fate = { kind: 'lost' };
const AT_ONCE: Fate = { kind: 'fails', outcome: NOT_SENT };
const GATEWAY: Fate = { kind: 'fails', outcome: HTTP_500 };
const fates: readonly [string, Fate][] = [
  ['black hole', BLACK_HOLE],
  ['refused connections', AT_ONCE],
  ['gateway pages', GATEWAY],
];

const firstAfter = (bench: Bench, fromMs: number) => {
  const seen = new Map<string, number>();
  for (const { market, atMs } of bench.book.applied) {
    if (atMs >= fromMs && !seen.has(market)) seen.set(market, atMs);
  }
  return seen;
};

describe.each(['increasing', 'window'] as const)('no false lapse, with %s nonces', (nonce) => {
  test('any outage shorter than promised cancels nothing, whenever it begins', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(5, 10, 15, 30, 60),
        fc.constantFrom(1, 3),
        fc.integer({ min: 0, max: 10_000 }),
        fc.integer({ min: 0, max: 999 }),
        fc.constantFrom(BLACK_HOLE, AT_ONCE, GATEWAY),
        (timeoutSeconds, count, phaseMs, exchangeAheadMs, fate) => {
          const markets = many(count, timeoutSeconds);
          const bench = started({ markets, nonce, exchangeAheadMs }, 8000 + phaseMs);
          const periodMs = bench.keeper.state.markets[0]?.periodMs ?? 0;
          const { survivesMs } = boundsOf(bench.settings, timeoutSeconds * 1000, periodMs);
          bench.strike(fate, survivesMs);
          bench.run(survivesMs + 10_000);
          expect(bench.book.fired).toEqual([]);
          expect(bench.noticesOf('lapsed')).toEqual([]);
          expect(bench.noticesOf('overdue')).toEqual([]);
        },
      ),
      { numRuns: 120, examples: [[5, 3, 2314, 645, BLACK_HOLE]] },
    );
  });
});

test('a request that a black hole has swallowed makes no market open connections once a newer one is answered', () => {
  const bench = started({ nonce: 'window' }, 20_000);
  bench.strike(BLACK_HOLE, 9000);
  bench.run(60_000);
  const [firstMs = 0] = firstAfter(bench, 29_000).values();
  expect(bench.writes.some(({ fresh, atMs }) => fresh && atMs <= firstMs)).toBe(true);
  expect(bench.writes.filter(({ fresh, atMs }) => fresh && atMs > firstMs)).toEqual([]);
});

test('connections that open slowly after an outage are no new outage', () => {
  const bench = started({ markets: many(20, 30), nonce: 'window', connectMs: 2000 }, 20_000);
  bench.strike(BLACK_HOLE, 3000);
  bench.run(60_000);
  expect(bench.noticesOf('outage-began')).toHaveLength(1);
  expect(bench.book.fired).toEqual([]);
});

describe.each(fates)('an outage (%s)', (_what, fate) => {
  test('of half a minute at T = 10 lapses everything once, says so once, and all is armed again within 2 s', () => {
    const bench = started({ markets: many(5, 10) }, 5500);
    bench.strike(fate, 30_000);
    bench.run(30_000);
    const endMs = bench.nowMs();
    expect(bench.book.fired).toHaveLength(5);
    bench.run(2000);
    expect(bench.book.timers.size).toBe(5);
    expect(Math.max(...firstAfter(bench, endMs).values()) - endMs).toBeLessThanOrEqual(1000);
    bench.run(60_000);
    const lapsed = bench.noticesOf('lapsed').map(({ market }) => market);
    expect(lapsed.toSorted()).toEqual(['M0', 'M1', 'M2', 'M3', 'M4']);
    expect(bench.noticesOf('overdue')).toHaveLength(5);
    expect(bench.noticesOf('outage-began')).toHaveLength(1);
    expect(bench.noticesOf('outage-ended')).toHaveLength(1);
  });

  test('of three quarters of all requests, for a minute, costs few of twelve short timers', () => {
    const markets = Array.from({ length: 12 }, (_, index) => `M${index}:${5 + index}`);
    let fired = 0;
    for (let seed = 1; seed <= 5; seed += 1) {
      const random = createRandom(seed);
      const bench = started({ markets, nonce: 'window' }, 10_000);
      bench.rules.push(({ atMs }) => (atMs < 70_000 && random() < 0.75 ? fate : null));
      bench.run(75_000);
      fired += bench.book.fired.length;
    }
    expect(fired).toBeLessThanOrEqual(15);
  });

  test('has one request of each market, and from there one at a time, never two within its gap', () => {
    const bench = started({ markets: many(20), nonce: 'window' }, 15_000);
    bench.strike(fate, 45_000);
    bench.run(45_000);
    const began = bench.noticesOf('outage-began')[0]?.atMs ?? Number.POSITIVE_INFINITY;
    // Every market was due once within its period of 6 s.
    const probes = bench.writes.filter(({ atMs }) => atMs > began + 8000);
    expect(Math.min(...gaps(probes))).toBeGreaterThanOrEqual(224);
    expect(probes.length).toBeGreaterThan(7);
  });
});

describe.each(['increasing', 'window'] as const)('a refusal of everything, with %s nonces,', (nonce) => {
  const refusals: readonly [string, Outcome][] = [
    ['of the key', BAD_KEY],
    ['of a page with 403', { kind: 'transient', reason: 'auth', detail: 'status 403', maybeApplied: false }],
    ['of each market', NO_MARKET],
  ];
  test.each(
    [1, 2].flatMap((addresses) => refusals.map(([what, outcome]) => [what, addresses, outcome] as const)),
  )('%s for 5 s fires nothing at %i address(es)', (_what, addresses, outcome) => {
    const markets = ['A:15', 'B:15', 'C:30', 'D:30', 'E:60', 'F:60'];
    const bench = started({ markets, nonce, ...(addresses > 1 ? TWO_ADDRESSES : {}) }, 15_000);
    for (let times = 0; times < 3; times += 1) {
      bench.strike({ kind: 'fails', outcome }, 5000);
      bench.run(20_000);
    }
    expect(bench.book.fired).toEqual([]);
    expect(bench.book.timers.size).toBe(markets.length);
  });

  test.each(refusals)('%s by one of two addresses for ever fires nothing', (_what, outcome) => {
    const bench = started({ markets: ['A:10', 'B:10', 'C:15'], nonce, ...TWO_ADDRESSES }, 15_000);
    bench.rules.push(({ base }) => (base === 0 ? { kind: 'fails', outcome } : null));
    bench.run(60_000);
    expect(bench.book.fired).toEqual([]);
  });
});

describe('the first success after an outage', () => {
  test('releases the rest in the order of their deadlines, what can be saved first and what has lapsed last', () => {
    const bench = started({ markets: ['L1:10', 'S60:60', 'L2:10', 'S40:40', 'S50:50', 'S55:55'] }, 15_000);
    bench.strike(GATEWAY, 20_000);
    bench.run(20_000);
    const endMs = bench.nowMs();
    bench.run(6000);
    const order = [...firstAfter(bench, endMs).keys()];
    // The first is the canary whose turn it was.
    const rest = order.filter((name) => name !== order[0]);
    expect(order[0]).toMatch(/^S/);
    expect(rest.slice(0, -2)).toEqual(['S40', 'S50', 'S55', 'S60'].filter((name) => name !== order[0]));
    expect(rest.slice(-2).toSorted()).toEqual(['L1', 'L2']);
    expect(bench.book.fired.map(({ market }) => market).toSorted()).toEqual(['L1', 'L2']);
  });
});

describe('a market that is sick by itself', () => {
  test('at the head of the queue does not keep the others from finding out that the exchange is back', () => {
    const bench = started({ markets: ['SICK:30', ...many(4)], nonce: 'window' }, 15_000);
    bench.strike({ kind: 'lost' }, 3_600_000, 'SICK');
    bench.strike(GATEWAY, 15_000);
    bench.run(15_000);
    expect(bench.noticesOf('outage-began')).toHaveLength(1);
    const endMs = bench.nowMs();
    bench.run(10_500);
    expect(bench.noticesOf('outage-ended')).toHaveLength(1);
    expect([...firstAfter(bench, endMs).keys()].toSorted()).toEqual(['M0', 'M1', 'M2', 'M3']);
  });

  test('because the exchange refuses it, does not lock the canary out', () => {
    const bench = createBench({ markets: ['WRONG:60', ...many(3, 10)], nonce: 'window' });
    bench.strike({ kind: 'fails', outcome: NO_MARKET }, 3_600_000, 'WRONG');
    bench.start(5000);
    bench.rules.unshift(({ atMs }) => (atMs > 5000 && atMs < 35_000 ? GATEWAY : null));
    bench.run(32_000);
    expect(bench.book.timers.size).toBe(3);
  });
});

describe('answers that come and go', () => {
  test.each([
    ['one of ten', (number: number) => number % 10 === 0],
    ['one of three', (number: number) => number % 3 === 0],
    ['every other', (number: number) => number % 2 === 0],
  ])('%s, make no storm, and whoever is answered often enough stays armed', (_what, isGood) => {
    const bench = started({ markets: many(20), nonce: 'window' }, 15_000);
    bench.rules.push(({ number }) => (isGood(number) ? null : GATEWAY));
    const before = bench.writes.length;
    bench.run(60_000);
    // Well, it would be 200 in a minute; with every retry at its own pace four times as much.
    expect(bench.writes.length - before).toBeLessThanOrEqual(1300);
    const busiest = Math.max(
      ...bench.writes.map(
        ({ atMs }) => bench.writes.filter((one) => one.atMs >= atMs && one.atMs < atMs + 1000).length,
      ),
    );
    expect(busiest).toBeLessThanOrEqual(100);
  });
});

describe('pings', () => {
  test('that come back send the canary at once', () => {
    const bench = started({ markets: many(5), nonce: 'window' }, 15_000);
    let down = true;
    bench.pingsFail(() => down);
    bench.strike(GATEWAY, 20_200);
    bench.run(20_200);
    down = false;
    const endMs = bench.nowMs();
    bench.run(2000);
    expect(Math.min(...firstAfter(bench, endMs).values()) - endMs).toBeLessThanOrEqual(600);
  });

  test('that fail alone stop nothing, and pings that succeed alone count for nothing', () => {
    const failing = createBench({ markets: many(3, 10) });
    failing.pingsFail(() => true);
    failing.start(60_000);
    expect(failing.book.fired).toEqual([]);
    expect(failing.writes.length).toBeGreaterThan(170);
    const lonely = started({ markets: many(3, 10) }, 5000);
    lonely.strike(GATEWAY, 60_000);
    lonely.run(30_000);
    expect(lonely.noticesOf('pinged').every(({ ok }) => ok)).toBe(true);
    expect(lonely.keeper.snapshot().ready).toBe(false);
    expect(lonely.book.fired).toHaveLength(3);
  });
});

test('a blip that loses a handful of requests is one outage, and not a second one when they time out', () => {
  const bench = started({ markets: many(6), nonce: 'window' }, 5100);
  // All are due together when the host wakes up.
  bench.clock.suspend(1000);
  bench.strike(BLACK_HOLE, 1100);
  bench.run(20_000);
  expect(bench.noticesOf('attempt-failed').length).toBeGreaterThanOrEqual(5);
  expect(bench.noticesOf('outage-began').length).toBeLessThanOrEqual(1);
});
