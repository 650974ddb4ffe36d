import type { Shard } from '../config/shard.ts';
import type { Cancel, Clock } from '../ports.ts';

type Sharing = Shard & { readonly handoverSeconds: number };

/** Into how many parts the daemons divide what they share, and which of the parts is this one's. */
export interface Shares {
  readonly current: () => Shard;
  follow(next: Sharing): void;
  stop(): void;
}

/**
 * With fewer shards each has a larger part of the limit, but not before the last market has been handed over: until
 * then the shard that leaves writes as well, and the parts of the smaller count and its own were more than the whole.
 * Called with the change that comes then.
 */
export function createShares(clock: Clock, initial: Sharing, onChange: () => void): Shares {
  let wanted: Shard = initial;
  let held: { readonly count: number; readonly untilMs: number } | null = null;
  let cancel: Cancel = () => {};

  function countNow(): number {
    const holds = held !== null && clock.now().monoMs < held.untilMs ? held.count : 0;
    return Math.max(wanted.count, holds);
  }
  return {
    current: () => ({ index: wanted.index, count: countNow() }),
    follow(next) {
      const count = countNow();
      const shrinks = next.count < wanted.count;
      wanted = next;
      if (!shrinks) return;
      cancel();
      const forMs = next.handoverSeconds * 1000;
      held = { count, untilMs: clock.now().monoMs + forMs };
      cancel = clock.after(forMs, () => {
        held = null;
        onChange();
      });
    },
    stop: () => cancel(),
  };
}
