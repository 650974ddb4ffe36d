import { describe, expect, test } from 'vitest';
import { dueAt } from '../../src/core/due.ts';
import { createDriver, type Driver, HTTP_500, NOT_SENT, SERVER_EPOCH, type Write } from './driver.ts';

const names = (writes: readonly Write[]) => writes.map(({ market }) => market);
const of = (driver: Driver, market: string) => driver.writes.filter((write) => write.market === market);
const gapsOf = (driver: Driver, market: string) => {
  const moments = of(driver, market).map(({ atMs }) => atMs);
  return moments.slice(1).map((atMs, place) => atMs - (moments[place] ?? 0));
};

describe('when all is well', () => {
  test('everything configured is asked for at once, in the order of the configuration', () => {
    const driver = createDriver({ markets: ['AAA:60', 'BBB:5', 'CCC:600'] });
    driver.live(50, 10);
    expect(names(driver.take())).toEqual([]);
    expect(names(driver.writes)).toEqual(['AAA', 'BBB', 'CCC']);
  });

  test('each market is renewed at its cadence for ever', () => {
    const driver = createDriver({ markets: ['AAA:60', 'BBB:5', 'CCC:600'] });
    driver.live(120_000);
    for (const [market, periodMs] of [
      ['AAA', 6000],
      ['BBB', 1000],
      ['CCC', 10_000],
    ] as const) {
      const steady = gapsOf(driver, market).slice(1);
      expect(Math.max(...steady)).toBeLessThanOrEqual(periodMs + 30);
      expect(Math.min(...steady)).toBeGreaterThanOrEqual(periodMs - 30);
    }
  });

  test('markets of the same cadence are spread over it', () => {
    const driver = createDriver({ markets: Array.from({ length: 6 }, (_, index) => `M${index}:60`) });
    driver.live(59_990);
    const last = driver.writes.filter(({ atMs }) => atMs >= 48_000 && atMs < 54_000);
    expect(names(last)).toEqual(['M0', 'M1', 'M2', 'M3', 'M4', 'M5']);
    last.forEach(({ atMs }, index) => expect(Math.abs(atMs - 48_000 - index * 1000)).toBeLessThan(30));
  });

  test('one market is never asked for by two requests for the same point of its grid', () => {
    const driver = createDriver({ markets: ['AAA:10', 'BBB:10', 'CCC:10'] });
    driver.live(60_000);
    for (const market of ['AAA', 'BBB', 'CCC'])
      expect(Math.min(...gapsOf(driver, market).slice(1))).toBeGreaterThan(900);
  });

  test('the grid holds after a late answer: the next renewal is not pushed on', () => {
    const driver = createDriver({ markets: ['AAA:60'] });
    driver.arm();
    driver.wait(6000);
    const write = driver.takeOne();
    driver.wait(900);
    driver.apply(write);
    driver.live(5200);
    expect(driver.writes.at(-1)?.atMs).toBeCloseTo(12_000, -2);
  });
});

describe('without an answer', () => {
  test('the next attempt does not wait for the one before, and three are the most', () => {
    const driver = createDriver({ markets: ['AAA:10'], nonce: 'window' });
    driver.arm();
    driver.live(9000, 1_000_000);
    expect(driver.market('AAA').inFlight).toHaveLength(3);
    expect(driver.writes.length).toBe(1 + 3);
  });

  test('attempts get denser as the deadline comes near, and none is closer than a quarter of a second', () => {
    const driver = createDriver({ markets: ['AAA:60'] });
    driver.arm();
    driver.live(58_000, 20, (write) => driver.settle(write, NOT_SENT));
    const gaps = gapsOf(driver, 'AAA').slice(1);
    for (const [place, gapMs] of gaps.entries()) {
      expect(gapMs).toBeLessThanOrEqual(5010);
      expect(gapMs).toBeGreaterThanOrEqual(250 * 0.9 - 1);
      const later = gaps[place + 1];
      if (later !== undefined && gapMs < 4000) expect(later).toBeLessThan(gapMs * 1.1);
    }
    expect(gaps.length).toBeGreaterThan(15);
    expect(gaps.length).toBeLessThan(40);
    expect(gaps.at(-1) ?? 0).toBeLessThan(600);
  });

  test('the last attempt that fits is made at the last moment at which it is in time', () => {
    for (const seed of [1, 2, 3, 4, 5]) {
      const driver = createDriver({ markets: ['AAA:10'], seed });
      driver.arm();
      driver.live(14_000, 20, (write) => driver.settle(write, NOT_SENT));
      const leftMs = driver.writes.map(({ atMs }) => 9000 - atMs).filter((ms) => ms > 0);
      expect(leftMs.at(-1)).toBeLessThan(30);
    }
  });

  test('a market that lapsed is tried every half second, for ever', () => {
    const driver = createDriver({ markets: ['AAA:5'] });
    driver.arm();
    driver.live(10_000, 20, (write) => driver.settle(write, HTTP_500));
    const before = driver.writes.length;
    driver.live(60_000, 20, (write) => driver.settle(write, HTTP_500));
    expect(driver.writes.length - before).toBeGreaterThanOrEqual(115);
    expect(driver.writes.length - before).toBeLessThanOrEqual(140);
  });

  test('an attempt is listened to after its deadline, and the one after it takes a fresh connection', () => {
    const driver = createDriver({ markets: ['AAA:60'] });
    driver.arm();
    driver.wait(6000);
    const hung = driver.takeOne();
    expect(hung.fresh).toBe(false);
    driver.wait(3010);
    const aborts = () => driver.effects.filter((one) => one.kind === 'abort');
    expect(aborts()).toEqual([]);
    while (driver.writes.length === 2) driver.wait(10);
    expect(driver.takeOne().fresh).toBe(true);
    while (aborts().length === 0) driver.wait(10);
    expect(driver.now().monoMs - (hung.atMs + 5000)).toBeGreaterThan(5000);
  });

  test('a connection that failed at once is no reason for a fresh one', () => {
    const driver = createDriver({ markets: ['AAA:60'] });
    driver.arm();
    driver.wait(6000);
    driver.settle(driver.takeOne(), HTTP_500);
    driver.wait(5100);
    expect(driver.takeOne().fresh).toBe(false);
  });
});

