import { describe, expect, test } from 'vitest';
import { BAD_KEY, HTTP_500, NO_MARKET, STALE_NONCE } from '../core/driver.ts';
import { createBench, type Fate, gapsOf, started } from './bench.ts';

const HOUR_MS = 3_600_000;
const markets = ['SICK:10', 'AAA:10', 'BBB:10', 'CCC:10', 'DDD:10'];
const well = ['AAA', 'BBB', 'CCC', 'DDD'];
/** Longest that a request waits for the answer to the one before it, and a wake-up or two. */
const PATIENCE_MS = 130 + 26 + 100;

describe.each([
  ['increasing', 64],
  ['window', 64],
  ['window', 2],
] as const)('with %s nonces and %i connections', (nonce, connections) => {
  const fates: readonly [string, Fate][] = [
    ['hangs', { kind: 'lost' }],
    ['hangs after it was carried out', { kind: 'lost', applied: true }],
    ['is answered only after two seconds', { kind: 'slow', byMs: 2000 }],
    ['always gets a server error', { kind: 'fails', outcome: HTTP_500 }],
    ['is refused', { kind: 'fails', outcome: NO_MARKET }],
  ];
  test.each(fates)(
    'a market that %s for ever delays no other by more than the patience of a lane',
    (_what, fate) => {
      const bench = started({ markets, nonce, connections }, 5000);
      bench.strike(fate, HOUR_MS, 'SICK');
      bench.run(120_000);
      for (const market of well) {
        expect(Math.max(...gapsOf(bench, market, 4000))).toBeLessThanOrEqual(1000 + PATIENCE_MS);
        expect(bench.book.firedOf(market)).toEqual([]);
      }
      expect(bench.noticesOf('outage-began')).toEqual([]);
    },
  );

  const WORDS = [
    ['that are never answered', [{ kind: 'lost' }]],
    ['that answer after 1 s', [{ kind: 'late', byMs: 1000 }]],
    ['that answer after 0.6 s', [{ kind: 'late', byMs: 600 }]],
    ['whose nonces are called stale', [{ kind: 'fails', outcome: STALE_NONCE }]],
    ['for which the key is refused', [{ kind: 'fails', outcome: BAD_KEY }]],
    ['that fail in many ways', [{ kind: 'lost', applied: true }, ...fates.map(([, fate]) => fate)]],
  ] as const satisfies readonly (readonly [string, readonly Fate[]])[];
  test.each(WORDS)('fifteen sick markets %s leave a healthy timer of 5 s its cadence', (_what, troubles) => {
    const sick = Array.from({ length: 15 }, (_, index) => `SICK${index}`);
    const bench = createBench({
      markets: [...sick.map((name) => `${name}:5`), 'WELL:5'],
      nonce,
      connections,
    });
    bench.start(15_000);
    for (const [index, name] of sick.entries())
      bench.strike(troubles[index % troubles.length] ?? troubles[0], HOUR_MS, name);
    bench.run(60_000);
    expect(Math.max(...gapsOf(bench, 'WELL', 14_000))).toBeLessThanOrEqual(2500);
    expect(bench.book.firedOf('WELL')).toEqual([]);
  });

  test.each(['slow', 'late'] as const)(
    'two sick timers of 5 s (%s by 1 s) cost healthy ones no third of their slack',
    (kind) => {
      const bench = createBench({
        markets: ['SICK0:5', 'SICK1:5', 'TEN:10', 'SIXTY:60'],
        nonce,
        connections,
      });
      bench.start(15_000);
      bench.strike({ kind, byMs: 1000 }, HOUR_MS, 'SICK0', 'SICK1');
      bench.run(120_000);
      for (const [market, timeoutMs] of [
        ['TEN', 10_000],
        ['SIXTY', 60_000],
      ] as const)
        expect(Math.max(...gapsOf(bench, market, 14_000))).toBeLessThanOrEqual(
          timeoutMs / 10 + (timeoutMs - 1000) / 3,
        );
    },
  );

  test('a market that hung is armed again within a second of being well', () => {
    const bench = started({ markets, nonce, connections }, 5000);
    bench.strike({ kind: 'lost' }, 30_000, 'SICK');
    bench.run(31_000);
    expect(bench.book.timers.has('SICK')).toBe(true);
    expect(bench.noticesOf('lapsed').map(({ market }) => market)).toEqual(['SICK']);
    bench.run(60_000);
    expect(bench.noticesOf('lapsed')).toHaveLength(1);
    expect(bench.book.firedOf('SICK')).toHaveLength(1);
  });
});

test('a slow market that still answers is never given up: its answers come before its deadline', () => {
  const bench = started({ markets: ['SICK:60', 'AAA:60'], nonce: 'window' }, 5000);
  bench.strike({ kind: 'slow', byMs: 2500 }, HOUR_MS, 'SICK');
  bench.run(120_000);
  expect(bench.noticesOf('attempt-failed')).toEqual([]);
  expect(bench.writesOf('SICK', 10_000).length).toBeLessThanOrEqual(22);
});

test('pings that hang delay no renewal', () => {
  const bench = createBench({ markets });
  bench.pingsFail(() => true);
  bench.start(60_000);
  for (const market of well) expect(Math.max(...gapsOf(bench, market, 3000))).toBeLessThanOrEqual(1030);
  expect(bench.pings.length).toBeGreaterThan(50);
});

test('a request that overtakes another is refused as stale, and the one that was overtaken costs nothing', () => {
  const bench = started({ markets: ['SICK:30', 'AAA:30', 'BBB:30'] }, 5000);
  // It arrives, but after the patience of its lane: the next request has arrived before it.
  bench.strike({ kind: 'slow', byMs: 700 }, 20_000, 'SICK');
  bench.run(60_000);
  expect(bench.book.fired).toEqual([]);
  expect(bench.noticesOf('overdue')).toEqual([]);
});
