import { expect, test } from 'vitest';
import type { SettingsOptions } from './core-settings.ts';
import { createDriver, HTTP_500, LOST, NOT_SENT, play, played, watched } from './driver.ts';

/** Armed by a bot that is heard of once, at the start. */
const silent = (market = 'AAA', options: SettingsOptions = {}) =>
  watched({ ...options, markets: [market], liveness: { onStale: 'trip' } });

test('onStale: trip cuts the timer to 5 s, once, when the bot has been silent for the lifetime of its evidence', () => {
  const driver = play(silent(), 'live 60');
  expect(driver.asked(5)).toHaveLength(1);
  expect(driver.asked(5)[0]?.atMs).toBeGreaterThan(15_000);
  expect(driver.asked(5)[0]?.atMs).toBeLessThan(15_600);
  expect(driver.notices('attempt').at(-1)).toMatchObject({ purpose: 'trip' });
  expect(driver.notices('tripped')).toMatchObject([{ why: 'bot_stale' }]);
});

test('it makes no timer where none can be left', () => {
  const driver = play(silent('AAA:10', { requestLifetimeMs: 0 }), 'unsent 60');
  expect(driver.asked(5)).toEqual([]);
});

test.each([
  ['lost', LOST],
  ['never sent', NOT_SENT],
  ['answered with a server error', HTTP_500],
])('it tries again when the cut was %s: the timer may still be the long one', (_what, outcome) => {
  const driver = play(silent(), 'live 15.1');
  driver.suffer(4000, outcome);
  expect(driver.asked(5).length).toBeGreaterThan(2);
  expect(driver.asked(5).length).toBeLessThanOrEqual(10);
  driver.live(1000);
  const { length } = driver.asked(5);
  driver.live(20_000);
  expect(driver.asked(5)).toHaveLength(length);
});

test.each(['delete', 'keep', 'handoff'] as const)(
  'a stop with policy %s goes on with a cut that was not confirmed',
  (policy) => {
    const driver = play(silent(), 'live 15, unsent 2');
    expect(driver.notices('tripped')).toEqual([]);
    driver.stop(policy);
    driver.live(2000);
    expect(driver.notices('tripped')).toMatchObject([{ why: 'bot_stale' }]);
    expect(driver.finished()).toEqual(['AAA policy']);
  },
);

test('it waits for what is in flight, which would make the timer long again, and no longer', () => {
  const driver = play(silent(), 'live 11.99, silence 1, fail, live 0.5');
  expect(driver.asked(5)).toEqual([]);
  for (const hung of driver.of('AAA', 11_990)) driver.apply(hung);
  driver.live(600);
  expect(driver.asked(5)).toHaveLength(1);
});

test('it does not cut for a clock that somebody set: only for silence on one that nobody can set', () => {
  const driver = play(silent(), 'live 3');
  driver.move({ monoMs: 10, bootMs: 10, wallMs: 3_600_000 });
  driver.live(8000);
  expect(driver.notices('bot').map(({ state }) => state)).toEqual(['alive', 'stale']);
  expect(driver.asked(5)).toEqual([]);
  driver.live(6000);
  expect(driver.asked(5)).toHaveLength(1);
});

test('nor within the grace of a bot that was never heard, in which its timers are renewed however the clock is set', () => {
  const driver = createDriver({
    markets: ['AAA:10'],
    liveness: { mode: 'beat', onStale: 'trip', ttlMs: 3000, startupGraceMs: 30_000 },
  });
  driver.live(5000);
  driver.move({ monoMs: 10, bootMs: 10, wallMs: 3_600_000 });
  driver.live(15_000);
  expect(driver.asked(5)).toEqual([]);
  expect(driver.notices('bot')).toEqual([]);
  expect(driver.statusOf()).toMatchObject({ state: 'armed', lapses: 0 });
  driver.live(12_000);
  expect(driver.asked(5)).toHaveLength(1);
});

test('it is not written any more once the bot is back, however long its connection takes to open', () => {
  const driver = silent();
  driver.apply(driver.takeOne());
  play(driver, 'fail, tick');
  const { attempt } = driver.takeOne();
  expect(driver.asked(5)).toHaveLength(1);
  driver.move({ monoMs: 50 });
  expect(driver.mayLeave(attempt)).toBe(true);
  driver.say('beat');
  expect(driver.mayLeave(attempt)).toBe(false);
});

test('a trip cuts the timer at once though a stray is left, and once more when none is', () => {
  const driver = played({ markets: ['AAA:60', 'BBB:60'], nonce: 'window' }, 'start, live 20, lost 8 AAA');
  const lostMs = driver.of('AAA').at(-1)?.atMs ?? 0;
  const askedMs = driver.sinceStartMs();
  expect(askedMs - lostMs).toBeLessThan(5000);
  driver.operate('trip', ['AAA']);
  driver.live(4000);
  expect(driver.progress('trip')).toMatchObject({
    state: 'waiting',
    says: expect.stringContaining('once more'),
  });
  driver.live(16_000);
  const trips = driver.of('AAA').flatMap(({ timeoutSeconds, atMs }) => (timeoutSeconds === 5 ? atMs : []));
  expect(trips[0]).toBeLessThan(askedMs + 100);
  expect(trips.at(-1)).toBeGreaterThanOrEqual(lostMs + 10_000);
  // No trip keeps the timer of the one before from firing, but for the last one.
  for (const [place, atMs] of trips.slice(1, -1).entries())
    expect(atMs - (trips[place] ?? 0)).toBeGreaterThan(5000);
  const said = driver.notices('tripped').map(({ isFinal }) => isFinal);
  expect(said).toEqual([...trips.slice(1).map(() => false), true]);
  expect(driver.progress('trip').state).toBe('done');
});
