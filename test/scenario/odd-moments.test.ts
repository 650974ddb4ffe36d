import { describe, expect, test } from 'vitest';
import { BAD_KEY, createDriver, NO_MARKET, type Write } from '../core/driver.ts';
import { type Bench, createBench, TWO_ADDRESSES } from './bench.ts';

const WATCHED = { mode: 'beat', ttlMs: 15_000, startupGraceMs: 20_000 } as const;

describe.each(['increasing', 'window'] as const)(
  'with %s nonces, two addresses of which the first hangs',
  (nonce) => {
    test.each([1, 2])('cost no timer of %i market(s), and no delete of a stop', (count) => {
      const bench = createBench({
        markets: ['AAA', 'BBB'].slice(0, count),
        nonce,
        ...TWO_ADDRESSES,
      });
      bench.start(20_000);
      bench.rules.push(({ base }) => (base === 0 ? { kind: 'lost' } : null));
      bench.pingsFail((base) => base === 0);
      bench.run(120_000);
      expect(bench.book.fired).toEqual([]);
      bench.stop('delete');
      bench.run(9000);
      expect(bench.book.timers.size).toBe(0);
    });
  },
);

describe('a timer that fired while it was wanted is reported, although its bot is silent when that is found out', () => {
  function guarded(timeoutSeconds: number): Bench {
    const bench = createBench({ markets: [`AAA:${timeoutSeconds}`], liveness: WATCHED });
    bench.keeper.start();
    return bench;
  }

  test.each(['suspend', 'stall'] as const)('after a %s', (what) => {
    const bench = guarded(10);
    bench.beats(300_000, 3000);
    bench.run(20_000);
    bench.clock[what](60_000);
    bench.run(80_000);
    expect(bench.book.fired).toHaveLength(1);
    expect(bench.noticesOf('lapsed')).toHaveLength(1);
  });

  test('in an outage at whose end the bot fell silent for a moment', () => {
    const bench = guarded(60);
    bench.beats(100_000, 3000);
    bench.run(20_000);
    bench.strike({ kind: 'lost' }, 125_000);
    bench.run(100_000);
    bench.beats(200_000, 3000);
    bench.run(60_000);
    expect(bench.noticesOf('lapsed')).toHaveLength(1);
  });
});

describe('a refused key that is good again is found out although nothing is to be renewed', () => {
  function latched(onStale: 'expire' | 'trip' = 'expire') {
    const driver = createDriver({ markets: ['AAA:600'], liveness: { ...WATCHED, onStale } });
    let bad = true;
    const answer = (write: Write) => {
      if (bad) driver.settle(write, BAD_KEY);
      else if (write.timeoutSeconds === null) driver.settle(write, { kind: 'deleted' });
      else driver.apply(write);
    };
    driver.tick();
    driver.say('beat');
    driver.live(2000);
    for (let passedMs = 0; passedMs < 30_000; passedMs += 3000) {
      driver.say('beat');
      driver.live(3000, 20, answer);
    }
    expect(driver.state.key.refusal.said).not.toBeNull();
    bad = false;
    const from = driver.writes.length;
    /** What is written from here on: timeouts in seconds, null for a delete. */
    const written = (lives = false) => {
      for (let passedMs = 0; passedMs < 120_000; passedMs += 3000) {
        if (lives) driver.say('beat');
        driver.live(3000, 20, answer);
      }
      return driver.writes.slice(from).map(({ timeoutSeconds }) => timeoutSeconds);
    };
    return { driver, written };
  }

  test.each([
    ['disarm', null],
    ['trip', 5],
  ] as const)('with a %s that waits for it', (does, timeoutSeconds) => {
    const { driver, written } = latched();
    driver.operate(does);
    expect(written(true)).toEqual([timeoutSeconds]);
  });

  test('with the trip of a bot that failed', () => {
    const { driver, written } = latched('trip');
    driver.say('fail');
    expect(written()).toEqual([5]);
  });

  test('with the deletes of a bot that said goodbye, at once where the key was changed', () => {
    const { driver, written } = latched();
    driver.say('goodbye');
    driver.feed({ kind: 'credentials-changed' });
    driver.tick();
    expect(written()).toEqual([null]);
  });
});

test('a stop goes on deleting where the exchange refused the market for a moment', () => {
  const driver = createDriver({ markets: ['AAA:60'] });
  driver.arm();
  driver.live(12_000);
  driver.feed({ kind: 'stop', policy: 'delete', why: 'test' });
  const fromMs = driver.sinceStartMs();
  driver.live(9000, 20, (write) => {
    if (driver.sinceStartMs() - fromMs < 1000) driver.settle(write, NO_MARKET);
    else driver.settle(write, { kind: 'deleted' });
  });
  expect(driver.finished()).toEqual([]);
});

describe.each(['increasing', 'window'] as const)('with %s nonces', (nonce) => {
  test('a handoff leaves a timer although a delete was on its way when it began', () => {
    const bench = createBench({ markets: ['AAA:60'], roundTripMs: 200, nonce });
    bench.start(10_500);
    void bench.keeper.operate({ does: 'disarm', markets: null, forMs: 0 }, 0);
    bench.run(50);
    void bench.keeper.operate({ does: 'arm', markets: null, forMs: 0 }, 0);
    bench.run(50);
    bench.stop('handoff');
    bench.run(10_000);
    expect(bench.book.timers.size).toBe(1);
  });

  test('no market has more than three requests in flight, and none goes to two addresses at once', () => {
    const bench = createBench({ markets: ['AAA:10', 'BBB:10'], nonce, ...TWO_ADDRESSES });
    bench.start(10_000);
    bench.rules.push(({ base }) => (base === 0 ? { kind: 'lost' } : null));
    bench.run(60_000);
    bench.rules.length = 0;
    bench.run(20_000);
    const close = bench.writes.filter((write, place) =>
      bench.writes
        .slice(0, place)
        .some(({ market, atMs }) => market === write.market && write.atMs - atMs < 50),
    );
    expect(close).toEqual([]);
  });
});

test('a bot that said that it failed does not end well any more: its goodbye deletes nothing', () => {
  const driver = createDriver({ liveness: WATCHED });
  driver.tick();
  driver.say('beat');
  driver.live(2000);
  driver.say('fail');
  driver.say('goodbye');
  const before = driver.writes.length;
  driver.live(5000);
  expect(driver.writes.length).toBe(before);
});
