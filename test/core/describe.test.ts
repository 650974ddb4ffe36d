import { describe, expect, test } from 'vitest';
import type { SettingsOptions } from './core-settings.ts';
import { BAD_KEY, createDriver, HTTP_500, LOST, NO_MARKET, SERVER_EPOCH } from './driver.ts';

function armed(options: SettingsOptions = {}) {
  const driver = createDriver(options);
  driver.arm();
  return driver;
}
/** Two markets, and the exchange refuses the first. */
function rejected() {
  const driver = createDriver({ markets: ['AAA', 'BBB'] });
  driver.suffer(100, NO_MARKET, 'AAA');
  return driver;
}

describe('a market', () => {
  test('is arming until its first confirmation', () => {
    const driver = createDriver();
    driver.tick();
    expect(driver.statusOf()).toMatchObject({
      state: 'arming',
      wanted: true,
      guaranteedMs: null,
      expiryWallMs: null,
      firesByWallMs: SERVER_EPOCH * 1000 + 10_000 + 60_012 + 1000,
      cancellationTime: null,
      renewals: 0,
    });
  });

  test('is arming while a request of an earlier life may still undo what was confirmed', () => {
    const driver = createDriver({ nonce: 'window' }, { earlierLife: true });
    driver.live(3000);
    expect(driver.statusOf()).toMatchObject({ state: 'arming', renewals: 1, guaranteedMs: null });
    driver.live(15_000);
    expect(driver.statusOf()?.state).toBe('armed');
    // Nothing is known of the slack before: it is not told as none.
    expect(driver.statusOf()?.slackHistory.every((ratio) => ratio > 0.8)).toBe(true);
  });

  test('is armed with everything that is known about it', () => {
    const driver = armed({ markets: ['AAA:60:maker'] });
    driver.live(6100);
    expect(driver.statusOf()).toMatchObject({
      market: 'AAA',
      types: null,
      bot: 'maker',
      state: 'armed',
      timeoutMs: 60_000,
      periodMs: 6000,
      expiryWallMs: expect.closeTo((SERVER_EPOCH + 65) * 1000 - 12, 0),
      cancellationTime: SERVER_EPOCH + 66,
      lastDurationMs: expect.closeTo(20, 3),
      lastSlackRatio: expect.closeTo(0.9, 2),
      slackHistory: [expect.closeTo(0.9, 2)],
      renewals: 2,
      failures: 0,
      failureStreak: 0,
      lapses: 0,
      lastProblem: null,
    });
    expect(driver.statusOf()?.promise[0]).toBe('AAA: renewed every 6 s, timer of 60 s.');
  });

  test('is retrying while renewals fail and time is left, and expired after that', () => {
    const driver = armed({ markets: ['AAA:10'] });
    driver.suffer(3000, HTTP_500);
    expect(driver.statusOf()).toMatchObject({ state: 'retrying', lastProblem: 'status 500' });
    expect(driver.statusOf()?.failureStreak).toBeGreaterThan(0);
    driver.suffer(8000, LOST);
    expect(driver.statusOf()?.state).toBe('expired');
    expect(driver.statusOf()?.guaranteedMs ?? 1).toBeLessThanOrEqual(0);
    // For as long as one of those that had no answer may have kept it.
    driver.suffer(14_000, LOST);
    expect(driver.statusOf()).toMatchObject({ state: 'expired', firesByWallMs: expect.any(Number) });
    driver.live(2000);
    expect(driver.statusOf()).toMatchObject({ state: 'armed', failureStreak: 0 });
  });

  test('is rejected while the exchange refuses it, with its words and the time of the next attempt', () => {
    const driver = rejected();
    const retryWallMs = SERVER_EPOCH * 1000 + 60_000;
    const seen = { state: 'rejected', lastProblem: 'Market is not available.', retryWallMs };
    expect(driver.statusOf()).toMatchObject(seen);
    driver.live(30_000);
    expect(driver.statusOf()).toMatchObject(seen);
    driver.live(31_000);
    expect(driver.statusOf()).toMatchObject({ state: 'armed', retryWallMs: null });
  });

  test('is deleted once the delete is confirmed', () => {
    const driver = armed();
    driver.stop();
    driver.settle(driver.takeOne(), { kind: 'deleted' });
    const none = { guaranteedMs: null, expiryWallMs: null, firesByWallMs: null };
    expect(driver.statusOf()).toMatchObject({ state: 'deleted', wanted: false, ...none });
  });

  test('that is out of guard shows as such before its timer is gone', () => {
    const driver = armed({ markets: ['AAA', 'BBB'] });
    driver.operate('disarm', ['AAA']);
    driver.operate('pause', ['BBB'], 60_000);
    expect(driver.look().markets.map(({ state }) => state)).toEqual(['disarmed', 'paused']);
  });
});

