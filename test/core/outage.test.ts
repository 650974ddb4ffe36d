import { describe, expect, test } from 'vitest';
import { type Outcome } from '../../src/core/events.ts';
import { type SettingsOptions } from './core-settings.ts';
import {
  createDriver,
  type Driver,
  GARBAGE,
  HTTP_500,
  LOST,
  NO_MARKET,
  NOT_SENT,
  ping,
  STALE_NONCE,
  THROTTLED,
  type Write,
} from './driver.ts';

/** Three armed markets whose next renewals are written and unanswered. */
function three(options: SettingsOptions = {}) {
  const driver = createDriver({ markets: ['AAA:10', 'BBB:10', 'CCC:10'], nonce: 'window', ...options });
  driver.arm();
  driver.wait(1300);
  const writes = driver.take();
  const of = (market: string): Write => {
    const write = writes.find((one) => one.market === market);
    if (write === undefined) throw new Error(`no renewal of ${market}`);
    return write;
  };
  return { driver, of, all: [of('AAA'), of('BBB'), of('CCC')] as const };
}
const began = (driver: Driver) => driver.notices('outage-began').length;
const isOut = (driver: Driver, base = 0) => driver.state.bases[base]?.outage !== null;

describe('an outage begins', () => {
  test.each([
    ['server errors', HTTP_500],
    ['lost replies', LOST],
    ['refused connections', NOT_SENT],
    ['garbled successes', GARBAGE],
    ['throttling pages', THROTTLED],
  ] as const)('after three %s in a row of more than one market', (_what, outcome) => {
    const { driver, all } = three();
    const expiries = driver.look().markets.map((market) => market.expiryWallMs ?? 0);
    const expiryWallMs = Math.min(...expiries);
    driver.settle(all[0], outcome);
    driver.settle(all[1], outcome);
    expect(began(driver)).toBe(0);
    driver.settle(all[2], outcome);
    expect(driver.notices('outage-began')).toEqual([
      {
        kind: 'outage-began',
        base: 0,
        standsIn: null,
        detail: expect.stringContaining(outcome.kind === 'applied' ? '' : ''),
        expiryWallMs: expect.closeTo(expiryWallMs, 3),
      },
    ]);
    expect(isOut(driver)).toBe(true);
  });

  test('after three requests of more than one market stayed unanswered for half a second', () => {
    const { driver } = three();
    driver.wait(190);
    expect(began(driver)).toBe(0);
    driver.wait(300);
    expect(driver.notices('outage-began')).toHaveLength(1);
    expect(driver.notices('outage-began')[0]?.detail).toBe('3 requests unanswered for 500 ms or more');
  });

  test('not before a slow exchange has had eight round trips', () => {
    const driver = createDriver({ markets: ['AAA:10', 'BBB:10', 'CCC:10'], nonce: 'window' });
    driver.live(9990, 200);
    const never = 1_000_000;
    driver.live(2100, never);
    expect(driver.state.attempts.length).toBeGreaterThanOrEqual(3);
    expect(began(driver)).toBe(0);
    driver.live(500, never);
    expect(began(driver)).toBe(1);
  });
});

describe('no outage', () => {
  test('is a market alone in the world: it has its own pace', () => {
    const driver = createDriver({ markets: ['AAA:10'] });
    driver.arm();
    driver.live(30_000, 10, (write) => driver.settle(write, HTTP_500));
    expect(driver.market('AAA').stats.failures).toBeGreaterThan(20);
    expect(began(driver)).toBe(0);
  });

  const answers: readonly [string, (driver: Driver, write: Write) => void][] = [
    ['a success', (driver, write) => driver.apply(write)],
    ['a refused market', (driver, write) => driver.settle(write, NO_MARKET)],
    ['a stale nonce', (driver, write) => driver.settle(write, STALE_NONCE)],
  ];
  test.each(answers)('is what has %s in between: the exchange itself answered', (_what, answer) => {
    const { driver, of, all } = three();
    driver.settle(of('AAA'), HTTP_500);
    driver.settle(of('BBB'), HTTP_500);
    answer(driver, all[2]);
    driver.take();
    driver.move({ monoMs: 1 });
    for (const name of ['AAA', 'BBB']) driver.market(name).nextMs = driver.now().monoMs;
    driver.tick();
    for (const write of driver.take()) if (write.market !== 'CCC') driver.settle(write, HTTP_500);
    expect(driver.notices('attempt-failed').filter(({ reason }) => reason === 'http_5xx').length).toBe(4);
    expect(began(driver)).toBe(0);
  });

  test('is a request that the daemon itself held back', () => {
    const { driver, all } = three();
    const held: Outcome = {
      kind: 'transient',
      reason: 'aborted',
      detail: 'may not leave',
      maybeApplied: false,
    };
    for (const write of all) driver.settle(write, held);
    expect(began(driver)).toBe(0);
  });

  test('is what was written before the last answer and times out after it', () => {
    const { driver, all } = three({ markets: ['AAA:10', 'BBB:10', 'CCC:10', 'DDD:600'] });
    // The markets' next attempts are answered while the lost ones are still in flight.
    driver.live(2800, 10, (write) => driver.apply(write));
    const before = began(driver);
    expect(isOut(driver)).toBe(false);
    for (const write of all) driver.settle(write, LOST);
    expect(isOut(driver)).toBe(false);
    expect(began(driver)).toBe(before);
  });
});