describe('several markets that are due together', () => {
  /** Timers that end at these seconds, all due now, with a lane for one request. */
  function queue(ends: Readonly<Record<string, number>>) {
    const driver = createDriver({ markets: Object.keys(ends).map((name) => `${name}:60`) });
    driver.tick();
    for (let write = driver.take()[0]; write !== undefined; write = driver.take()[0]) {
      driver.apply(write, { timeout: ends[write.market] ?? 60 });
    }
    driver.move({ monoMs: 5000 });
    driver.tick();
    const order: string[] = [];
    for (let write = driver.take()[0]; write !== undefined; write = driver.take()[0]) {
      order.push(write.market);
      driver.apply(write, { startTime: SERVER_EPOCH + 5 });
    }
    return order;
  }

  test('go the most urgent first', () => {
    expect(queue({ AAA: 40, BBB: 20, CCC: 30 })).toEqual(['BBB', 'CCC', 'AAA']);
  });

  test('go those that can still be saved before those that have lapsed, of which the longest waiting', () => {
    expect(queue({ AAA: 40, GONE: 5, BBB: 20, LOST: 4 })).toEqual(['BBB', 'AAA', 'LOST', 'GONE']);
  });

  test('count one that cannot be reached in time among the lapsed', () => {
    const driver = createDriver({ markets: ['LATE:30', 'GOOD:30'] });
    driver.live(20_000, 2000);
    const late = driver.market('LATE');
    // Less guaranteed time is left than a round trip takes.
    late.belief.notBeforeLifeMs = driver.state.lifeMs + 1500;
    late.belief.notBeforeAwakeMs = driver.now().monoMs + 1500;
    for (const market of driver.state.markets) dueAt(driver.state, market, driver.now().monoMs);
    driver.live(10_000, 2000);
    const fresh = driver.writes.filter(({ atMs }) => atMs >= 20_000);
    expect(fresh[0]?.market).toBe('GOOD');
  });

  test('one that ends sooner before one that has lost more of its time', () => {
    const driver = createDriver({ markets: ['LONG:60', 'SHORT:5'] });
    driver.live(20_000);
    const belief = driver.market('LONG').belief;
    belief.notBeforeLifeMs = driver.state.lifeMs + 20_000;
    belief.notBeforeAwakeMs = driver.now().monoMs + 20_000;
    for (const market of driver.state.markets) dueAt(driver.state, market, driver.now().monoMs);
    driver.take();
    driver.live(500);
    const fresh = driver.writes.filter(({ atMs }) => atMs >= 20_000);
    expect(fresh.map(({ market }) => market)).toEqual(['SHORT', 'LONG']);
  });

  test('after a step of the wall clock, those that still run whatever it shows, the soonest first', () => {
    const driver = createDriver({ markets: ['LONG:60', 'SHORT:5', 'LONGER:600', 'MIDDLE:30'] });
    driver.live(60_000);
    driver.move({ monoMs: 1, wallMs: 40_000 });
    driver.live(2000);
    const fresh = driver.writes.filter(({ atMs }) => atMs > 60_000);
    expect(fresh.slice(0, 4).map(({ market }) => market)).toEqual(['SHORT', 'LONG', 'MIDDLE', 'LONGER']);
  });
});

