import type { Config } from '../config/config.ts';
import type { Shard } from '../config/shard.ts';
import type { Cancel, Clock } from '../ports.ts';

type Sharing = Shard & {
  readonly handoverSeconds: number;
  /** Once the handover is over a market is renewed one last time when it is due: within its cadence, at the longest this. */
  readonly longestCadenceSeconds: number;
};

/** Into how many parts the daemons divide what they share, and which of the parts is this one's. */
export interface Shares {
  readonly current: () => Shard;
  follow(next: Sharing): void;
  stop(): void;
}

/** What the shard that leaves wrote last counts towards the limit for so long. */
const WINDOW_MS = 10_000;

/** A burst finds the nonces of 8 s at one moment, while the limit is one request per millisecond of 10 s. */
const NONCES_OF_A_BURST = 0.8;
/** So that each shard of a small budget still finds a few at any moment. */
const MOST_PARTS = 1024;

/**
 * Which nonces of a key that all shards share are this one's: those that leave the remainder `index` when divided by
 * `count`. Shards that disagree about their number never give the same one where both divide by powers of two that no
 * index reaches; up to two fifths of the limit such a power leaves each enough for a burst that spends all of its part.
 * Above that they divide by their number.
 */
export function nonceShareOf(
  { index, count }: Shard,
  { budgetShare, budget }: { readonly budgetShare: number; readonly budget: Config['shard']['budget'] },
): Shard {
  // With a budget of its own each has a key of its own as well.
  if (budget === 'own') return { index: 0, count: 1 };
  const most = Math.min(MOST_PARTS, (NONCES_OF_A_BURST * count) / budgetShare);
  const parts = 2 ** Math.floor(Math.log2(most));
  return { index, count: Math.max(parts, count) };
}

/**
 * With fewer shards each has a larger part of the limit, but not before the last market has been handed over and what was
 * written for it counts no longer: until then the shard that leaves takes its part, and with it the parts of the smaller
 * count were more than the whole. That shard keeps the part that it had. Called with the change that comes then.
 */
export function createShares(clock: Clock, initial: Sharing, onChange: () => void): Shares {
  let wanted: Shard = initial;
  let held: { readonly count: number; readonly untilMs: number } | null = null;
  let cancel: Cancel = () => {};

  function countNow(): number {
    const holds = held !== null && clock.now().monoMs < held.untilMs ? held.count : 0;
    return Math.max(wanted.count, holds, wanted.index + 1);
  }
  return {
    current: () => ({ index: wanted.index, count: countNow() }),
    follow(next) {
      const count = countNow();
      const shrinks = next.count < wanted.count;
      wanted = next;
      if (!shrinks) return;
      cancel();
      const forMs = (next.handoverSeconds + next.longestCadenceSeconds) * 1000 + WINDOW_MS;
      held = { count, untilMs: clock.now().monoMs + forMs };
      cancel = clock.after(forMs, () => {
        held = null;
        onChange();
      });
    },
    stop: () => cancel(),
  };
}
