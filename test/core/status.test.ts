import { expect, test } from 'vitest';
import { mayWrite } from '../../src/core/step.ts';
import { describe as describeState } from '../../src/core/view.ts';
import { createDriver, type Driver, LOST, NO_MARKET, NOT_SENT } from './driver.ts';

const statusOf = (driver: Driver, name = 'AAA') =>
  describeState(driver.state, driver.now()).markets.find(({ market }) => market === name);

test('the daemon is live for as long as it answers', () => {
  expect(describeState(createDriver().state, createDriver().now()).live).toBe(true);
});

test('one failure shows as retrying, until the next success', () => {
  const driver = createDriver();
  driver.live(5900);
  driver.live(200, 20, (write) => driver.settle(write, NOT_SENT));
  expect(statusOf(driver)).toMatchObject({ state: 'retrying', failureStreak: 1 });
  driver.live(10_000);
  expect(statusOf(driver)?.state).toBe('armed');
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
  expect(statusOf(driver)).toMatchObject({ state: 'rejected', lastProblem: 'Market is not available.' });
});

test('markets that are out of guard show as such before their timers are gone', () => {
  const driver = createDriver({ markets: ['AAA', 'BBB'] });
  driver.live(1000);
  driver.feed({ kind: 'operate', command: { does: 'disarm', markets: ['AAA'], forMs: 0 } });
  driver.feed({ kind: 'operate', command: { does: 'pause', markets: ['BBB'], forMs: 60_000 } });
  expect(statusOf(driver)?.state).toBe('disarmed');
  expect(statusOf(driver, 'BBB')?.state).toBe('paused');
});

test('nothing may be written any more once the stop is over', () => {
  const driver = createDriver();
  driver.live(2000);
  driver.take();
  driver.feed({ kind: 'stop', policy: 'delete', why: 'test' });
  const ids: number[] = [];
  while (driver.finished() === null) {
    driver.wait(100);
    ids.push(...driver.take().map(({ attempt }) => attempt));
  }
  expect(ids.length).toBeGreaterThan(0);
  for (const id of ids) expect(mayWrite(driver.state, id, driver.now())).toBe(false);
});
