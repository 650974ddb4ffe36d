import { onTheirWay } from '../../src/core/state.ts';
import { type SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver } from './driver.ts';

/** A stop, and a reload that takes a market out, leave its timer armed. */
export const KEEP = { shutdown: { policy: 'keep' } } as const;

/** Two markets whose timers are armed and whose writes were looked at. */
export function armed(options: SettingsOptions = {}): Driver {
  const driver = createDriver({ markets: ['AAA', 'BBB'], ...options });
  driver.tick();
  driver.live(2000);
  driver.take();
  return driver;
}
/** The markets that were removed, and what became of their timers. */
export const removed = (driver: Driver) => driver.notices('removed').map(({ market, how }) => [market, how]);
/** Takes AAA out with its timer left armed, and in again after `awayMs`. */
export function away(awayMs: number, options: SettingsOptions = KEEP): Driver {
  const driver = armed(options);
  driver.reload({ ...options, markets: ['BBB'] });
  driver.live(awayMs);
  driver.reload({ ...options, markets: ['AAA', 'BBB'] });
  return driver;
}
/** The attempts of AAA that nobody has answered; a copy, since answers change the list. */
export const idsInFlight = (driver: Driver) => onTheirWay(driver.market('AAA')).map(({ id }) => id);
