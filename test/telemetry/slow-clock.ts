import type { Clock } from '../../src/ports.ts';

/**
 * A clock on which every look takes a millisecond, so that how often the event loop is given back does not hang on this
 * machine's speed.
 */
export function createSlowClock(clock: Clock): Clock & { pauses: number } {
  let monoMs = 0;
  const slow = {
    pauses: 0,
    now: () => ({ ...clock.now(), monoMs: monoMs++ }),
    after(delayMs: number, run: () => void) {
      slow.pauses += 1;
      return clock.after(delayMs, run);
    },
  };
  return slow;
}
