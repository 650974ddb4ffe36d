import type { Cancel, Clock } from '../ports.ts';
import type { Treatment } from './faults.ts';

/** Requests that a fault delays or holds. */
export interface WaitingRoom {
  /** Runs at once where there is no delay. */
  readonly later: (delayMs: number, run: () => void) => void;
  /** Runs `ended` when the hang is over. */
  readonly hold: (hang: NonNullable<Treatment['hang']>, ended: () => void) => void;
  /** Ends every hang at once. */
  readonly releaseHeld: () => void;
  /** Forgets everything that waits. */
  readonly stop: () => void;
}

export function createWaitingRoom(clock: Clock): WaitingRoom {
  const waiting = new Set<Cancel>();
  const held = new Map<number, Set<() => void>>();

  function later(delayMs: number, run: () => void): void {
    if (delayMs <= 0) {
      run();
      return;
    }
    const cancel = clock.after(delayMs, () => {
      waiting.delete(cancel);
      run();
    });
    waiting.add(cancel);
  }

  /** What one fault holds is let go in the order of its arrival, so that nonces stay in order. */
  function release(faultId: number): void {
    const ends = held.get(faultId) ?? [];
    held.delete(faultId);
    for (const end of ends) end();
  }

  return {
    later,
    hold(hang, ended) {
      const { faultId } = hang;
      const ends = held.get(faultId) ?? new Set();
      held.set(faultId, ends.add(ended));
      if (hang.ms === null) return;
      later(hang.ms, () => {
        if (hang.endsWithFault) release(faultId);
        else if (held.get(faultId)?.delete(ended) === true) ended();
      });
    },
    releaseHeld() {
      for (const faultId of held.keys()) release(faultId);
    },
    stop() {
      for (const cancel of waiting) cancel();
      waiting.clear();
      held.clear();
    },
  };
}
