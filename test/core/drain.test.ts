import { describe, expect, test } from 'vitest';
import { many, type SettingsOptions } from './core-settings.ts';
import { createDriver, LOST, NO_MARKET, play, played, SERVER_EPOCH } from './driver.ts';

const BEAT = { liveness: { mode: 'beat' } } as const;
const SHORT_TTL = { liveness: { mode: 'beat', ttlMs: 2000 } } as const;

/** Two markets whose timers are armed. */
const armed = (options: SettingsOptions = {}) =>
  played({ markets: ['AAA', 'BBB'], ...options }, 'start, live 1');

const UNHEARD = ['AAA unheard'];
const ON_PURPOSE = ['AAA policy'];
const UNCONFIRMED = ['AAA unconfirmed'];
const FIVE = { markets: ['AAA:5'] };

type Row = [what: string, options: SettingsOptions, script: string, left: string[], deleted?: string[]];
test.each<Row>([
  ['a bot that was never heard of', BEAT, 'start, stop, live 8', UNHEARD],
  ['a bot that said that it failed', BEAT, 'start, beat, fail, stop, live 8', ON_PURPOSE],
  ['one that said goodbye after that', BEAT, 'start, beat, fail, goodbye, stop, live 8', ON_PURPOSE],
  ['a bot that failed, where nobody watches it', {}, 'start, fail, stop, live 8', ON_PURPOSE],
  ['a policy that keeps, and a bot that was just heard', BEAT, 'start, beat, keep', ON_PURPOSE],
  ['a handoff for a bot that failed', BEAT, 'start, fail, handoff', ON_PURPOSE],
  ['a last beat before the stop, by two thirds of the budget', BEAT, 'start, beat, stop, live 7', UNHEARD],
  ['no renewal that was ever confirmed', BEAT, 'beat, lost 3, stop, lost 8', UNHEARD],
  [
    'a bot that falls silent before a delete is confirmed',
    SHORT_TTL,
    'beat, start, stop, live 1.2, beat, unsent 3, live 1',
    UNCONFIRMED,
  ],
  [
    'a disarm of which nobody knows whether it was done',
    SHORT_TTL,
    'beat, start, beat, disarm, unsent 1.9, stop, unsent 9',
    UNCONFIRMED,
  ],
  [
    'a disarm that no connection could carry, and a bot that falls silent after it',
    SHORT_TTL,
    'beat, start, beat, disarm, unsent 1.9, stop, unsent 1, live 1',
    UNCONFIRMED,
  ],
  ['a key that is refused until the timer has fired', FIVE, 'start, live 1, stop, badkey 8', UNCONFIRMED],
  [
    'a renewal of the key before that has no answer',
    {},
    'start, wait 6, newkey, lose, live 1, stop, live 9',
    UNCONFIRMED,
    ['AAA'],
  ],
  ['a market that is refused for a moment', {}, 'live 12, stop, refused 1, live 8', [], ['AAA']],
  [
    'a timer that was deleted, and that nothing has armed since',
    BEAT,
    'beat, live 5, disarm, live 1, arm, unsent 2, stop, unsent 20',
    [],
    ['AAA'],
  ],
])('a stop with %s', (_what, options, script, left, deleted = []) => {
  const driver = played(options, script);
  expect(driver.finished()).toEqual(left);
  expect(driver.told('deleted')).toEqual(deleted);
});

