import { uptime } from 'node:os';
import type { Clock } from './ports.ts';

/** The real clock of this host. The only place that reads time or starts timers. */
export function createSystemClock(): Clock {
  return {
    now: () => ({ monoMs: performance.now(), bootMs: uptime() * 1000, wallMs: Date.now() }),
    after(delayMs, run) {
      const timer = setTimeout(run, Math.max(0, delayMs));
      return () => clearTimeout(timer);
    },
  };
}
