import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { createSystemClock } from '../src/clock.ts';
import { isoTime } from '../src/util/text.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

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
    const real = Date.now.bind(Date);
    vi.spyOn(Date, 'now').mockImplementation(() => real() - 3_600_000);
    const after = clock.now();
    expect(after.wallMs - before.wallMs).toBeLessThan(-3_500_000);
    expect(after.monoMs - before.monoMs).toBeGreaterThanOrEqual(0);
    expect(Math.abs(after.bootMs - before.bootMs)).toBeLessThan(3000);
  });

  test.each(['Date.now', 'os.uptime'] as const)(
    'a process that is stopped right before it asks %s sees no clock step, and no suspend',
    (asked) => {
      let stops = 0;
      const pauseOnce = <T>(read: () => T): T => {
        if (stops > 0) {
          stops -= 1;
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
        }
        return read();
      };
      const clock = createSystemClock();
      const before = clock.now();
      // The uptime is asked for anew only after a while.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150);
      const [now, up] = [Date.now.bind(Date), os.uptime.bind(os)];
      const spy =
        asked === 'Date.now'
          ? vi.spyOn(Date, 'now').mockImplementation(() => pauseOnce(now))
          : vi.spyOn(os, 'uptime').mockImplementation(() => pauseOnce(up));
      syncBuiltinESMExports();
      try {
        stops = 1;
        const after = clock.now();
        expect(stops).toBe(0);
        const monoMs = after.monoMs - before.monoMs;
        expect(Math.abs(after.wallMs - before.wallMs - monoMs)).toBeLessThan(100);
        expect(Math.abs(after.bootMs - before.bootMs - monoMs)).toBeLessThan(100);
      } finally {
        spy.mockRestore();
        syncBuiltinESMExports();
      }
    },
  );

  test('an uptime in whole seconds, as where /proc is hidden, is no suspend', async () => {
    const real = os.uptime.bind(os);
    const spy = vi.spyOn(os, 'uptime').mockImplementation(() => Math.floor(real()));
    syncBuiltinESMExports();
    try {
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
    } finally {
      spy.mockRestore();
      syncBuiltinESMExports();
    }
  });

  test('an uptime that is a whole second by chance is known as exactly as any other', () => {
    const real = os.uptime.bind(os);
    let whole = true;
    const spy = vi.spyOn(os, 'uptime').mockImplementation(() => {
      const seconds = whole ? Math.floor(real()) : real();
      whole = false;
      return seconds;
    });
    syncBuiltinESMExports();
    try {
      const { bootMs } = createSystemClock().now();
      expect(Math.abs(bootMs - real() * 1000)).toBeLessThan(100);
    } finally {
      spy.mockRestore();
      syncBuiltinESMExports();
    }
  });

  test('calls once, not in the call itself and not before its time', async () => {
    const clock = createSystemClock();
    const begunMs = clock.now().monoMs;
    const calls: number[] = [];
    clock.after(40, () => calls.push(clock.now().monoMs));
    clock.after(-5, () => calls.push(clock.now().monoMs));
    expect(calls).toEqual([]);
    await sleep(200);
    expect(calls).toHaveLength(2);
    // Timers of a host fire up to a millisecond early.
    expect((calls[1] ?? 0) - begunMs).toBeGreaterThanOrEqual(38.5);
  });

  test('does not call what was cancelled, and cancelling again does nothing', async () => {
    const clock = createSystemClock();
    const calls: string[] = [];
    const cancel = clock.after(20, () => calls.push('cancelled'));
    clock.after(20, () => calls.push('kept'));
    cancel();
    cancel();
    await sleep(100);
    expect(calls).toEqual(['kept']);
  });
});

test('a moment reads as ISO 8601 in UTC', () => {
  expect(isoTime(1_700_000_000_123)).toBe('2023-11-14T22:13:20.123Z');
});
