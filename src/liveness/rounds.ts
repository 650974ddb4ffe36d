import type { Cancel, Clock } from '../ports.ts';

/**
 * Calls `round` at once and then again and again, `everyMs()` after the begin of the round before. A round that a stall
 * of the host held up is made once, not caught up with. The returned function ends it.
 */
export function startRounds(clock: Clock, everyMs: () => number, round: () => void): Cancel {
  let over = false;
  let cancel: Cancel = () => undefined;
  function next(): void {
    if (over) return;
    cancel = clock.after(everyMs(), next);
    round();
  }
  next();
  return () => {
    over = true;
    cancel();
  };
}
