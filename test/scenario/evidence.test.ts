import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Bench, type BenchOptions, createBench } from './bench.ts';

const TTL_MS = 15_000;
const beat = { mode: 'beat', ttlMs: TTL_MS, startupGraceMs: 20_000 } as const;

/** A bot that beats from the start until `untilMs` and is silent then. */
function watched(untilMs: number, options: BenchOptions = {}): Bench {
  const bench = createBench({ ...options, liveness: { ...beat, ...options.liveness } });
  bench.keeper.start();
  bench.beats(untilMs, 1000);
  bench.run(untilMs);
  return bench;
}

test('a connection that opens after the evidence has run out is not used', () => {
  const bench = watched(20_000, { markets: ['AAA:10', 'BBB:10'], connectMs: 400, nonce: 'window' });
  bench.strike({ kind: 'lost' }, 3_600_000);
  bench.run(60_000);
  expect(bench.writes.filter(({ atMs }) => atMs > 20_000 + TTL_MS)).toEqual([]);
  expect(bench.noticesOf('attempt-failed').some(({ reason }) => reason === 'aborted')).toBe(true);
});

describe('a bot that comes back', () => {
  test('has its timers armed at once, and no lapse is told of what fired while it was away', () => {
    const bench = watched(20_000, { markets: ['AAA:10', 'BBB:60'] });
    bench.run(200_000);
    expect(bench.book.fired).toHaveLength(2);
    const backMs = bench.nowMs();
    bench.beats(backMs + 60_000, 1000);
    bench.run(500);
    expect(bench.book.timers.size).toBe(2);
    bench.run(20_000);
    expect(bench.noticesOf('lapsed')).toEqual([]);
    expect(bench.noticesOf('overdue')).toEqual([]);
    expect(bench.keeper.snapshot().ready).toBe(true);
  });

  test('is armed again also where lapses are held', () => {
    const bench = watched(20_000, { markets: ['AAA:10'], onLapse: 'hold' });
    bench.run(100_000);
    bench.beats(bench.nowMs() + 60_000, 1000);
    bench.run(20_000);
    expect(bench.book.timers.size).toBe(1);
    expect(bench.keeper.snapshot().markets[0]?.state).toBe('armed');
  });

  test('while its timer is being cut keeps its orders', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 3400 }),
        fc.constantFrom('increasing' as const, 'window' as const),
        (awayMs, nonce) => {
          const liveness = { mode: 'beat', onStale: 'trip' } as const;
          const bench = watched(20_000, { markets: ['AAA:60'], nonce, liveness });
          bench.run(TTL_MS + awayMs);
          bench.beats(bench.nowMs() + 60_000, 1000);
          bench.run(30_000);
          expect(bench.book.fired).toEqual([]);
          const wasCut = bench.writesOf('AAA').some(({ timeoutSeconds }) => timeoutSeconds === 5);
          expect(wasCut || awayMs < 1000).toBe(true);
        },
      ),
      {
        numRuns: 40,
        examples: [
          [600, 'window'],
          [3400, 'increasing'],
        ],
      },
    );
  });
});
