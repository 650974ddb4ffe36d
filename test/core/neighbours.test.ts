import { describe, expect, test } from 'vitest';
import { many, marketOf } from './core-settings.ts';
import {
  armed,
  createDriver,
  type Driver,
  endure,
  HTTP_500,
  LOST,
  NOT_SENT,
  play,
  played,
  STALE_NONCE,
  type Write,
} from './driver.ts';

/** The longest that requests of markets of this name waited after they were due, from the nth request on. */
const longestDelayMs = (driver: Driver, from = 0, name = '') =>
  Math.max(
    ...driver
      .notices('attempt')
      .slice(from)
      .map(({ market, delayMs }) => (market.startsWith(name) ? delayMs : 0)),
  );

describe('in a nonce window', () => {
  test('markets that are sick stay at their own pace, and are no outage again and again', () => {
    const sick = many(7, 30, 'SICK');
    const driver = played({ markets: [...sick, ...many(2, 5, 'WELL')], nonce: 'window' }, 'start, live 5');
    driver.suffer(20_000, HTTP_500, ...sick.map((text) => text.replace(':30', '')));
    expect(driver.notices('outage-began').length).toBeLessThan(3);
    const written = driver.writes.filter(({ market, atMs }) => market.startsWith('SICK') && atMs > 5000);
    expect(written.length / 7 / 20).toBeLessThan(2);
  });

  test.each(['stop', 'pause', 'disarm', 'goodbye', 'removal'])(
    'a %s deletes a short timer at once though a stray is left, and again when none is',
    (what) => {
      const markets = ['AAA:5', 'BBB'];
      const driver = armed({ markets, nonce: 'window', shutdown: { budgetMs: 20_000 } });
      play(driver, 'live 2, lost 1');
      const askedMs = driver.sinceStartMs();
      if (what === 'stop') driver.stop();
      else if (what === 'goodbye') driver.say('goodbye');
      else if (what === 'removal') driver.reload({ markets: ['BBB'], nonce: 'window' });
      else driver.operate(what === 'pause' ? 'pause' : 'disarm', null, 60_000);
      driver.live(20_000);
      const lostMs = driver.of('AAA').findLast(({ timeoutSeconds }) => timeoutSeconds === 5)?.atMs ?? 0;
      const deletes = driver
        .of('AAA')
        .flatMap(({ timeoutSeconds, atMs }) => (timeoutSeconds === null ? atMs : []));
      expect(deletes[0]).toBeLessThan(askedMs + 100);
      // A timer that it arms behind a delete is gone before it fires.
      for (const [place, atMs] of deletes.slice(1).entries())
        expect(atMs - (deletes[place] ?? 0)).toBeLessThanOrEqual(3000);
      expect(deletes.at(-1)).toBeGreaterThanOrEqual(lostMs + 10_000);
      expect(driver.notices('fired')).toEqual([]);
      const said = driver.notices('deleted').filter(({ market }) => market === 'AAA');
      expect(said.map(({ isFinal }) => isFinal)).toEqual([...deletes.slice(1).map(() => false), true]);
      expect(said.some(({ mayHaveFired }) => mayHaveFired)).toBe(false);
      if (what === 'stop') expect(driver.finished()).toEqual([]);
    },
  );

  const PAIR = { markets: ['AAA:5', 'BBB'], nonce: 'window' } as const;
  const LONG = { markets: ['AAA:60', 'BBB'], nonce: 'window' } as const;
  const deletesOf = (driver: Driver) =>
    driver.of('AAA').flatMap(({ timeoutSeconds, atMs }) => (timeoutSeconds === null ? atMs : []));

  test('a delete that fails in between is repeated before a timer that a stray arms fires', () => {
    const driver = play(armed(PAIR), 'live 2, lost 1, disarm, live 2.9');
    driver.suffer(400, NOT_SENT, 'AAA');
    driver.live(20_000);
    expect(deletesOf(driver).some((atMs) => atMs > 8100 && atMs < 9900)).toBe(true);
    expect(driver.notices('deleted').some(({ mayHaveFired }) => mayHaveFired)).toBe(false);
  });

  test('a timer that no answer has confirmed is deleted before the first renewal may let it fire', () => {
    const driver = played(PAIR, 'lost 2.6 AAA, disarm, live 20');
    expect(deletesOf(driver)[0]).toBeLessThan(4000);
  });

  test('a trip without an answer is a reason to delete at once', () => {
    const driver = play(armed(LONG), 'live 2, trip AAA, lost 0.1 AAA');
    const askedMs = driver.sinceStartMs();
    play(driver, 'disarm AAA, live 30');
    // It goes when the trip was given up, after a second.
    expect(deletesOf(driver)[0]).toBeLessThan(askedMs + 1200);
    expect(driver.notices('deleted').some(({ mayHaveFired }) => mayHaveFired)).toBe(false);
  });

  test('a stop that begins while a delete waits deletes at once where its budget is shorter', () => {
    const driver = play(armed(LONG), 'live 3.9, lost 0.8, pause 600, live 0.2, stop, live 9');
    expect(deletesOf(driver)).toHaveLength(1);
    expect(driver.notices('deleted').find(({ market }) => market === 'AAA')?.isFinal).toBe(false);
    expect(driver.finished()).toEqual(['AAA unconfirmed']);
  });

  test('a delete that waits goes at once after a suspend that has let the timer run down', () => {
    const driver = play(armed(LONG), 'live 3.9, lost 0.8, disarm, live 0.2');
    driver.move({ monoMs: 10, bootMs: 48_000, wallMs: 48_000 });
    driver.tick();
    const wokeMs = driver.sinceStartMs();
    driver.live(20_000);
    expect(deletesOf(driver)[0]).toBeLessThan(wokeMs + 100);
  });

  test('a timer that a stray may have armed behind a delete, and that no further one reached, is told of', () => {
    const driver = play(armed(PAIR), 'live 2, lost 1, disarm, live 0.5');
    expect(driver.progress('disarm').says).toContain('is deleted once more when');
    driver.suffer(40_000, NOT_SENT, 'AAA');
    expect(driver.notices('fired')).toMatchObject([{ market: 'AAA', why: 'undeleted' }]);
  });

  test('a delete that fails is not said to follow one that is confirmed', () => {
    const driver = play(armed(LONG), 'live 5, disarm, live 1, arm, lost 0.4, disarm, unsent 1');
    expect(driver.progress('disarm').says).toContain('the delete is not confirmed yet');
  });

  test('a renewal that hangs is repeated over one more connection, also while others wait for a free one', () => {
    const markets = ['AAA:10', 'BBB:10', 'CCC:5'];
    const driver = played({ markets, nonce: 'window', connections: 2 }, 'start');
    const of = (name: string) => driver.of(name, 500);
    while (of('AAA').length < 1 || of('BBB').length < 1)
      driver.live(10, 20, (write) => write.market === 'CCC' && driver.apply(write));
    driver.suffer(1500, null);
    expect(of('AAA')[1]).toMatchObject({ fresh: true });
  });

  test('a request whose connection broke is repeated over a new one, and one that found none over any', () => {
    for (const [outcome, fresh] of [
      [{ ...LOST, reason: 'network' }, true],
      [NOT_SENT, false],
    ] as const) {
      const driver = play(armed({ markets: ['AAA:60'], nonce: 'window' }), 'wait 6.5');
      driver.settle(driver.takeOne(), outcome);
      driver.wait(6500);
      expect(driver.take()[0]).toMatchObject({ fresh });
    }
  });

  // One that is at the limit of its connections closes each new one, and answers over those that it has.
  test('a request whose new connection broke as well goes over one that is open, and then over a new one again', () => {
    const driver = play(armed({ markets: ['AAA:60'], nonce: 'window' }), 'wait 6.5');
    driver.settle(driver.takeOne(), { ...LOST, reason: 'network' });
    for (const fresh of [true, false, true]) {
      driver.wait(5200);
      const next = driver.takeOne();
      expect(next).toMatchObject({ fresh });
      driver.settle(next, { ...LOST, reason: 'network' });
    }
  });

  // What hangs takes the connections once, in turns; an outage that is called for it must cost no more.
  test.each([
    [600, 300, 60, 8, 10_000],
    [200, 100, 60, 4, 5000],
    [60, 15, 5, 1, 1500],
  ])(
    'of %i timers %i hang from one moment on: no other one lapses, or waits for long',
    (count, sick, seconds, connections, mostMs) => {
      const hang = many(sick, seconds, 'SICK').map((text) => text.slice(0, text.indexOf(':')));
      const markets = [...many(sick, seconds, 'SICK'), ...many(count - sick, seconds, 'WELL')];
      const budget = { requests: 5000, windowMs: 10_000 };
      const driver = played({ markets, nonce: 'window', connections, budget }, 'start, live 15');
      endure(driver, 90_000, ({ market }) => (hang.includes(market) ? null : undefined));
      expect(driver.told('lapsed').filter((market) => market.startsWith('WELL'))).toEqual([]);
      expect(longestDelayMs(driver, 0, 'WELL')).toBeLessThan(mostMs);
    },
  );

  test('an exchange that is slow as a whole has no more requests under way than there are connections', () => {
    const driver = createDriver({ markets: many(20), nonce: 'window', connections: 4 });
    driver.live(30_000, 1000);
    driver.operate('arm');
    let most = 0;
    driver.live(60_000, 1000, (write) => {
      most = Math.max(most, driver.state.attempts.size);
      driver.apply(write);
    });
    expect(most).toBe(4);
  });

  test('after an outage no more requests leave at once than lanes are there for what hangs', () => {
    const driver = played({ markets: many(1000), nonce: 'window' }, 'start, live 30');
    driver.live(8000, 6000);
    let answers = 0;
    let most = 0;
    driver.live(8000, 20, (write) => {
      answers += 1;
      driver.apply(write);
      const { attempts, now } = driver.state;
      const young = [...attempts.values()].filter(({ at }) => now.monoMs - at.monoMs < 25);
      most = Math.max(most, young.length);
    });
    expect(answers).toBeGreaterThan(1000);
    expect(most).toBeLessThan(100);
  });

  test('a loop that is late, and was asked meanwhile, is no stall', () => {
    const driver = armed({ markets: ['AAA:60', 'BBB:60'], nonce: 'window' });
    driver.live(4000, 20, () => undefined);
    driver.tick();
    const [attempt] = driver.state.attempts.keys();
    const ask = () => {
      driver.move({ monoMs: 200 });
      return driver.mayLeave(attempt ?? 0);
    };
    expect([ask(), ask(), ask()]).toEqual([true, true, true]);
    driver.tick();
    expect(driver.notices('stall')).toEqual([]);
    // For longer than a tick nobody may have read what a bot said.
    expect([ask(), ask(), ask(), ask()]).toEqual([true, true, true, false]);
    driver.tick();
    expect(driver.notices('stall')).toHaveLength(1);
  });

  test('a sick market does not make all the probes of an outage', () => {
    const driver = played({ markets: ['SICK0:30', 'SICK1:30', 'WELL:30'], nonce: 'window' }, 'start');
    // A stall: everything is renewed at once, and ends at once.
    play(driver, 'move 2, live 1, failing 15');
    expect(driver.notices('outage-began')).toHaveLength(1);
    driver.suffer(20_000, HTTP_500, 'SICK0', 'SICK1');
    expect(driver.told('overdue').toSorted()).toEqual(['SICK0', 'SICK1']);
  });

  test('the renewals that end the doubt about an earlier life are spread', () => {
    const driver = play(
      createDriver({ markets: many(200), nonce: 'window' }, { earlierLife: true }),
      'live 20',
    );
    const moments = driver.writes.map(({ atMs }) => atMs).filter((atMs) => atMs > 5000);
    const together = moments.filter((atMs, place) => atMs - (moments[place - 50] ?? 0) < 250);
    expect(together).toEqual([]);
  });

  test('after a stall a tight budget renews every market at its own pace again', () => {
    const budget = { requests: 100, windowMs: 10_000 };
    const driver = played({ markets: many(100), nonce: 'window', budget }, 'live 30, move 2, live 30');
    const { length } = driver.notices('attempt');
    driver.live(60_000);
    expect(longestDelayMs(driver, length)).toBeLessThan(100);
  });
});

