import { describe, expect, test } from 'vitest';
import { createDriver, type Driver, gaps, HTTP_500, played, renewing, SERVER_EPOCH } from './driver.ts';

describe('a confirmation', () => {
  test('tells how long it took, since when it was due and how much time had been left', () => {
    const { driver, write } = renewing();
    driver.move({ monoMs: 200 });
    driver.apply(write);
    expect(driver.notices('renewed')[1]).toEqual({
      kind: 'renewed',
      market: 'AAA',
      durationMs: 200,
      cycleMs: 200,
      slackRatio: expect.closeTo((60_000 - 6200) / 60_000, 3),
      first: false,
      cancellationTime: SERVER_EPOCH + 6 + 60,
      expiryWallMs: (SERVER_EPOCH + 6 + 60) * 1000,
      // The stamp is a whole second: its middle is the best guess.
      skewMs: 400,
    });
  });

  test('after the guarantee ran out is a first one again', () => {
    const driver = played({ markets: ['AAA:5'] }, 'start, failing 10, live 2.5');
    expect(driver.notices('renewed').map(({ first }) => first)).toEqual([true, true, false, false]);
  });

  test('after failures counts the whole cycle since the renewal was due, and says that it recovered', () => {
    const { driver, write } = renewing();
    driver.settle(write, HTTP_500);
    driver.live(5100);
    expect(driver.notices('recovered')).toEqual([{ kind: 'recovered', market: 'AAA', failures: 1 }]);
    const cycleMs = driver.notices('renewed')[1]?.cycleMs ?? 0;
    expect(cycleMs).toBeGreaterThan(4500);
    expect(cycleMs).toBeLessThan(5100);
    expect(driver.statusOf()).toMatchObject({ failureStreak: 0, lastProblem: null });
    driver.live(6000);
    expect(driver.notices('recovered')).toHaveLength(1);
    expect(driver.notices('renewed').at(-1)?.cycleMs).toBe(20);
  });

  test('is remembered for the status page: sixty at most', () => {
    const driver = played({ markets: ['AAA:5'] }, 'live 90');
    expect(driver.statusOf()?.slackHistory).toHaveLength(60);
    expect(driver.statusOf()?.renewals).toBe(driver.writes.length);
  });
});

test('a timer that the exchange made much shorter than asked for is renewed in time all the same', () => {
  const driver = createDriver({ markets: ['AAA:600'] });
  driver.live(60_000, 20, (write) => driver.apply(write, { timeout: 6 }));
  expect(Math.max(...gaps(driver.writes))).toBeLessThanOrEqual(2100);
  expect(Math.min(...gaps(driver.writes))).toBeGreaterThanOrEqual(1000);
  expect(driver.notices('lapsed')).toEqual([]);
});

const isSaid = (driver: Driver) => driver.notices('all-armed').length > 0;

/** Every market was asked for, and but for the first one, by which the key is known to be good, none was answered. */
function askedFor(...markets: string[]) {
  const driver = played({ markets: ['KEY', ...markets], nonce: 'window' }, 'tick');
  driver.apply(driver.takeOne());
  const writes = driver.take();
  const confirm = (name: string) => {
    const write = writes.find(({ market }) => market === name);
    if (write !== undefined) driver.apply(write);
  };
  return { driver, confirm };
}

test.each([[['AAA', 'BBB']], [['DDD', 'CCC', 'BBB', 'AAA']], [['AAA', 'CCC', 'BBB', 'DDD']]])(
  'all are armed with the last confirmation and not before, in the order %j',
  (order) => {
    const { driver, confirm } = askedFor(...order.toSorted());
    driver.move({ monoMs: 60 });
    for (const name of order) {
      expect(isSaid(driver)).toBe(false);
      confirm(name);
    }
    driver.live(60_000);
    expect(driver.notices('all-armed')).toEqual([
      { kind: 'all-armed', markets: order.length + 1, sinceStartMs: 60 },
    ]);
  },
);

test('a market that leaves before it was ever armed keeps nobody waiting', () => {
  const { driver } = askedFor('AAA');
  expect(isSaid(driver)).toBe(false);
  driver.reload({ markets: ['KEY'], nonce: 'window' });
  expect(driver.look().markets).toHaveLength(2);
  expect(driver.notices('all-armed')).toMatchObject([{ markets: 1 }]);
});

test('a shard without markets says of none that they are armed', () => {
  const driver = played({ markets: [] }, 'live 2');
  expect(isSaid(driver)).toBe(false);
  driver.reload({ markets: ['AAA'] });
  driver.live(1000);
  expect(driver.notices('all-armed')).toMatchObject([{ markets: 1 }]);
});