describe('an outage ends', () => {
  function out() {
    const stage = three();
    for (const write of stage.all) stage.driver.settle(write, HTTP_500);
    return stage.driver;
  }

  test.each([
    ['a refused market', NO_MARKET],
    ['a stale nonce', STALE_NONCE],
  ])('with the first answer of the exchange, also %s', (_what, outcome) => {
    const driver = out();
    const canary = driver.takeOne();
    driver.move({ monoMs: 100 });
    driver.settle(canary, outcome);
    expect(driver.notices('outage-ended')).toEqual([
      { kind: 'outage-ended', base: 0, lastedMs: 100, attempts: 1 },
    ]);
  });

  test('not with another failure, nor with a good ping', () => {
    const driver = out();
    driver.settle(driver.takeOne(), HTTP_500);
    ping(driver, false);
    ping(driver, true);
    expect(isOut(driver)).toBe(true);
  });

  test('and what it kept waiting is due at once, but what it did not touch is not', () => {
    const driver = createDriver({ markets: ['AAA:10', 'BBB:10', 'CCC:10', 'DDD:600'], nonce: 'window' });
    driver.arm();
    driver.wait(1300);
    for (const write of driver.take()) driver.settle(write, HTTP_500);
    // Long enough to be no flapping.
    driver.wait(700);
    const canary = driver.take().at(-1);
    if (canary !== undefined) driver.apply(canary);
    driver.wait(250);
    const released = driver.take().map(({ market }) => market);
    expect(released).not.toContain('DDD');
    expect(new Set([...released, canary?.market])).toEqual(new Set(['AAA', 'BBB', 'CCC']));
  });
});

describe('the second address', () => {
  const bases = ['https://one.example', 'https://two.example'];

  function out(sameAccount: boolean, nonce: 'increasing' | 'window' = 'window') {
    const stage = three({ bases, sameAccount, nonce });
    for (const write of stage.all) stage.driver.settle(write, NOT_SENT);
    stage.driver.wait(600);
    return stage.driver;
  }

  test('does not take them over while its own ping fails', () => {
    const { driver, all } = three({ bases, sameAccount: true });
    ping(driver, false, 1);
    for (const write of all) driver.settle(write, NOT_SENT);
    driver.wait(2000);
    expect(new Set(driver.take().map(({ base }) => base))).toEqual(new Set([0]));
  });

  test.each([
    [true, 1],
    [false, null],
  ])('is named when it takes them over (sameAccount: %s)', (sameAccount, standsIn) => {
    expect(out(sameAccount).notices('outage-began')[0]?.standsIn).toBe(standsIn);
  });

  test('takes every delete of a stop, also where the first answers pings and nothing else', () => {
    for (let stopsAfterMs = 3000; stopsAfterMs < 4000; stopsAfterMs += 100) {
      const driver = out(true, 'increasing');
      const hung: Write[] = [];
      const live = (forMs: number): void => {
        for (let goneMs = 0; goneMs < forMs; goneMs += 100) {
          driver.live(100, 10, (write) => {
            if (write.base === 0) hung.push(write);
            else if (write.timeoutSeconds === null) driver.settle(write, { kind: 'deleted' });
            else driver.apply(write);
          });
          const aborted = new Set(
            driver.effects.flatMap((one) => (one.kind === 'abort' ? [one.attempt] : [])),
          );
          for (const write of hung) if (aborted.has(write.attempt)) driver.settle(write, LOST);
        }
      };
      live(1000);
      ping(driver, true, 0);
      live(stopsAfterMs);
      driver.stop('delete');
      live(7000);
      expect(driver.finished()).toEqual([]);
    }
  });

  test('gives the renewals back once the first is well again', () => {
    const driver = out(true);
    const answer = (write: Write) => driver.apply(write);
    driver.live(3000, 10, (write) => (write.base === 1 ? answer(write) : driver.settle(write, NOT_SENT)));
    expect(driver.writes.at(-1)?.base).toBe(1);
    ping(driver, false, 0);
    ping(driver, true, 0);
    driver.live(10_000, 10, answer);
    expect(isOut(driver, 0)).toBe(false);
    expect(driver.writes.at(-1)?.base).toBe(0);
  });
});

