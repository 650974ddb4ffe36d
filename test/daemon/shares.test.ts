import { expect, test } from 'vitest';
import { createShares } from '../../src/daemon/shares.ts';
import { createHostClock, createTimeline } from '../../src/simulator/virtual-clock.ts';

function sharesOf(index: number, count: number) {
  const timeline = createTimeline(0);
  const clock = createHostClock(timeline, { wallMs: 0 });
  const changes: number[] = [];
  const shares = createShares(clock, { index, count, handoverSeconds: 60 }, () =>
    changes.push(timeline.nowMs()),
  );
  return {
    ...shares,
    changes,
    resize: (to: number) => shares.follow({ index, count: to, handoverSeconds: 60 }),
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

test('a smaller number makes it larger once the last market is handed over, also for the shard that leaves', () => {
  for (const index of [0, 3]) {
    const shares = sharesOf(index, 4);
    shares.resize(3);
    shares.wait(59);
    expect(shares.current()).toEqual({ index, count: 4 });
    shares.wait(2);
    expect(shares.current()).toEqual({ index, count: 3 });
    expect(shares.changes).toEqual([60_000]);
  }
});

test('changes that follow one another wait for the last of them', () => {
  const shares = sharesOf(0, 5);
  shares.resize(4);
  shares.wait(40);
  shares.resize(3);
  shares.wait(40);
  expect(shares.current().count).toBe(5);
  shares.wait(30);
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
  shares.wait(61);
  expect(shares.current().count).toBe(4);
});
