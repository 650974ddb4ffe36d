import { describe, expect, test } from 'vitest';
import type { SettingsOptions } from './core-settings.ts';
import { HTTP_500, LOST, NOT_SENT, play, played, renewing, SERVER_EPOCH } from './driver.ts';

/** A timer of 10 s that ends at second 10 of the exchange's clock, and the next renewal of it, unanswered. */
const armed = (options: SettingsOptions = {}) => renewing({ markets: ['AAA:10'], ...options }, 1);

test.each([
  [9, 0, null],
  // The very second of that end.
  [10, 0, 'possible'],
  [11, 0, 'certain'],
  [11, 50, 'possible'],
  [12, 2000, 'possible'],
  [13, 2000, 'certain'],
] as const)(
  'a renewal that starts at second %i, where firing may take %i ms, tells of a lapse: %s',
  (second, delayMs, certainty) => {
    const { driver, write } = armed({ cancellationDelayMs: delayMs });
    driver.apply(write, { startTime: SERVER_EPOCH + second });
    const told = { gapMs: 1000, unresolved: 0, rearms: true, held: false };
    const lapses = certainty === null ? [] : [{ kind: 'lapsed', market: 'AAA', certainty, ...told }];
    expect(driver.notices('lapsed')).toEqual(lapses);
    expect(driver.statusOf()?.lapses).toBe(lapses.length);
  },
);

describe('a renewal whose answer was lost may have carried the timer over the gap', () => {
  test.each([
    [LOST, { certainty: 'possible', unresolved: 1 }],
    [NOT_SENT, { certainty: 'certain', unresolved: 0 }],
  ])('so nobody can be certain of a lapse, but where it never left', (outcome, lapse) => {
    const { driver, write } = armed();
    driver.settle(write, outcome);
    driver.wait(2500);
    driver.apply(driver.takeOne(), { startTime: SERVER_EPOCH + 15 });
    expect(driver.notices('lapsed')).toEqual([expect.objectContaining(lapse)]);
  });

  test.each([
    ['older', { certainty: 'possible', unresolved: 1 }],
    ['newer', { certainty: 'certain', unresolved: 0 }],
  ])('also while it is still in flight, if it is older (%s)', (inFlight, lapse) => {
    const { driver, write } = armed();
    driver.wait(1000);
    const newer = driver.takeOne();
    driver.apply(inFlight === 'older' ? newer : write, { startTime: SERVER_EPOCH + 15 });
    expect(driver.notices('lapsed')).toEqual([expect.objectContaining(lapse)]);
  });
});

describe('one gap', () => {
  test('is reported once, also where time alone had shown it before the answer does', () => {
    const { driver, write } = armed();
    driver.settle(write, NOT_SENT);
    driver.suffer(40_000, NOT_SENT);
    const lapse = expect.objectContaining({ market: 'AAA', certainty: 'certain', unresolved: 0 });
    expect(driver.notices('lapsed')).toEqual([lapse]);
    driver.live(3000);
    expect(driver.notices('renewed').length).toBeGreaterThan(1);
    expect(driver.notices('lapsed')).toEqual([lapse]);
    expect(driver.statusOf()?.lapses).toBe(1);
  });

  test('that nobody heard of is not claimed while a lost renewal could have bridged it', () => {
    const { driver, write } = armed();
    driver.settle(write, LOST);
    driver.suffer(15_000, LOST);
    expect([driver.told('overdue'), driver.told('lapsed')]).toEqual([['AAA'], []]);
  });
});

describe('the guarantee', () => {
  test('running out is said once, with the moment, before the lapse is known, and again after it was good again', () => {
    const { driver, write } = armed();
    driver.settle(write, NOT_SENT);
    driver.suffer(8500, HTTP_500);
    const expiryWallMs = expect.closeTo(SERVER_EPOCH * 1000 + 9000 - 2, 0);
    expect(driver.notices('overdue')).toEqual([
      { kind: 'overdue', market: 'AAA', expiryWallMs, leftToFire: false },
    ]);
    play(driver, 'unsent 3.5, live 3, unsent 15');
    expect(driver.told('overdue')).toEqual(['AAA', 'AAA']);
  });

  test('has not run out while the answer to the last renewal in time is on its way', () => {
    const driver = played({ markets: ['AAA:5'] }, 'live 2.5');
    // Every renewal fails until the last one before the guarantee ends, which is answered just after that.
    driver.live(4500, 20, (write) => {
      if (write.atMs < 5900) driver.settle(write, HTTP_500);
      else driver.apply(write);
    });
    expect(driver.notices('attempt-failed').length).toBeGreaterThan(3);
    expect(driver.notices('overdue')).toEqual([]);
  });
});

test('a renewal whose answer comes when its own time is up arms nothing', () => {
  const { driver, write } = armed();
  driver.move({ monoMs: 12_000 });
  driver.apply(write, { startTime: SERVER_EPOCH + 1 });
  expect(driver.notices('renewed').map(({ first }) => first)).toEqual([true, false]);
});

