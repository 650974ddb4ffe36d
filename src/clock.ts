import { uptime } from 'node:os';
import type { Clock } from './ports.ts';

/** Asking the kernel for the uptime costs as much as a request's signature: once in this long is enough. */
const UPTIME_AGE_MS = 100;
/** The wall clock moving against the monotonic one by more than this is a reason to look at once. */
const SUSPICIOUS_MS = 20;
/** The last of so many readings counts, also where all were slow. */
const MOST_READINGS = 5;

/**
 * The kernel tells the uptime in hundredths of a second; where `/proc/uptime` is hidden, Node falls back to whole ones.
 * One reading in a hundred is whole by chance: a second one, two hundredths later, tells.
 */
function uptimeResolutionMs(): number {
  if (!Number.isInteger(uptime())) return 10;
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 25);
  return Number.isInteger(uptime()) ? 1000 : 10;
}

/** Reads all clocks at one moment: a process that was stopped in between would see a step of a clock. */
function readTogether() {
  for (let left = MOST_READINGS; ; left -= 1) {
    const monoMs = performance.now();
    const read = { monoMs, wallMs: Date.now(), leastAheadMs: uptime() * 1000 - monoMs };
    if (performance.now() - monoMs <= SUSPICIOUS_MS || left === 1) return read;
  }
}

/** The real clock of this host. The only place that reads time or starts timers. */
export function createSystemClock(): Clock {
  const resolutionMs = uptimeResolutionMs();
  let readAtMs = Number.NEGATIVE_INFINITY;
  let bootAheadMs = Number.POSITIVE_INFINITY;
  let wallAheadMs = 0;
  return {
    now() {
      let monoMs = performance.now();
      let wallMs = Date.now();
      const moved = Math.abs(wallMs - monoMs - wallAheadMs) > SUSPICIOUS_MS;
      if (moved || monoMs - readAtMs > UPTIME_AGE_MS) {
        const read = readTogether();
        ({ monoMs, wallMs } = read);
        readAtMs = monoMs;
        wallAheadMs = wallMs - monoMs;
        // The uptime may be later than it says by its resolution: what lies within that is no sign of a suspend.
        bootAheadMs = Math.min(Math.max(bootAheadMs, read.leastAheadMs), read.leastAheadMs + resolutionMs);
      }
      return { monoMs, bootMs: monoMs + bootAheadMs, wallMs };
    },
    after(delayMs, run) {
      const timer = setTimeout(run, Math.max(0, delayMs));
      return () => clearTimeout(timer);
    },
  };
}