test.each(['window', 'increasing'] as const)(
  'who waits for the only connection goes as soon as the request that holds it is overdue (%s nonces)',
  (nonce) => {
    const markets = ['SICK0:600', ...many(3, 60, 'WELL')];
    const driver = played({ markets, nonce, connections: 1 }, 'silence 60 SICK0');
    const { length } = driver.notices('attempt');
    play(driver, 'silence 240 SICK0');
    expect(longestDelayMs(driver, length)).toBeLessThan(200);
  },
);

describe('where renewals one after the other cannot carry all that is asked for', () => {
  function overload(count: number) {
    const markets = many(count, 5).map((text) => ({ ...marketOf(text), renewEveryMs: 1000 }));
    const driver = createDriver({ markets: [...markets, 'LONG:600'] });
    driver.live(60_000, 250);
    return driver;
  }

  test('every market is armed in the end, and none lapses, where each can have a renewal every 3 s', () => {
    const driver = overload(12);
    expect(driver.notices('all-armed')).toHaveLength(1);
    expect(driver.notices('lapsed')).toEqual([]);
  });

  test.each(['trip', 'disarm'] as const)('a %s has its turn within seconds', (does) => {
    const driver = overload(12);
    driver.operate(does, ['LONG']);
    const askedMs = driver.sinceStartMs();
    driver.live(6000, 250);
    expect(driver.of('LONG', askedMs)).toHaveLength(1);
  });
});

