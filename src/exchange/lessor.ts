import Bottleneck from 'bottleneck';

/** A reservoir of permits that are handed out in lots. */
export interface Lessor {
  /** Calls `leased` once, never synchronously, when `weight` permits are there; they are taken out with it. */
  lease(weight: number, leased: () => void): void;
  giveBack(permits: number): void;
  /** Drops what is waiting and leaves no timer behind. */
  stop(): void;
}

/**
 * Bottleneck as a reservoir that only `giveBack` fills. Its own refresh goes by fixed windows, of which a sliding one
 * can see two, and by the wall clock: a step forward fills the reservoir at once, a step back stops it. `updateSettings`
 * and `expiration` stay unused: the first stops the refresh for good, the second frees a slot whose job still runs.
 */
export function createLessor(reservoir: number): Lessor {
  const bottleneck = new Bottleneck({ reservoir, maxConcurrent: null, minTime: 0, highWater: null });
  let stopped = false;
  const unlessStopped = (leased: () => void) => () => {
    if (!stopped) leased();
  };
  return {
    lease(weight, leased) {
      bottleneck
        .schedule({ weight }, async () => {
          // In a turn of its own: bottleneck would turn what it throws into a rejected job.
          queueMicrotask(unlessStopped(leased));
        })
        // Rejected only because it was stopped: nobody waits for this lease any more.
        .catch(() => undefined);
    },
    giveBack(permits) {
      bottleneck.incrementReservoir(permits).catch(() => undefined);
    },
    stop() {
      stopped = true;
      bottleneck.stop({ dropWaitingJobs: true }).catch(() => undefined);
    },
  };
}
