import { describe, expect, test } from 'vitest';
import type { SettingsOptions } from './core-settings.ts';
import { createDriver, LOST, play, played, SERVER_EPOCH } from './driver.ts';

const BEAT = { liveness: { mode: 'beat' } } as const;
const TWO = { markets: ['AAA', 'BBB'] };
const WATCHED = { ...TWO, ...BEAT };
const FIVE = { markets: ['AAA:5'] };
const OF_TWO_BOTS = { markets: ['AAA:10:maker', 'BBB:10:taker'], ...BEAT };

type Row<Said> = [what: string, options: SettingsOptions, script: string, said: Said];

describe('a market', () => {
  test('is arming until its first confirmation', () => {
    const driver = played({}, 'tick');
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
    const driver = play(createDriver({ nonce: 'window' }, { earlierLife: true }), 'live 3');
    expect(driver.statusOf()).toMatchObject({ state: 'arming', renewals: 1, guaranteedMs: null });
    driver.live(15_000);
    expect(driver.statusOf()?.state).toBe('armed');
    // Nothing is known of the slack before: it is not told as none.
    expect(driver.statusOf()?.slackHistory.every((ratio) => ratio > 0.8)).toBe(true);
  });

  test('is armed with everything that is known about it', () => {
    const driver = played({ markets: ['AAA:60:maker'] }, 'start, live 6.1');
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

  test.each([
    [30, 6, 22.55],
    [10, 3, 5.55],
    [5, 1.333, 2.217],
  ])('survives less where the exchange grants %i s instead of 60 s', (timeout, every, survives) => {
    const driver = createDriver();
    driver.live(20_000, 20, (write) => driver.apply(write, { timeout }));
    const { periodMs = 0, survivesMs = 0, grantedMs, promise = [] } = driver.statusOf() ?? {};
    expect(grantedMs).toBe(timeout * 1000);
    expect([periodMs / 1000, survivesMs / 1000]).toEqual([
      expect.closeTo(every, 3),
      expect.closeTo(survives, 3),
    ]);
    expect(promise.slice(0, 2)).toEqual([
      `AAA: renewed every ${every} s, timer of ${timeout} s.`,
      `An outage of the exchange shorter than ${survives} s cancels nothing.`,
    ]);
    // It may grant what it is asked for again.
    expect(promise.at(-1)).toMatch('are cancelled after at most 71 s.');
    const { length } = driver.writes;
    driver.live(60_000, 20, (write) => driver.apply(write, { timeout }));
    expect(60 / (driver.writes.length - length)).toBeLessThanOrEqual(every * 1.01);
  });

  test('is retrying while renewals fail and time is left, and expired after that', () => {
    const driver = played({ markets: ['AAA:10'] }, 'start, failing 3');
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
    const driver = played(TWO, 'refused 0.1 AAA');
    const retryWallMs = SERVER_EPOCH * 1000 + 60_000;
    const seen = { state: 'rejected', lastProblem: 'Market is not available.', retryWallMs };
    expect(driver.statusOf()).toMatchObject(seen);
    driver.live(30_000);
    expect(driver.statusOf()).toMatchObject(seen);
    driver.live(31_000);
    expect(driver.statusOf()).toMatchObject({ state: 'armed', retryWallMs: null });
  });

  test('is deleted once the delete is confirmed', () => {
    const driver = played({}, 'start, stop, deleted');
    const none = { guaranteedMs: null, expiryWallMs: null, firesByWallMs: null };
    expect(driver.statusOf()).toMatchObject({ state: 'deleted', wanted: false, ...none });
  });

  test('is never arming in a stop, which says until when it lasts and what is being deleted', () => {
    const driver = played(TWO, 'start, stop, deleted, lost 1');
    expect(driver.look().markets.map(({ state, timer }) => `${state} ${timer}`)).toEqual([
      'deleted none',
      'suspended deleting',
    ]);
    const leftMs = (driver.look().stopEndsWallMs ?? 0) - driver.now().wallMs;
    expect(leftMs).toBeCloseTo(7000, 0);
    expect(played(TWO, 'start').look()).toMatchObject({ stopEndsWallMs: null });
  });

  test('tells no old problem once nothing is tried for it any more', () => {
    const driver = played(TWO, 'start, badkey 7, disarm AAA, badkey 70, newkey, live 2');
    expect(driver.statusOf()).toMatchObject({ state: 'disarmed', lastProblem: null });
    expect(driver.look().authorised).toBe(true);
  });

  test('that is out of guard shows as such before its timer is gone', () => {
    const driver = played(TWO, 'start, disarm AAA, pause 60 BBB');
    expect(driver.look().markets.map(({ state }) => state)).toEqual(['disarmed', 'paused']);
  });
});

describe('what a stop would do', () => {
  const DELETES = 'deletes the timer: the orders stay';
  const LEAVES = 'leaves the timer: the exchange cancels the orders when it fires';
  const MAY_LEAVE = 'leaves a timer that may still run: if none does, the orders stay';
  const HANDS_OVER = 'renews the timer once more and leaves it to the successor';
  const TRIES_TO_DELETE = expect.stringMatching(
    /^tries to delete the timer: the orders stay only if the exchange confirms it/,
  );
  const TRIES_TO_RENEW = expect.stringMatching(/^tries to renew the timer once more/);
  const KEEP = { shutdown: { policy: 'keep' } } as const;
  const HANDOFF = { shutdown: { policy: 'handoff' } } as const;

  test.each<Row<unknown>>([
    ['where it deletes', {}, 'start', DELETES],
    ['where it deletes, and renewals fail', {}, 'start, failing 15', TRIES_TO_DELETE],
    ['where it keeps', KEEP, 'start', LEAVES],
    ['where it keeps, and renewals fail', KEEP, 'start, failing 15', LEAVES],
    ['where it hands over', HANDOFF, 'start', HANDS_OVER],
    ['where it hands over, and renewals fail', HANDOFF, 'start, failing 15', TRIES_TO_RENEW],
    ['where it hands over what is refused', HANDOFF, 'start, refused 12', LEAVES],
    ['before anything is armed', {}, 'move 1', 'nothing to do: no timer is armed'],
    ['where it keeps what was never confirmed', KEEP, 'lost 3', MAY_LEAVE],
    ['for a bot that does not live', BEAT, 'start', LEAVES],
    ['for one that lives', BEAT, 'start, beat', DELETES],
  ])('%s is said in words, and promises nothing while renewals fail', (_what, options, script, said) => {
    expect(played(options, script).statusOf()?.onStop).toEqual(said);
  });
});

describe('the daemon', () => {
  const SILENT = 'the bot maker is silent: its timers are not renewed';
  const FAILED = 'the bot taker has failed: its timers are not renewed';

  test('is ready when every wanted market is confirmed armed', () => {
    const driver = played({ markets: ['AAA', 'BBB'] }, 'tick');
    driver.apply(driver.takeOne());
    const notReady = ['BBB is not confirmed armed (arming)'];
    expect(driver.look()).toMatchObject({ phase: 'running', ready: false, notReady });
    driver.apply(driver.takeOne());
    expect(driver.look()).toMatchObject({ ready: true, notReady: [], authorised: true });
  });

  test.each<Row<string[]>>([
    ['a bot that said goodbye', OF_TWO_BOTS, 'start, beat maker, goodbye taker, live 14', []],
    ['a bot that has failed', OF_TWO_BOTS, 'start, beat maker, fail taker, live 14', [FAILED]],
    ['a bot that is silent', OF_TWO_BOTS, 'start, beat maker, fail taker, live 24', [SILENT, FAILED]],
    ['a living bot whose market is out of guard', WATCHED, 'start, beat, pause 60 AAA', ['AAA is paused']],
    [
      'nothing that is guarded',
      WATCHED,
      'start, beat, pause 60 AAA, goodbye',
      ['nothing is guarded: of 2 markets 1 is paused, 1 has a bot that said goodbye'],
    ],
    ['a guarantee that has run out', FIVE, 'start, lost 6', ['AAA is not confirmed armed (expired)']],
    // Even before any guarantee has run out.
    ['a refused key', TWO, 'start, badkey 7', ['the exchange refuses the API key: Unauthorized request.']],
  ])('with %s says why it is not ready, if it is not', (_what, options, script, notReady) => {
    const driver = played(options, script);
    expect(driver.look()).toMatchObject({ ready: notReady.length === 0, notReady });
    expect(driver.look().authorised).toBe(!script.includes('badkey'));
  });

  test('is not ready on its way out', () => {
    const driver = played({ shutdown: { policy: 'keep' } }, 'start, stop');
    const notReady = ['the daemon is stopping'];
    expect(driver.look()).toMatchObject({ phase: 'stopping', notReady, shutdownPolicy: 'keep' });
    play(driver, 'deleted');
    expect(driver.look()).toMatchObject({ phase: 'stopped', notReady: ['the daemon is stopped'] });
  });

  test('knows its bots, how old their evidence is and how old it may be', () => {
    const driver = createDriver({ liveness: { mode: 'beat', ttlMs: 9000 } });
    expect(driver.look().bots).toEqual([
      {
        bot: 'bot',
        mode: 'beat',
        state: 'starting',
        evidenceAgeMs: null,
        ttlMs: 9000,
        graceEndsWallMs: (SERVER_EPOCH + 60) * 1000,
      },
    ]);
    play(driver, 'beat, wait 1, move 0.03');
    expect(driver.look().bots[0]).toMatchObject({
      state: 'alive',
      evidenceAgeMs: 1030,
      graceEndsWallMs: null,
    });
    expect(createDriver().look().bots).toEqual([
      {
        bot: 'bot',
        mode: 'none',
        state: 'alive',
        evidenceAgeMs: null,
        ttlMs: null,
        graceEndsWallMs: null,
      },
    ]);
  });
});