describe('what a stop would do', () => {
  const DELETES = 'deletes the timer: the orders stay';
  const LEAVES = 'leaves the timer: the exchange cancels the orders when it fires';

  test.each([
    ['delete', DELETES, /^tries to delete the timer: the orders stay only if the exchange confirms it/],
    ['keep', LEAVES, LEAVES],
    [
      'handoff',
      'renews the timer once more and leaves it to the successor',
      /^tries to renew the timer once more/,
    ],
  ] as const)(
    'with policy %s is said in words, and promises nothing while renewals fail',
    (policy, well, sick) => {
      const driver = armed({ markets: ['AAA:10'], shutdown: { policy } });
      expect(driver.statusOf()?.onStop).toBe(well);
      driver.suffer(3000, HTTP_500);
      expect(driver.statusOf()?.onStop).toMatch(sick);
    },
  );

  test('is nothing where no timer can exist', () => {
    expect(createDriver().statusOf()?.onStop).toBe('nothing to do: no timer is armed');
  });

  test('is to leave the timer of a bot that does not live', () => {
    const driver = armed({ liveness: { mode: 'beat' } });
    expect(driver.statusOf()?.onStop).toBe(LEAVES);
    driver.say('beat');
    expect(driver.statusOf()?.onStop).toBe(DELETES);
  });

  test('is to leave a refused market out of a handoff', () => {
    const driver = armed({ markets: ['AAA:10'], shutdown: { policy: 'handoff' } });
    driver.suffer(5000, NO_MARKET);
    expect(driver.statusOf()?.onStop).toBe(LEAVES);
  });
});

describe('the daemon', () => {
  test('is ready when every wanted market is confirmed armed', () => {
    const driver = createDriver({ markets: ['AAA', 'BBB'] });
    driver.tick();
    driver.apply(driver.takeOne());
    const notReady = ['BBB is not confirmed armed (arming)'];
    expect(driver.look()).toMatchObject({ phase: 'running', ready: false, notReady });
    driver.apply(driver.takeOne());
    expect(driver.look()).toMatchObject({ ready: true, notReady: [], authorised: true });
  });

  test('is ready without the markets of a bot that said goodbye, and not while a bot is dead', () => {
    const driver = armed({ markets: ['AAA:10:maker', 'BBB:10:taker'], liveness: { mode: 'beat' } });
    driver.say('beat', 'maker');
    driver.say('goodbye', 'taker');
    driver.live(14_000);
    expect(driver.look()).toMatchObject({ ready: true });
    driver.say('fail', 'taker');
    const failed = 'the bot taker has failed: its timers are not renewed';
    expect(driver.look()).toMatchObject({ ready: false, notReady: [failed] });
    driver.live(10_000);
    const silent = 'the bot maker is silent: its timers are not renewed';
    expect(driver.look().notReady).toEqual([silent, failed]);
  });

  test('is not ready while a market of a living bot is out of guard, or nothing is guarded', () => {
    const driver = armed({ markets: ['AAA', 'BBB'], liveness: { mode: 'beat' } });
    driver.say('beat');
    driver.operate('pause', ['AAA'], 60_000);
    expect(driver.look().notReady).toEqual(['AAA is paused']);
    driver.say('goodbye');
    expect(driver.look().notReady).toEqual([
      'nothing is guarded: of 2 markets 1 is paused, 1 has a bot that said goodbye',
    ]);
  });

  test('is not ready once a guarantee has run out', () => {
    const driver = armed({ markets: ['AAA:5'] });
    driver.suffer(6000, LOST);
    expect(driver.look().notReady).toEqual(['AAA is not confirmed armed (expired)']);
  });

  test('is not ready while the key is refused, even before any guarantee has run out', () => {
    const driver = armed({ markets: ['AAA', 'BBB'] });
    driver.suffer(7000, BAD_KEY);
    const notReady = ['the exchange refuses the API key: Unauthorized request.'];
    expect(driver.look()).toMatchObject({ ready: false, authorised: false, notReady });
  });

  test('is not ready on its way out', () => {
    const driver = armed({ shutdown: { policy: 'keep' } });
    driver.stop();
    const notReady = ['the daemon is stopping'];
    expect(driver.look()).toMatchObject({ phase: 'stopping', notReady, shutdownPolicy: 'keep' });
    driver.settle(driver.takeOne(), { kind: 'deleted' });
    expect(driver.look()).toMatchObject({ phase: 'stopped', notReady: ['the daemon is stopped'] });
  });

  test('knows its bots, how old their evidence is and how old it may be', () => {
    const driver = createDriver({ liveness: { mode: 'beat', ttlMs: 9000 } });
    expect(driver.look().bots).toEqual([
      { bot: 'bot', mode: 'beat', state: 'starting', evidenceAgeMs: null, ttlMs: 9000 },
    ]);
    driver.say('beat');
    driver.wait(1000);
    driver.move({ monoMs: 30 });
    expect(driver.look().bots[0]).toMatchObject({ state: 'alive', evidenceAgeMs: 1030 });
    expect(createDriver().look().bots).toEqual([
      { bot: 'bot', mode: 'none', state: 'alive', evidenceAgeMs: null, ttlMs: null },
    ]);
  });
});
