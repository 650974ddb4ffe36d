import { describe, expect, test } from 'vitest';
import { marketOf, type SettingsOptions } from './core-settings.ts';
import {
  BAD_KEY,
  type Driver,
  GARBAGE,
  HTTP_500,
  LOST,
  NO_MARKET,
  NOT_SENT,
  played,
  renewing,
  STALE_NONCE,
  THROTTLED,
  type Write,
} from './driver.ts';

const LIFETIME_MS = 10_000;
/** Both clocks may be wrong by 200 ppm each, and the exchange counts whole seconds: a timer lasts so long at least. */
const least = (seconds: number) => Math.round((seconds - 1) * 1000 * (1 - 200e-6));
/** And at most so long. */
const most = (seconds: number) => Math.round(seconds * 1000 * (1 + 200e-6) + 1000);

/** Guaranteed for so long, and surely over after so long; milliseconds from now. */
function ends(driver: Driver) {
  const { guaranteedMs = null, firesByWallMs = null } = driver.statusOf() ?? {};
  return {
    leastMs: guaranteedMs === null ? null : Math.round(guaranteedMs),
    mostMs: firesByWallMs === null ? null : Math.round(firesByWallMs - driver.now().wallMs),
  };
}
const leastMs = (driver: Driver) => ends(driver).leastMs ?? 0;
const mostMs = (driver: Driver) => ends(driver).mostMs ?? 0;

/** What is known of a timer right after it was armed. */
const ARMED = { leastMs: leastMs(played({}, 'start')), mostMs: mostMs(played({}, 'start')) };

test('a confirmed renewal is guaranteed from the moment of writing, and has surely fired T + 1 + s after the reply', () => {
  const driver = played({ cancellationDelayMs: 2000 }, 'tick');
  const write = driver.takeOne();
  driver.move({ monoMs: 400 });
  driver.apply(write);
  expect(ends(driver)).toEqual({ leastMs: least(60) - 400, mostMs: most(60) + 2000 });
});

test('a written renewal may fire as late as its lifetime and timeout from now, and guarantees nothing', () => {
  const driver = played({ requestLifetimeMs: 7000, cancellationDelayMs: 500 }, 'tick');
  expect(ends(driver)).toEqual({ leastMs: null, mostMs: 7000 + most(60) + 500 });
});

test.each([
  ['a lost reply', LOST],
  ['a server error', HTTP_500],
  ['a gateway that throttles', THROTTLED],
  ['a garbled success', GARBAGE],
])(
  '%s says nothing about the outcome: it guarantees nothing and moves the latest moment on',
  (_what, outcome) => {
    const { driver, write } = renewing();
    driver.move({ monoMs: 100 });
    driver.settle(write, outcome);
    expect(ends(driver)).toEqual({
      leastMs: ARMED.leastMs - 6100,
      mostMs: LIFETIME_MS + most(60) - 100,
    });
  },
);

test.each([
  ['market', NO_MARKET],
  ['nonce', STALE_NONCE],
  ['key', BAD_KEY],
  ['connection', NOT_SENT],
])('a request whose %s was refused leaves no trace in the belief about an armed timer', (_what, outcome) => {
  const { driver, write } = renewing();
  const effects = driver.settle(write, outcome);
  // A stale nonce is answered with the next attempt at once: that one leaves its own trace.
  const again = effects.some(({ kind }) => kind === 'write');
  expect(ends(driver)).toEqual({
    leastMs: ARMED.leastMs - 6000,
    mostMs: again ? LIFETIME_MS + most(60) : ARMED.mostMs - 6000,
  });
});