test.each([
  ['disarm', 200, 22, 'increasing'],
  ['trip', 200, 22, 'increasing'],
  ['goodbye', 100, 50, 'increasing'],
  ['removal', 200, 22, 'increasing'],
  ['disarm', 3000, 50, 'window'],
] as const)(
  'a %s of %i markets costs those of 5 s no timer (%i ms, %s nonces)',
  (what, count, roundTripMs, nonce) => {
    const few = many(3, 5, 'WELL').map((text) => ({ ...marketOf(text), bot: 'well' }));
    const lots = many(count, 600, 'LONG');
    const settings = { nonce, liveness: { mode: 'beat', ttlMs: 600_000 }, connections: 64 } as const;
    const driver = createDriver({ markets: [...few, ...lots], ...settings });
    driver.say('beat');
    driver.say('beat', 'well');
    driver.live(60_000, roundTripMs);
    const fromMs = driver.sinceStartMs();
    if (what === 'goodbye') driver.say('goodbye');
    else if (what === 'removal') driver.reload({ markets: few, ...settings });
    else driver.operate(what, driver.state.markets.map(({ settings: { market } }) => market).slice(3));
    driver.live(20_000, roundTripMs);
    expect(driver.notices('overdue')).toEqual([]);
    const isEnd = (seconds: number | null) => seconds === null || seconds === 5;
    const ended = driver.writes.filter(({ market, atMs, timeoutSeconds }) => {
      return atMs >= fromMs && market.startsWith('LONG') && isEnd(timeoutSeconds);
    });
    expect(ended).toHaveLength(count);
  },
);

