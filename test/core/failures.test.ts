import { describe, expect, test } from 'vitest';
import { type Outcome } from '../../src/core/events.ts';
import { type SettingsOptions } from './core-settings.ts';
import {
  BAD_KEY,
  createDriver,
  type Driver,
  GARBAGE,
  HTTP_500,
  LOST,
  NO_MARKET,
  NOT_SENT,
  STALE_NONCE,
  THROTTLED,
  type Write,
} from './driver.ts';

const MINUTE_MS = 60_000;

/** Answers all markets well but those that are named. */
const but =
  (driver: Driver, outcome: Outcome, ...markets: readonly string[]) =>
  (write: Write) => {
    if (markets.includes(write.market)) driver.settle(write, outcome);
    else driver.apply(write);
  };
const gaps = (writes: readonly Write[]) =>
  writes.slice(1).map((write, place) => write.atMs - (writes[place]?.atMs ?? 0));
const of = (driver: Driver, market: string, fromMs = 0) =>
  driver.writes.filter((write) => write.market === market && write.atMs >= fromMs);

test.each([
  ['timeout', LOST],
  ['network', NOT_SENT],
  ['http_5xx', HTTP_500],
  ['rate_limited', THROTTLED],
  ['nonce', STALE_NONCE],
  ['validation', NO_MARKET],
  ['auth', BAD_KEY],
  ['parse', GARBAGE],
] as const)(
  'a failed attempt is told with its reason, %s, its words and its place in the row',
  (reason, outcome) => {
    const driver = createDriver();
    driver.arm();
    driver.wait(6000);
    const write = driver.takeOne();
    driver.move({ monoMs: 70 });
    driver.settle(write, outcome);
    expect(driver.notices('attempt-failed')).toEqual([
      {
        kind: 'attempt-failed',
        market: 'AAA',
        purpose: 'renew',
        reason,
        detail: 'detail' in outcome ? outcome.detail : '',
        streak: 1,
        durationMs: 70,
      },
    ]);
    expect(driver.market('AAA')).toMatchObject({ streak: 1, stats: { failures: 1 } });
  },
);

describe('a refused market', () => {
  test('that was never confirmed is latched by the first refusal', () => {
    const driver = createDriver();
    driver.tick();
    driver.settle(driver.takeOne(), NO_MARKET);
    expect(driver.notices('refused')).toEqual([
      {
        kind: 'refused',
        market: 'AAA',
        code: 31,
        detail: 'Market is not available.',
        probeInMs: expect.any(Number),
        expiryWallMs: null,
      },
    ]);
  });

  test('that was good once gets a second look at the pace of a retry', () => {
    const driver = createDriver();
    driver.arm();
    driver.live(5990);
    driver.live(7000, 20, but(driver, NO_MARKET, 'AAA'));
    expect(of(driver, 'AAA', 5000)).toHaveLength(2);
    expect(driver.notices('refused')).toHaveLength(1);
  });

  test('whose second look is good was never refused', () => {
    const driver = createDriver();
    driver.arm();
    for (let round = 0; round < 4; round += 1) {
      driver.live(6000);
      driver.wait(6000);
      const [first] = driver.take();
      if (first !== undefined) driver.settle(first, NO_MARKET);
    }
    expect(driver.notices('refused')).toEqual([]);
  });

  test('is probed about once a minute, said once, and the others go on', () => {
    const driver = createDriver({ markets: ['AAA:10', 'BBB:10'] });
    driver.live(5 * MINUTE_MS, 20, but(driver, NO_MARKET, 'AAA'));
    const probes = of(driver, 'AAA');
    expect(probes).toHaveLength(5);
    for (const gapMs of gaps(probes)) {
      expect(gapMs).toBeGreaterThan(59_000);
      expect(gapMs).toBeLessThan(67_000);
    }
    expect(driver.notices('refused')).toHaveLength(1);
    expect(Math.max(...gaps(of(driver, 'BBB')))).toBeLessThanOrEqual(1010);
  });

  test('is renewed at its cadence again, and says so, once a probe is accepted', () => {
    const driver = createDriver({ markets: ['AAA:10'] });
    driver.live(30_000, 20, but(driver, NO_MARKET, 'AAA'));
    driver.live(60_000);
    expect(driver.notices('accepted-again')).toEqual([{ kind: 'accepted-again', market: 'AAA' }]);
    expect(of(driver, 'AAA', 80_000).length).toBeGreaterThanOrEqual(9);
  });

  test('whose probe may have armed its timer is tried again at once', () => {
    const driver = createDriver({ markets: ['AAA:5'] });
    driver.arm();
    driver.live(30_000, 20, but(driver, NO_MARKET, 'AAA'));
    const probes = of(driver, 'AAA').length;
    driver.live(40_000, 20, (write) => {
      if (of(driver, 'AAA').length === probes + 1) driver.settle(write, GARBAGE);
      else driver.apply(write);
    });
    const [probe, next] = of(driver, 'AAA').slice(probes);
    expect((next?.atMs ?? 0) - (probe?.atMs ?? 0)).toBeLessThan(600);
  });

  test('that was refused once, long ago, is tried often once its timer has lapsed', () => {
    const driver = createDriver();
    driver.arm();
    driver.wait(6000);
    driver.settle(driver.takeOne(), NO_MARKET);
    driver.live(90_000, 20, (write) => driver.settle(write, NOT_SENT));
    expect(driver.notices('refused')).toEqual([]);
    const lapsed = driver.writes.filter(({ atMs }) => atMs >= 86_000);
    expect(lapsed.length).toBeGreaterThanOrEqual(19);
  });

  test('whose timer must have fired is reported as lapsed while it is refused', () => {
    const driver = createDriver({ markets: ['AAA:60'] });
    driver.arm();
    driver.live(10 * MINUTE_MS, 20, but(driver, NO_MARKET, 'AAA'));
    expect(driver.notices('lapsed')).toEqual([
      expect.objectContaining({ market: 'AAA', certainty: 'certain' }),
    ]);
  });
});

