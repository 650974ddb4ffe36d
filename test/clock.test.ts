import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { createSystemClock } from '../src/clock.ts';
import { isoTime } from '../src/util/text.ts';

afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

const ASKED = {
  'Date.now': { real: Date.now.bind(Date), spy: () => vi.spyOn(Date, 'now') },
  'os.uptime': { real: os.uptime.bind(os), spy: () => vi.spyOn(os, 'uptime') },
};
type Asked = keyof typeof ASKED;

/** Has it answered otherwise until the test ends. */
function instead(asked: Asked, answer: (real: () => number) => number): void {
  const { real, spy } = ASKED[asked];
  spy().mockImplementation(() => answer(real));
  syncBuiltinESMExports();
}
const block = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

describe('the clock of this host', () => {
  test('reads three clocks that go on together', async () => {
    const clock = createSystemClock();
    const before = clock.now();
    await sleep(150);
    const after = clock.now();
    for (const name of ['monoMs', 'bootMs'] as const) {
      expect(after[name] - before[name]).toBeGreaterThan(120);
      expect(after[name] - before[name]).toBeLessThan(3000);
    }
    // This host's own wall clock may be set meanwhile.
    expect(Math.abs(clock.now().wallMs - Date.now())).toBeLessThan(1000);
  });

  test('shows at once that somebody set the wall clock, and that the others did not move with it', () => {
    const clock = createSystemClock();
    const before = clock.now();
    instead('Date.now', (real) => real() - 3_600_000);
    const after = clock.now();
    expect(after.wallMs - before.wallMs).toBeLessThan(-3_500_000);
    expect(after.monoMs - before.monoMs).toBeGreaterThanOrEqual(0);
    expect(Math.abs(after.bootMs - before.bootMs)).toBeLessThan(3000);
  });

  test.each<Asked>(['Date.now', 'os.uptime'])(
    'a process that is stopped right before it asks %s sees no clock step, and no suspend',
    (asked) => {
      let stops = 0;
      const clock = createSystemClock();
      const before = clock.now();
      // The uptime is asked for anew only after a while.
      block(150);
      instead(asked, (real) => {
        if (stops > 0) block(300);
        stops -= 1;
        return real();
      });
      stops = 1;
      const after = clock.now();
      expect(stops).toBeLessThanOrEqual(0);
      const monoMs = after.monoMs - before.monoMs;
      expect(Math.abs(after.wallMs - before.wallMs - monoMs)).toBeLessThan(100);
      expect(Math.abs(after.bootMs - before.bootMs - monoMs)).toBeLessThan(100);
    },
  );

  test('an uptime in whole seconds, as where /proc is hidden, is no suspend', async () => {
    instead('os.uptime', (real) => Math.floor(real()));
    const clock = createSystemClock();
    const aheadMs: number[] = [];
    for (let look = 0; look < 12; look += 1) {
      const { bootMs, monoMs } = clock.now();
      aheadMs.push(bootMs - monoMs);
      await sleep(110);
    }
    // What runs ahead of the monotonic clock is taken for a suspend: it must not, by any look.
    const rises = aheadMs.slice(1).map((ahead, index) => ahead - (aheadMs[index] ?? 0));
    expect(Math.max(...rises)).toBeLessThan(30);
  });

  test('an uptime that is a whole second by chance is known as exactly as any other', () => {
    const real = os.uptime();
    let looks = 0;
    instead('os.uptime', (read) => (looks++ === 0 ? Math.floor(read()) : read()));
    const { bootMs } = createSystemClock().now();
    expect(Math.abs(bootMs - real * 1000)).toBeLessThan(100);
  });

  test('calls once, not in the call itself, not before its time, and not what was cancelled', async () => {
    const clock = createSystemClock();
    const begunMs = clock.now().monoMs;
    const calls: [string, number][] = [];
    const call = (name: string) => () => void calls.push([name, clock.now().monoMs - begunMs]);
    clock.after(40, call('later'));
    clock.after(-5, call('now'));
    const cancel = clock.after(20, call('cancelled'));
    cancel();
    cancel();
    expect(calls).toEqual([]);
    await sleep(200);
    expect(calls.map(([name]) => name)).toEqual(['now', 'later']);
    // Timers of a host fire up to a millisecond early.
    expect(calls[1]?.[1]).toBeGreaterThanOrEqual(38.5);
  });
});

test('a moment reads as ISO 8601 in UTC', () => {
  expect(isoTime(1_700_000_000_123)).toBe('2023-11-14T22:13:20.123Z');
});
