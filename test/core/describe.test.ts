import { describe, expect, test } from 'vitest';
import { believeEarlierLife } from '../../src/core/belief.ts';
import { type SettingsOptions } from './core-settings.ts';
import { BAD_KEY, createDriver, type Driver, HTTP_500, LOST, NO_MARKET, SERVER_EPOCH } from './driver.ts';

const first = (driver: Driver) => {
  const market = driver.look().markets[0];
  if (market === undefined) throw new Error('no market');
  return market;
};

function armed(options: SettingsOptions = {}) {
  const driver = createDriver(options);
  driver.arm();
  return driver;
}

describe('a market', () => {
  test('is arming until its first confirmation', () => {
    const driver = createDriver();
    driver.tick();
    expect(first(driver)).toMatchObject({
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
    const driver = createDriver({ nonce: 'window' });
    for (const market of driver.state.markets) believeEarlierLife(driver.state, market);
    driver.live(3000);
    expect(first(driver)).toMatchObject({
      state: 'arming',
      renewals: expect.any(Number),
      guaranteedMs: null,
    });
    driver.live(15_000);
    expect(first(driver).state).toBe('armed');
    // Nothing is known of the slack before: it is not told as none.
    expect(first(driver).slackHistory.every((ratio) => ratio > 0.8)).toBe(true);
  });

  test('is armed with everything that is known about it', () => {
    const driver = armed({ markets: ['AAA:60:maker'] });
    driver.live(6100);
    expect(first(driver)).toMatchObject({
      market: 'AAA',
      types: null,
      bot: 'maker',
      state: 'armed',
      timeoutMs: 60_000,
      periodMs: 6000,
      expiryWallMs: expect.closeTo((SERVER_EPOCH + 65) * 1000 - 12, 0),
      cancellationTime: SERVER_EPOCH + 66,
      lastDurationMs: expect.closeTo(20, 3),
      renewals: 2,
      failures: 0,
      failureStreak: 0,
      lapses: 0,
      lastProblem: null,
    });
    expect(first(driver).lastSlackRatio).toBeCloseTo(0.9, 2);
    expect(first(driver).slackHistory).toHaveLength(1);
    expect(first(driver).promise[0]).toBe('AAA: renewed every 6 s, timer of 60 s.');
  });

  test('is retrying while renewals fail and time is left, and expired after that', () => {
    const driver = armed({ markets: ['AAA:10'] });
    driver.live(3000, 20, (write) => driver.settle(write, HTTP_500));
    expect(first(driver)).toMatchObject({ state: 'retrying', lastProblem: 'status 500' });
    expect(first(driver).failureStreak).toBeGreaterThan(0);
    driver.live(8000, 20, (write) => driver.settle(write, LOST));
    expect(first(driver).state).toBe('expired');
    expect(first(driver).guaranteedMs ?? 1).toBeLessThanOrEqual(0);
    // For as long as one of those that had no answer may have kept it.
    driver.live(14_000, 20, (write) => driver.settle(write, LOST));
    expect(first(driver)).toMatchObject({ state: 'expired', firesByWallMs: expect.any(Number) });
    driver.live(2000);
    expect(first(driver)).toMatchObject({ state: 'armed', failureStreak: 0 });
  });

  test('is rejected while the exchange refuses it, with its words and the time of the next attempt', () => {
    const driver = createDriver();
    driver.tick();
    const write = driver.takeOne();
    driver.settle(write, NO_MARKET);
    const retryWallMs = SERVER_EPOCH * 1000 + write.atMs + 60_000;
    expect(first(driver)).toMatchObject({
      state: 'rejected',
      lastProblem: 'Market is not available.',
      retryWallMs,
    });
    driver.live(30_000, 20);
    expect(first(driver).retryWallMs).toBe(retryWallMs);
    driver.live(31_000);
    expect(first(driver)).toMatchObject({ state: 'armed', retryWallMs: null });
  });

  test('is rejected while the exchange refuses the key and nothing was ever armed', () => {
    const driver = createDriver();
    driver.tick();
    driver.settle(driver.takeOne(), BAD_KEY);
    expect(first(driver).state).toBe('rejected');
  });

  test('is disarmed after a lapse that it is held after', () => {
    const driver = armed({ markets: ['AAA:10'], onLapse: 'hold' });
    driver.wait(1000);
    driver.apply(driver.takeOne(), { startTime: SERVER_EPOCH + 60 });
    expect(first(driver)).toMatchObject({ state: 'disarmed', wanted: false, lapses: 1 });
  });

  test('is deleted once the delete is confirmed', () => {
    const driver = armed();
    driver.stop();
    driver.settle(driver.takeOne(), { kind: 'deleted' });
    expect(first(driver)).toMatchObject({
      state: 'deleted',
      wanted: false,
      guaranteedMs: null,
      expiryWallMs: null,
      firesByWallMs: null,
    });
  });

  test('whose timer was altered says how', () => {
    const driver = createDriver();
    driver.tick();
    driver.apply(driver.takeOne(), { timeout: 30 });
    expect(first(driver).lastProblem).toBe('the exchange answered with a timer of 30 s instead of 60 s');
  });
});

describe('what a stop would do', () => {
  test.each([
    ['delete', 'deletes the timer: the orders stay'],
    ['keep', 'leaves the timer: the exchange cancels the orders when it fires'],
    ['handoff', 'renews the timer once more and leaves it to the successor'],
  ] as const)('with policy %s is said in words', (policy, words) => {
    expect(first(armed({ shutdown: { policy } })).onStop).toBe(words);
  });

  test.each([
    ['delete', /^tries to delete the timer: the orders stay only if the exchange confirms it/],
    ['handoff', /^tries to renew the timer once more/],
  ] as const)('with policy %s promises nothing while renewals fail', (policy, words) => {
    const driver = armed({ markets: ['AAA:10'], shutdown: { policy } });
    driver.live(3000, 20, (write) => driver.settle(write, HTTP_500));
    expect(first(driver).onStop).toMatch(words);
  });

  test('is nothing where no timer can exist', () => {
    expect(first(createDriver()).onStop).toBe('nothing to do: no timer is armed');
  });

  test('is to leave the timer of a bot that does not live', () => {
    const driver = armed({ liveness: { mode: 'beat' } });
    expect(first(driver).onStop).toBe('leaves the timer: the exchange cancels the orders when it fires');
    driver.say('beat');
    expect(first(driver).onStop).toBe('deletes the timer: the orders stay');
  });

  test('is to leave a refused market out of a handoff', () => {
    const driver = armed({ markets: ['AAA:10'], shutdown: { policy: 'handoff' } });
    driver.live(5000, 20, (write) => driver.settle(write, NO_MARKET));
    expect(first(driver).onStop).toBe('leaves the timer: the exchange cancels the orders when it fires');
  });
});

describe('the daemon', () => {
  test('is ready when every wanted market is confirmed armed', () => {
    const driver = createDriver({ markets: ['AAA', 'BBB'] });
    driver.tick();
    driver.apply(driver.takeOne());
    expect(driver.look()).toMatchObject({
      phase: 'running',
      ready: false,
      notReady: ['BBB is not confirmed armed (arming)'],
    });
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
    driver.live(6000, 20, (write) => driver.settle(write, LOST));
    expect(driver.look().notReady).toEqual(['AAA is not confirmed armed (expired)']);
  });

  test('is not ready while the key is refused, even before any guarantee has run out', () => {
    const driver = armed({ markets: ['AAA:60', 'BBB:60'] });
    driver.live(7000, 20, (write) => driver.settle(write, BAD_KEY));
    expect(driver.look()).toMatchObject({
      ready: false,
      authorised: false,
      notReady: ['the exchange refuses the API key: Unauthorized request.'],
    });
  });

  test('is not ready on its way out', () => {
    const driver = armed({ shutdown: { policy: 'keep' } });
    driver.stop();
    expect(driver.look()).toMatchObject({
      phase: 'stopping',
      notReady: ['the daemon is stopping'],
      shutdownPolicy: 'keep',
    });
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

  test('knows its addresses', () => {
    const driver = createDriver({ bases: ['https://one.example', 'https://two.example'] });
    driver.tick();
    driver.feed({ kind: 'pinged', base: 0, ok: true, latencyMs: 12, reason: null, detail: '' });
    driver.feed({
      kind: 'pinged',
      base: 1,
      ok: false,
      latencyMs: 3000,
      reason: 'timeout',
      detail: 'no pong',
    });
    expect(driver.look().bases).toEqual([
      { url: 'https://one.example', up: true, pingMs: 12, lastProblem: null, used: true, outage: false },
      {
        url: 'https://two.example',
        up: false,
        pingMs: null,
        lastProblem: 'no pong',
        used: false,
        outage: false,
      },
    ]);
  });

  test('knows when an address is out, and what it plans with', () => {
    const driver = armed({ markets: ['AAA:10', 'BBB:10', 'CCC:10'] });
    driver.live(5000, 20, (write) => driver.settle(write, HTTP_500));
    expect(driver.look().bases[0]?.outage).toBe(true);
    expect(driver.look()).toMatchObject({
      capacityPerSecond: expect.closeTo(490 / 1.0502, 6),
      cadenceFactor: 1,
    });
  });
});

test('a refused market shows what the exchange said, also after a probe that got no answer', () => {
  const driver = createDriver({ markets: ['AAA', 'BBB'] });
  driver.tick();
  driver.settle(driver.takeOne(), NO_MARKET);
  driver.live(70_000, 20, (write) => {
    if (write.market === 'AAA') driver.settle(write, LOST);
    else driver.apply(write);
  });
  expect(driver.writes.filter(({ market }) => market === 'AAA').length).toBeGreaterThan(1);
  expect(driver.statusOf()).toMatchObject({ state: 'rejected', lastProblem: 'Market is not available.' });
});

test('markets that are out of guard show as such before their timers are gone', () => {
  const driver = createDriver({ markets: ['AAA', 'BBB'] });
  driver.live(1000);
  driver.operate('disarm', ['AAA']);
  driver.operate('pause', ['BBB'], 60_000);
  expect(driver.statusOf()?.state).toBe('disarmed');
  expect(driver.statusOf('BBB')?.state).toBe('paused');
});
