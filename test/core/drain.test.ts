import { describe, expect, test } from 'vitest';
import { onTheirWay } from '../../src/core/state.ts';
import { BAD_KEY, createDriver, HTTP_500, LOST, NO_MARKET, SERVER_EPOCH } from './driver.ts';
import { armed, deletes } from './stopping.ts';

describe('a stop that deletes', () => {
  test('asks for the deletion of every timer at once, and ends when all are confirmed', () => {
    const driver = armed({ nonce: 'window' });
    driver.stop();
    expect(driver.notices('stopping')).toEqual([
      { kind: 'stopping', policy: 'delete', budgetMs: 8000, why: 'SIGTERM' },
    ]);
    expect(deletes(driver).map(({ market, atMs }) => [market, atMs])).toEqual([
      ['AAA', 1000],
      ['BBB', 1000],
    ]);
    driver.live(30);
    expect(driver.finished()).toEqual([]);
    expect(driver.notices('deleted').map(({ market, durationMs }) => [market, durationMs])).toEqual([
      ['AAA', 20],
      ['BBB', 20],
    ]);
    expect(driver.notices('stopped')).toEqual([{ kind: 'stopped', left: [] }]);
  });

  test('deletes nothing that this process did not arm', () => {
    const driver = createDriver({ markets: ['AAA:60', 'BBB:60'] });
    driver.tick();
    driver.settle(driver.takeOne(), NO_MARKET);
    driver.apply(driver.takeOne());
    driver.stop();
    driver.live(100);
    expect(deletes(driver).map(({ market }) => market)).toEqual(['BBB']);
    expect(driver.finished()).toEqual([]);
  });

  test('deletes nothing that has surely fired', () => {
    const driver = createDriver({ markets: ['AAA:5'], onLapse: 'hold' });
    driver.arm();
    driver.wait(1000);
    driver.apply(driver.takeOne(), { startTime: SERVER_EPOCH + 60 });
    driver.live(20_000);
    driver.stop();
    expect(deletes(driver)).toEqual([]);
    expect(driver.finished()).toEqual([]);
  });

  test('waits with a delete until all renewals in flight have settled, and writes no renewal meanwhile', () => {
    const driver = armed({ markets: ['AAA:10'] });
    driver.wait(900);
    const hung = driver.takeOne();
    driver.stop();
    driver.wait(1500);
    expect(driver.take()).toEqual([]);
    driver.settle(hung, LOST);
    expect(driver.takeOne().timeoutSeconds).toBeNull();
  });

  test('deletes at once when the last renewal in flight is confirmed, however seldom the market is renewed', () => {
    const driver = armed({ markets: ['AAA:600'] });
    driver.live(8990);
    driver.wait(20);
    const last = driver.takeOne();
    driver.stop();
    driver.wait(30);
    driver.apply(last);
    driver.wait(30);
    expect(driver.takeOne().timeoutSeconds).toBeNull();
  });

  test('gives what is in flight a quarter of the budget and no more', () => {
    const driver = armed({ markets: ['AAA:60'], shutdown: { budgetMs: 4000 } });
    driver.wait(5000);
    const hung = driver.takeOne();
    driver.stop();
    const beganMs = driver.sinceStartMs();
    driver.wait(990);
    expect(driver.effects).not.toContainEqual({ kind: 'abort', attempt: hung.attempt });
    driver.wait(20);
    expect(driver.effects).toContainEqual({ kind: 'abort', attempt: hung.attempt });
    expect(driver.sinceStartMs() - beganMs).toBe(1010);
  });

  test('tries an unconfirmed delete again and again, up to the end of the budget', () => {
    const driver = armed({ markets: ['AAA:60'] });
    driver.stop();
    driver.live(7700, 20, (write) => driver.settle(write, HTTP_500));
    expect(deletes(driver).length).toBeGreaterThanOrEqual(14);
    expect(deletes(driver).length).toBeLessThanOrEqual(18);
    expect(driver.finished()).toBeNull();
    driver.live(200, 20, () => {});
    expect(driver.finished()).toEqual([expect.objectContaining({ market: 'AAA', why: 'unconfirmed' })]);
  });

  test('names a timer that has fired while every delete was refused', () => {
    const driver = armed({ markets: ['AAA:5'] });
    driver.stop();
    driver.live(8000, 20, (write) => driver.settle(write, BAD_KEY));
    expect(driver.finished()).toEqual([expect.objectContaining({ market: 'AAA', why: 'unconfirmed' })]);
  });

  test('keeps at most three deletes of a market in flight', () => {
    const driver = armed({ markets: ['AAA:60'], nonce: 'window' });
    driver.stop();
    driver.live(1400, 100_000);
    expect(onTheirWay(driver.market('AAA'))).toHaveLength(3);
  });

  test('a delete that was answered with a renewed timer is no confirmation of a delete', () => {
    const driver = armed({ markets: ['AAA:60'] });
    driver.stop();
    const write = driver.takeOne();
    driver.settle(write, { kind: 'protocol', detail: 'a timer instead of none' });
    expect(driver.finished()).toBeNull();
    driver.live(1000);
    expect(driver.finished()).toEqual([]);
  });

  test('shows a refused key every 0.5 s within its budget, by one request, and goes on when it is good', () => {
    const driver = armed({ markets: ['AAA:60', 'BBB:60', 'CCC:60'] });
    driver.live(9000, 20, (write) => driver.settle(write, BAD_KEY));
    driver.stop();
    driver.live(3000, 20, (write) => driver.settle(write, BAD_KEY));
    expect(deletes(driver).length).toBeGreaterThanOrEqual(4);
    expect(deletes(driver).length).toBeLessThanOrEqual(7);
    expect(driver.notices('stopped')).toEqual([]);
    driver.live(1000);
    expect(driver.finished()).toEqual([]);
  });

  test('ends at once where nothing was ever armed', () => {
    const driver = createDriver();
    driver.stop();
    expect(driver.finished()).toEqual([]);
    expect(driver.writes).toEqual([]);
  });

  test('writes nothing after it has ended, and sends no more pings while it lasts', () => {
    const driver = armed();
    driver.stop();
    const pings = () => driver.effects.filter(({ kind }) => kind === 'ping').length;
    const before = pings();
    driver.live(100);
    const { length } = driver.writes;
    driver.live(60_000);
    expect(driver.writes).toHaveLength(length);
    expect(pings()).toBe(before);
  });
});

