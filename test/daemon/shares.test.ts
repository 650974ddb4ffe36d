import { expect, test } from 'vitest';
import { createShares } from '../../src/daemon/shares.ts';
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
