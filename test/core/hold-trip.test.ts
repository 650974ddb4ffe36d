import { describe, expect, test } from 'vitest';
import { armed, BAD_KEY, LOST } from './driver.ts';

describe('trip', () => {
  test('cuts the timer to 5 s once, and renews it no more', () => {
    const driver = armed();
    driver.operate('trip');
    expect(driver.written(30_000)).toEqual([5]);
    expect(driver.notices('tripped')).toHaveLength(1);
    expect(driver.notices('lapsed')).toEqual([]);
    expect(driver.progress('trip').state).toBe('done');
  });

  test('makes a timer where none is, for the orders shall go', () => {
    const driver = armed();
    driver.operate('disarm');
    driver.live(1000);
    driver.operate('trip');
    expect(driver.written(10_000)).toEqual([5]);
  });

  test('works for a dead bot', () => {
    const driver = armed({ liveness: { mode: 'beat' } });
    driver.say('fail');
    driver.operate('trip');
    expect(driver.written(10_000)).toEqual([5]);
  });

  test('is not undone by a stop, which leaves the timer to fire', () => {
    const driver = armed();
    driver.operate('trip');
    driver.live(500);
    driver.take();
    driver.stop();
    expect(driver.take()).toEqual([]);
    expect(driver.finished()).toEqual([expect.objectContaining({ market: 'AAA', why: 'policy' })]);
  });

  test('of a market whose timer is no longer than that leaves it to fire', () => {
    const driver = armed({ markets: ['AAA:5'] });
    driver.operate('trip');
    expect(driver.written(10_000)).toEqual([]);
    expect(driver.progress('trip').state).toBe('done');
  });

  test('leaves no low slack behind when the market is armed again before it fires', () => {
    const driver = armed();
    driver.operate('trip');
    driver.live(4000);
    driver.operate('arm');
    driver.live(5000);
    const slacks = driver.notices('renewed').flatMap(({ slackRatio }) => slackRatio ?? []);
    expect(Math.min(...slacks)).toBeGreaterThan(0.8);
  });

  test('that has not left yet is taken back by disarm: the last word counts', () => {
    const driver = armed();
    driver.live(1000, 20, (write) => driver.settle(write, LOST));
    driver.take();
    driver.operate('trip');
    driver.settle(driver.takeOne(), LOST);
    driver.operate('disarm');
    expect(driver.written(5000)).not.toContain(5);
  });

  test('is undone by arm alone', () => {
    const driver = armed({ liveness: { mode: 'beat' } });
    driver.say('beat');
    driver.operate('trip');
    driver.live(1000);
    driver.say('beat');
    driver.operate('resume');
    expect(driver.written(2000)).toEqual([]);
    driver.operate('arm');
    expect(driver.written(2000)[0]).toBe(60);
  });
});

describe('arm after a trip', () => {
  test('is done when the whole of the timeout is confirmed, not for what the trip has left', () => {
    const driver = armed();
    driver.operate('trip');
    driver.live(1000);
    driver.operate('arm');
    expect(driver.progress('arm')).toMatchObject({
      state: 'waiting',
      says: expect.stringMatching(
        /^AAA has a timer for another [23](\.\d)? s, and is not confirmed renewed yet\.$/,
      ),
    });
    driver.live(1000);
    expect(driver.progress('arm')).toMatchObject({
      state: 'done',
      says: expect.stringMatching(/^AAA is armed and renewed: 5\d/),
    });
  });

  test('is impossible with a refused key, whatever the trip has left', () => {
    const driver = armed();
    driver.operate('trip');
    driver.live(1000);
    driver.operate('arm');
    driver.live(1500, 20, (write) => driver.settle(write, BAD_KEY));
    expect(driver.progress('arm')).toMatchObject({ state: 'impossible' });
  });

  test('is done with an exchange that grants another time than it was asked for', () => {
    const driver = armed();
    driver.live(10_000, 20, (write) => driver.apply(write, { timeout: 30 }));
    expect(driver.progress('arm')).toMatchObject({ state: 'done' });
  });
});
