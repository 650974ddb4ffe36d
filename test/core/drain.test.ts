import { describe, expect, test } from 'vitest';
import type { BotWord } from '../../src/core/events.ts';
import type { SettingsOptions } from './core-settings.ts';
import {
  BAD_KEY,
  createDriver,
  type Driver,
  HTTP_500,
  LOST,
  NO_MARKET,
  NOT_SENT,
  SERVER_EPOCH,
  watched,
} from './driver.ts';

/** The deletes that were written so far. */
const deletes = (driver: Driver) => driver.writes.filter(({ timeoutSeconds }) => timeoutSeconds === null);

/** Two markets whose timers are armed. */
function armed(options: SettingsOptions = {}) {
  const driver = createDriver({ markets: ['AAA', 'BBB'], ...options });
  driver.arm();
  driver.live(1000);
  return driver;
}

describe('a stop that deletes', () => {
  test('asks for the deletion of every timer at once, ends when all are confirmed, and writes nothing after that', () => {
    const driver = armed({ nonce: 'window' });
    driver.stop();
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
    expect(deletes(driver).map(({ market, atMs }) => [market, atMs])).toEqual([
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
    silent.stop();
    silent.suffer(2000, NOT_SENT);
    expect(silent.notices('outage-began')).toMatchObject([{ expiryWallMs: firstWallMs }]);
  });

  test('deletes nothing that this process did not arm', () => {
    const options = { markets: ['AAA', 'BBB'], nonce: 'window', shutdown: { budgetMs: 15_000 } } as const;
    const driver = createDriver(options, { earlierLife: true });
    driver.suffer(1000, NO_MARKET, 'AAA');
    driver.stop();
    driver.live(15_000);
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

  test('gives what is in flight a quarter of the budget and no more, however slow the answers were', () => {
    const driver = createDriver({ shutdown: { budgetMs: 4000 } });
    driver.live(7000, 900);
    const written = driver.writes.length;
    while (driver.writes.length === written) driver.wait(10);
    const { attempt } = driver.takeOne();
    driver.stop();
    driver.wait(990);
    expect(driver.effects).not.toContainEqual({ kind: 'abort', attempt });
    driver.wait(20);
    expect(driver.effects).toContainEqual({ kind: 'abort', attempt });
  });

  test('tries an unconfirmed delete again and again, up to the end of the budget', () => {
    const driver = armed({ markets: ['AAA:60'] });
    driver.stop();
    driver.suffer(7700, HTTP_500);
    expect(deletes(driver).length).toBeGreaterThanOrEqual(14);
    expect(deletes(driver).length).toBeLessThanOrEqual(18);
    expect(driver.finished()).toBeNull();
    driver.suffer(200, null);
    expect(driver.finished()).toEqual([expect.objectContaining({ market: 'AAA', why: 'unconfirmed' })]);
  });

  test('shows a refused key every 0.5 s within its budget, by one request, and goes on when it is good', () => {
    const driver = armed({ markets: ['AAA:60', 'BBB:60', 'CCC:60'] });
    driver.suffer(9000, BAD_KEY);
    driver.stop();
    driver.suffer(3000, BAD_KEY);
    expect(deletes(driver).length).toBeGreaterThanOrEqual(4);
    expect(deletes(driver).length).toBeLessThanOrEqual(7);
    expect(driver.notices('stopped')).toEqual([]);
    driver.live(1000);
    expect(driver.finished()).toEqual([]);
  });

  test('names a timer that has fired while every delete was refused', () => {
    const driver = armed({ markets: ['AAA:5'] });
    driver.stop();
    driver.suffer(8000, BAD_KEY);
    expect(driver.finished()).toEqual([expect.objectContaining({ market: 'AAA', why: 'unconfirmed' })]);
  });
});

describe('where the last renewal before a stop was lost', () => {
  /** Its lost renewal may still arrive for `requestLifetimeMs`. */
  function stopped(requestLifetimeMs: number, nonce: 'window' | 'increasing' = 'window') {
    const driver = armed({ markets: ['AAA:60'], nonce, requestLifetimeMs });
    driver.live(4990);
    driver.suffer(500, LOST);
    driver.stop();
    return {
      driver,
      lostMs: driver.writes.findLast(({ timeoutSeconds }) => timeoutSeconds === 60)?.atMs ?? 0,
    };
  }

  test('a delete in a nonce window waits until it can no longer arrive, where the budget allows', () => {
    const { driver, lostMs } = stopped(3000);
    driver.live(5000);
    expect(deletes(driver)[0]?.atMs).toBeGreaterThanOrEqual(lostMs + 3000);
    expect(deletes(driver)[0]?.atMs).toBeLessThan(lostMs + 3030);
    expect(driver.finished()).toEqual([]);
  });

  test('a delete goes at once where the budget does not allow that, and is not called confirmed', () => {
    const { driver } = stopped(9000);
    driver.live(5000);
    expect(deletes(driver)).toHaveLength(1);
    expect(driver.finished()).toEqual([expect.objectContaining({ why: 'unconfirmed' })]);
  });

  test('a delete with rising nonces never waits for it: its nonce fences it', () => {
    expect(deletes(stopped(3000, 'increasing').driver)).toHaveLength(1);
  });
});

describe('a stop that hands over', () => {
  test('begins with the timers that have the least left, and names those that it had no time for', () => {
    const driver = createDriver({ markets: ['LONG:600', 'SHORT:60', 'OTHER:300'] });
    driver.live(2000);
    driver.stop('handoff');
    driver.suffer(20_000, null, 'OTHER', 'LONG');
    const order = driver.writes.filter(({ atMs }) => atMs >= 2000).map(({ market }) => market);
    expect([...new Set(order)]).toEqual(['SHORT', 'OTHER', 'LONG']);
    expect(
      driver
        .finished()
        ?.map(({ market, why }) => `${market} ${why}`)
        .toSorted(),
    ).toEqual(['LONG unrenewed', 'OTHER unrenewed', 'SHORT policy']);
  });

  test('reports a lapse once where no last renewal came in time', () => {
    const driver = armed({ markets: ['AAA:5'] });
    driver.stop('handoff');
    driver.suffer(7000, NOT_SENT);
    const lapses = [expect.objectContaining({ market: 'AAA', certainty: 'certain', unresolved: 0 })];
    expect(driver.notices('lapsed')).toEqual(lapses);
    driver.live(600);
    expect(driver.finished()?.map(({ why }) => why)).toEqual(['policy']);
    expect(driver.notices('lapsed')).toEqual(lapses);
    expect(driver.notices('fired')).toEqual([]);
  });

  test('makes no new timer after a lapse under `onLapse: hold`', () => {
    const driver = armed({ markets: ['AAA:5'], onLapse: 'hold' });
    driver.stop('handoff');
    driver.suffer(7000, NOT_SENT);
    expect(driver.notices('held')).toEqual([expect.objectContaining({ market: 'AAA', why: 'lapsed' })]);
    expect(driver.finished()).toEqual([]);
  });

  test('leaves its timer to fire on purpose once it was renewed', () => {
    const driver = armed({ markets: ['AAA:5', 'BBB:60'] });
    driver.stop('handoff');
    driver.suffer(7500, NOT_SENT, 'BBB');
    expect(driver.notices('lapsed')).toEqual([]);
    expect(driver.notices('fired')).toEqual([expect.objectContaining({ market: 'AAA', why: 'kept' })]);
  });

  test('leaves alone what the exchange has refused, or what is deliberately not armed', () => {
    const driver = createDriver({ markets: ['AAA', 'BBB'], onLapse: 'hold' });
    driver.suffer(1000, NO_MARKET, 'AAA');
    driver.live(10_000, 20, (write) => driver.apply(write, { startTime: SERVER_EPOCH + 100 }));
    expect(driver.statusOf('BBB')?.hold?.why).toBe('lapsed');
    const { length } = driver.writes;
    driver.stop('handoff');
    driver.live(8000);
    expect(driver.writes).toHaveLength(length);
    expect(driver.finished()).toHaveLength(1);
  });
});

describe('the timers of a bot that does not live', () => {
  /** A bot that has said all of this after its timer was armed. */
  function heard(...words: readonly BotWord[]) {
    const driver = createDriver({ liveness: { mode: 'beat' } });
    driver.arm();
    for (const word of words) driver.say(word);
    return driver;
  }

  test.each([
    ['was never heard of', [], 'unheard'],
    ['said that it failed', ['beat', 'fail'], 'policy'],
    ['said goodbye after it said that it failed', ['beat', 'fail', 'goodbye'], 'policy'],
  ] as const)('stay where it %s', (_what, words, why) => {
    const driver = heard(...words);
    driver.stop();
    driver.live(8000);
    expect(deletes(driver)).toEqual([]);
    expect(driver.finished()).toEqual([expect.objectContaining({ market: 'AAA', why })]);
  });

  test('stay where it said that it failed, also where nobody watches it', () => {
    const driver = armed();
    driver.say('fail');
    driver.stop();
    driver.live(8000);
    expect(deletes(driver)).toEqual([]);
  });

  test('are deleted where it beats after the stop was asked for, and guarded until then', () => {
    const driver = heard('beat');
    driver.stop();
    driver.live(4000);
    const renewed = driver.writes.length;
    expect(driver.writes.at(-1)?.timeoutSeconds).not.toBeNull();
    driver.say('beat');
    driver.live(100);
    expect(driver.writes.slice(renewed).map(({ timeoutSeconds }) => timeoutSeconds)).toEqual([null]);
    expect(driver.finished()).toEqual([]);
  });

  test.each(['window', 'increasing'] as const)(
    'are waited for as long with nonces %s, however long the deletes take that go one after the other',
    (nonce) => {
      const markets = Array.from({ length: 40 }, (_, place) => `M${place}:60`);
      const driver = createDriver({ markets, nonce, liveness: { mode: 'beat' } });
      driver.live(20_000, 120);
      driver.say('beat');
      driver.stop();
      const askedMs = driver.sinceStartMs();
      while (driver.finished() === null) driver.live(10, 120);
      expect(driver.sinceStartMs() - askedMs).toBeCloseTo((8000 * 2) / 3, -2);
    },
  );

  test('are deleted where each of a hundred bots beats once a second, though the deletes take most of the budget', () => {
    const bots = Array.from({ length: 100 }, (_, place) => `b${place}`);
    const driver = createDriver({
      markets: bots.map((bot) => `${bot}:60:${bot}`),
      liveness: { mode: 'beat' },
    });
    const beatFor = (seconds: number) => {
      for (let turn = 0; turn < seconds * 100 && driver.finished() === null; turn += 1) {
        driver.live(10, 50);
        driver.say('beat', bots[turn % 100]);
      }
    };
    beatFor(20);
    driver.stop();
    beatFor(8);
    expect(driver.finished()).toEqual([]);
    expect(deletes(driver)).toHaveLength(100);
  });

  test('are left as the policy says where it deletes nothing, however lately the bot was heard', () => {
    const driver = heard('beat');
    driver.stop('keep');
    expect(driver.finished()).toMatchObject([{ why: 'policy' }]);
  });

  test('are left to fire where it falls silent before they could be deleted', () => {
    const driver = watched({ liveness: { ttlMs: 2000 } });
    driver.arm();
    driver.stop();
    driver.live(1200);
    driver.say('beat');
    driver.suffer(3000, NOT_SENT);
    driver.live(1000);
    expect(driver.notices('deleted')).toEqual([]);
    expect(driver.finished()).toMatchObject([{ market: 'AAA', why: 'unconfirmed' }]);
  });

  test('are no clean stop where an operator had ended them, and nobody knows whether it was done', () => {
    const driver = watched({ liveness: { ttlMs: 2000 } });
    driver.arm();
    driver.say('beat');
    driver.operate('disarm');
    driver.suffer(1900, NOT_SENT);
    driver.stop();
    while (driver.finished() === null) driver.suffer(100, NOT_SENT);
    expect(driver.finished()).toMatchObject([{ market: 'AAA', why: 'unconfirmed' }]);
  });

  test('are left to fire where it falls silent while they wait for what may arrive behind the delete', () => {
    const driver = watched({ nonce: 'window', liveness: { ttlMs: 2000 }, shutdown: { budgetMs: 30_000 } });
    driver.arm();
    for (let beats = 0; beats < 9; beats += 1) {
      driver.live(1000);
      driver.say('beat');
    }
    driver.suffer(1500, LOST);
    driver.stop();
    driver.live(600);
    driver.say('beat');
    while (driver.finished() === null) driver.live(100);
    expect(driver.notices('deleted')).toEqual([]);
    expect(driver.finished()).toMatchObject([{ market: 'AAA', why: 'unheard' }]);
  });

  test('are not guarded until then where a reload has taken their market out', () => {
    const options = { liveness: { mode: 'beat' } } as const;
    const driver = createDriver({ ...options, markets: ['AAA', 'BBB'] });
    driver.arm();
    driver.suffer(7000, null);
    driver.reload({ ...options, markets: ['BBB'] });
    const { length } = driver.writes;
    driver.stop();
    driver.live(4000);
    expect(new Set(driver.writes.slice(length).map(({ market }) => market))).toEqual(new Set(['BBB']));
  });

  test('are not handed over either', () => {
    const driver = heard('fail');
    driver.stop('handoff');
    expect(driver.take()).toEqual([]);
    expect(driver.finished()).toHaveLength(1);
  });

  test('stay where the last beat was before the stop: by two thirds of the budget they are left, and named', () => {
    const driver = heard('beat');
    driver.stop();
    const askedMs = driver.sinceStartMs();
    while (driver.finished() === null) driver.live(50);
    expect(driver.sinceStartMs() - askedMs).toBeLessThan(7000);
    expect(deletes(driver)).toEqual([]);
    expect(driver.finished()).toMatchObject([{ why: 'unheard' }]);
  });

  test('stay where a beat that lay in a socket as the stop began is read in the next turn of the loop', () => {
    const driver = heard('beat');
    driver.stop();
    driver.live(150);
    for (let turn = 0; turn < 3; turn += 1) {
      driver.wait(1);
      driver.tick();
    }
    driver.say('beat');
    driver.live(8000);
    expect(deletes(driver)).toEqual([]);
    expect(driver.finished()).toMatchObject([{ why: 'unheard' }]);
  });

  test('are named as unheard also where no renewal was ever confirmed, and they may stand', () => {
    const driver = watched();
    driver.suffer(3000, LOST);
    driver.stop();
    driver.suffer(8000, LOST);
    expect(driver.finished()).toMatchObject([{ why: 'unheard' }]);
  });
});

test('a stop names no timer that was deleted and that nothing has armed since', () => {
  const driver = watched();
  driver.live(5000);
  driver.operate('disarm');
  driver.live(1000);
  driver.operate('arm');
  driver.suffer(2000, NOT_SENT);
  driver.stop();
  driver.suffer(20_000, NOT_SENT);
  expect(driver.finished()).toEqual([]);
});

test('a stop in an outage finds out within half a second that the exchange is back, while it waits for other bots', () => {
  for (let phase = 0; phase < 6; phase += 1) {
    const driver = createDriver({
      markets: ['AAA:60:one', 'BBB:60:one', 'CCC:60:two'],
      liveness: { mode: 'beat', ttlMs: 60_000 },
    });
    for (const bot of ['one', 'two']) driver.say('beat', bot);
    driver.live(20_000);
    driver.suffer(8000 + 700 * phase, NOT_SENT);
    driver.stop();
    driver.say('goodbye', 'one');
    driver.suffer(500, NOT_SENT);
    const backMs = driver.sinceStartMs();
    driver.live(600);
    expect(driver.writes.filter(({ atMs }) => atMs >= backMs)).not.toEqual([]);
  }
});
