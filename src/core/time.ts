/**
 * The three clocks of a host, read together. All in milliseconds.
 *
 * - `monoMs`: monotonic; stands still while the host is suspended, never steps.
 * - `bootMs`: time since boot; goes on during suspend (10 ms resolution on Linux).
 * - `wallMs`: Unix time; steps when somebody or NTP sets the clock.
 */
export interface Instant {
  readonly monoMs: number;
  readonly bootMs: number;
  readonly wallMs: number;
}

/**
 * What the clocks said together so far. `lifeMs` is the time that a timer or a piece of evidence may have aged by:
 * monotonic time plus every stretch by which the other two clocks ran ahead of it (suspend, forward step). It
 * over-estimates on purpose: one renewal too early costs nothing, one too late costs the book.
 */
export interface Timebase {
  lifeOffsetMs: number;
  /** The part of it that is suspend, which no setting of the wall clock can bring about. */
  sleptMs: number;
  bootAheadMs: number;
  wallAheadMs: number;
  lastMonoMs: number;
  /** The newest jumps, oldest first: when each was noticed, and what the offsets were before it. */
  readonly jumps: {
    readonly noticedMonoMs: number;
    readonly lifeOffsetMs: number;
    readonly sleptMs: number;
  }[];
}

/** A suspend of the host, or a step of its wall clock: `byMs` is negative where that was set back. */
export interface Jump {
  readonly what: 'suspend' | 'clock-step';
  readonly byMs: number;
}

/** Below this the difference between two clocks is reading noise or slewing, not a jump. */
const JUMP_MS = 250;
/** Evidence is never dated further back than so many jumps. */
const JUMPS_KEPT = 8;
/** NTP slews a clock by at most 500 ppm; that much drift between two readings is followed silently. */
const SLEW = 500e-6;

export function startTimebase(now: Instant): Timebase {
  return {
    lifeOffsetMs: 0,
    sleptMs: 0,
    bootAheadMs: now.bootMs - now.monoMs,
    wallAheadMs: now.wallMs - now.monoMs,
    lastMonoMs: now.monoMs,
    jumps: [],
  };
}

/** The time that counts for the age of beliefs and evidence, in milliseconds; runs ahead of `monoMs`, never behind. */
export function lifeMs(timebase: Timebase, now: Instant): number {
  return now.monoMs + timebase.lifeOffsetMs;
}

/**
 * The life time and the awake time at a monotonic moment that has passed. A jump may have happened at any time before it
 * was noticed, so that an earlier moment counts as one before the jump.
 */
export function lifeAt(
  timebase: Timebase,
  monoMs: number,
): { readonly lifeMs: number; readonly awakeMs: number } {
  const then = timebase.jumps.find(({ noticedMonoMs }) => noticedMonoMs > monoMs) ?? timebase;
  return { lifeMs: monoMs + then.lifeOffsetMs, awakeMs: monoMs + then.sleptMs };
}

/** Takes a reading in, moves the life time ahead where another clock ran ahead, and says which jumps it saw. */
export function observeClocks(timebase: Timebase, now: Instant): Jump[] {
  const jumps: Jump[] = [];
  const slewMs = Math.max(0, now.monoMs - timebase.lastMonoMs) * SLEW;
  timebase.lastMonoMs = Math.max(timebase.lastMonoMs, now.monoMs);

  const bootBy = now.bootMs - now.monoMs - timebase.bootAheadMs;
  const wallBy = now.wallMs - now.monoMs - timebase.wallAheadMs;
  const slept = bootBy > JUMP_MS ? bootBy : 0;
  const stepped = Math.abs(wallBy) > JUMP_MS ? wallBy : 0;

  timebase.bootAheadMs += slept > 0 ? bootBy : clamp(bootBy, -slewMs, slewMs);
  timebase.wallAheadMs += stepped === 0 ? clamp(wallBy, -slewMs, slewMs) : wallBy;
  if (slept > 0 || stepped > 0) {
    const { lifeOffsetMs, sleptMs } = timebase;
    timebase.jumps.push({ noticedMonoMs: now.monoMs, lifeOffsetMs, sleptMs });
    if (timebase.jumps.length > JUMPS_KEPT) timebase.jumps.shift();
  }
  // A suspend shows on both clocks: it must not count twice.
  timebase.lifeOffsetMs += Math.max(slept, stepped, 0);
  timebase.sleptMs += slept;

  if (slept > 0) jumps.push({ what: 'suspend', byMs: slept });
  const step = stepped - slept;
  if (stepped !== 0 && Math.abs(step) > JUMP_MS) jumps.push({ what: 'clock-step', byMs: step });
  return jumps;
}

export function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
