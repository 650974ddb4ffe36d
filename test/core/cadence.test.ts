import { describe, expect, test } from 'vitest';
import { many, marketOf } from './core-settings.ts';
import {
  armed,
  createDriver,
  type Driver,
  gaps,
  gapsBetween,
  HTTP_500,
  play,
  played,
  SERVER_EPOCH,
  STALE_NONCE,
  THROTTLED,
} from './driver.ts';

/** Each request is carried out as it is written, and answered so much later, but for those that were given up. */
function liveGivingUp(driver: Driver, forMs: number, answerMs: number): void {
  const endMs = driver.sinceStartMs() + forMs;
  while (driver.sinceStartMs() < endMs) {
    driver.live(20, answerMs, (write) => {
      const startTime = SERVER_EPOCH + Math.floor(write.atMs / 1000);
      if (write.timeoutSeconds === null) driver.answer(write);
      else driver.apply(write, { startTime });
    });
    driver.loseGivenUp();
  }
}

describe('the cadence', () => {
  test('follows what requests one after the other can carry, and says so', () => {
    const driver = createDriver({ markets: many(40) });
    driver.live(20_000, 200);
    // 40 markets every 6 s are 6.7 a second; at 200 ms one connection is planned to carry four.
    expect(driver.notices('cadence').at(-1)).toMatchObject({
      kind: 'cadence',
      capacityPerSecond: expect.closeTo(4, 1),
      detail: expect.stringContaining('carries 4.0 renewals a second at an answer time of 200.0 ms'),
    });
    expect(driver.statusOf('M7')?.periodMs).toBeGreaterThan(9900);
    driver.live(60_000, 200);
    expect(driver.notices('lapsed')).toEqual([]);
  });

  test('does not follow it where several requests may be in flight', () => {
    const driver = createDriver({ markets: many(40), nonce: 'window' });
    driver.live(20_000, 200);
    expect(driver.notices('cadence')).toEqual([]);
    expect(driver.statusOf('M7')?.periodMs).toBe(6000);
  });

  test('says what cannot be kept when the way has become too long', () => {
    const driver = createDriver({ markets: many(40, 5) });
    driver.live(20_000, 100);
    expect(driver.notices('cadence').at(-1)?.detail).toContain('40 markets need 24.0 renewals a second');
    // Eight a second are carried, so that each is renewed every 5 s.
    expect(driver.statusOf('M7')).toMatchObject({ survivesMs: 0, periodMs: expect.closeTo(5000, -2) });
    expect(driver.statusOf('M7')?.promise).toContainEqual(
      expect.stringContaining('MAY BE CANCELLED without any outage'),
    );
  });

  test('stays as it is while the round trip changes only a little', () => {
    const driver = createDriver({ markets: many(20) });
    driver.live(30_000, 100);
    const { capacityPerSecond } = driver.look();
    driver.live(60_000, 102);
    expect(driver.look().capacityPerSecond).toBe(capacityPerSecond);
    driver.live(60_000, 130);
    expect(driver.look().capacityPerSecond).toBeLessThan(capacityPerSecond * 0.9);
  });
});

test('after throttling the cadence recovers by a quarter every 5 s, beginning 10 s after the last 429', () => {
  const driver = played({ markets: [{ ...marketOf('AAA:10'), renewEveryMs: 1900 }] }, 'start');
  const steps: { readonly factor: number; readonly atMs: number }[] = [];
  let throttledMs = 0;
  for (let round = 0; round < 280; round += 1) {
    driver.live(100, 20, (write) => {
      if (driver.sinceStartMs() < 9400 || throttledMs > 0) driver.apply(write);
      else {
        throttledMs = driver.sinceStartMs();
        driver.settle(write, THROTTLED);
      }
    });
    const factor = driver.look().cadenceFactor;
    if (factor !== (steps.at(-1)?.factor ?? 1)) steps.push({ factor, atMs: driver.sinceStartMs() });
  }
  expect(steps.map(({ factor }) => factor)).toEqual([1.5, 1.25, 1]);
  const [, firstMs = 0] = steps.map(({ atMs }) => atMs - throttledMs);
  expect(firstMs).toBeGreaterThan(10_000);
  expect(firstMs).toBeLessThan(10_900);
  const [, secondMs = 0] = gapsBetween(steps.map(({ atMs }) => atMs));
  expect(secondMs).toBeGreaterThanOrEqual(4900);
  expect(secondMs).toBeLessThanOrEqual(5350);
});

/** How often silence of 5 s is met once a command was answered in this way. */
function attemptsAfter(answer: (driver: Driver) => void): number {
  const driver = play(armed({ markets: ['AAA:5'] }), 'arm');
  answer(driver);
  driver.live(100);
  driver.take();
  driver.wait(5000);
  return driver.take().length;
}
const applyAll = (driver: Driver): void => {
  for (const write of driver.take()) driver.apply(write);
};

