import type { Cancel, Clock } from '../ports.ts';

/** How much finer the monotonic clock is than the time since boot on Linux, with a margin. */
const BOOT_RESOLUTION_MS = 20;

interface Entry {
  readonly atMs: number;
  readonly fall: () => void;
  readonly cancel: Cancel;
  /** Sets the host's timer for what is left. */
  readonly plan: () => void;
}

export type ExchangeClock = ReturnType<typeof createExchangeClock>;

/**
 * It starts `offsetMs` ahead of the host's wall clock and then does not follow it: an exchange elsewhere would not notice
 * either that somebody sets the clock here, and would go on during a suspend. Where `isManual` it stands still.
 */
export function createExchangeClock(host: Clock, offsetMs: number, isManual: boolean) {
  const start = host.now();
  const waiting = new Set<Entry>();
  let aheadMs = 0;

  /** How much time has passed by the monotonic clock, which timers go by. */
  function passedMs(): number {
    return aheadMs + (isManual ? 0 : host.now().monoMs - start.monoMs);
  }
  /** Of equal moments the one that was asked for first. */
  function nextUntil(untilMs: number): Entry | undefined {
    const due = [...waiting].filter(({ atMs }) => atMs <= untilMs);
    return due.toSorted((one, other) => one.atMs - other.atMs)[0];
  }
  return {
    /** Whole Unix milliseconds. */
    nowMs: (): number => {
      const { monoMs, bootMs } = isManual ? start : host.now();
      const hostMs = Math.max(monoMs - start.monoMs, bootMs - start.bootMs - BOOT_RESOLUTION_MS);
      return Math.floor(start.wallMs + offsetMs + aheadMs + hostMs);
    },
    after(delayMs: number, run: () => void): Cancel {
      let cancelHost: Cancel = () => {};
      const entry: Entry = {
        atMs: passedMs() + Math.max(0, delayMs),
        fall() {
          entry.cancel();
          run();
        },
        cancel() {
          waiting.delete(entry);
          cancelHost();
        },
        plan() {
          cancelHost();
          if (!isManual) cancelHost = host.after(Math.ceil(entry.atMs - passedMs()), entry.fall);
        },
      };
      entry.plan();
      waiting.add(entry);
      return entry.cancel;
    },
    /** Moves it ahead by `ms`; everything that falls due on the way runs in its order, each at its own moment. */
    advance(ms: number): void {
      const targetMs = aheadMs + ms;
      const untilMs = passedMs() + ms;
      for (let next = nextUntil(untilMs); next !== undefined; next = nextUntil(untilMs)) {
        aheadMs = Math.max(aheadMs, Math.min(targetMs, aheadMs + next.atMs - passedMs()));
        next.fall();
      }
      aheadMs = targetMs;
      for (const { plan } of waiting) plan();
    },
    stop(): void {
      for (const { cancel } of waiting) cancel();
    },
  };
}
