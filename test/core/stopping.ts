import type { SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver, SERVER_EPOCH } from './driver.ts';

/** The deletes that were written so far. */
export const deletes = (driver: Driver) =>
  driver.writes.filter(({ timeoutSeconds }) => timeoutSeconds === null);
/** The wall clock so long after the start of the driver, Unix milliseconds. */
export const wallAt = (sinceStartMs: number) => SERVER_EPOCH * 1000 + sinceStartMs;

/** Two markets whose timers are armed. */
export function armed(options: SettingsOptions = {}) {
  const driver = createDriver({ markets: ['AAA:60', 'BBB:60'], ...options });
  driver.arm();
  driver.live(1000);
  return driver;
}
