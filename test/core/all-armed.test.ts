import { expect, test } from 'vitest';
import { createDriver, type Driver, NO_MARKET, NOT_SENT, type Write } from './driver.ts';

const isSaid = (driver: Driver) => driver.notices('all-armed').length > 0;

/** Every market was asked for, and none was answered. */
function askedFor(...markets: string[]) {
  const driver = createDriver({ markets, nonce: 'window' });
  driver.state.key.accepted = true;
  driver.tick();
  const writes = driver.take();
  const confirm = (name: string) => {
    const write = writes.find(({ market }) => market === name);
    if (write !== undefined) driver.apply(write);
  };
  return { driver, confirm };
}

test.each([
  [['AAA', 'BBB']],
  [['BBB', 'AAA', 'CCC']],
  [['DDD', 'CCC', 'BBB', 'AAA']],
  [['AAA', 'CCC', 'BBB', 'DDD']],
])('all are armed with the last confirmation and not before, in the order %j', (order) => {
  const { driver, confirm } = askedFor(...order.toSorted());
  for (const name of order) {
    expect(isSaid(driver)).toBe(false);
    confirm(name);
  }
  expect(isSaid(driver)).toBe(true);
});

test('not all are armed when the last one is confirmed after the guarantee of the first ran out', () => {
  const driver = createDriver({ markets: ['SHORT:5', 'LONG:600', 'LATE:600'] });
  const late = (write: Write) => {
    if (write.market === 'LATE') driver.settle(write, NO_MARKET);
    else driver.apply(write);
  };
  driver.live(2000, 20, late);
  driver.live(20_000, 20, (write) =>
    write.market === 'SHORT' ? driver.settle(write, NOT_SENT) : late(write),
  );
  driver.operate('arm', ['LATE']);
  driver.live(1000, 20, (write) =>
    write.market === 'SHORT' ? driver.settle(write, NOT_SENT) : driver.apply(write),
  );
  expect(isSaid(driver)).toBe(false);
  driver.live(1000);
  expect(isSaid(driver)).toBe(true);
});

test('a market that leaves before it was ever armed keeps nobody waiting', () => {
  const { driver, confirm } = askedFor('AAA', 'BBB');
  confirm('AAA');
  expect(isSaid(driver)).toBe(false);
  driver.reload({ markets: ['AAA'], nonce: 'window' });
  expect(driver.state.markets).toHaveLength(2);
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

test('what was never armed does not wait behind renewals that have time, where the wire carries less than all of them', () => {
  const markets = Array.from({ length: 100 }, (_, place) => `M${place}:60`);
  const driver = createDriver({ markets, nonce: 'window', connections: 16 });
  // Their first requests take 22 s.
  driver.live(35_000, 3500);
  expect(driver.look().markets.filter(({ guaranteedMs }) => (guaranteedMs ?? 0) <= 0)).toEqual([]);
});
