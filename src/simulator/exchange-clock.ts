import type { Cancel, Clock } from '../ports.ts';

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

/** Follows `host`, or stands still where `isManual`, and is moved ahead on top of that. */
export function createSteeredClock(host: Clock, isManual: boolean) {
  interface Entry {
    readonly atMs: number;
    readonly fall: () => void;
    readonly cancel: Cancel;
  }
  const start = host.now();
  const waiting = new Set<Entry>();
  let aheadMs = 0;

  function now() {
    const { monoMs, bootMs, wallMs } = isManual ? start : host.now();
    return { monoMs: monoMs + aheadMs, bootMs: bootMs + aheadMs, wallMs: wallMs + aheadMs };
  }
  /** Of equal moments the one that was asked for first. */
  function nextUntil(untilMs: number): Entry | undefined {
    const due = [...waiting].filter(({ atMs }) => atMs <= untilMs);
    return due.toSorted((one, other) => one.atMs - other.atMs)[0];
  }
  return {
    now,
    after(delayMs: number, run: () => void): Cancel {
      const entry: Entry = {
        atMs: now().monoMs + Math.max(0, delayMs),
        fall() {
          entry.cancel();
          run();
        },
        cancel() {
          waiting.delete(entry);
          cancelHost();
        },
      };
      const cancelHost = isManual ? () => {} : host.after(delayMs, entry.fall);
      waiting.add(entry);
      return entry.cancel;
    },
    /** Moves it ahead by `ms`; everything that falls due on the way runs in its order, each at its own moment. */
    advance(ms: number): void {
      const targetMs = aheadMs + ms;
      const untilMs = now().monoMs + ms;
      for (let next = nextUntil(untilMs); next !== undefined; next = nextUntil(untilMs)) {
        aheadMs = Math.max(aheadMs, Math.min(targetMs, aheadMs + next.atMs - now().monoMs));
        next.fall();
      }
      aheadMs = targetMs;
    },
    /** Forgets everything that waits. */
    stop(): void {
      for (const { cancel } of waiting) cancel();
    },
  };
}
