import { type Awaited, progressOf } from '../../src/core/commands.ts';
import type { CommandName } from '../../src/core/events.ts';
import type { SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver } from './driver.ts';

/** A driver whose timers are armed. */
export function armed(options: SettingsOptions = {}): Driver {
  const driver = createDriver(options);
  driver.tick();
  driver.live(2000);
  return driver;
}

/** Writes before this one were looked at already. */
let seen = 0;

/** Gives an operator's command; null for all markets. */
export function operate(driver: Driver, does: CommandName, markets: string[] | null = null, forMs = 0) {
  seen = driver.writes.length;
  return driver.feed({ kind: 'operate', command: { does, markets, forMs } });
}

/** How far a command has come. */
export const progress = (driver: Driver, awaited: Awaited, market = 'AAA') =>
  progressOf(driver.state, awaited, driver.market(market));

/** What is written from the last command, or the last look, on: timeouts in seconds, null for a delete. */
export function written(driver: Driver, forMs: number): (number | null)[] {
  driver.live(forMs);
  const from = seen;
  seen = driver.writes.length;
  return driver.writes.slice(from).map(({ timeoutSeconds }) => timeoutSeconds);
}
