import { expect, test } from 'vitest';
import { createDriver, LOST, SERVER_EPOCH } from './driver.ts';

test('a stray delete that could still land when the renewal was written leaves nothing guaranteed', () => {
  const driver = createDriver({ markets: ['AAA:60'], nonce: 'window' });
  driver.arm();
  driver.wait(1000);
  for (const write of driver.take()) driver.apply(write);
  driver.operate('pause', null, 60_000);
  const gone = driver.takeOne();
  expect(gone.timeoutSeconds).toBeNull();
  driver.settle(gone, LOST);
  driver.operate('arm');
  let last = gone;
  // Renewals go unanswered. The last one is written before the delete has surely died out.
  while (driver.sinceStartMs() < gone.atMs + 9900) {
    driver.wait(50);
    last = driver.take().at(-1) ?? last;
  }
  expect(last.timeoutSeconds).toBe(60);
  driver.wait(gone.atMs + 10_050 - driver.sinceStartMs());
  driver.take();
  // The exchange takes the renewal, then the delete, and then the answer arrives.
  driver.apply(last);
  expect(driver.statusOf()?.guaranteedMs).toBeNull();
});

test('what may still land counts from when the first byte left', () => {
  const driver = createDriver({ markets: ['AAA:60'], nonce: 'window' });
  driver.arm();
  driver.holdBack();
  driver.wait(6100);
  const write = driver.takeOne();
  // A connection is opened for 0.6 s.
  for (let round = 0; round < 3; round += 1) {
    driver.move({ monoMs: 200 });
    driver.tick();
  }
  expect(driver.mayLeave(write.attempt)).toBe(true);
  driver.settle(write, LOST);
  const firesInMs = (driver.statusOf()?.firesByWallMs ?? 0) - driver.now().wallMs;
  expect(firesInMs).toBeGreaterThanOrEqual(10_000 + 60_000 + 1000);
});

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
