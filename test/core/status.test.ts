import { expect, test } from 'vitest';
import { createDriver, LOST, NO_MARKET } from './driver.ts';

test('the daemon is live for as long as it answers', () => {
  expect(createDriver().look().live).toBe(true);
});

test('a refused market shows what the exchange said, also after a probe that got no answer', () => {
  const driver = createDriver({ markets: ['AAA', 'BBB'] });
  driver.tick();
  driver.settle(driver.takeOne(), NO_MARKET);
  driver.live(70_000, 20, (write) => {
    if (write.market === 'AAA') driver.settle(write, LOST);
    else driver.apply(write);
  });
  expect(driver.writes.filter(({ market }) => market === 'AAA').length).toBeGreaterThan(1);
  expect(driver.statusOf()).toMatchObject({ state: 'rejected', lastProblem: 'Market is not available.' });
});

test('markets that are out of guard show as such before their timers are gone', () => {
  const driver = createDriver({ markets: ['AAA', 'BBB'] });
  driver.live(1000);
  driver.operate('disarm', ['AAA']);
  driver.operate('pause', ['BBB'], 60_000);
  expect(driver.statusOf()?.state).toBe('disarmed');
  expect(driver.statusOf('BBB')?.state).toBe('paused');
});
