import { expect, test } from 'vitest';
import type { SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver, HTTP_500, LOST, NOT_SENT, watched } from './driver.ts';

const cuts = (driver: Driver) => driver.writes.filter(({ timeoutSeconds }) => timeoutSeconds === 5);

/** Armed by a bot that is heard of once, at the start. */
const silent = (market = 'AAA', options: SettingsOptions = {}) =>
  watched({ ...options, markets: [market], liveness: { onStale: 'trip' } });

test('onStale: trip cuts the timer to 5 s, once, when the bot has been silent for the lifetime of its evidence', () => {
  const driver = silent();
  driver.live(60_000);
  expect(cuts(driver)).toHaveLength(1);
  expect(cuts(driver)[0]?.atMs).toBeGreaterThan(15_000);
  expect(cuts(driver)[0]?.atMs).toBeLessThan(15_600);
  expect(driver.notices('attempt').at(-1)).toMatchObject({ purpose: 'trip' });
  expect(driver.notices('tripped')).toMatchObject([{ why: 'bot_stale' }]);
});

test('it makes no timer where none can be left', () => {
  const driver = silent('AAA:10', { requestLifetimeMs: 0 });
  driver.suffer(60_000, NOT_SENT);
  expect(cuts(driver)).toEqual([]);
});

test.each([
  ['lost', LOST],
  ['never sent', NOT_SENT],
  ['answered with a server error', HTTP_500],
])('it tries again when the cut was %s: the timer may still be the long one', (_what, outcome) => {
  const driver = silent();
  driver.live(15_100);
  driver.suffer(4000, outcome);
  expect(cuts(driver).length).toBeGreaterThan(2);
  expect(cuts(driver).length).toBeLessThanOrEqual(10);
  driver.live(1000);
  const cut = cuts(driver).length;
  driver.live(20_000);
  expect(cuts(driver)).toHaveLength(cut);
});

test.each(['delete', 'keep', 'handoff'] as const)(
  'a stop with policy %s goes on with a cut that was not confirmed',
  (policy) => {
    const driver = silent();
    driver.live(15_000);
    driver.suffer(2000, NOT_SENT);
    expect(driver.notices('tripped')).toEqual([]);
    driver.stop(policy);
    driver.live(2000);
    expect(driver.notices('tripped')).toMatchObject([{ why: 'bot_stale' }]);
    expect(driver.finished()).toMatchObject([{ market: 'AAA', why: 'policy' }]);
  },
);

test('it waits for what is in flight, which would make the timer long again, and no longer', () => {
  const driver = silent();
  driver.live(11_990);
  driver.suffer(1000, null);
  driver.say('fail');
  driver.live(500);
  expect(cuts(driver)).toEqual([]);
  for (const hung of driver.of('AAA', 11_990)) driver.apply(hung);
  driver.live(600);
  expect(cuts(driver)).toHaveLength(1);
});

test('it does not cut for a clock that somebody set: only for silence on one that nobody can set', () => {
  const driver = silent();
  driver.live(3000);
  driver.move({ monoMs: 10, bootMs: 10, wallMs: 3_600_000 });
  driver.live(8000);
  expect(driver.notices('bot').map(({ state }) => state)).toEqual(['alive', 'stale']);
  expect(cuts(driver)).toEqual([]);
  driver.live(6000);
  expect(cuts(driver)).toHaveLength(1);
});

test('nor within the grace of a bot that was never heard, in which its timers are renewed however the clock is set', () => {
  const driver = createDriver({
    markets: ['AAA:10'],
    liveness: { mode: 'beat', onStale: 'trip', ttlMs: 3000, startupGraceMs: 30_000 },
  });
  driver.live(5000);
  driver.move({ monoMs: 10, bootMs: 10, wallMs: 3_600_000 });
  driver.live(15_000);
  expect(cuts(driver)).toEqual([]);
  expect(driver.notices('bot')).toEqual([]);
  expect(driver.statusOf()).toMatchObject({ state: 'armed', lapses: 0 });
  driver.live(12_000);
  expect(cuts(driver)).toHaveLength(1);
});

test('it is not written any more once the bot is back, however long its connection takes to open', () => {
  const driver = silent();
  driver.apply(driver.takeOne());
  driver.say('fail');
  driver.tick();
  const { attempt } = driver.takeOne();
  expect(cuts(driver)).toHaveLength(1);
  driver.move({ monoMs: 50 });
  expect(driver.mayLeave(attempt)).toBe(true);
  driver.say('beat');
  expect(driver.mayLeave(attempt)).toBe(false);
});
