import { expect, test } from 'vitest';
import { createDriver, SERVER_EPOCH } from './driver.ts';

test.each([
  { what: 'of a timer that is renewed every second', timeoutSeconds: 5, starts: [0], confirmed: 2 },
  { what: 'of a timer that has fired since', timeoutSeconds: 30, starts: [0], confirmed: 1 },
  { what: 'out of two caches in turn', timeoutSeconds: 30, starts: [0, 3], confirmed: 2 },
])('an exchange that repeats old answers $what confirms nothing', ({ timeoutSeconds, starts, confirmed }) => {
  const driver = createDriver({ markets: [`AAA:${timeoutSeconds}`] });
  driver.arm();
  let asked = 0;
  driver.live(timeoutSeconds * 4000, 20, (write) => {
    asked += 1;
    driver.apply(write, { startTime: SERVER_EPOCH + (starts[asked % starts.length] ?? 0) });
  });
  expect(driver.notices('renewed')).toHaveLength(confirmed);
  expect(driver.notices('overdue').length + driver.notices('lapsed').length).toBeGreaterThan(0);
  expect(driver.notices('attempt-failed').every(({ reason }) => reason === 'parse')).toBe(true);
});
