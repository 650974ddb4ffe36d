import type { Clock } from '../ports.ts';

/** How much finer the monotonic clock is than the time since boot on Linux, with a margin. */
const BOOT_RESOLUTION_MS = 20;

/**
 * The exchange's own clock in whole Unix milliseconds. It starts at the host's wall clock and from then on does not
 * follow it: an exchange on another machine would not notice either that somebody sets the clock here, and would go
 * on during a suspend of this host. `offsetMs` is how far it is ahead of the wall clock at the start.
 */
export function createExchangeClock(clock: Clock, offsetMs: number): () => number {
  const start = clock.now();
  return () => {
    const now = clock.now();
    const runMs = now.monoMs - start.monoMs;
    const passedMs = Math.max(runMs, now.bootMs - start.bootMs - BOOT_RESOLUTION_MS);
    return Math.floor(start.wallMs + offsetMs + passedMs);
  };
}

const FORMAT = new Intl.DateTimeFormat('en-US', {
  timeZone: 'UTC',
  hourCycle: 'h23',
  weekday: 'short',
  day: '2-digit',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
});

/** Makes values of the HTTP `Date` header (RFC 9110 5.6.7) from Unix milliseconds; one formatting per second. */
export function createHttpDate(): (nowMs: number) => string {
  let second = Number.NaN;
  let text = '';
  return (nowMs) => {
    const current = Math.floor(nowMs / 1000);
    if (current !== second) {
      second = current;
      const parts = Object.fromEntries(FORMAT.formatToParts(nowMs).map(({ type, value }) => [type, value]));
      const { weekday, day, month, year, hour, minute } = parts;
      text = `${weekday}, ${day} ${month} ${year} ${hour}:${minute}:${parts['second']} GMT`;
    }
    return text;
  };
}
