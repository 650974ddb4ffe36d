import { describe, expect, test } from 'vitest';
import { many } from '../core/core-settings.ts';
import { type Bench, createBench, gapsOf } from './bench.ts';

const HOUR_MS = 3_600_000;

/** From now on the exchange carries out at once and answers this much later. */
function answerLate(bench: Bench, byMs: number): void {
  bench.strike({ kind: 'late', byMs }, HOUR_MS);
}

describe('an exchange that carries everything out and answers late', () => {
  test.each([
    ['1.7 s, from the start: no timer of 5 s fires', 20, 5, 1700, 0, 5000],
    ['1.7 s, while the daemon runs: no timer of 5 s fires', 20, 5, 1700, 5000, 5000],
    ['3.5 s: each timer of 5 s is renewed every 2 s', 20, 5, 3500, 15_000, 2000],
    [
      '3.5 s: 100 timers of 60 s are renewed before half of their time is gone',
      100,
      60,
      3500,
      15_000,
      30_000,
    ],
  ])('after %s', (_what, count, timeoutSeconds, byMs, wellForMs, gapMs) => {
    const bench = createBench({ markets: many(count, timeoutSeconds), nonce: 'window' });
    if (wellForMs > 0) bench.start(wellForMs);
    answerLate(bench, byMs);
    if (wellForMs === 0) bench.start(0);
    // The first answers tell how long an answer takes.
    bench.run(20_000);
    const failedBefore = bench.noticesOf('attempt-failed').length;
    bench.run(60_000);
    expect(bench.noticesOf('attempt-failed').length).toBe(failedBefore);
    for (const name of ['M0', 'M1', `M${count - 1}`])
      expect(Math.max(...gapsOf(bench, name, wellForMs + 15_000))).toBeLessThanOrEqual(gapMs);
    expect(bench.book.timers.size).toBe(count);
    expect([bench.book.fired, bench.noticesOf('lapsed')]).toEqual([[], []]);
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
