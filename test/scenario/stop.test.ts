import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HTTP_500 } from '../core/driver.ts';
import { type Bench, type BenchOptions, createBench, EPOCH_MS, type Fate, many } from './bench.ts';

function running(options: BenchOptions = {}, forMs = 10_000) {
  const bench = createBench({ markets: many(5, 60), ...options });
  bench.start(forMs);
  return bench;
}
type Left = NonNullable<ReturnType<Bench['ended']>>['left'];

/** Each of these timers was named, and fired no later than was said. */
function expectNamed({ fired }: Bench['book'], left: Left, fromMs = 0): void {
  for (const { market, atMs } of fired.filter((one) => one.atMs > fromMs)) {
    const said = left.find((one) => one.market === market)?.firesByWallMs ?? 0;
    expect(EPOCH_MS + atMs).toBeLessThanOrEqual(said);
  }
}

/** Lets a stop come to its end and everything that was on its way arrive. */
function stopped(bench: Bench, policy: 'delete' | 'keep' | 'handoff' = 'delete') {
  const beganMs = bench.nowMs();
  bench.stop(policy);
  bench.run(20_000);
  const end = bench.ended();
  if (end === null) throw new Error('the stop did not end');
  return { ...end, tookMs: end.atMs - beganMs, beganMs };
}

describe('a stop', () => {
  test('deletes every timer within moments, whatever is in flight when it begins', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10_000 }), fc.constantFrom(20, 200), (phaseMs, roundTripMs) => {
        const bench = running({ markets: many(10, 600), nonce: 'window', roundTripMs }, 15_000 + phaseMs);
        const { left, tookMs } = stopped(bench);
        expect(left).toEqual([]);
        expect(tookMs).toBeLessThan(1000);
      }),
      { numRuns: 30, examples: [[0, 200]] },
    );
  });

  test('in the middle of a hang deletes what it can when the exchange is back, inside the budget', () => {
    const bench = running();
    bench.strike({ kind: 'lost' }, 5000);
    bench.run(2000);
    const { left, tookMs } = stopped(bench);
    expect(left).toEqual([]);
    expect(tookMs).toBeLessThan(8000);
    expect(bench.book.timers.size).toBe(0);
  });

  test('at once after the start leaves nothing behind', () => {
    const bench = createBench({ markets: many(5, 60) });
    bench.keeper.start();
    bench.run(15);
    const { left } = stopped(bench);
    expect(left).toEqual([]);
    expect(bench.book.timers.size).toBe(0);
  });
});

test('a stop that hands over leaves every timer with nearly all of its time', () => {
  const bench = running({}, 10_900);
  const { left, atMs } = stopped(bench, 'handoff');
  expect(left.map(({ why }) => why)).toEqual(Array(5).fill('policy'));
  bench.run(100_000);
  expect(bench.book.fired).toHaveLength(5);
  for (const fired of bench.book.fired) expect(fired.atMs).toBeGreaterThan(atMs + 58_000);
  expect(bench.writes.some(({ timeoutSeconds }) => timeoutSeconds === null)).toBe(false);
});

test('whatever the trouble, a timer that is armed after the end was named, and none fires later than was said', () => {
  const fate = fc.constantFrom<Fate>(
    { kind: 'lost' },
    { kind: 'lost', applied: true },
    { kind: 'fails', outcome: HTTP_500 },
    { kind: 'fails', outcome: HTTP_500, applied: true },
    { kind: 'slow', byMs: 300 },
    { kind: 'slow', byMs: 2500 },
  );
  fc.assert(
    fc.property(
      fc.constantFrom('increasing' as const, 'window' as const),
      fc.constantFrom('delete' as const, 'keep' as const, 'handoff' as const),
      fate,
      fc.integer({ min: 0, max: 6000 }),
      fc.integer({ min: 0, max: 12_000 }),
      fc.constantFrom(2000, 8000),
      (nonce, policy, what, beforeMs, forMs, budgetMs) => {
        const settings = { markets: many(4, 10), nonce, requestLifetimeMs: 4000 };
        const bench = createBench({ ...settings, shutdown: { budgetMs } });
        bench.start(6000);
        bench.strike(what, forMs);
        bench.run(beforeMs);
        const { left, beganMs, atMs } = stopped(bench, policy);
        expect(atMs - beganMs).toBeLessThanOrEqual(budgetMs);
        bench.run(30_000);
        expectNamed(bench.book, left, atMs);
        if (policy !== 'delete') return;
        for (const market of ['M0', 'M1', 'M2', 'M3']) {
          // In a nonce window a market is guarded until no stray request can undo its delete.
          const writes = bench.writesOf(market, beganMs + 1).map(({ timeoutSeconds }) => timeoutSeconds);
          const fromDelete = nonce === 'window' ? writes.slice(writes.indexOf(null)) : writes;
          expect(fromDelete.every((timeoutSeconds) => timeoutSeconds === null)).toBe(true);
        }
      },
    ),
    { numRuns: 100 },
  );
});
