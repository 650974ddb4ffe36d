import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { createLimiter, type Limiter } from '../../src/exchange/limits.ts';
import type { Clock, Granted } from '../../src/ports.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

function open(requests: number, windowMs: number, clock: Clock = createSystemClock()): Limiter {
  const limiter = createLimiter(clock, { requests, windowMs });
  onTestFinished(() => limiter.close());
  return limiter;
}

interface Grant {
  readonly how: Granted;
  readonly afterMs: number;
}

function acquire(limiter: Limiter, permits: number, withinMs: number): Promise<Grant> {
  const begun = performance.now();
  return new Promise((resolve) => {
    limiter.acquire(permits, withinMs, (how) => resolve({ how, afterMs: performance.now() - begun }));
  });
}

/** The real clock, and what the limiter has read off it last: the moment that it counts a request from. */
function createReadClock() {
  const clock = createSystemClock();
  let lastMs = 0;
  const now = () => {
    const instant = clock.now();
    lastMs = instant.monoMs;
    return instant;
  };
  return { clock: { ...clock, now }, lastMs: () => lastMs };
}

/** Steps the clock that bottleneck reads, as an operator or NTP would. */
function stepDate(byMs: number): void {
  const real = Date.now.bind(Date);
  vi.spyOn(Date, 'now').mockImplementation(() => real() + byMs);
}

test('permits in stock are granted in the call itself', async () => {
  const limiter = open(100, 10_000);
  expect((await acquire(limiter, 1, 2_000)).how).toBe('in-turn');
  let how: Granted | null = null;
  limiter.acquire(1, 2_000, (granted) => {
    how = granted;
  });
  expect(how).toBe('in-turn');
});

test('whoever asks for a few at a time finds them in stock each time: more are fetched before the last are spent', async () => {
  const limiter = open(10_000, 10_000);
  await acquire(limiter, 1, 2_000);
  let atOnce = 0;
  for (let lot = 0; lot < 12; lot += 1) {
    limiter.acquire(100, 2_000, (how) => {
      expect(how).toBe('in-turn');
      atOnce += 1;
    });
    expect(atOnce, 'lots granted in the call itself').toBe(lot + 1);
    await sleep(150);
  }
});

test('permits are granted in the order of asking', async () => {
  const limiter = open(100, 10_000);
  const order: number[] = [];
  await Promise.all(
    [5, 1, 20, 1, 3].map(
      (permits, place) =>
        new Promise<void>((resolve) => {
          limiter.acquire(permits, 2_000, () => {
            order.push(place);
            resolve();
          });
        }),
    ),
  );
  expect(order).toEqual([0, 1, 2, 3, 4]);
});

test('no sliding window sees more than the budget, and the whole budget can be used at once', async () => {
  const { clock, lastMs } = createReadClock();
  const limiter = open(20, 400, clock);
  const times: number[] = [];
  await new Promise<void>((resolve) => {
    for (let request = 0; request < 90; request += 1) {
      limiter.acquire(1, 10_000, (how) => {
        times.push(lastMs());
        expect(how).toBe('in-turn');
        if (times.length === 90) resolve();
      });
    }
  });
  expect((times[19] ?? 0) - (times[0] ?? 0)).toBeLessThan(200);
  for (let first = 0; first + 20 < times.length; first += 1) {
    expect((times[first + 20] ?? 0) - (times[first] ?? 0)).toBeGreaterThanOrEqual(399);
  }
});

test('a request that waited its time is granted as overdue, and counts', async () => {
  const limiter = open(4, 60_000);
  await acquire(limiter, 4, 2_000);
  const { how, afterMs } = await acquire(limiter, 1, 80);
  expect(how).toBe('overdue');
  expect(afterMs).toBeGreaterThanOrEqual(75);
  expect(afterMs).toBeLessThan(600);
});

test('more than the budget at once is granted as overdue and does not block what comes after', async () => {
  const limiter = open(4, 300);
  expect((await acquire(limiter, 9, 50)).how).toBe('overdue');
  expect((await acquire(limiter, 1, 5_000)).how).toBe('in-turn');
});

test('a withdrawn request is not granted, and the next one has its turn', async () => {
  const limiter = open(4, 60_000);
  await acquire(limiter, 3, 2_000);
  let granted = false;
  const cancel = limiter.acquire(3, 300, () => {
    granted = true;
  });
  const next = acquire(limiter, 1, 2_000);
  cancel();
  cancel();
  expect((await next).how).toBe('in-turn');
  await sleep(350);
  expect(granted).toBe(false);
});

test.each([-3_600_000, 3_600_000])(
  'after the wall clock steps by %i ms every request starts in time',
  async (byMs) => {
    const limiter = open(8, 60_000);
    await acquire(limiter, 2, 2_000);
    stepDate(byMs);
    for (let request = 0; request < 6; request += 1) {
      const { afterMs } = await acquire(limiter, 1, 100);
      expect(afterMs).toBeLessThan(600);
    }
  },
);

test('after a step back of an hour the limiter works again by itself, and forgets nothing it granted', async () => {
  const limiter = open(8, 60_000);
  await acquire(limiter, 2, 2_000);
  stepDate(-3_600_000);
  const grants: Granted[] = [];
  // The first three wait in vain, however long; the others only for a lease.
  for (const withinMs of [60, 60, 60, 1_000, 1_000, 1_000]) {
    grants.push((await acquire(limiter, 1, withinMs)).how);
  }
  expect(grants.slice(0, 3)).toEqual(['overdue', 'overdue', 'overdue']);
  expect(grants.slice(4)).toEqual(['in-turn', 'in-turn']);
  // Eight permits of eight are spent by now.
  expect((await acquire(limiter, 1, 60)).how).toBe('overdue');
});

test('an exhausted budget is not taken for a stalled limiter', async () => {
  const limiter = open(4, 60_000);
  await acquire(limiter, 4, 2_000);
  for (let request = 0; request < 8; request += 1)
    expect((await acquire(limiter, 1, 20)).how).toBe('overdue');
});

test('after closing nothing is granted any more', async () => {
  const limiter = open(4, 60_000);
  let granted = 0;
  limiter.acquire(1, 50, () => {
    granted += 1;
  });
  limiter.close();
  limiter.acquire(1, 50, () => {
    granted += 1;
  });
  await sleep(120);
  expect(granted).toBe(0);
});

test('a smaller budget counts what was spent before, and a larger one lets go at once', async () => {
  const limiter = open(100, 10_000);
  expect((await acquire(limiter, 60, 2_000)).how).toBe('in-turn');
  limiter.resize({ requests: 50, windowMs: 10_000 });
  expect(limiter.spare()).toBe(-10);
  expect((await acquire(limiter, 1, 100)).how).toBe('overdue');
  limiter.resize({ requests: 200, windowMs: 10_000 });
  expect(limiter.spare()).toBe(139);
  expect((await acquire(limiter, 139, 2_000)).how).toBe('in-turn');
  expect((await acquire(limiter, 1, 100)).how).toBe('overdue');
});

test('permits of a smaller budget come back when the window has passed, and no more of them than it allows', async () => {
  const limiter = open(100, 1_000);
  expect((await acquire(limiter, 100, 2_000)).how).toBe('in-turn');
  limiter.resize({ requests: 20, windowMs: 1_000 });
  expect((await acquire(limiter, 20, 5_000)).how).toBe('in-turn');
  expect(limiter.spare()).toBe(0);
});
