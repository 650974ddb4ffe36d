import { expect, test } from 'vitest';
import { armed, type Driver, LOST, play } from './driver.ts';

const WATCHED = { liveness: { mode: 'beat', startupGraceMs: 30_000 } } as const;

const names = (driver: Driver) => driver.look().markets.map(({ market }) => market);

test('what is the same goes on as if nothing had happened', () => {
  const [driver, undisturbed] = [armed({ markets: ['AAA', 'BBB'] }), armed({ markets: ['AAA', 'BBB'] })];
  driver.reload({ markets: ['AAA', 'BBB'] });
  for (const one of [driver, undisturbed]) one.live(20_000);
  expect(driver.writes).toEqual(undisturbed.writes);
  expect(driver.notices('reloaded')).toEqual([{ kind: 'reloaded', added: [], removed: [], changed: [] }]);
});

test('a market that is gone is renewed once more in full under the policy handoff', () => {
  const driver = armed({ markets: ['AAA', 'BBB'] });
  driver.reload({ markets: ['BBB'], shutdown: { policy: 'handoff' } });
  expect(driver.written(20_000, 'AAA')).toEqual([60]);
  expect(names(driver)).toEqual(['BBB']);
});

test('a market that comes back before it has left counts as added and is guarded again', () => {
  const driver = armed({ markets: ['AAA', 'BBB'] });
  driver.reload({ markets: ['BBB'] });
  driver.settle(driver.takeOne(), LOST);
  driver.reload({ markets: ['BBB', 'AAA'] });
  expect(driver.written(2000, 'AAA')[0]).toBe(60);
  expect(names(driver)).toEqual(['BBB', 'AAA']);
  expect(driver.notices('reloaded').map(({ added, removed }) => [added, removed])).toEqual([
    [[], ['AAA']],
    [['AAA'], []],
  ]);
});

test('another timeout is asked for at once, and waited for until it is confirmed', () => {
  const driver = armed();
  driver.reload({ markets: ['AAA:30'] });
  expect(driver.notices('reloaded')).toEqual([
    { kind: 'reloaded', added: [], removed: [], changed: ['AAA'] },
  ]);
  expect(driver.progress('arm').state).toBe('waiting');
  expect(driver.written(1000)).toEqual([30]);
  expect(driver.progress('arm').state).toBe('done');
  expect(driver.progress('arm').says).toMatch(/^AAA is armed and renewed: 2\d/);
});

test('a market that moves to a dead bot is not renewed, and to a living one is', () => {
  const watched = { liveness: { mode: 'beat', startupGraceMs: 1000 } } as const;
  const driver = play(armed({ ...watched, markets: ['AAA:60:dead', 'BBB:60:live'] }), 'beat live');
  const before = driver.notices('suspended').length;
  driver.reload({ ...watched, markets: ['AAA:60:live', 'BBB:60:dead'] });
  expect(driver.notices('suspended').slice(before)).toMatchObject([{ market: 'BBB', why: 'bot_stale' }]);
  driver.live(10_000);
  expect(driver.of('AAA', 2000)).not.toEqual([]);
  expect(driver.of('BBB', 2001)).toEqual([]);
});

test('a bot that is new has its start-up grace from the reload on, and one without markets is forgotten', () => {
  const driver = play(armed({ ...WATCHED, markets: ['AAA:60:old'] }), 'live 60');
  driver.reload({ ...WATCHED, markets: ['BBB:60:new'] });
  expect(driver.written(20_000, 'BBB').length).toBeGreaterThan(2);
  driver.live(80_000);
  expect(driver.look().bots.map(({ bot }) => bot)).toEqual(['new']);
});

test('a bot that has no markets any more is not told of: that it says nothing is what was asked of it', () => {
  const driver = armed({ ...WATCHED, markets: ['AAA:60:maker', 'BBB:60:other'] });
  for (const bot of ['maker', 'other']) driver.say('beat', bot);
  driver.reload({ ...WATCHED, markets: ['BBB:60:other'] });
  driver.live(120_000);
  const said = driver.notices('bot').map(({ bot, state }) => `${bot} ${state}`);
  expect(said).toEqual(['maker alive', 'other alive', 'other stale']);
});

test('the cadence follows the number of markets', () => {
  const few = { budget: { requests: 10, windowMs: 10_000 } };
  const driver = armed(few);
  const before = driver.statusOf()?.periodMs ?? 0;
  driver.reload({ ...few, markets: ['AAA', 'BBB', 'CCC', 'DDD', 'EEE', 'FFF', 'GGG', 'HHH', 'III'] });
  expect(driver.statusOf()?.periodMs).toBeGreaterThan(before * 1.3);
});

test('a shorter lifetime of evidence counts at once', () => {
  const driver = play(armed(WATCHED), 'beat, live 5');
  driver.reload({ liveness: { mode: 'beat', ttlMs: 4000 } });
  expect(driver.written(20_000, 'AAA')).toEqual([]);
});

test('a shorter timeout keeps what is guaranteed while its first renewal is on its way', () => {
  const driver = play(armed({ markets: ['AAA:60'] }), 'wait 4');
  driver.reload({ markets: ['AAA:10'] });
  driver.wait(300);
  expect(driver.statusOf()?.guaranteedMs).toBeGreaterThan(8500);
});
