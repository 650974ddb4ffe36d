import { describe, expect, test } from 'vitest';
import { many } from './core-settings.ts';
import {
  BAD_KEY,
  createDriver,
  GARBAGE,
  gaps,
  HTTP_500,
  LOST,
  NO_MARKET,
  NOT_SENT,
  play,
  played,
  renewing,
  STALE_NONCE,
  THROTTLED,
  watched,
} from './driver.ts';

const MINUTE_MS = 60_000;

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
    const { driver, write } = renewing();
    driver.move({ monoMs: 70 });
    driver.settle(write, outcome);
    const { detail } = outcome;
    expect(driver.notices('attempt-failed')).toEqual([
      { kind: 'attempt-failed', market: 'AAA', purpose: 'renew', reason, detail, streak: 1, durationMs: 70 },
    ]);
    expect(driver.statusOf()).toMatchObject({ failureStreak: 1, failures: 1 });
  },
);

describe('a refused market', () => {
  test('whose bot has died meanwhile is not said to be tried again', () => {
    const driver = play(watched(), 'start, wait 6');
    driver.settle(driver.takeOne(), NO_MARKET);
    driver.wait(6000);
    const second = driver.takeOne();
    driver.say('fail');
    driver.settle(second, NO_MARKET);
    expect(driver.notices('refused')).toMatchObject([{ probeInMs: null }]);
  });

  test('that was good once gets a second look at the pace of a retry', () => {
    const driver = played({}, 'live 5.99, refused 7');
    expect(driver.of('AAA', 5000)).toHaveLength(2);
    expect(driver.notices('refused')).toHaveLength(1);
  });

  test('gets no second look by two requests that were on their way together', () => {
    const driver = played({ nonce: 'window' }, 'start, wait 11.5');
    const together = driver.take();
    expect(together).toHaveLength(2);
    for (const write of together) driver.settle(write, NO_MARKET);
    expect(driver.notices('refused')).toEqual([]);
    driver.suffer(10_000, NO_MARKET);
    expect(driver.notices('refused')).toHaveLength(1);
  });

  test('is probed about once a minute while the others go on, and renewed at its cadence once it is accepted', () => {
    const driver = createDriver({ markets: ['AAA:10', 'BBB:10'] });
    driver.suffer(5 * MINUTE_MS, NO_MARKET, 'AAA');
    const probes = driver.of('AAA');
    expect(probes).toHaveLength(5);
    expect(Math.min(...gaps(probes))).toBeGreaterThan(59_000);
    expect(Math.max(...gaps(probes))).toBeLessThan(67_000);
    expect(driver.notices('refused')).toHaveLength(1);
    expect(Math.max(...gaps(driver.of('BBB')))).toBeLessThanOrEqual(1010);
    driver.live(80_000);
    expect(driver.notices('accepted-again')).toEqual([{ kind: 'accepted-again', market: 'AAA' }]);
    expect(driver.of('AAA', 370_000).length).toBeGreaterThanOrEqual(9);
  });

  test('that was good is tried in time for its deadline, and ever more rarely once that is over', () => {
    const driver = played({ markets: ['AAA:10'] }, 'live 2, refused 120');
    const before = driver.writes.filter(({ atMs }) => atMs < 10_000);
    expect(Math.max(...gaps(before.slice(-6)))).toBeLessThan(1500);
    const after = gaps(driver.writes.filter(({ atMs }) => atMs > 14_000));
    expect(Math.min(...after)).toBeGreaterThan(4900);
    expect(after.at(-1)).toBeGreaterThan(2 * (after[0] ?? 0));
  });

  test('says nothing against the key: its first refusal after that still gets a second look', () => {
    const driver = played({ markets: ['AAA', 'BBB'] }, 'tick');
    driver.apply(driver.takeOne());
    driver.settle(driver.takeOne(), NO_MARKET);
    driver.wait(6000);
    driver.settle(driver.takeOne(), BAD_KEY);
    expect(driver.notices('unauthorised')).toEqual([]);
  });
});

describe('a stale nonce', () => {
  test('is answered with a new one at once, three times in a row, and then at the pace of retries', () => {
    const driver = played({}, 'live 5.99');
    driver.suffer(5000, STALE_NONCE);
    const moments = driver.of('AAA', 1000).map(({ atMs }) => Math.round(atMs));
    expect(moments.slice(0, 4)).toEqual([6000, 6020, 6040, 6060]);
    expect(moments[4] ?? Number.POSITIVE_INFINITY).toBeGreaterThan(6060 + 4000);
  });

  test('of an attempt that a later one has overtaken and confirmed is no reason to hurry', () => {
    const driver = played({ markets: ['AAA:10'], nonce: 'window' }, 'start, wait 1');
    const overtaken = driver.takeOne();
    driver.wait(1000);
    driver.apply(driver.takeOne());
    driver.wait(100);
    driver.take();
    driver.settle(overtaken, STALE_NONCE);
    expect(driver.take()).toEqual([]);
    expect(driver.statusOf()?.failureStreak).toBe(0);
  });
});

describe('a real 429', () => {
  test('makes every period half as long again, and counts once for all that was written together', () => {
    const driver = played({ markets: many(10), nonce: 'window' }, 'start, live 5.99');
    driver.suffer(100, THROTTLED);
    expect(driver.notices('throttled')).toEqual([{ kind: 'throttled', factor: 1.5 }]);
    expect(driver.look().cadenceFactor).toBe(1.5);
    expect(driver.statusOf('M0')?.periodMs).toBe(9000);
  });

  test('however often it comes never stretches a period beyond a third of the timeout', () => {
    const driver = played({ markets: ['AAA:60', 'BBB:30'] }, 'start');
    let count = 0;
    driver.live(10 * MINUTE_MS, 20, (write) => {
      count += 1;
      if (count % 2 === 0) driver.settle(write, THROTTLED);
      else driver.apply(write);
    });
    expect(driver.look().cadenceFactor).toBeLessThanOrEqual(10);
    driver.live(60_000);
    expect(driver.notices('lapsed')).toEqual([]);
    expect(Math.max(...gaps(driver.of('AAA', 601_000)))).toBeLessThanOrEqual(20_020);
    expect(Math.max(...gaps(driver.of('BBB', 601_000)))).toBeLessThanOrEqual(10_020);
  });
});

test.each([
  ['lost', 500, LOST],
  ['garbled', 500, GARBAGE],
  ['throttled', 5000, THROTTLED],
] as const)(
  'a %s answer to the probe of a refused key says nothing of it: it is asked again after %i ms',
  (_what, gapMs, outcome) => {
    const driver = played({}, 'tick');
    driver.settle(driver.takeOne(), BAD_KEY);
    driver.suffer(95_000, outcome);
    const afterMs = gaps(driver.writes)[1];
    expect(afterMs).toBeGreaterThanOrEqual(gapMs);
    expect(afterMs).toBeLessThan(gapMs + 500);
  },
);