describe('in a nonce window', () => {
  const window = { markets: ['AAA:60'], nonce: 'window', requestLifetimeMs: 3000 } as const;

  test('a delete waits until a lost renewal can no longer arrive, where the budget allows', () => {
    const driver = armed(window);
    driver.live(4990);
    driver.live(500, 20, (write) => driver.settle(write, LOST));
    const lostMs = driver.writes.at(-1)?.atMs ?? 0;
    driver.stop();
    driver.live(5000);
    expect(deletes(driver)[0]?.atMs).toBeGreaterThanOrEqual(lostMs + 3000);
    expect(deletes(driver)[0]?.atMs).toBeLessThan(lostMs + 3030);
    expect(driver.finished()).toEqual([]);
  });

  test('a wake-up that comes half a millisecond early writes no delete that the lost renewal may undo', () => {
    const driver = armed(window);
    driver.live(4990);
    driver.live(500, 20, (write) => driver.settle(write, LOST));
    const lostMs = driver.writes.at(-1)?.atMs ?? 0;
    driver.stop();
    driver.wait(lostMs + 2999.5 - driver.sinceStartMs());
    driver.tick();
    driver.live(2000);
    expect(deletes(driver)).toHaveLength(1);
    expect(driver.finished()).toEqual([]);
  });

  test('a delete goes at once where the budget does not allow that, and is not called confirmed', () => {
    const driver = armed({ ...window, requestLifetimeMs: 9000 });
    driver.live(4990);
    driver.live(500, 20, (write) => driver.settle(write, LOST));
    driver.stop();
    driver.live(5000);
    expect(deletes(driver)).toHaveLength(1);
    expect(driver.finished()).toEqual([expect.objectContaining({ why: 'unconfirmed' })]);
  });

  test('with rising nonces instead, a delete never waits for strays: its nonce fences them', () => {
    const driver = armed({ ...window, nonce: 'increasing' });
    driver.live(4990);
    driver.live(500, 20, (write) => driver.settle(write, LOST));
    driver.stop();
    expect(deletes(driver)).toHaveLength(1);
  });
});