describe('a stale nonce', () => {
  test('is answered with a new one at once, three times in a row, and then at the pace of retries', () => {
    const driver = createDriver();
    driver.arm();
    driver.live(5990);
    driver.live(5000, 20, (write) => driver.settle(write, STALE_NONCE));
    const moments = of(driver, 'AAA', 1000).map(({ atMs }) => Math.round(atMs));
    expect(moments.slice(0, 4)).toEqual([6000, 6020, 6040, 6060]);
    expect(moments[4] ?? Number.POSITIVE_INFINITY).toBeGreaterThan(6060 + 4000);
  });

  test('of an attempt that a later one has overtaken and confirmed is no reason to hurry', () => {
    const driver = createDriver({ markets: ['AAA:10'], nonce: 'window' });
    driver.arm();
    driver.wait(1000);
    const overtaken = driver.takeOne();
    driver.wait(1000);
    driver.apply(driver.takeOne());
    driver.wait(100);
    driver.take();
    driver.settle(overtaken, STALE_NONCE);
    expect(driver.take()).toEqual([]);
    expect(driver.market('AAA').streak).toBe(0);
  });

  test('comes over a connection that works: the next attempt needs no fresh one', () => {
    const driver = createDriver({ markets: ['AAA:60'] });
    driver.arm();
    driver.wait(6000);
    driver.settle(driver.takeOne(), LOST);
    driver.wait(5000);
    const again = driver.takeOne();
    expect(again.fresh).toBe(true);
    driver.settle(again, STALE_NONCE);
    expect(driver.takeOne().fresh).toBe(false);
  });

  test('three times over counts anew after anything else was answered', () => {
    const driver = createDriver({ markets: ['AAA:60'] });
    driver.arm();
    driver.live(5990);
    const answers = [STALE_NONCE, STALE_NONCE, HTTP_500, STALE_NONCE, STALE_NONCE, STALE_NONCE];
    driver.live(6000, 20, (write) => driver.settle(write, answers.shift() ?? HTTP_500));
    const fast = gaps(of(driver, 'AAA', 1000)).filter((gapMs) => gapMs < 100);
    expect(fast).toHaveLength(2 + 3);
  });
});

