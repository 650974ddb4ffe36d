import type { Instant } from '../../src/core/time.ts';
import type { Cancel } from '../../src/ports.ts';

interface Entry {
  readonly atMs: number;
  run: (() => void) | null;
}

export type Timeline = ReturnType<typeof createTimeline>;

/**
 * The one timeline of a simulated world, in true milliseconds. Things happen in the order of their time, and at the
 * same time in the order in which they were planned; nothing else moves time.
 */
export function createTimeline(startMs = 0) {
  /** What is planned, the next one last. */
  const agenda: Entry[] = [];
  let nowMs = startMs;

  /** Lets the next thing happen; false where none is planned. */
  function next(): boolean {
    const entry = agenda.pop();
    if (entry === undefined) return false;
    nowMs = entry.atMs;
    entry.run?.();
    return true;
  }
  return {
    nowMs: () => nowMs,
    /** Plans `run` for a true moment, not before the present. */
    at(trueMs: number, run: () => void): Cancel {
      const entry: Entry = { atMs: Math.max(trueMs, nowMs), run };
      let low = 0;
      for (let high = agenda.length; low < high; ) {
        const middle = (low + high) >> 1;
        if ((agenda[middle]?.atMs ?? 0) > entry.atMs) low = middle + 1;
        else high = middle;
      }
      agenda.splice(low, 0, entry);
      return () => {
        entry.run = null;
      };
    },
    next,
    /** Lets everything up to and including `trueMs` happen, and then is there. */
    runUntil(trueMs: number): void {
      for (let due = agenda.at(-1); due !== undefined && due.atMs <= trueMs; due = agenda.at(-1)) next();
      nowMs = Math.max(nowMs, trueMs);
    },
  };
}

/** What the monotonic clock of a host shows when it is made. */
export const BOOT_MS = 1000;

export type HostClock = ReturnType<typeof createHostClock>;

/**
 * A host's clocks on the timeline, with everything that can go wrong with them. `driftPpm`: how much faster than true
 * time they run. `wallMs`: what its wall clock shows at first.
 */
export function createHostClock(
  timeline: Timeline,
  options: { readonly driftPpm?: number; readonly wallMs?: number } = {},
) {
  const rate = 1 + (options.driftPpm ?? 0) * 1e-6;
  const originMs = timeline.nowMs();
  let sleptMs = 0;
  let wallMs = options.wallMs ?? originMs;
  let stalledUntilMs = originMs;
  let asleepUntilMs = originMs;
  let dead = false;

  const sinceOriginMs = () => (timeline.nowMs() - originMs) * rate;
  const now = (): Instant => ({
    monoMs: BOOT_MS + sinceOriginMs() - sleptMs,
    bootMs: BOOT_MS + sinceOriginMs(),
    wallMs: wallMs + sinceOriginMs(),
  });

  const whenRunning = createQueue(timeline, () => (dead ? Number.POSITIVE_INFINITY : stalledUntilMs));
  return {
    now,
    after(delayMs: number, run: () => void): Cancel {
      let cancelled = false;
      // As the timers of Node do: whole milliseconds, rounded down, at least one.
      const cancel = timeline.at(timeline.nowMs() + Math.max(1, Math.floor(delayMs)) / rate, () => {
        whenRunning(() => {
          if (!cancelled) run();
        });
      });
      return () => {
        cancelled = true;
        cancel();
      };
    },
    /** Sets the wall clock ahead (or back, if negative), as NTP or an operator does. */
    stepWall(byMs: number): void {
      wallMs += byMs;
    },
    /** Nothing of this host runs for `forMs`; its clocks go on. What came due meanwhile runs afterwards. */
    stall(forMs: number): void {
      stalledUntilMs = Math.max(stalledUntilMs, timeline.nowMs() + forMs);
    },
    /** Like a stall, but the monotonic clock stands still: the host slept. */
    suspend(forMs: number): void {
      const fromMs = Math.max(timeline.nowMs(), asleepUntilMs);
      const untilMs = timeline.nowMs() + forMs;
      if (untilMs <= fromMs) return;
      asleepUntilMs = untilMs;
      stalledUntilMs = Math.max(stalledUntilMs, untilMs);
      timeline.at(untilMs, () => {
        sleptMs += (untilMs - fromMs) * rate;
      });
    },
    /** Nothing of this host ever runs again. */
    kill(): void {
      dead = true;
    },
    isStalled: () => timeline.nowMs() < stalledUntilMs,
    /** Runs when the host does: at once, or after the stall that it is in. */
    whenRunning,
  };
}

/** Runs what is asked of a host in the order of asking, however often its stall grows longer. */
function createQueue(timeline: Timeline, runsFromMs: () => number) {
  const waiting: (() => void)[] = [];
  function catchUp(): void {
    while (waiting.length > 0 && timeline.nowMs() >= runsFromMs()) {
      // It stays in its place while it runs: what it asks for comes after what waits already.
      waiting[0]?.();
      waiting.shift();
    }
    if (waiting.length > 0 && runsFromMs() < Number.POSITIVE_INFINITY) timeline.at(runsFromMs(), catchUp);
  }
  return (run: () => void): void => {
    const fromMs = runsFromMs();
    if (fromMs === Number.POSITIVE_INFINITY) return;
    if (timeline.nowMs() >= fromMs && waiting.length === 0) run();
    else if (waiting.push(run) === 1) timeline.at(fromMs, catchUp);
  };
}