test('an answer that a stall held up, or a newer request overtook, makes no market slow: silence is met as densely', () => {
  const undisturbed = attemptsAfter(applyAll);
  const stalled = attemptsAfter((driver) => {
    play(driver, 'move 20, tick');
    applyAll(driver);
  });
  const [overtaken, answered] = [true, false].map((isLate) =>
    attemptsAfter((driver) => {
      const late = driver.takeOne();
      driver.wait(1000);
      applyAll(driver);
      if (isLate) driver.settle(late, STALE_NONCE);
    }),
  );
  expect(undisturbed).toBeGreaterThan(8);
  expect(stalled).toBe(undisturbed);
  expect(answered).toBeGreaterThan(8);
  expect(overtaken).toBe(answered);
});

test('a slow answer gives its place to the attempt that may still save the timer', () => {
  const driver = played({ markets: ['AAA:12'], nonce: 'window' }, 'start');
  driver.live(40_000, 7000);
  const deadlineMs = driver.sinceStartMs() + (driver.statusOf()?.guaranteedMs ?? 0);
  driver.suffer(10_000, null);
  const attempts = driver.of('AAA', 40_001).filter(({ atMs }) => atMs < deadlineMs);
  expect(attempts).toHaveLength(1);
});

test.each([
  ['504', HTTP_500],
  ['429', THROTTLED],
])('pages of a gateway, a %s after 1.5 s each, do not tell how long the exchange takes', (_status, page) => {
  const driver = played({ markets: many(20) }, 'start');
  driver.live(18_000);
  driver.live(20_000, 1500, (write) => driver.settle(write, page));
  expect(driver.notices('cadence')).toEqual([]);
});

test('the answer time of a market that is not renewed any more does not count: the cadence follows the others', () => {
  const driver = played({ markets: ['GONE:60', ...many(20)] }, 'start, live 20');
  driver.operate('disarm', ['GONE']);
  driver.live(1000);
  driver.live(120_000, 400);
  expect(driver.notices('cadence').at(-1)?.answerMs).toBeCloseTo(400);
});

test('the requests of a market that answers slowly are spread over the time of an answer', () => {
  const driver = played({ markets: ['AAA:15'], nonce: 'window' }, 'start');
  driver.live(60_000, 6000);
  const apartMs = gaps(driver.of('AAA', 30_000));
  expect(Math.min(...apartMs)).toBeGreaterThan(1900);
  expect(Math.max(...apartMs)).toBeLessThan(2100);
});

describe('an exchange that carries everything out and answers late', () => {
  test('arms 200 timers by one request each, or little more', () => {
    const driver = createDriver({ markets: many(200), nonce: 'window' });
    const asked = () => new Set(driver.writes.map(({ market }) => market)).size;
    while (asked() < 200) liveGivingUp(driver, 100, 3500);
    expect(driver.writes.length).toBeLessThan(300);
  });

  test.each([
    ['1.7 s, from the start: no timer of 5 s fires', 20, 5, 1700, 0, 5000],
    ['1.7 s, while the daemon runs: no timer of 5 s fires', 20, 5, 1700, 5000, 5000],
    ['3.5 s: each timer of 5 s is renewed every 2 s', 20, 5, 3500, 15_000, 2000],
    ['3.5 s: no timer of 60 s waits for half of its time', 100, 60, 3500, 15_000, 30_000],
  ])('after %s', (_what, count, timeoutSeconds, answerMs, wellForMs, gapMs) => {
    const driver = createDriver({ markets: many(count, timeoutSeconds), nonce: 'window' });
    driver.live(wellForMs);
    // The first answers tell how long an answer takes.
    liveGivingUp(driver, 20_000, answerMs);
    const failedBefore = driver.notices('attempt-failed').length;
    liveGivingUp(driver, 60_000, answerMs);
    expect(driver.notices('attempt-failed')).toHaveLength(failedBefore);
    for (const name of ['M0', 'M1', `M${count - 1}`])
      expect(Math.max(...gaps(driver.of(name, wellForMs + 15_000)))).toBeLessThanOrEqual(gapMs);
    expect(driver.notices('lapsed')).toEqual([]);
  });

  test.each(
    (['increasing', 'window'] as const).flatMap((nonce) =>
      [1600, 2000, 2900, 4500].map((answerMs) => [nonce, answerMs] as const),
    ),
  )(
    'with %s nonces, after %i ms: all is armed within three round trips, and a stop deletes',
    (nonce, answerMs) => {
      const driver = createDriver({ markets: many(2, 30), nonce, shutdown: { budgetMs: 15_000 } });
      liveGivingUp(driver, 3 * answerMs + 100, answerMs);
      expect(driver.notices('all-armed')).toHaveLength(1);
      driver.stop();
      liveGivingUp(driver, 15_000, answerMs);
      expect(driver.finished()).toEqual([]);
    },
  );
});
