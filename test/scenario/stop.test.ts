import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { many } from '../core/core-settings.ts';
import { type Bench, type BenchOptions, createBench, started } from './bench.ts';

const running = (options: BenchOptions = {}, forMs = 10_000) =>
  started({ markets: many(5), ...options }, forMs);

/** Lets a stop come to its end and everything that was on its way arrive. */
function stopped(bench: Bench, policy: 'delete' | 'keep' | 'handoff' = 'delete') {
  const beganMs = bench.nowMs();
  bench.stop(policy);
  bench.run(20_000);
  const end = bench.ended();
  if (end === null) throw new Error('the stop did not end');
  return { ...end, tookMs: end.atMs - beganMs };
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

  test('guards a timer that would run out while its delete waits for a renewal without an answer', () => {
    const shutdown = { budgetMs: 15_000 };
    const bench = running({ markets: many(3, 5), nonce: 'window', shutdown }, 20_000);
    bench.strike({ kind: 'lost' }, 1000);
    bench.run(1000);
    const { left } = stopped(bench);
    expect([left, bench.book.fired, bench.book.timers.size]).toEqual([[], [], 0]);
  });

  test('at once after the start leaves nothing behind', () => {
    const bench = createBench({ markets: many(5) });
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
