import { describe, expect, test } from 'vitest';
import { createBench, started, TWO_ADDRESSES } from './bench.ts';

describe.each(['increasing', 'window'] as const)(
  'with %s nonces, two addresses of which the first hangs',
  (nonce) => {
    test.each([1, 2])('cost no timer of %i market(s), and no delete of a stop', (count) => {
      const bench = started({ markets: ['AAA', 'BBB'].slice(0, count), nonce, ...TWO_ADDRESSES }, 20_000);
      bench.rules.push(({ base }) => (base === 0 ? { kind: 'lost' } : null));
      bench.pingsFail((base) => base === 0);
      bench.run(120_000);
      expect(bench.book.fired).toEqual([]);
      bench.stop('delete');
      bench.run(9000);
      expect(bench.book.timers.size).toBe(0);
    });
  },
);

describe('a timer that fired while it was wanted is reported, although its bot is silent when that is found out', () => {
  function guarded(timeoutSeconds: number, beatsForMs: number) {
    const bench = createBench({ markets: [`AAA:${timeoutSeconds}`], liveness: { mode: 'beat' } });
    bench.keeper.start();
    bench.beats(beatsForMs);
    bench.run(20_000);
    return bench;
  }

  test.each(['suspend', 'stall'] as const)('after a %s', (what) => {
    const bench = guarded(10, 300_000);
    bench.clock[what](60_000);
    bench.run(80_000);
    expect(bench.book.fired).toHaveLength(1);
    expect(bench.noticesOf('lapsed')).toHaveLength(1);
  });

  test('in an outage at whose end the bot fell silent for a moment', () => {
    const bench = guarded(60, 100_000);
    bench.strike({ kind: 'lost' }, 125_000);
    bench.run(100_000);
    bench.beats(200_000);
    bench.run(60_000);
    expect(bench.noticesOf('lapsed')).toHaveLength(1);
  });
});

test.each(['increasing', 'window'] as const)(
  'a handoff leaves a timer although a delete was on its way when it began, with %s nonces',
  (nonce) => {
    const bench = started({ markets: ['AAA:60'], roundTripMs: 200, nonce }, 10_500);
    for (const does of ['disarm', 'arm'] as const) {
      void bench.keeper.operate({ does, markets: null, forMs: 0 }, 0);
      bench.run(50);
    }
    bench.stop('handoff');
    bench.run(10_000);
    expect(bench.book.timers.size).toBe(1);
  },
);

describe('a wall clock that is set', () => {
  const markets = ['AAA:60', 'BBB:60', 'CCC:60', 'DDD:60'];

  test('ahead while the exchange is silent claims no lapse, nor that anything is overdue', () => {
    const bench = started({ markets }, 30_500);
    bench.strike({ kind: 'lost' }, 20_000);
    bench.clock.stepWall(3_600_000);
    bench.run(30_000);
    expect([bench.noticesOf('lapsed'), bench.noticesOf('overdue'), bench.book.fired]).toEqual([[], [], []]);
  });

  test('to and fro every second makes no storm', () => {
    const bench = started({ markets }, 10_500);
    for (let second = 1; second <= 30; second += 1)
      bench.at(10_500 + 1000 * second, () => bench.clock.stepWall(second % 2 === 0 ? 5000 : -5000));
    bench.run(31_000);
    expect(bench.writes.filter(({ atMs }) => atMs >= 10_500).length).toBeLessThanOrEqual(15 * 4 + 20);
    expect(bench.book.fired).toEqual([]);
  });
});