test.each([
  ['disarm', 6, 100, {}],
  ['trip', 6, 100, {}],
  ['disarm', 25, 20, {}],
  ['disarm', 6, 100, { nonce: 'window', budget: { requests: 100, windowMs: 10_000 } }],
] as const)(
  'a %s of %i markets that fails again and again after %i ms costs a healthy one no cadence (%o)',
  (does, count, roundTripMs, settings) => {
    const sick = many(count, 60, 'SICK');
    const driver = createDriver({ markets: [...sick, 'WELL:10'], ...settings });
    driver.live(30_000, roundTripMs);
    driver.operate(
      does,
      sick.map((text) => text.replace(':60', '')),
    );
    const fromMs = driver.sinceStartMs();
    driver.live(60_000, roundTripMs, (write) =>
      write.market === 'WELL' ? driver.answer(write) : driver.settle(write, HTTP_500),
    );
    const times = driver.of('WELL', fromMs - 3000).map(({ atMs }) => atMs);
    const gaps = times.map((atMs, place) => (times[place + 1] ?? driver.sinceStartMs()) - atMs);
    expect(Math.max(...gaps)).toBeLessThan(3000);
    expect(driver.writes.filter(({ market }) => market.startsWith('SICK')).length).toBeGreaterThan(
      count * 10,
    );
  },
);

