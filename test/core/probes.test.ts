import { describe, expect, test } from 'vitest';
import { BAD_KEY, createDriver, GARBAGE, LOST, NO_MARKET, THROTTLED } from './driver.ts';

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
