import type { SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver } from './driver.ts';

/** The deletes that were written so far. */
export const deletes = (driver: Driver) =>
  driver.writes.filter(({ timeoutSeconds }) => timeoutSeconds === null);

/** Two markets whose timers are armed. */
export function armed(options: SettingsOptions = {}) {
  const driver = createDriver({ markets: ['AAA:60', 'BBB:60'], ...options });
  driver.arm();
  driver.live(1000);
  return driver;
}