describe('an answer of the exchange that is not what was asked for', () => {
  function answered(timer: { timeout?: number; types?: readonly string[] | null }) {
    const driver = played({ markets: [marketOf('AAA', ['spot'])] }, 'tick');
    driver.apply(driver.takeOne(), timer);
    return driver;
  }

  test('with a shorter timer guarantees the shorter time, says so once, and still covers the longer', () => {
    const driver = answered({ timeout: 30 });
    expect(ends(driver)).toEqual({ leastMs: least(30), mostMs: most(60) });
    driver.live(20_000, 20, (write) => driver.apply(write, { timeout: 30 }));
    expect(driver.notices('renewed').length).toBeGreaterThan(2);
    const detail = 'the exchange answered with a timer of 30 s instead of 60 s';
    expect(driver.notices('altered')).toEqual([{ kind: 'altered', market: 'AAA', detail }]);
    expect(driver.statusOf()?.lastProblem).toBe(detail);
  });

  test('with a longer timer guarantees what was asked for and covers the longer', () => {
    expect(ends(answered({ timeout: 90 }))).toEqual({ leastMs: least(60), mostMs: most(90) });
  });

  test.each([
    [['margin', 'spot'], 'margin, spot'],
    [null, 'spot, margin, futures'],
    [['margin'], 'margin'],
    [[], 'none'],
  ])('with other order types, %j, says which', (types, said) => {
    const altered = answered({ types })
      .notices('altered')
      .map(({ detail }) => detail);
    expect(altered).toEqual([`the exchange answered with order types ${said} instead of spot`]);
  });
});

/** Two renewals of a market, 600 ms apart, and nobody has answered them: `window 60 10` asked for 60 s and then 10 s. */
function renewals(how: string) {
  const [nonce, first, second, lifetime = LIFETIME_MS] = how.split(' ');
  const settings = (seconds: number): SettingsOptions => ({
    nonce: nonce === 'window' ? nonce : 'increasing',
    requestLifetimeMs: Number(lifetime),
    // The key is known to be good by the other one, so that requests go side by side.
    markets: ['KEY:600', `AAA:${seconds}`],
  });
  const driver = played(settings(Number(first)), 'tick');
  driver.apply(driver.takeOne());
  const written: Write[] = [driver.takeOne()];
  const ask = (seconds: number): void => {
    driver.move({ monoMs: 600 });
    driver.reload(settings(seconds));
    driver.tick();
    written.push(driver.takeOne());
  };
  ask(Number(second));
  return { driver, written, ask };
}

/** Carries out `lose 1, wait 100, apply 2 as 10, ask 120`: a number is a renewal in the order of writing, and then seconds. */
function carryOut({ driver, written, ask }: ReturnType<typeof renewals>, script: string): void {
  for (const step of script.split(', ')) {
    const [what, first, , timeout] = step.split(' ');
    const write = written[Number(first) - 1];
    if (what === 'wait') driver.move({ monoMs: Number(first) });
    else if (what === 'ask') ask(Number(first));
    else if (write !== undefined && what === 'lose') driver.settle(write, LOST);
    else if (write !== undefined)
      driver.apply(write, timeout === undefined ? {} : { timeout: Number(timeout) });
  }
}

/** How long the first of two may still be on its way once the second is written. */
const STRAY_MS = LIFETIME_MS - 600;
const MOST_MS = LIFETIME_MS + most(60);

