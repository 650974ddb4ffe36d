import { describe, expect, test } from 'vitest';
import { type Bench, createBench } from './bench.ts';

const HOUR_MS = 3_600_000;
const markets = ['AAA:60', 'BBB:60', 'CCC:60', 'DDD:60'];
const written = (bench: Bench, fromMs: number, toMs: number) =>
  bench.writes.filter(({ atMs }) => atMs >= fromMs && atMs < toMs).map(({ market }) => market);

describe('a host that stands still and goes on', () => {
  test('never writes what was prepared before: the connection that was being opened is not used', () => {
    const bench = createBench({ markets: ['AAA:60', 'BBB:60'], connectMs: 100, nonce: 'window' });
    bench.start(10_500);
    bench.strike({ kind: 'lost' }, 6000, 'AAA');
    bench.run(4500);
    // AAA's next attempt takes a fresh connection; the host sleeps while it opens.
    let preparedMs: number | null = null;
    bench.keeper.onTurn(() => {
      const attempt = bench.keeper.state.attempts.find(
        ({ market, laneMs, status }) => market.settings.market === 'AAA' && status === 'open' && laneMs === 0,
      );
      if (attempt === undefined || preparedMs !== null) return;
      preparedMs = bench.nowMs();
      bench.at(preparedMs + 50, () => bench.clock.suspend(5000));
    });
    bench.run(20_000);
    expect(preparedMs).not.toBeNull();
    const at = (preparedMs ?? 0) + 50;
    const first = bench.writesOf('AAA', at)[0];
    expect(first?.atMs).toBeGreaterThanOrEqual(at + 5000 + 100);
    expect(bench.noticesOf('attempt-failed').some(({ reason }) => reason === 'aborted')).toBe(true);
    expect(bench.book.fired).toEqual([]);
  });
});

describe('a wall clock that is set', () => {
  test('ahead while the exchange is silent claims no lapse, nor that anything is overdue', () => {
    const bench = createBench({ markets });
    bench.start(30_500);
    bench.strike({ kind: 'lost' }, 20_000);
    bench.clock.stepWall(HOUR_MS);
    bench.run(20_000);
    expect(bench.noticesOf('lapsed')).toEqual([]);
    bench.run(10_000);
    expect(bench.noticesOf('lapsed')).toEqual([]);
    expect(bench.noticesOf('overdue')).toEqual([]);
    expect(bench.book.fired).toEqual([]);
  });
});

test('a clock that steps to and fro every second makes no storm', () => {
  const bench = createBench({ markets });
  bench.start(10_500);
  for (let second = 1; second <= 30; second += 1) {
    bench.at(10_500 + 1000 * second, () => bench.clock.stepWall(second % 2 === 0 ? 5000 : -5000));
  }
  bench.run(31_000);
  expect(written(bench, 10_500, 41_500).length).toBeLessThanOrEqual(15 * 4 + 20);
  expect(bench.book.fired).toEqual([]);
});
