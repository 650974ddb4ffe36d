import { expect, test } from 'vitest';
import { describe as snapshotOf } from '../../src/core/describe.ts';
import { describeNothingGuarded } from '../../src/core/guarding.ts';
import type { OperatorCommand } from '../../src/core/operate.ts';
import type { SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver } from './driver.ts';

function armed(options: SettingsOptions): Driver {
  const driver = createDriver(options);
  driver.tick();
  driver.live(2000);
  return driver;
}
const hold = (driver: Driver, does: OperatorCommand['does'], markets: string[] | null = null) => {
  driver.feed({ kind: 'operate', command: { does, markets, forMs: 60_000 } });
};
const look = (driver: Driver) => {
  const seen = snapshotOf(driver.state, driver.now());
  return [seen.ready, describeNothingGuarded(seen)];
};

test('nothing is said while one market is wanted, however many others are not', () => {
  const driver = armed({ markets: ['AAA', 'BBB'] });
  expect(look(driver)).toEqual([true, null]);
  hold(driver, 'disarm', ['AAA']);
  expect(look(driver)).toEqual([false, null]);
});

test('a daemon whose every market is out of guard is not ready, and says that nothing is guarded', () => {
  const driver = armed({ markets: ['AAA', 'BBB', 'CCC'] });
  hold(driver, 'disarm');
  expect(look(driver)).toEqual([false, 'nothing is guarded: all 3 markets are disarmed']);
  hold(driver, 'arm', ['BBB', 'CCC']);
  hold(driver, 'pause', ['BBB', 'CCC']);
  expect(look(driver)).toEqual([false, 'nothing is guarded: of 3 markets 1 is disarmed, 2 are paused']);
});

test('names a single market', () => {
  const driver = armed({});
  hold(driver, 'trip');
  expect(look(driver)).toEqual([false, 'nothing is guarded: AAA is tripped']);
});

test.each([
  ['fail', 'nothing is guarded: all 2 markets have bots that failed'],
  ['goodbye', 'nothing is guarded: all 2 markets have bots that said goodbye'],
] as const)('tells of bots after %s', (says, text) => {
  const driver = armed({ markets: ['AAA', 'BBB'], liveness: { mode: 'beat' } });
  driver.feed({ kind: 'evidence', bot: 'bot', says, agoMs: 0 });
  expect(look(driver)).toEqual([false, text]);
});

test('tells of a bot that never came, and of one that comes', () => {
  const driver = armed({ liveness: { mode: 'beat', startupGraceMs: 0 } });
  expect(look(driver)).toEqual([false, 'nothing is guarded: AAA has a bot that is silent']);
  driver.feed({ kind: 'evidence', bot: 'bot', says: 'beat', agoMs: 0 });
  expect(look(driver)[1]).toBeNull();
});

test('tells of a configuration without a market', () => {
  expect(look(createDriver({ markets: [] }))[1]).toBe('nothing is guarded: no market is configured');
});
