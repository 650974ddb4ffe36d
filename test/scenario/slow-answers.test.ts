import { describe, expect, test } from 'vitest';
import { type Bench, createBench, gapsOf, many } from './bench.ts';

const HOUR_MS = 3_600_000;

/** From now on the exchange carries out at once and answers this much later. */
function answerLate(bench: Bench, byMs: number): void {
  bench.strike({ kind: 'late', byMs }, HOUR_MS);
}

describe('an exchange that carries everything out and answers late', () => {
  test.each([
    ['from the start', 0],
    ['while the daemon runs', 5000],
  ])('after 1.7 s, %s: no timer of 5 s fires', (_when, wellForMs) => {
    const bench = createBench({ markets: many(20, 5), nonce: 'window' });
    if (wellForMs > 0) bench.start(wellForMs);
    answerLate(bench, 1700);
    if (wellForMs === 0) bench.start(20_000);
    bench.run(60_000);
    expect(bench.book.timers.size).toBe(20);
    expect(bench.book.fired).toEqual([]);
    expect(bench.noticesOf('lapsed')).toEqual([]);
  });

  test('after 3.5 s: no request for a timer of 5 s is given up, and each timer is renewed every 2 s', () => {
    const bench = createBench({ markets: many(20, 5), nonce: 'window' });
    bench.start(15_000);
    answerLate(bench, 3500);
    // The first answers tell how long an answer takes.
    bench.run(15_000);
    const failedBefore = bench.noticesOf('attempt-failed').length;
    bench.run(60_000);
    expect(bench.noticesOf('attempt-failed').length - failedBefore).toBe(0);
    for (const name of ['M0', 'M1', 'M19'])
      expect(Math.max(...gapsOf(bench, name, 30_000))).toBeLessThanOrEqual(2000);
    expect(bench.book.fired).toEqual([]);
  });

  test('after 5 s: requests for a timer of 5 s are spread, and no three of them leave together', () => {
    const bench = createBench({ markets: many(20, 5), nonce: 'window' });
    bench.start(15_000);
    answerLate(bench, 5000);
    bench.run(90_000);
    for (const name of ['M0', 'M1', 'M19'])
      expect(Math.max(...gapsOf(bench, name, 60_000))).toBeLessThanOrEqual(2500);
  });

  test('after 3.5 s: 100 timers of 60 s are renewed before half of their time is gone', () => {
    const bench = createBench({ markets: many(100, 60), nonce: 'window' });
    bench.start(15_000);
    answerLate(bench, 3500);
    bench.run(60_000);
    for (const name of ['M0', 'M1', 'M99', 'M50'])
      expect(Math.max(...gapsOf(bench, name, 15_000))).toBeLessThanOrEqual(30_000);
    expect(bench.book.fired).toEqual([]);
    expect(bench.noticesOf('lapsed')).toEqual([]);
  });

  describe.each(['increasing', 'window'] as const)('from the start, with %s nonces', (nonce) => {
    test.each([1600, 2000, 2900, 4500])(
      'by %i ms: armed within three round trips, and a stop deletes',
      (byMs) => {
        const bench = createBench({ markets: many(2, 30), nonce, shutdown: { budgetMs: 15_000 } });
        answerLate(bench, byMs);
        // In a nonce window a request of an earlier life may undo what is armed until its lifetime is over.
        bench.start((nonce === 'window' ? 10_000 : 0) + 3 * byMs + 100);
        const armed = bench.noticesOf('renewed').flatMap(({ first, market }) => (first ? [market] : []));
        expect(armed.toSorted()).toEqual(['M0', 'M1']);
        bench.stop();
        bench.run(15_000);
        expect(bench.ended()?.left).toEqual([]);
        expect([bench.book.timers.size, bench.book.fired]).toEqual([0, []]);
      },
    );
  });
});
