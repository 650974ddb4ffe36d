import { expect, test } from 'vitest';
import { createDriver, type Driver } from './driver.ts';

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