describe('of renewals that ask for timers of different lengths', () => {
  type Row = [what: string, how: string, script: string, leastMs: number | null, mostMs: number];
  test.each<Row>([
    ['each of two lost ones counts', 'window 60 10', 'lose 1, lose 2', null, STRAY_MS + most(60)],
    ['a lost one is fenced by a confirmation', 'rising 60 10', 'lose 1, apply 2', least(10), most(10)],
    ['one that is fenced and then lost is gone', 'rising 60 10', 'apply 2, lose 1', least(10), most(10)],
    ['a newer lost one is not fenced', 'rising 9 60', 'lose 2, apply 1', least(9) - 600, MOST_MS],
    ['one newer than a fence', 'rising 60 9', 'lose 1, apply 2, ask 60, lose 3', least(9) - 600, MOST_MS],
    ['the shortest cuts', 'window 9 60', 'lose 1, lose 2, ask 60, apply 3', least(9), STRAY_MS + most(60)],
    ['a late old one lowers nothing', 'rising 10 60', 'apply 2, apply 1', least(60), most(60)],
    ['a late old one cuts', 'window 60 60', 'wait 9, apply 2, apply 1 as 10', least(10) - 9, most(60)],
    ['a late old one is fenced', 'rising 60 60', 'wait 9, apply 2, apply 1 as 10', least(60) - 9, most(60)],
    ['an unanswered old one may still come', 'window 60 60', 'apply 2', least(60), STRAY_MS + most(60)],
    ['a late old one is on its way no more', 'window 60 60', 'apply 2, apply 1', least(60), most(60)],
    ['a short old one is fenced', 'rising 10 60', 'apply 2', least(60), most(60)],
    ['a long old one is fenced', 'rising 60 10', 'apply 2', least(10), most(10)],
    ['a short old one cuts the newer', 'window 10 60', 'apply 2', least(10), most(60)],
    ['one that came first cuts', 'window 10 60', 'wait 9, apply 1, apply 2', least(10) - 9, most(60)],
    ['an old one cuts no new one', 'window 60 9', 'apply 2, ask 60, apply 3', least(60), most(60) + 8800],
    ['the newer confirmation counts alone', 'rising 60 10', 'apply 1, apply 2', least(10), most(10)],
    ['a lost one may come late', 'window 10 10', 'lose 1, apply 2', least(10), STRAY_MS + most(10)],
    ['a lost one comes within its lifetime', 'window 10 10 550', 'lose 1, apply 2', least(10), most(10)],
  ])('%s (%s: %s)', (_what, how, script, leastMs, mostMs) => {
    const stage = renewals(how);
    carryOut(stage, script);
    expect(ends(stage.driver)).toEqual({ leastMs, mostMs });
  });
});

/** An armed market with two renewals in flight; the first one was written 1 s before the second. */
function twoInFlight(options: SettingsOptions) {
  const { driver, write: first } = renewing({ markets: ['AAA:10'], ...options }, 1);
  driver.wait(1000);
  return { driver, first, second: driver.takeOne() };
}

describe('of two renewals in flight', () => {
  test('the older one that fails last is no failure of the market any more', () => {
    const { driver, first, second } = twoInFlight({});
    driver.apply(second);
    driver.settle(first, LOST);
    expect(driver.statusOf()).toMatchObject({ failureStreak: 0, lastProblem: null });
    expect(driver.notices('attempt-failed').at(-1)?.streak).toBe(0);
  });

  test.each([
    ['nothing behind, where nonces rise', { nonce: 'increasing' }, []],
    ['a doubt in a nonce window', { nonce: 'window', shutdown: { budgetMs: 1500 } }, ['AAA unconfirmed']],
  ] as const)('a delete that is confirmed after both were lost leaves %s', (_what, options, left) => {
    const { driver, first, second } = twoInFlight(options);
    driver.settle(first, LOST);
    driver.settle(second, LOST);
    driver.stop();
    driver.settle(driver.takeOne(), { kind: 'deleted' });
    expect(driver.finished()).toEqual(left);
    const sinceMs = driver.sinceStartMs() - second.atMs;
    if (left.length > 0) expect(mostMs(driver)).toBe(LIFETIME_MS - sinceMs + most(10));
  });
});

describe('what ends or shortens a timer', () => {
  test('a delete does its worst when it is written, and its loss does not give anything back', () => {
    const driver = played({}, 'start, stop');
    const before = ends(driver);
    expect(before.leastMs).toBeNull();
    driver.settle(driver.takeOne(), LOST);
    expect(ends(driver)).toEqual(before);
  });

  test('a timer that was deleted is not tripped: a dead bot gets no new timer', () => {
    const driver = played(
      { liveness: { mode: 'beat', onStale: 'trip' } },
      'beat, start, goodbye, deleted, fail, live 20',
    );
    expect(driver.told('deleted')).toEqual(['AAA']);
    expect(driver.asked(5)).toEqual([]);
  });
});

test('a renewal by a new key leaves the timer doubtful while a delete of the old one may follow', () => {
  const driver = played({}, 'start, disarm, newkey, lose, arm, live 3');
  expect(driver.statusOf()?.guaranteedMs).toBeNull();
  driver.live(10_000);
  expect(driver.statusOf()?.guaranteedMs).toBeGreaterThan(50_000);
});
