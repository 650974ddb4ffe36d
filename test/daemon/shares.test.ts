import { describe, expect, test } from 'vitest';
import { createShares, nonceShareOf } from '../../src/daemon/shares.ts';
import { createHostClock, createTimeline } from '../../src/simulator/virtual-clock.ts';

function sharesOf(index: number, count: number) {
  const timeline = createTimeline(0);
  const clock = createHostClock(timeline, { wallMs: 0 });
  const changes: number[] = [];
  const sharing = { index, handoverSeconds: 60, longestCadenceSeconds: 20 };
  const shares = createShares(clock, { ...sharing, count }, () => changes.push(timeline.nowMs()));
  return {
    ...shares,
    changes,
    resize: (to: number) => shares.follow({ ...sharing, count: to }),
    wait: (seconds: number) => timeline.runUntil(timeline.nowMs() + seconds * 1000),
  };
}

test('a larger number of shards makes each part smaller at once', () => {
  const shares = sharesOf(1, 3);
  shares.resize(4);
  expect(shares.current()).toEqual({ index: 1, count: 4 });
  shares.wait(120);
  expect(shares.changes).toEqual([]);
});

test('a smaller number makes it larger once what was written for the last market that moved counts no longer', () => {
  const shares = sharesOf(0, 4);
  shares.resize(3);
  shares.wait(89);
  expect(shares.current()).toEqual({ index: 0, count: 4 });
  shares.wait(2);
  expect(shares.current()).toEqual({ index: 0, count: 3 });
  expect(shares.changes).toEqual([90_000]);
});

test('the shard that leaves keeps the part that it had: its last renewals are no reason for more than the whole', () => {
  const shares = sharesOf(3, 4);
  shares.resize(3);
  shares.wait(120);
  expect(shares.current()).toEqual({ index: 3, count: 4 });
});

test('one that waits to be counted in has a part of its own', () => {
  expect(sharesOf(3, 3).current()).toEqual({ index: 3, count: 4 });
});

test('changes that follow one another wait for the last of them', () => {
  const shares = sharesOf(0, 5);
  shares.resize(4);
  shares.wait(40);
  shares.resize(3);
  shares.wait(60);
  expect(shares.current().count).toBe(5);
  shares.wait(40);
  expect(shares.current().count).toBe(3);
  shares.resize(4);
  expect(shares.current().count).toBe(4);
});

test('a number that grows and shrinks again within the time of one handover is no larger than it ever was', () => {
  const shares = sharesOf(0, 3);
  shares.resize(6);
  shares.resize(3);
  expect(shares.current().count).toBe(6);
  shares.resize(4);
  expect(shares.current().count).toBe(6);
  shares.wait(91);
  expect(shares.current().count).toBe(4);
});

describe('the nonces of a key that all shards share', () => {
  const SHARES = [0.01, 0.1, 0.15, 0.25, 0.4, 0.5, 0.75, 1];
  const COUNTS = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 100, 1000];
  const partsOf = (index: number, count: number, budgetShare: number) =>
    nonceShareOf({ index, count }, { budgetShare, budget: 'shared' });
  /** Whether the two would ever give the same nonce. */
  const meet = (one: ReturnType<typeof nonceShareOf>, other: ReturnType<typeof nonceShareOf>) => {
    const parts = new Set<number>();
    for (let nonce = one.index % one.count; nonce < 4096; nonce += one.count) parts.add(nonce);
    for (let nonce = other.index % other.count; nonce < 4096; nonce += other.count)
      if (parts.has(nonce)) return true;
    return false;
  };

  test.each(SHARES)(
    'suffice for a burst of each shard’s whole part, where all use %d of the limit',
    (share) => {
      for (const count of COUNTS) {
        const parts = partsOf(0, count, share).count;
        // Above four fifths of the limit a burst may have to wait for more of them, however they are divided.
        const burst = Math.max(1, Math.floor((10_000 * Math.min(share, 0.8)) / count));
        expect(8000 / parts).toBeGreaterThanOrEqual(burst);
      }
    },
  );

  test('are never those of another shard, also where up to two fifths of the limit are used and one shard more is known to some', () => {
    for (const share of SHARES.filter((one) => one <= 0.4)) {
      for (let count = 1; count <= 20; count += 1) {
        for (let index = 0; index < count; index += 1) {
          const old = partsOf(index, count, share);
          for (let other = 0; other <= count; other += 1) {
            if (other === index) continue;
            expect(meet(old, partsOf(other, count + 1, share)), `${share} ${count}`).toBe(false);
          }
        }
      }
    }
  });

  test('are all a shard’s own where it has a budget, and so a key, of its own', () => {
    const own = { budgetShare: 0.1, budget: 'own' } as const;
    expect(nonceShareOf({ index: 2, count: 3 }, own)).toEqual({ index: 0, count: 1 });
  });

  test('are divided by the number of shards where more is used', () => {
    expect(partsOf(2, 3, 0.75)).toEqual({ index: 2, count: 3 });
    expect(partsOf(0, 1, 1)).toEqual({ index: 0, count: 1 });
  });
});
