import { expect, test } from 'vitest';
import { createDriver, type Driver, NO_MARKET, NOT_SENT } from './driver.ts';

const isSaid = (driver: Driver) => driver.notices('all-armed').length > 0;

/** Every market was asked for, and but for the first one, by which the key is known to be good, none was answered. */
function askedFor(...markets: string[]) {
  const driver = createDriver({ markets: ['KEY', ...markets], nonce: 'window' });
  driver.tick();
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

test('not all are armed when the last one is confirmed after the guarantee of the first ran out', () => {
  const driver = createDriver({ markets: ['SHORT:5', 'LONG:600', 'LATE:600'] });
  driver.suffer(2000, NO_MARKET, 'LATE');
  driver.live(20_000, 20, (write) => {
    if (write.market === 'LONG') driver.apply(write);
    else driver.settle(write, write.market === 'LATE' ? NO_MARKET : NOT_SENT);
  });
  driver.operate('arm', ['LATE']);
  driver.suffer(1000, NOT_SENT, 'SHORT');
  expect(isSaid(driver)).toBe(false);
  driver.live(1000);
  expect(isSaid(driver)).toBe(true);
});

test('a market that leaves before it was ever armed keeps nobody waiting', () => {
  const { driver } = askedFor('AAA');
  expect(isSaid(driver)).toBe(false);
  driver.reload({ markets: ['KEY'], nonce: 'window' });
  expect(driver.look().markets).toHaveLength(2);
  expect(driver.notices('all-armed')).toMatchObject([{ markets: 1 }]);
});

test('a shard without markets says of none that they are armed', () => {
  const driver = createDriver({ markets: [] });
  driver.live(2000);
  expect(isSaid(driver)).toBe(false);
  driver.reload({ markets: ['AAA'] });
  driver.live(1000);
  expect(driver.notices('all-armed')).toMatchObject([{ markets: 1 }]);
});