describe('a stop that deletes', () => {
  test('asks for the deletion of every timer at once, ends when all are confirmed, and writes nothing after that', () => {
    const driver = play(armed({ nonce: 'window' }), 'stop');
    const pings = () => driver.effects.filter(({ kind }) => kind === 'ping').length;
    const before = pings();
    expect(driver.notices('stopping')).toEqual([
      { kind: 'stopping', policy: 'delete', budgetMs: 8000, why: 'SIGTERM' },
    ]);
    driver.live(30);
    expect(driver.finished()).toEqual([]);
    expect(driver.notices('deleted').map(({ market, durationMs }) => [market, durationMs])).toEqual([
      ['AAA', 20],
      ['BBB', 20],
    ]);
    expect(driver.notices('stopped')).toEqual([{ kind: 'stopped', left: [] }]);
    driver.live(60_000);
    expect(driver.asked(null).map(({ market, atMs }) => [market, atMs])).toEqual([
      ['AAA', 1000],
      ['BBB', 1000],
    ]);
    expect(driver.writes.at(-1)?.atMs).toBe(1000);
    expect(pings()).toBe(before);
  });

  test('says until when timers stand that the exchange refuses to delete, or does not answer for', () => {
    const refused = armed({ markets: ['AAA:60'] });
    const expiryWallMs = refused.statusOf()?.expiryWallMs;
    refused.stop();
    for (let look = 0; look < 2; look += 1) {
      refused.settle(refused.takeOne(), NO_MARKET);
      refused.wait(500);
    }
    expect(refused.notices('refused')).toMatchObject([{ expiryWallMs }]);

    const silent = armed({ nonce: 'window' });
    const firstWallMs = silent.statusOf()?.expiryWallMs;
    play(silent, 'stop, unsent 2');
    expect(silent.notices('outage-began')).toMatchObject([{ expiryWallMs: firstWallMs }]);
  });

  test('deletes nothing that this process did not arm', () => {
    const options = { markets: ['AAA', 'BBB'], nonce: 'window', shutdown: { budgetMs: 15_000 } } as const;
    const driver = play(createDriver(options, { earlierLife: true }), 'refused 1 AAA, stop, live 15');
    expect(driver.asked(null).map(({ market }) => market)).toEqual(['BBB']);
    expect(driver.finished()).toEqual([]);
  });

  test('deletes nothing that has surely fired', () => {
    const driver = played({ markets: ['AAA:5'], onLapse: 'hold' }, 'start, wait 1');
    driver.apply(driver.takeOne(), { startTime: SERVER_EPOCH + 60 });
    play(driver, 'live 20, stop');
    expect(driver.asked(null)).toEqual([]);
    expect(driver.finished()).toEqual([]);
  });

  test('waits with a delete until all renewals in flight have settled, and writes no renewal meanwhile', () => {
    const driver = play(armed({ markets: ['AAA:10'] }), 'wait 0.9');
    const hung = driver.takeOne();
    play(driver, 'stop, wait 1.5');
    expect(driver.take()).toEqual([]);
    driver.settle(hung, LOST);
    expect(driver.takeOne().timeoutSeconds).toBeNull();
  });

  test('gives what is in flight a quarter of the budget and no more, however slow the answers were', () => {
    const driver = createDriver({ shutdown: { budgetMs: 4000 } });
    driver.live(7000, 900);
    const written = driver.writes.length;
    while (driver.writes.length === written) driver.wait(10);
    const { attempt } = driver.takeOne();
    play(driver, 'stop, wait 0.99');
    expect(driver.effects).not.toContainEqual({ kind: 'abort', attempt });
    driver.wait(20);
    expect(driver.effects).toContainEqual({ kind: 'abort', attempt });
  });

  test('tries an unconfirmed delete again and again, up to the end of the budget', () => {
    const driver = play(armed({ markets: ['AAA:60'] }), 'stop, failing 7.7');
    expect(driver.asked(null).length).toBeGreaterThanOrEqual(14);
    expect(driver.asked(null).length).toBeLessThanOrEqual(18);
    expect(driver.finished()).toBeNull();
    driver.suffer(200, null);
    expect(driver.finished()).toEqual(['AAA unconfirmed']);
  });

  test('shows a refused key every 0.5 s within its budget, by one request, and goes on when it is good', () => {
    const driver = play(armed({ markets: ['AAA:60', 'BBB:60', 'CCC:60'] }), 'badkey 9, stop, badkey 3');
    expect(driver.asked(null).length).toBeGreaterThanOrEqual(4);
    expect(driver.asked(null).length).toBeLessThanOrEqual(7);
    expect(driver.notices('stopped')).toEqual([]);
    driver.live(1000);
    expect(driver.finished()).toEqual([]);
  });
});

describe('where the last renewal before a stop was lost', () => {
  /** Its lost renewal may still arrive for `requestLifetimeMs`. */
  function stopped(requestLifetimeMs: number, nonce: 'window' | 'increasing' = 'window') {
    const driver = play(armed({ markets: ['AAA:60'], nonce, requestLifetimeMs }), 'live 4.99, lost 0.5');
    driver.stop();
    return {
      driver,
      lostMs: driver.writes.findLast(({ timeoutSeconds }) => timeoutSeconds === 60)?.atMs ?? 0,
    };
  }

  test('a delete in a nonce window waits until it can no longer arrive, where the budget allows', () => {
    const { driver, lostMs } = stopped(3000);
    driver.live(5000);
    expect(driver.asked(null)[0]?.atMs).toBeGreaterThanOrEqual(lostMs + 3000);
    expect(driver.asked(null)[0]?.atMs).toBeLessThan(lostMs + 3030);
    expect(driver.finished()).toEqual([]);
  });

  test('a delete goes at once where the budget does not allow that, and is not called confirmed', () => {
    const { driver } = stopped(9000);
    driver.live(5000);
    expect(driver.asked(null)).toHaveLength(1);
    expect(driver.finished()).toEqual(['AAA unconfirmed']);
  });

  test('a delete with rising nonces never waits for it: its nonce fences it', () => {
    expect(stopped(3000, 'increasing').driver.asked(null)).toHaveLength(1);
  });
});

