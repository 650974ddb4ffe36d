import { expect, test } from 'vitest';
import { playShards, type ShardPlay } from '../process/shard-play.ts';

/** How often a market is renewed: what three shards, or four, make of their parts of the limit. */
const CADENCE_MS = 14_300;
/** While markets move: four thirds of a shard's markets, renewed with its part of the limit. */
const LONGEST_CADENCE_MS = (CADENCE_MS * 4) / 3;
const TIMEOUT_SECONDS = 60;

type Play = Pick<ShardPlay, 'markets' | 'budgetShare' | 'restMs'>;

/** How long the process of a shard that was killed may take to be there again, on a host that others load. */
const START_MS = 10_000;

/** By so much the renewals of a cadence may be late on such a host. */
const LATE_MS = 5000;

/**
 * No timer fires, and no market is without an owner for longer than one cadence: one that has an owner is renewed once
 * per cadence, so that no two renewals are further apart than two. While markets move the shards have more of them than
 * their part of the limit is for, and the cadence is 4/3 as long.
 *
 * The markets of the shard that is killed have no owner until its successor runs, which is started at once. That one
 * does not know whose time is over first, and arms its markets in turns, within a cadence. So each waits for what had
 * passed since its last renewal, up to two cadences where markets had just moved, for the start, and for its turn.
 *
 * Requests in any 10 s: all of the share, and what one of three shards has more than one of four while a larger number
 * is not known to all, or what one of four has while its successor begins with a part that nobody has spent.
 */
test.for<Play>([{ markets: 10_000, budgetShare: 0.75, restMs: 1.4 * CADENCE_MS }])(
  '$markets markets; 3 shards, 4, one killed, 3 again: no timer fires, and no market is without an owner for longer than a cadence',
  {
    timeout: 420_000,
  },
  async (play, context) => {
    const { log, ...seen } = await playShards(context, {
      ...play,
      timeoutSeconds: TIMEOUT_SECONDS,
      handoverSeconds: 20,
    });
    console.log(seen);
    expect(seen, log.slice(-3000)).toMatchObject({
      fired: 0,
      deleted: 0,
      owned: play.markets,
      leftBy: { handed_off: seen.moved },
      givenTwice: 0,
    });
    expect(Math.abs(seen.moved - play.markets / 4)).toBeLessThan(play.markets / 40);
    expect(seen.longestGapMs).toBeLessThan(2 * LONGEST_CADENCE_MS);
    const { oldestMs, ownerlessMs, untilAllMs, longestGapMs } = seen.takeover;
    expect(ownerlessMs, 'from the kill to the first renewal of the successor').toBeLessThan(CADENCE_MS);
    expect(oldestMs, 'since a renewal of the killed shard').toBeLessThan(2 * LONGEST_CADENCE_MS);
    expect(untilAllMs, 'until the last market had its turn').toBeLessThan(LONGEST_CADENCE_MS + LATE_MS);
    expect(longestGapMs).toBeLessThan(2 * LONGEST_CADENCE_MS + START_MS);
    expect(seen.mostInWindow).toBeLessThanOrEqual(10_000 * play.budgetShare * (5 / 4));
  },
);
