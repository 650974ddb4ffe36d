import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../src/core/events.ts';
import { createRandom } from '../../src/simulator/random.ts';
import { many, type SettingsOptions } from './core-settings.ts';
import {
  armed,
  createDriver,
  type Driver,
  endure,
  GARBAGE,
  gaps,
  HTTP_500,
  LOST,
  NO_MARKET,
  NOT_SENT,
  ping,
  played,
  STALE_NONCE,
  THROTTLED,
  type Write,
} from './driver.ts';

const failed = (reason: 'aborted' | 'validation', maybeApplied: boolean): Outcome => {
  return { kind: 'transient', reason, detail: 'code 5', maybeApplied };
};

/** Three armed markets whose next renewals are written, and come to the same outcome. */
function three(outcome: Outcome | null = null, options: SettingsOptions = {}) {
  const driver = played({ markets: ['AAA:10', 'BBB:10', 'CCC:10'], nonce: 'window', ...options }, 'start');
  driver.wait(1300);
  const [one, two, last, ...more] = driver.take();
  if (one === undefined || two === undefined || last === undefined || more.length > 0)
    throw new Error('three');
  const all = [one, two, last] as const;
  if (outcome !== null) for (const write of all) driver.settle(write, outcome);
  return { driver, all };
}
const began = (driver: Driver) => driver.notices('outage-began').length;
const isOut = (driver: Driver, base = 0) => driver.look().bases[base]?.outage;
const basesOf = (writes: readonly Write[]) => new Set(writes.map(({ base }) => base));