describe('a real 429', () => {
  const options: SettingsOptions = { markets: ['AAA:60', 'BBB:60'] };

  /** Renewal number `place` of everything is throttled; the rest is well. */
  function throttledOnce() {
    const driver = createDriver(options);
    driver.arm();
    driver.live(5990);
    let left = 1;
    driver.live(1000, 20, (write) => {
      left -= 1;
      if (left === 0) driver.settle(write, THROTTLED);
      else driver.apply(write);
    });
    return driver;
  }

  test('makes every period half as long again, and says so', () => {
    const driver = throttledOnce();
    expect(driver.notices('throttled')).toEqual([{ kind: 'throttled', factor: 1.5 }]);
    expect(driver.state.cadenceFactor).toBe(1.5);
  });

  test('of many requests at the same time counts as one', () => {
    const driver = createDriver({
      markets: Array.from({ length: 10 }, (_, index) => `M${index}`),
      nonce: 'window',
    });
    driver.tick();
    for (const write of driver.take()) driver.settle(write, THROTTLED);
    expect(driver.notices('throttled')).toHaveLength(1);
    expect(driver.state.cadenceFactor).toBe(1.5);
  });

  test('however often it comes never stretches a period beyond a third of the timeout', () => {
    const driver = createDriver({ markets: ['AAA:60', 'BBB:30'] });
    driver.arm();
    let count = 0;
    driver.live(10 * MINUTE_MS, 20, (write) => {
      count += 1;
      if (count % 2 === 0) driver.settle(write, THROTTLED);
      else driver.apply(write);
    });
    expect(driver.state.cadenceFactor).toBeLessThanOrEqual(10);
    driver.live(60_000);
    expect(driver.notices('lapsed')).toEqual([]);
    expect(Math.max(...gaps(of(driver, 'AAA', 601_000)))).toBeLessThanOrEqual(20_020);
    expect(Math.max(...gaps(of(driver, 'BBB', 601_000)))).toBeLessThanOrEqual(10_020);
  });
});

describe('the answer to the probe of a refused key', () => {
  test.each([
    ['lost', LOST],
    ['garbled', GARBAGE],
    ['throttled', THROTTLED],
  ] as const)('that is %s says nothing of the key: it is asked again after 10 s', (_what, outcome) => {
    const driver = createDriver();
    driver.tick();
    driver.settle(driver.takeOne(), BAD_KEY);
    driver.live(65_000, 20, (write) => driver.settle(write, outcome));
    const [, probe] = driver.writes;
    driver.live(30_000, 20, (write) => driver.settle(write, outcome));
    const afterMs = (driver.writes[2]?.atMs ?? 0) - (probe?.atMs ?? 0);
    expect(afterMs).toBeGreaterThanOrEqual(10_000);
    expect(afterMs).toBeLessThan(10_500);
  });
});

test('two requests that were on their way together are one look at a market', () => {
  const driver = createDriver({ nonce: 'window' });
  driver.arm();
  driver.wait(6000 + 5500);
  const [one, other] = driver.take();
  if (one === undefined || other === undefined) throw new Error('two requests are on their way');
  driver.settle(one, NO_MARKET);
  driver.settle(other, NO_MARKET);
  expect(driver.notices('refused')).toEqual([]);
  driver.live(10_000, 20, (write) => driver.settle(write, NO_MARKET));
  expect(driver.notices('refused')).toHaveLength(1);
});
test('a refused market says nothing against the key: its first refusal after that still gets a second look', () => {
  const driver = createDriver({ markets: ['AAA', 'BBB'] });
  driver.tick();
  driver.apply(driver.takeOne());
  driver.settle(driver.takeOne(), NO_MARKET);
  driver.wait(6000);
  driver.settle(driver.takeOne(), BAD_KEY);
  expect(driver.notices('unauthorised')).toEqual([]);
});

test('a refused market is tried in time for its deadline: accepted again just before that, it does not lapse', () => {
  const driver = createDriver({ markets: ['AAA:60'] });
  driver.live(1000);
  driver.live(55_000, 20, (write) => driver.settle(write, NO_MARKET));
  expect(driver.notices('refused')).toHaveLength(1);
  driver.live(10_000);
  expect(driver.notices('accepted-again')).toHaveLength(1);
  expect(driver.notices('overdue')).toEqual([]);
});
