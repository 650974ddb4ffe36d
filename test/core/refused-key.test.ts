import { describe, expect, test } from 'vitest';
import { BAD_KEY, createDriver, NO_MARKET, STALE_NONCE, type Write, watched } from './driver.ts';

const MINUTE_MS = 60_000;
const gaps = (writes: readonly Write[]) =>
  writes.slice(1).map((write, place) => write.atMs - (writes[place]?.atMs ?? 0));

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
  const twenty = Array.from({ length: 20 }, (_, index) => `M${index}:10`);

  test('that was never good is latched by the first refusal and probed once a minute, by one request', () => {
    const driver = createDriver({ markets: twenty });
    driver.suffer(5 * MINUTE_MS + 1000, BAD_KEY);
    const said = { status: 401, detail: 'Unauthorized request.', probeInMs: MINUTE_MS, expiryWallMs: null };
    expect(driver.notices('unauthorised')).toEqual([{ kind: 'unauthorised', ...said }]);
    expect(driver.writes).toHaveLength(6);
    expect(Math.min(...gaps(driver.writes))).toBeGreaterThanOrEqual(MINUTE_MS);
  });

  test('that was never good costs one try, also where many requests may be in flight', () => {
    const driver = createDriver({ markets: twenty, nonce: 'window' });
    driver.suffer(5000, BAD_KEY);
    expect(driver.writes).toHaveLength(1);
  });

  test('counts once for all requests that were sent before its first refusal came back', () => {
    const driver = createDriver({ markets: twenty, nonce: 'window' });
    driver.arm();
    driver.move({ monoMs: 300, bootMs: 1000, wallMs: 1000 });
    driver.tick();
    const together = driver.take();
    expect(together.length).toBeGreaterThan(10);
    for (const write of together) driver.settle(write, BAD_KEY);
    expect(driver.notices('unauthorised')).toEqual([]);
  });

  test('that was good once is latched by the second refusal, and tried in time for every timer while one is armed', () => {
    const driver = createDriver({ markets: twenty });
    driver.live(10_000);
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
      const left = deadlines.map((deadlineMs) => deadlineMs - atMs).filter((leftMs) => leftMs > 10);
      if (left.length === 0) return rareGapMs(atMs - latchedMs);
      return Math.min(Math.max(Math.min(...left) / 4, 250), 5000);
    });
    const lastMs = Math.max(...deadlines);
    const inTime = probes.filter(({ atMs }) => atMs < lastMs);
    expect(lastMs - (inTime.at(-1)?.atMs ?? 0)).toBeLessThanOrEqual(250 + TOGETHER_MS);
    // The next probe was due when something could still be saved. Then the refusal lasts twice as long at each one.
    expect(probes.length - inTime.length).toBe(1 + 3 + 3);
  });

  test('whose probe meets a stale nonce is asked again at once, three times: nothing was said about the key', () => {
    const driver = createDriver();
    driver.suffer(MINUTE_MS - 1000, BAD_KEY);
    driver.suffer(2000, STALE_NONCE);
    // And once more half a second later.
    expect(driver.writes).toHaveLength(1 + 1 + 3 + 1);
  });

  test('whose probe meets a refused market was good: the others do not wait for the next probe', () => {
    const driver = createDriver({ markets: ['WRONG:60', 'AAA:60', 'BBB:60'] });
    driver.suffer(2 * MINUTE_MS + 5000, BAD_KEY);
    driver.feed({ kind: 'credentials-changed' });
    driver.suffer(3000, NO_MARKET, 'WRONG');
    expect(new Set(driver.notices('renewed').map(({ market }) => market))).toEqual(new Set(['AAA', 'BBB']));
  });

  test('is probed by nothing else, neither for a dead bot', () => {
    const markets = Array.from({ length: 20 }, (_, index) => `M${index}:60`);
    const driver = watched({ markets, liveness: { onStale: 'trip' } });
    driver.live(10_000);
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
    const driver = createDriver({ markets: twenty });
    driver.suffer(10_000, BAD_KEY);
    const { length } = driver.writes;
    driver.feed({ kind: 'credentials-changed' });
    driver.suffer(MINUTE_MS - 1000, BAD_KEY);
    expect(driver.writes).toHaveLength(length + 1);
    driver.feed({ kind: 'credentials-changed' });
    driver.live(2000);
    expect(driver.notices('all-armed')).toHaveLength(1);
  });
});