describe('an outage begins', () => {
  test.each([
    ['server errors', HTTP_500],
    ['lost replies', LOST],
    ['refused connections', NOT_SENT],
    ['garbled successes', GARBAGE],
    ['throttling pages', THROTTLED],
  ] as const)('after three %s in a row of more than one market', (_what, outcome) => {
    const { driver, all } = three();
    const expiryWallMs = Math.min(...driver.look().markets.map((market) => market.expiryWallMs ?? 0));
    driver.settle(all[0], outcome);
    driver.settle(all[1], outcome);
    expect(began(driver)).toBe(0);
    driver.settle(all[2], outcome);
    expect(driver.notices('outage-began')).toEqual([
      {
        kind: 'outage-began',
        base: 0,
        standsIn: null,
        detail: outcome.detail,
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
    driver.live(2100, 1_000_000);
    expect(began(driver)).toBe(0);
    driver.live(500, 1_000_000);
    expect(began(driver)).toBe(1);
  });
});

describe('no outage', () => {
  test('is a market alone in the world: it has its own pace', () => {
    const driver = played({ markets: ['AAA:10'] }, 'start, failing 30');
    expect(driver.statusOf()?.failures).toBeGreaterThan(20);
    expect(began(driver)).toBe(0);
  });

  test.each([
    ['a success', null],
    ['a refused market', NO_MARKET],
    ['a stale nonce', STALE_NONCE],
  ])('is what has %s in between: the exchange itself answered', (_what, outcome) => {
    const { driver, all } = three();
    driver.settle(all[0], HTTP_500);
    driver.settle(all[1], HTTP_500);
    if (outcome === null) driver.apply(all[2]);
    else driver.settle(all[2], outcome);
    const failures = () =>
      driver.notices('attempt-failed').filter(({ reason }) => reason === 'http_5xx').length;
    while (failures() < 4)
      driver.live(10, 20, (write) => write.market !== 'CCC' && driver.settle(write, HTTP_500));
    expect(began(driver)).toBe(0);
  });

  test('is a request that the daemon itself held back', () => {
    expect(began(three(failed('aborted', false)).driver)).toBe(0);
  });

  test('is a part of all requests that fails: the exchange answers the others', () => {
    const driver = played({ markets: many(12, 10), nonce: 'window' }, 'live 5');
    let requests = 0;
    driver.live(20_000, 20, (write) => {
      requests += 1;
      if (requests % 5 < 2) driver.apply(write);
      else driver.settle(write, HTTP_500);
    });
    expect(began(driver)).toBe(0);
  });

  test('is what still waits for its connection: a host that is short of CPU opens them slowly', () => {
    const driver = played({ markets: ['AAA:10', 'BBB:10', 'CCC:10'], nonce: 'window' }, 'start, live 10.2');
    driver.holdConnections();
    driver.take();
    driver.wait(1900);
    expect(driver.take().length).toBeGreaterThanOrEqual(3);
    expect(began(driver)).toBe(0);
  });

  test('is a market that fails alone, because another one failed before the last answer', () => {
    const driver = played({ markets: ['AAA:30', 'BBB:30'], nonce: 'window' }, 'start');
    let answered = 0;
    driver.live(30_000, 20, (write) => {
      // One failure of AAA, one answer to it, and from then on BBB alone fails, and nobody else is answered.
      const isOfA = write.market === 'AAA' && write.atMs >= 3000;
      if (answered === 2) {
        if (write.market === 'BBB') driver.settle(write, NOT_SENT);
        return;
      }
      if (isOfA) answered += 1;
      if (isOfA && answered === 1) driver.settle(write, NOT_SENT);
      else driver.apply(write);
    });
    const alone = driver.notices('attempt-failed').filter(({ market }) => market === 'BBB');
    expect(alone.length).toBeGreaterThan(2);
    expect(began(driver)).toBe(0);
  });
});

test.each([3, 4, 6])('the last probe in time goes to the market that it saves, among %i', (count) => {
  const others = Array.from({ length: count - 1 }, (_, index) => `M${index}:60`);
  const driver = played({ markets: ['AAA:10', ...others], nonce: 'window' }, 'start');
  driver.wait(1300);
  driver.take();
  const endMs = driver.sinceStartMs() + (driver.statusOf()?.guaranteedMs ?? 0);
  driver.suffer(9000, HTTP_500);
  const inTime = driver.writes.filter(({ atMs }) => atMs <= endMs);
  expect(inTime.at(-1)?.market).toBe('AAA');
});

describe('an outage ends', () => {
  test.each([
    ['a refused market', NO_MARKET],
    ['a stale nonce', STALE_NONCE],
    ['what is wrong with a request', failed('validation', false)],
  ])('with the first answer of the exchange, also %s', (_what, outcome) => {
    const { driver } = three(HTTP_500);
    const canary = driver.takeOne();
    driver.move({ monoMs: 100 });
    driver.settle(canary, outcome);
    expect(driver.notices('outage-ended')).toEqual([
      { kind: 'outage-ended', base: 0, lastedMs: 100, attempts: 1 },
    ]);
  });

  test.each([HTTP_500, failed('validation', true)])(
    'not with another failure, nor with a good ping',
    (outcome) => {
      const { driver } = three(HTTP_500);
      driver.settle(driver.takeOne(), outcome);
      ping(driver, false);
      ping(driver, true);
      expect(isOut(driver)).toBe(true);
    },
  );

  test('and what it kept waiting is due at once, but what it did not touch is not', () => {
    const driver = played({ markets: ['AAA:10', 'BBB:10', 'CCC:10', 'DDD:600'], nonce: 'window' }, 'start');
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
    const { driver } = three(NOT_SENT, { bases, sameAccount, nonce });
    driver.wait(600);
    return driver;
  }

  test('is tried by a market without an answer, where it serves the same account', () => {
    const driver = played({ bases, sameAccount: true }, 'start, wait 20');
    const asked = driver.take().map(({ base }) => base);
    expect(asked.slice(0, 3)).toEqual([0, 1, 0]);
  });

  test.each([
    ['of the only market', ['AAA:5']],
    ['of several markets', ['AAA:5', 'BBB:5']],
  ])('takes the renewals %s though its own ping fails, where no other is well', (_what, markets) => {
    const driver = played({ bases, sameAccount: true, markets }, 'start, live 10');
    ping(driver, false, 1);
    ping(driver, false, 0);
    driver.live(20_000, 10, (write) =>
      write.base === 1 ? driver.apply(write) : driver.settle(write, NOT_SENT),
    );
    expect(driver.notices('overdue')).toEqual([]);
  });

  test('is renewed over once a period while the first one is dead, also for the only market', () => {
    const driver = played({ bases, sameAccount: true, markets: ['AAA:30'] }, 'start, live 10');
    ping(driver, true, 1);
    ping(driver, false, 0);
    driver.take();
    driver.live(30_000, 10, (write) => (write.base === 1 ? driver.apply(write) : null));
    expect(Math.max(...gaps(driver.writes.filter(({ base }) => base === 1).slice(1)))).toBeLessThan(3100);
  });

  test('does not take over while its own ping fails, and a third one is well', () => {
    const three = [...bases, 'https://third.example'];
    const driver = played({ bases: three, sameAccount: true }, 'start, live 10');
    ping(driver, false, 1);
    ping(driver, true, 2);
    driver.live(10_000, 10, (write) =>
      write.base === 2 ? driver.apply(write) : driver.settle(write, NOT_SENT),
    );
    expect(basesOf(driver.writes)).toEqual(new Set([0, 2]));
  });

  test.each([
    ['which one of the same account is', true, 1, [0, 1]],
    ['which one of another account is not', false, null, [0]],
  ])('is named where it takes over, %s', (_what, sameAccount, standsIn, asked) => {
    const driver = out(sameAccount);
    expect(driver.notices('outage-began')[0]?.standsIn).toBe(standsIn);
    driver.suffer(30_000, NOT_SENT);
    expect(basesOf(driver.writes)).toEqual(new Set(asked));
  });

  test('gives the renewals back once the first is well again', () => {
    const driver = out(true);
    driver.live(3000, 10, (write) =>
      write.base === 1 ? driver.apply(write) : driver.settle(write, NOT_SENT),
    );
    expect(driver.writes.at(-1)?.base).toBe(1);
    ping(driver, false, 0);
    ping(driver, true, 0);
    driver.live(10_000, 10);
    expect(isOut(driver)).toBe(false);
    expect(driver.writes.at(-1)?.base).toBe(0);
  });
});

test('no probe of an outage is a delete that a renewal may still follow', () => {
  const driver = armed({ markets: ['AAA:60', 'BBB:60', 'CCC:60'], nonce: 'window' });
  while (driver.notices('outage-began').length === 0) driver.suffer(100, LOST);
  driver.operate('disarm', ['AAA']);
  const lastMs = Math.max(...driver.of('AAA').map(({ atMs }) => atMs));
  driver.suffer(15_000, LOST);
  const deletes = driver.of('AAA', lastMs + 1);
  expect(deletes[0]?.timeoutSeconds).toBeNull();
  expect((deletes[0]?.atMs ?? 0) - lastMs).toBeGreaterThanOrEqual(10_000);
});

describe.each([
  ['a black hole', null],
  ['refused connections', NOT_SENT],
  ['gateway pages', HTTP_500],
])('in an outage (%s)', (_what, outcome) => {
  test('there is one request of each market, and from there one at a time, never two within its gap', () => {
    const driver = played({ markets: many(20), nonce: 'window' }, 'live 15');
    let beganMs = Number.POSITIVE_INFINITY;
    endure(driver, 45_000, () => {
      if (began(driver) > 0) beganMs = Math.min(beganMs, driver.sinceStartMs());
      return outcome;
    });
    // Every market was due once within its period of 6 s.
    const probes = driver.writes.filter(({ atMs }) => atMs > beganMs + 8000);
    expect(Math.min(...gaps(probes))).toBeGreaterThanOrEqual(224);
    expect(probes.length).toBeGreaterThan(7);
  });

  test('of three quarters of all requests, for a minute, few of twelve short timers are lost', () => {
    const markets = Array.from({ length: 12 }, (_, index) => `M${index}:${5 + index}`);
    let lapsed = 0;
    for (let seed = 1; seed <= 5; seed += 1) {
      const random = createRandom(seed);
      const driver = played({ markets, nonce: 'window' }, 'live 10');
      endure(driver, 60_000, () => (random() < 0.75 ? outcome : undefined));
      driver.live(5000);
      lapsed += driver.notices('lapsed').length;
    }
    expect(lapsed).toBeLessThanOrEqual(15);
  });
});

test('a request that a black hole has swallowed makes no market open connections once a newer one is answered', () => {
  const driver = played({ nonce: 'window' }, 'live 20');
  endure(driver, 9000, () => null);
  let answeredMs = Number.POSITIVE_INFINITY;
  endure(driver, 51_000, () => {
    answeredMs = Math.min(answeredMs, driver.sinceStartMs());
    return undefined;
  });
  const opening = driver.writes.filter(({ fresh }) => fresh).map(({ atMs }) => atMs);
  expect(opening.length).toBeGreaterThan(0);
  expect(Math.max(...opening)).toBeLessThan(answeredMs);
});

test('a blip that loses a handful of requests is one outage, and not a second one when they time out', () => {
  const driver = played({ markets: many(6), nonce: 'window' }, 'live 5.1');
  // All are due together when the host wakes up.
  driver.move({ monoMs: 10, bootMs: 1010, wallMs: 1010 });
  endure(driver, 1100, () => null);
  endure(driver, 19_000, () => undefined);
  expect(driver.notices('attempt-failed').length).toBeGreaterThanOrEqual(5);
  expect(began(driver)).toBeLessThanOrEqual(1);
});

describe('a market that is sick by itself', () => {
  test('at the head of the queue does not keep the others from finding out that the exchange is back', () => {
    const driver = played({ markets: ['SICK:30', ...many(4)], nonce: 'window' }, 'live 20');
    endure(driver, 15_000, ({ market }) => (market === 'SICK' ? null : HTTP_500));
    expect(began(driver)).toBe(1);
    const answered = new Set<string>();
    endure(driver, 5000, ({ market }) => {
      if (market === 'SICK') return null;
      answered.add(market);
      return undefined;
    });
    expect(driver.notices('outage-ended')).toHaveLength(1);
    expect([...answered].toSorted()).toEqual(['M0', 'M1', 'M2', 'M3']);
  });

  test('because the exchange refuses it, does not lock the canary out', () => {
    const driver = createDriver({ markets: ['WRONG:60', ...many(3, 10)], nonce: 'window' });
    const fate = ({ market }: Write) => (market === 'WRONG' ? NO_MARKET : undefined);
    endure(driver, 5000, fate);
    endure(driver, 30_000, () => HTTP_500);
    endure(driver, 2000, fate);
    for (const name of ['M0', 'M1', 'M2']) expect(driver.statusOf(name)?.state).toBe('armed');
  });
});

test.each([10, 3, 2])('where one of %i requests is answered there is no storm', (one) => {
  const driver = played({ markets: many(20), nonce: 'window' }, 'live 15');
  const before = driver.writes.length;
  let requests = 0;
  endure(driver, 60_000, () => {
    requests += 1;
    return requests % one === 0 ? undefined : HTTP_500;
  });
  // Well, it would be 200 in a minute; with every retry at its own pace four times as much.
  expect(driver.writes.length - before).toBeLessThanOrEqual(1300);
  const inSecond = driver.writes.map(
    ({ atMs }) => driver.writes.filter((other) => other.atMs >= atMs && other.atMs < atMs + 1000).length,
  );
  expect(Math.max(...inSecond)).toBeLessThanOrEqual(100);
});