describe('a stop that hands over', () => {
  test('begins with the timers that have the least left, and names those that it had no time for', () => {
    const driver = played({ markets: ['LONG:600', 'SHORT:60', 'OTHER:300'] }, 'live 2, handoff');
    driver.suffer(20_000, null, 'OTHER', 'LONG');
    const order = driver.writes.filter(({ atMs }) => atMs >= 2000).map(({ market }) => market);
    expect([...new Set(order)]).toEqual(['SHORT', 'OTHER', 'LONG']);
    const left = ['LONG unrenewed', 'OTHER unrenewed', 'SHORT policy'];
    expect(driver.finished()?.toSorted()).toEqual(left);
  });

  test('makes no new timer after a lapse under `onLapse: hold`', () => {
    const driver = played({ markets: ['AAA:5'], onLapse: 'hold' }, 'start, live 1, handoff, unsent 7');
    expect(driver.notices('held')).toMatchObject([{ market: 'AAA', why: 'lapsed' }]);
    expect(driver.finished()).toEqual([]);
  });

  test('leaves its timer to fire on purpose once it was renewed', () => {
    const driver = play(armed({ markets: ['AAA:5', 'BBB:60'] }), 'handoff, unsent 7.5 BBB');
    expect(driver.notices('lapsed')).toEqual([]);
    expect(driver.notices('fired')).toMatchObject([{ market: 'AAA', why: 'kept' }]);
  });

  test('names a timer that the exchange refuses to renew as not renewed', () => {
    const driver = played({ markets: ['AAA:60', 'BBB:60'] }, 'live 5, refused 8 AAA, handoff, live 2');
    expect(driver.finished()?.toSorted()).toEqual(['AAA unrenewed', 'BBB policy']);
  });

  test.each(['refused', 'badkey', 'failing'])('renews once more after a second of answers %s', (answers) => {
    const driver = play(armed({ markets: ['AAA:10', 'BBB:10'] }), `live 1.9, handoff, ${answers} 1`);
    expect(driver.finished()).toBeNull();
    driver.live(2000);
    expect(driver.finished()?.toSorted()).toEqual(['AAA policy', 'BBB policy']);
  });

  test('leaves alone what the exchange has refused, or what is deliberately not armed', () => {
    const driver = played({ markets: ['AAA', 'BBB'], onLapse: 'hold' }, 'refused 1 AAA');
    driver.live(10_000, 20, (write) => driver.apply(write, { startTime: SERVER_EPOCH + 100 }));
    expect(driver.statusOf('BBB')?.hold?.why).toBe('lapsed');
    const { length } = driver.writes;
    play(driver, 'handoff, live 8');
    expect(driver.writes).toHaveLength(length);
    expect(driver.finished()).toHaveLength(1);
  });
});

describe('a stop that waits for its bot', () => {
  test('guards the timer until a beat comes, and deletes it then', () => {
    const driver = played(BEAT, 'start, beat, stop, live 4');
    const renewed = driver.writes.length;
    expect(driver.writes.at(-1)?.timeoutSeconds).not.toBeNull();
    play(driver, 'beat, live 0.1');
    expect(driver.writes.slice(renewed).map(({ timeoutSeconds }) => timeoutSeconds)).toEqual([null]);
    expect(driver.finished()).toEqual([]);
  });

  test.each(['window', 'increasing'] as const)(
    'waits for two thirds of its budget, however long the deletes take, with nonces %s',
    (nonce) => {
      const driver = createDriver({ ...BEAT, markets: many(40), nonce });
      driver.live(20_000, 120);
      play(driver, 'beat, stop');
      const askedMs = driver.sinceStartMs();
      while (driver.finished() === null) driver.live(10, 120);
      expect(driver.sinceStartMs() - askedMs).toBeCloseTo((8000 * 2) / 3, -2);
    },
  );

  test('in an outage finds out within half a second that the exchange is back', () => {
    for (let phase = 0; phase < 6; phase += 1) {
      const driver = createDriver({
        markets: ['AAA:60:one', 'BBB:60:one', 'CCC:60:two'],
        liveness: { mode: 'beat', ttlMs: 60_000 },
      });
      play(driver, `beat one, beat two, live 20, unsent ${8 + 0.7 * phase}, stop, goodbye one, unsent 0.5`);
      const backMs = driver.sinceStartMs();
      driver.live(600);
      expect(driver.writes.filter(({ atMs }) => atMs >= backMs)).not.toEqual([]);
    }
  });
});
