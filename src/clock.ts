import { uptime } from 'node:os';
import type { Clock } from './ports.ts';

/** Asking the kernel for the uptime costs as much as a request's signature: once in this long is enough. */
const UPTIME_AGE_MS = 100;
/** The wall clock moving against the monotonic one by more than this is a reason to look at once. */
const SUSPICIOUS_MS = 20;

/** The real clock of this host. The only place that reads time or starts timers. */
export function createSystemClock(): Clock {
  let readAtMs = Number.NEGATIVE_INFINITY;
  let bootAheadMs = 0;
  let wallAheadMs = 0;
  return {
    now() {
      const monoMs = performance.now();
      const wallMs = Date.now();
      const moved = Math.abs(wallMs - monoMs - wallAheadMs) > SUSPICIOUS_MS;
      if (moved || monoMs - readAtMs > UPTIME_AGE_MS) {
        readAtMs = monoMs;
        wallAheadMs = wallMs - monoMs;
        bootAheadMs = uptime() * 1000 - monoMs;
      }
      return { monoMs, bootMs: monoMs + bootAheadMs, wallMs };
    },
    after(delayMs, run) {
      const timer = setTimeout(run, Math.max(0, delayMs));
      return () => clearTimeout(timer);
    },
  };
}

/** A moment in Unix milliseconds as ISO 8601, UTC. */
export function isoTime(wallMs: number): string {
  return new Date(wallMs).toISOString();
}
