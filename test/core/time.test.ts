import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Instant, lifeAt, lifeMs, observeClocks, startTimebase } from '../../src/core/time.ts';

const START: Instant = { monoMs: 1000, bootMs: 70_000, wallMs: 1_700_000_000_000 };
const HOUR_MS = 3_600_000;

/** Clocks that were read together for the first time at `START`. */
function clocks() {
  const timebase = startTimebase(START);
  let now = START;
  return {
    timebase,
    /** By how much each clock moves on before it is read again; what is not given follows the monotonic one. */
    read(by: { monoMs?: number; bootMs?: number; wallMs?: number }) {
      const { monoMs = 0, bootMs = monoMs, wallMs = monoMs } = by;
      now = { monoMs: now.monoMs + monoMs, bootMs: now.bootMs + bootMs, wallMs: now.wallMs + wallMs };
      return observeClocks(timebase, now);
    },
    /** What a moment that lies `agoMs` back counts as, since `START`. */
    saidAgo: (agoMs: number) => lifeAt(timebase, now.monoMs - agoMs).lifeMs - START.monoMs,
    agedMs: () => lifeMs(timebase, now) - START.monoMs,
  };
}

test.each([
  ['back meanwhile is said to have done both', -HOUR_MS, 60_000],
  ['ahead meanwhile may have aged by all of it', HOUR_MS, 60_000 + HOUR_MS],
])('a host that slept and whose clock was set %s', (_what, byMs, agedMs) => {
  const host = clocks();
  expect(host.read({ bootMs: 60_000, wallMs: 60_000 + byMs })).toEqual([
    { what: 'suspend', byMs: 60_000 },
    { what: 'clock-step', byMs },
  ]);
  expect(host.agedMs()).toBe(agedMs);
  expect(host.timebase.sleptMs).toBe(60_000);
});

describe('a wall clock that is set', () => {
  test.each([
    [{ wallMs: 250 }, []],
    [{ wallMs: 251 }, [{ what: 'clock-step', byMs: 251 }]],
    [{ wallMs: -250 }, []],
    [{ wallMs: -251 }, [{ what: 'clock-step', byMs: -251 }]],
    [{ bootMs: 250 }, []],
    [{ bootMs: 251, wallMs: 251 }, [{ what: 'suspend', byMs: 251 }]],
  ])('by up to 250 ms is noise, by more it is a step: %j', (by, said) => {
    expect(clocks().read(by)).toEqual(said);
  });

  test('in steps too small to be seen one by one is noticed as soon as they add up', () => {
    const host = clocks();
    const noticed = Array.from({ length: 4 }, () => host.read({ monoMs: 100, wallMs: 200 }).length);
    expect(noticed).toEqual([0, 0, 1, 0]);
    expect(host.agedMs()).toBeGreaterThan(600);
  });
});

test.each([500, -500])('a clock that NTP slews by %i ppm for hours is followed in silence', (ppm) => {
  const host = clocks();
  const seconds = Array.from({ length: 3 * 3600 }, () =>
    host.read({ monoMs: 1000, wallMs: 1000 + ppm / 1000 }),
  );
  expect(seconds.flat()).toEqual([]);
  expect(host.agedMs()).toBe(3 * HOUR_MS);
});

test('whatever the clocks do, no age ever shrinks or falls more than the noise behind any of them', () => {
  const move = fc.record({
    monoMs: fc.integer({ min: 0, max: 100_000 }),
    sleptMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 100_000 })),
    steppedMs: fc.oneof(fc.constant(0), fc.integer({ min: -5_000_000, max: 5_000_000 })),
  });
  fc.assert(
    fc.property(fc.array(move, { maxLength: 30 }), (moves) => {
      const host = clocks();
      for (const { monoMs, sleptMs, steppedMs } of moves) {
        const before = host.agedMs();
        host.read({ monoMs, bootMs: monoMs + sleptMs, wallMs: monoMs + sleptMs + steppedMs });
        const agedMs = host.agedMs() - before;
        expect(agedMs).toBeGreaterThanOrEqual(monoMs - 1e-6);
        // Up to 250 ms may be pending from before, in either direction, on either clock.
        expect(agedMs).toBeGreaterThanOrEqual(monoMs + sleptMs - 500 - monoMs * 500e-6);
        expect(agedMs).toBeGreaterThanOrEqual(monoMs + sleptMs + steppedMs - 500 - monoMs * 500e-6);
        expect(agedMs).toBeLessThanOrEqual(monoMs + sleptMs + Math.max(0, steppedMs) + 500);
      }
    }),
    { numRuns: 300 },
  );
});

test('what was said before a jump counts as from before it, and no more than eight jumps are remembered', () => {
  const host = clocks();
  for (let jump = 0; jump < 100; jump += 1) host.read({ monoMs: 1000, bootMs: 2000, wallMs: 2000 });
  expect(host.timebase.jumps).toHaveLength(8);
  expect(host.saidAgo(7500)).toBe(100_000 - 7500 + 92_000);
});
