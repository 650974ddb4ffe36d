import { describe, expect, test } from 'vitest';
import { many } from './core-settings.ts';
import { BAD_KEY, createDriver, gaps, play, played, STALE_NONCE, type Write, watched } from './driver.ts';

const MINUTE_MS = 60_000;

/** What is due within this is released together. */
const TOGETHER_MS = 25;

/** The gap after a probe when nothing is left to save: as long as the key has been refused, from 5 s to a minute. */
const rareGapMs = (refusedForMs: number) => Math.min(Math.max(refusedForMs, 5000), MINUTE_MS);

/** Each of the probes comes when the one before it said, and no later. */
function expectGaps(probes: readonly Write[], gapAfterMs: (atMs: number) => number): void {
  for (const [place, gapMs] of gaps(probes).entries()) {
    const wantedMs = gapAfterMs(probes[place]?.atMs ?? 0);
    expect(gapMs, `after probe ${place}`).toBeGreaterThanOrEqual(wantedMs - 1);
    expect(gapMs, `after probe ${place}`).toBeLessThanOrEqual(wantedMs + TOGETHER_MS);
  }
}

describe('a refused key', () => {
  const twenty = many(20, 10);

  test('that was never good is latched by the first refusal and probed once a minute, by one request', () => {
    const driver = createDriver({ markets: twenty });
    driver.suffer(5 * MINUTE_MS + 1000, BAD_KEY);
    const said = { status: 401, detail: 'Unauthorized request.', probeInMs: MINUTE_MS, expiryWallMs: null };
    expect(driver.notices('unauthorised')).toEqual([{ kind: 'unauthorised', ...said }]);
    expect(driver.writes).toHaveLength(6);
    expect(Math.min(...gaps(driver.writes))).toBeGreaterThanOrEqual(MINUTE_MS);
  });

  test('that was never good costs one try, also where many requests may be in flight', () => {
    const driver = played({ markets: twenty, nonce: 'window' }, 'badkey 5');
    expect(driver.writes).toHaveLength(1);
  });

  test('counts once for all requests that were sent before its first refusal came back', () => {
    const driver = played({ markets: twenty, nonce: 'window' }, 'start');
    driver.move({ monoMs: 300, bootMs: 1000, wallMs: 1000 });
    driver.tick();
    const together = driver.take();
    expect(together.length).toBeGreaterThan(10);
    for (const write of together) driver.settle(write, BAD_KEY);
    expect(driver.notices('unauthorised')).toEqual([]);
  });

  test('that is new is accepted by no answer to a request of the one before', () => {
    const driver = played({ markets: twenty, nonce: 'window' }, 'start');
    driver.wait(1100);
    const [late, ...others] = driver.take();
    for (const write of others) driver.apply(write);
    driver.feed({ kind: 'credentials-changed' });
    if (late !== undefined) driver.apply(late);
    driver.wait(250);
    driver.take();
    driver.operate('arm');
    driver.wait(95);
    expect(driver.take()).toHaveLength(1);
  });

  test('that is new is not latched for a refusal of the one before', () => {
    const driver = played({ markets: ['AAA:60'] }, 'start, wait 7');
    driver.settle(driver.takeOne(), BAD_KEY);
    driver.feed({ kind: 'credentials-changed' });
    driver.wait(6000);
    driver.settle(driver.takeOne(), BAD_KEY);
    expect(driver.notices('unauthorised')).toEqual([]);
  });

  test('that was good once is latched by the second refusal, and tried in time for every timer while one is armed', () => {
    const driver = played({ markets: twenty }, 'live 10');
    const before = driver.writes.length;
    driver.suffer(5 * MINUTE_MS, BAD_KEY);
    const tries = driver.writes.slice(before);
    expect(driver.notices('unauthorised')).toHaveLength(1);
    // Each market meets the refusal itself once. The second of these answers latches.
    const own = tries.slice(0, twenty.length);
    expect(new Set(own.map(({ market }) => market)).size).toBe(twenty.length);
    const latchedMs = 20 + (own[1]?.atMs ?? 0);
    const probes = tries.slice(twenty.length);
    // The renewals of the second before leave 9 s, and 200 ppm of 9 s are given away.
    const deadlines = own.map(({ atMs }) => atMs - 1000 + 9000 - 1.8);
    expectGaps(probes, (atMs) => {
      const left = deadlines
        .map((deadlineMs) => deadlineMs - atMs)
        // After that comes the second that rounding gives or takes.
        .map((leftMs) => (leftMs > 10 ? leftMs : leftMs + 1000))
        .filter((leftMs) => leftMs > 10);
      if (left.length === 0) return rareGapMs(atMs - latchedMs);
      return Math.min(Math.max(Math.min(...left) / 4, 250), 5000);
    });
    const lastMs = Math.max(...deadlines) + 1000;
    const inTime = probes.filter(({ atMs }) => atMs < lastMs);
    expect(lastMs - (inTime.at(-1)?.atMs ?? 0)).toBeLessThanOrEqual(250 + TOGETHER_MS);
    // The next probe was due when something could still be saved. Then the refusal lasts twice as long at each one.
    expect(probes.length - inTime.length).toBe(1 + 3 + 3);
  });

  test('whose probe meets a stale nonce is asked again at once, three times: nothing was said about the key', () => {
    const driver = played({}, 'badkey 59');
    driver.suffer(2000, STALE_NONCE);
    // And once more half a second later.
    expect(driver.writes).toHaveLength(1 + 1 + 3 + 1);
  });

  test('whose probe meets a refused market was good: the others do not wait for the next probe', () => {
    const markets = ['WRONG:60', 'AAA:60', 'BBB:60'];
    const driver = played({ markets }, 'badkey 125, newkey, refused 3 WRONG');
    expect(new Set(driver.told('renewed'))).toEqual(new Set(['AAA', 'BBB']));
  });

  test('is probed by nothing else, neither for a dead bot', () => {
    const driver = play(watched({ markets: many(20), liveness: { onStale: 'trip' } }), 'live 10');
    const before = driver.writes.length;
    driver.suffer(MINUTE_MS, BAD_KEY);
    const tries = driver.writes.slice(before);
    // While the bot lives each market meets the refusal itself once; after that one trip at a time finds out.
    const own = tries.filter(({ timeoutSeconds }) => timeoutSeconds === 60);
    expect(new Set(own.map(({ market }) => market)).size).toBe(own.length);
    const trips = tries.slice(own.length);
    expect(trips.map(({ timeoutSeconds }) => timeoutSeconds)).toEqual([5, 5, 5, 5]);
    const latchedMs = 20 + (own[1]?.atMs ?? 0);
    expectGaps(trips, (atMs) => rareGapMs(atMs - latchedMs));
  });

  test('that was changed while it was refused is tried at once and arms everything, or is probed as before', () => {
    const driver = played({ markets: twenty }, 'badkey 10');
    const { length } = driver.writes;
    play(driver, 'newkey, badkey 59');
    expect(driver.writes).toHaveLength(length + 1);
    play(driver, 'newkey, live 2');
    expect(driver.notices('all-armed')).toHaveLength(1);
  });

  test.each([
    ['a disarm that waits for it', 'disarm', 'expire', null],
    ['a trip that waits for it', 'trip', 'expire', 5],
    ['the trip of a bot that failed', 'fail', 'trip', 5],
    ['the delete of a bot that said goodbye, once the key was changed', 'goodbye, newkey', 'expire', null],
  ] as const)(
    'that is good again is found out by %s, although nothing is to be renewed',
    (_what, script, onStale, seconds) => {
      const driver = watched({ markets: ['AAA:600'], liveness: { ttlMs: 600_000, onStale } });
      play(driver, 'live 2, badkey 30');
      expect(driver.look().authorised).toBe(false);
      driver.written(0);
      expect(play(driver, script).written(120_000)).toEqual([seconds]);
    },
  );
});