test('five markets that answer slowly in turns cost a healthy one a third of its slack at most', () => {
  const driver = played({ markets: ['AAA:10', ...many(5, 5, 'SLOW'), 'BBB:5'] }, 'tick');
  let onTheWay: { readonly write: Write; readonly dueMs: number }[] = [];
  let newest = 0;
  let leastMs = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 12_000; round += 1) {
    for (const write of driver.take())
      onTheWay.push({ write, dueMs: write.atMs + (write.market.startsWith('SLOW') ? 780 : 20) });
    for (const { write, dueMs } of onTheWay) {
      if (dueMs > driver.sinceStartMs()) continue;
      if (write.attempt < newest) driver.settle(write, STALE_NONCE);
      else driver.apply(write);
      newest = Math.max(newest, write.attempt);
    }
    onTheWay = onTheWay.filter(({ dueMs }) => dueMs > driver.sinceStartMs());
    driver.wait(5);
    if (round > 1000) leastMs = Math.min(leastMs, driver.statusOf('AAA')?.guaranteedMs ?? 0);
  }
  // It is due with 8 s left.
  expect(leastMs).toBeGreaterThan((8000 * 2) / 3);
});

test('with rising nonces thirty markets are armed in ten seconds, also beside those that are armed already', () => {
  const driver = createDriver({ markets: many(30, 30) });
  driver.live(10_000, 200);
  expect(driver.notices('all-armed')).toHaveLength(1);
});

/** What is written for this long is never answered, and all is for 3 s after it. */
function swallow(driver: Driver, forMs: number): void {
  const endMs = driver.sinceStartMs() + forMs;
  endure(driver, forMs + 3000, ({ atMs }) => (atMs < endMs ? null : undefined));
}

test.each([
  ['three quarters of its budget', 1500, many(200, 20), 15_500],
  ['most of a small budget', 115, many(9, 10), 7300],
] as const)(
  'a fleet that uses %s keeps tokens for the end of an outage that it can survive',
  (_, requests, markets, forMs) => {
    const budget = { requests, windowMs: 10_000 };
    const driver = played({ nonce: 'window', budget, markets }, 'live 40');
    swallow(driver, forMs);
    driver.live(30_000);
    expect(driver.notices('outage-ended')).toHaveLength(1);
    expect(driver.notices('lapsed')).toEqual([]);
  },
);

test('what an outage has swallowed and its end gives up is no new failure of its market', () => {
  const driver = played({ nonce: 'window', markets: many(10) }, 'live 40');
  swallow(driver, 3000);
  expect(driver.notices('outage-ended')).toHaveLength(1);
  const failed = driver.notices('attempt-failed');
  expect(failed.length).toBeGreaterThan(2);
  expect(failed.filter(({ streak }) => streak > 0)).toEqual([]);
});