describe('with every address out', () => {
  function out(count: number, timeoutSeconds = 60) {
    const driver = createDriver({
      markets: Array.from({ length: count }, (_, index) => `M${index}:${timeoutSeconds}`),
      nonce: 'window',
    });
    driver.arm();
    driver.live(10_000);
    return driver;
  }
  test.each([5, 20, 200])('the number of requests does not depend on the number of markets: %i', (count) => {
    const driver = out(count);
    driver.live(10_000, 5, (write) => driver.settle(write, HTTP_500));
    expect(driver.notices('outage-began')).toHaveLength(1);
    const before = driver.writes.length;
    driver.live(20_000, 5, (write) => driver.settle(write, HTTP_500));
    expect(driver.writes.length - before).toBeGreaterThanOrEqual(3);
    expect(driver.writes.length - before).toBeLessThanOrEqual(16);
  });

  test('the canary is the most urgent market, over a fresh connection, and then the others in turns', () => {
    const driver = createDriver({ markets: ['AAA:30', 'BBB:20', 'CCC:25'], nonce: 'window' });
    driver.arm();
    driver.live(2900);
    for (const write of driver.take()) driver.settle(write, NOT_SENT);
    driver.live(17_000, 5, (write) => driver.settle(write, NOT_SENT));
    const canaries = driver.writes.filter(({ fresh }) => fresh);
    expect(names(canaries.slice(0, 4))).toEqual(['BBB', 'CCC', 'AAA', 'BBB']);
  });

  test('the turns begin anew with the next outage', () => {
    const driver = createDriver({ markets: ['AAA:60', 'BBB:55', 'CCC:58'], nonce: 'window' });
    driver.arm();
    driver.live(5000);
    const first = () => {
      const { length } = driver.writes;
      driver.live(9000, 5, (write) => driver.settle(write, NOT_SENT));
      return driver.writes.slice(length).find(({ fresh }) => fresh)?.market;
    };
    expect(first()).toBe('BBB');
    driver.live(20_000);
    expect(driver.notices('outage-ended')).toHaveLength(1);
    expect(first()).toBe('BBB');
    expect(driver.notices('outage-began')).toHaveLength(2);
  });

  test('a market whose time has run out is no canary while another can be saved', () => {
    const driver = createDriver({ markets: ['SHORT:5', 'LONG:600', 'MORE:600'], nonce: 'window' });
    driver.arm();
    driver.live(10_000, 5);
    driver.live(30_000, 5, (write) => driver.settle(write, NOT_SENT));
    const late = driver.writes.filter(({ atMs }) => atMs > 25_000);
    expect(late.length).toBeGreaterThan(0);
    expect(names(late)).not.toContain('SHORT');
  });

  test('a market that is not wanted does not hurry the canary, however little time it has left', () => {
    const driver = createDriver({
      markets: ['GONE:20:gone', 'AAA:60', 'BBB:60', 'CCC:60'],
      nonce: 'window',
      liveness: { mode: 'beat', ttlMs: 600_000 },
    });
    driver.feed({ kind: 'evidence', bot: 'bot', says: 'beat', agoMs: 0 });
    driver.feed({ kind: 'evidence', bot: 'gone', says: 'beat', agoMs: 0 });
    driver.live(12_000);
    driver.feed({ kind: 'evidence', bot: 'gone', says: 'goodbye', agoMs: 0 });
    driver.live(30_000, 5, (write) => driver.settle(write, HTTP_500));
    const began = driver.notices('outage-began').length;
    expect(began).toBe(1);
    const canaries = driver.writes.filter(({ fresh }) => fresh).map(({ atMs }) => atMs);
    const gaps = canaries.slice(1).map((atMs, place) => atMs - (canaries[place] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThan(3000);
  });

  test('a market that the exchange refuses is no canary before its own probe is due', () => {
    const driver = createDriver({ markets: ['WRONG:60', 'AAA:60', 'BBB:60'], nonce: 'window' });
    driver.tick();
    for (const write of driver.take()) {
      if (write.market === 'WRONG')
        driver.settle(write, { kind: 'refused', code: 31, detail: 'Market is not available.' });
      else driver.apply(write);
    }
    driver.live(30_000, 5, (write) => driver.settle(write, HTTP_500));
    expect(driver.notices('outage-began')).toHaveLength(1);
    expect(of(driver, 'WRONG')).toHaveLength(1);
  });
});