describe('a lapse is not said to be armed again', () => {
  test('where its market leaves', () => {
    const options = { markets: ['AAA:30', 'BBB:30'], shutdown: { policy: 'handoff' } } as const;
    const driver = played(options, 'start');
    driver.reload({ ...options, markets: ['BBB:30'] });
    driver.suffer(50_000, NOT_SENT);
    const lapse = expect.objectContaining({ market: 'AAA', rearms: false, held: false });
    expect(driver.notices('lapsed')).toContainEqual(lapse);
  });

  test('under onLapse hold, where an answer tells of it, and nothing is renewed any more, nor said to be', () => {
    const { driver, write } = armed({ onLapse: 'hold' });
    driver.settle(write, NOT_SENT);
    play(driver, 'wait 2.5, move 7');
    driver.apply(driver.takeOne(), { startTime: SERVER_EPOCH + 11 });
    expect(driver.notices('lapsed')).toMatchObject([{ certainty: 'certain', rearms: false, held: true }]);
    expect(driver.notices('held')[0]?.firesByWallMs).toBeGreaterThan(driver.now().wallMs);
    expect(driver.notices('renewed').filter(({ first }) => first)).toHaveLength(1);
    expect(driver.notices('recovered')).toEqual([]);
    driver.live(60_000);
    expect(driver.writes).toHaveLength(3);
  });
});

test.each([
  { what: 'of a timer that is renewed every second', timeoutSeconds: 5, starts: [0], confirmed: 2 },
  { what: 'of a timer that has fired since', timeoutSeconds: 30, starts: [0], confirmed: 1 },
  { what: 'out of two caches in turn', timeoutSeconds: 30, starts: [0, 3], confirmed: 2 },
])('an exchange that repeats old answers $what confirms nothing', ({ timeoutSeconds, starts, confirmed }) => {
  const driver = played({ markets: [`AAA:${timeoutSeconds}`] }, 'start');
  let asked = 0;
  driver.live(timeoutSeconds * 4000, 20, (write) => {
    asked += 1;
    driver.apply(write, { startTime: SERVER_EPOCH + (starts[asked % starts.length] ?? 0) });
  });
  expect(driver.notices('renewed')).toHaveLength(confirmed);
  expect(driver.notices('overdue').length + driver.notices('lapsed').length).toBeGreaterThan(0);
  const details = new Set(driver.notices('attempt-failed').map(({ detail }) => detail));
  expect([...details]).toEqual([expect.stringMatching(/^the exchange repeats an earlier answer: /)]);
});

test('a lapse is certain where a lost renewal had ended long before it', () => {
  const driver = played({ markets: ['AAA:300', 'BBB:600'] }, 'live 5');
  const endMs = 1000 * ((driver.statusOf()?.cancellationTime ?? 0) - SERVER_EPOCH);
  driver.reload({ markets: ['AAA:60', 'BBB:600'] });
  driver.suffer(100, LOST, 'AAA');
  driver.suffer(endMs - driver.sinceStartMs() + 300, NOT_SENT, 'AAA');
  driver.live(8000, 1800);
  expect(driver.notices('lapsed')).toMatchObject([{ certainty: 'certain', unresolved: 0 }]);
});

/** The answer to the first of its renewals comes after that of the second. */
function answeredLate(options: SettingsOptions, before: string) {
  const { driver, write } = armed(options);
  driver.wait(4000);
  for (const newer of driver.take()) driver.apply(newer);
  play(driver, before);
  driver.apply(write, { startTime: SERVER_EPOCH + 1 });
  return driver;
}

test('an older request that is carried out late in a nonce window makes no lapse of the newer one', () => {
  const driver = answeredLate({ nonce: 'window' }, 'tick');
  driver.wait(6500);
  for (const write of driver.take()) driver.apply(write);
  expect(driver.told('lapsed')).toEqual([]);
});

test('a late answer from before a lapse makes no second one', () => {
  const driver = answeredLate({}, 'unsent 13');
  expect(driver.told('lapsed')).toEqual(['AAA']);
  driver.live(3000);
  expect(driver.statusOf()).toMatchObject({ state: 'armed', lapses: 1 });
});

describe('a timer that was overdue while it had to stand, and is ended after that', () => {
  type Row = [what: string, script: string, said: string[]];
  test.each<Row>([
    ['lapsed before a trip', 'start, lost 12 AAA, trip, lost 0.2, live 3', ['possible']],
    [
      'lapsed before a trip in the second of doubt',
      'start, unsent 10.2, trip, unsent 0.2, live 3',
      ['possible'],
    ],
    ['may have lapsed before a delete', 'start, lost 12 AAA, disarm, lost 0.2, live 3', ['possible']],
    ['did not where it was tripped in time', 'start, lost 5 AAA, trip, lost 8, live 3', []],
    ['did not where it was disarmed in time', 'start, lost 5 AAA, disarm, lost 8, live 3', []],
  ])('%s', (_what, script, said) => {
    const driver = played({ markets: ['AAA:10', 'BBB:60'] }, script);
    expect(driver.notices('lapsed').map(({ certainty }) => certainty)).toEqual(said);
    expect(driver.statusOf()?.lapses).toBe(said.length);
  });
});