test('a market without an answer tries the other address, where both serve the same account', () => {
  const driver = createDriver({ bases: ['https://one.example', 'https://two.example'], sameAccount: true });
  driver.arm();
  driver.wait(20_000);
  const bases = driver.take().map(({ base }) => base);
  expect(bases.slice(0, 3)).toEqual([0, 1, 0]);
});

test('an address that says what is wrong with a request is well: the outage ends', () => {
  const { driver, all } = three();
  for (const write of all) driver.settle(write, HTTP_500);
  driver.wait(2500);
  const [canary] = driver.take();
  if (canary === undefined) throw new Error('a canary');
  const wrong = { kind: 'transient', reason: 'validation', detail: 'code 5' } as const;
  driver.settle(canary, { ...wrong, maybeApplied: true });
  expect(isOut(driver)).toBe(true);
  driver.wait(5000);
  driver.settle(driver.take()[0] ?? canary, { ...wrong, maybeApplied: false });
  expect(isOut(driver)).toBe(false);
});

test('two failures at the start are no outage yet, three of more than one market are', () => {
  const driver = createDriver({ markets: ['AAA', 'BBB'] });
  driver.tick();
  driver.settle(driver.takeOne(), NOT_SENT);
  driver.settle(driver.takeOne(), NOT_SENT);
  expect(began(driver)).toBe(0);
  driver.live(1500, 20, (write) => driver.settle(write, NOT_SENT));
  expect(began(driver)).toBe(1);
});

test('a market that fails alone is no outage because another one failed before the last answer', () => {
  const driver = createDriver({ markets: ['AAA:30', 'BBB:30'], nonce: 'window' });
  driver.arm();
  let answered = 0;
  driver.live(30_000, 20, (write) => {
    const { market } = write;
    // One failure of AAA, one answer to it, and from then on BBB alone fails, and nobody else is answered.
    if (market === 'AAA' && write.atMs >= 3000 && answered < 2) {
      answered += 1;
      if (answered === 1) driver.settle(write, NOT_SENT);
      else driver.apply(write);
    } else if (market === 'BBB' && answered === 2) driver.settle(write, NOT_SENT);
    else if (answered < 2) driver.apply(write);
  });
  expect(answered).toBe(2);
  expect(driver.notices('attempt-failed').filter(({ market }) => market === 'BBB').length).toBeGreaterThan(2);
  expect(began(driver)).toBe(0);
});

test('silence is an outage also where the first and the last of three requests are of one market', () => {
  const driver = createDriver({ markets: ['AAA:10', 'BBB:600'], nonce: 'window' });
  driver.live(4900);
  const { length } = driver.writes;
  while (driver.writes.length < length + 3) driver.wait(5);
  driver.wait(550);
  expect(driver.writes.slice(length, length + 3).map(({ market }) => market)).toEqual(['AAA', 'BBB', 'AAA']);
  expect(began(driver)).toBe(1);
});

test('a failed ping is followed by the next one half a second later, and not at once', () => {
  const { driver } = three();
  const pings = () => driver.effects.filter(({ kind }) => kind === 'ping').length;
  const before = pings();
  ping(driver, false);
  expect(pings()).toBe(before);
  driver.wait(510);
  expect(pings()).toBe(before + 1);
});

test('the second address is asked nothing but pings, canaries neither, where it is another account', () => {
  const { driver } = three({ bases: ['https://one.example', 'https://two.example'] });
  driver.live(30_000, 20, (write) => driver.settle(write, NOT_SENT));
  expect(began(driver)).toBe(1);
  expect(new Set(driver.writes.map(({ base }) => base))).toEqual(new Set([0]));
});

test('an outage that ends gives up what it has swallowed: another connection is free for each market', () => {
  const { driver, all } = three();
  driver.wait(2000);
  const probe = driver.take().at(-1);
  if (probe === undefined) throw new Error('no probe');
  expect(isOut(driver)).toBe(true);
  driver.apply(probe);
  expect(isOut(driver)).toBe(false);
  for (const { attempt } of all) expect(driver.effects).toContainEqual({ kind: 'abort', attempt });
});
