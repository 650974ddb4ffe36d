import { expect, test } from 'vitest';
import { createDriver, LOST } from './driver.ts';

/** A renewal of the old key got no answer, and a new key is in force. */
function rotated(budgetMs = 8000) {
  const driver = createDriver({ shutdown: { budgetMs } });
  driver.arm();
  driver.wait(6000);
  const old = driver.takeOne();
  driver.feed({ kind: 'credentials-changed' });
  driver.settle(old, LOST);
  driver.take();
  return driver;
}

test('a delete by a new key is not sure while a renewal of the old one may still be carried out', () => {
  const driver = rotated();
  driver.live(1000);
  driver.stop();
  driver.live(9000);
  expect(driver.finished()).toMatchObject([{ market: 'AAA', why: 'unconfirmed' }]);
});

test('a renewal by a new key leaves the timer doubtful while a delete of the old one may follow', () => {
  const driver = createDriver();
  driver.arm();
  driver.operate('disarm');
  const old = driver.takeOne();
  driver.feed({ kind: 'credentials-changed' });
  driver.settle(old, LOST);
  driver.operate('arm');
  driver.live(3000);
  expect(driver.statusOf()?.guaranteedMs).toBeNull();
  driver.live(10_000);
  expect(driver.statusOf()?.guaranteedMs).toBeGreaterThan(50_000);
});
