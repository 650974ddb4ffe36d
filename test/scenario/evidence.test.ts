import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { boundsOf } from '../../src/core/promise.ts';
import { HTTP_500, NOT_SENT } from '../core/driver.ts';
import { type Bench, type BenchOptions, createBench, type Fate } from './bench.ts';

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
const renewals = (bench: Bench, fromMs: number) =>
  bench.writes.filter(({ atMs, timeoutSeconds }) => atMs > fromMs && timeoutSeconds !== 5);

describe('after the last evidence', () => {
  test('nothing is renewed when it has run out, and the timers fire within the time promised', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('expire' as const, 'trip' as const),
        fc.constantFrom('increasing' as const, 'window' as const),
        fc.constantFrom(10, 30, 60, 120),
        fc.integer({ min: 20_000, max: 40_000 }),
        fc.constantFrom<Fate | null>(
          null,
          { kind: 'lost' },
          { kind: 'lost', applied: true },
          { kind: 'fails', outcome: HTTP_500 },
          { kind: 'fails', outcome: NOT_SENT },
          { kind: 'slow', byMs: 1800 },
        ),
        fc.integer({ min: 0, max: 20_000 }),
        fc.integer({ min: 100, max: 4000 }),
        (onStale, nonce, timeoutSeconds, untilMs, fate, troubleMs, forMs) => {
          const settings = { markets: [`AAA:${timeoutSeconds}`, 'BBB:60'], nonce, requestLifetimeMs: 5000 };
          const bench = watched(untilMs, { ...settings, liveness: { mode: 'beat', onStale } });
          const lastMs = Math.floor(untilMs / 1000) * 1000;
          if (fate !== null) bench.at(untilMs + troubleMs, () => bench.strike(fate, forMs));
          bench.run(220_000);
          expect(renewals(bench, lastMs + TTL_MS + 1)).toEqual([]);
          const boundMs = lastMs + (boundsOf(bench.settings, timeoutSeconds * 1000, 0).botDeathMs ?? 0);
          for (const { atMs } of bench.book.firedOf('AAA')) expect(atMs).toBeLessThanOrEqual(boundMs);
          expect(bench.book.timers.size).toBe(0);
        },
      ),
      { numRuns: 80 },
    );
  });

  test('a connection that opens late is not used', () => {
    const bench = watched(20_000, { markets: ['AAA:10', 'BBB:10'], connectMs: 400, nonce: 'window' });
    bench.strike({ kind: 'lost' }, 3_600_000);
    bench.run(60_000);
    expect(renewals(bench, 20_000 + TTL_MS)).toEqual([]);
    expect(bench.noticesOf('attempt-failed').some(({ reason }) => reason === 'aborted')).toBe(true);
  });
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
