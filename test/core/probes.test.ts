import { describe, expect, test } from 'vitest';
import {
  BAD_KEY,
  createDriver,
  GARBAGE,
  LOST,
  NO_MARKET,
  NOT_SENT,
  STALE_NONCE,
  THROTTLED,
} from './driver.ts';

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

  test('that refuses it again is followed by another minute', () => {
    const driver = createDriver();
    driver.tick();
    driver.settle(driver.takeOne(), BAD_KEY);
    driver.live(110_000, 20, (write) => driver.settle(write, BAD_KEY));
    expect(driver.writes).toHaveLength(2);
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

test('a failure that comes late, after a newer success, adds to no streak', () => {
  const driver = createDriver({ nonce: 'window' });
  driver.arm();
  driver.wait(6000 + 5500 + 5000);
  const [first, second, third] = driver.take();
  if (first === undefined || second === undefined || third === undefined) throw new Error('three');
  driver.apply(second);
  driver.settle(third, NOT_SENT);
  driver.settle(first, NOT_SENT);
  expect(driver.notices('attempt-failed').map(({ streak }) => streak)).toEqual([1, 0]);
});

test('429 pages that come together slow the cadence down once', () => {
  const driver = createDriver({ markets: ['AAA', 'BBB', 'CCC'], nonce: 'window' });
  driver.arm();
  driver.wait(6500);
  driver.wait(2000);
  driver.wait(2000);
  const writes = driver.take();
  expect(writes.length).toBeGreaterThan(1);
  for (const write of writes) driver.settle(write, THROTTLED);
  expect(driver.notices('throttled')).toEqual([{ kind: 'throttled', factor: 1.5 }]);
  expect(driver.state.cadenceFactor).toBe(1.5);
});

test('a stale nonce is answered at once three times by a market that is new, too', () => {
  const driver = createDriver();
  driver.tick();
  for (let count = 0; count < 3; count += 1) driver.settle(driver.takeOne(), STALE_NONCE);
  const fourth = driver.takeOne();
  expect(fourth.atMs).toBe(0);
  driver.settle(fourth, STALE_NONCE);
  expect(driver.take()).toEqual([]);
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
