import type { SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver, SERVER_EPOCH, type Write } from './driver.ts';

type Policy = 'delete' | 'keep' | 'handoff';

/** Asks the core to stop. */
export const stop = (driver: Driver, policy: Policy = 'delete') =>
  driver.feed({ kind: 'stop', policy, why: 'SIGTERM' });
/** The deletes that were written so far. */
export const deletes = (driver: Driver) =>
  driver.writes.filter(({ timeoutSeconds }) => timeoutSeconds === null);
/** Confirms deletes and renewals alike. */
export const obey = (driver: Driver) => (write: Write) =>
  write.timeoutSeconds === null ? driver.settle(write, { kind: 'deleted' }) : driver.apply(write);
/** The wall clock so long after the start of the driver, Unix milliseconds. */
export const wallAt = (sinceStartMs: number) => SERVER_EPOCH * 1000 + sinceStartMs;

/** Two markets whose timers are armed. */
export function armed(options: SettingsOptions = {}) {
  const driver = createDriver({ markets: ['AAA:60', 'BBB:60'], ...options });
  driver.arm();
  driver.live(1000);
  return driver;
}
