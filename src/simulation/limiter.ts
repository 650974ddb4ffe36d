import type { Cancel, Clock, Granted } from '../ports.ts';

/**
 * The limiter as the simulation has it: always a permit in stock, until a fault makes it stick. Then only the start-by
 * path of the port carries requests, as it does for the real one after a step of the wall clock.
 */
export function createSimulatedLimiter(
  clock: Clock,
  isStuck: () => boolean,
): (permits: number, withinMs: number, granted: (how: Granted) => void) => Cancel {
  return (_permits, withinMs, granted) => {
    if (!isStuck()) {
      granted('in-turn');
      return () => {};
    }
    return clock.after(withinMs, () => granted('overdue'));
  };
}
