import type { Cancel, Clock } from '../ports.ts';
import type { Log, LogLevel } from '../telemetry/log.ts';
import type { Operations } from '../telemetry/operations.ts';

export interface LogLevels {
  readonly level: () => LogLevel;
  /** For `forMs`, after which the configured level is back; null for as long as the daemon runs. */
  readonly set: (level: LogLevel, forMs: number | null) => void;
  /** The configured level has changed: it is in force unless an operator's is. */
  readonly configured: (level: LogLevel) => void;
  readonly stop: Cancel;
}

/** Which log level is in force: the configured one, or the one that an operator asked for. */
export function createLogLevels(
  clock: Clock,
  log: Log,
  operations: Operations,
  configured: LogLevel,
): LogLevels {
  let usual = configured;
  let isSet = false;
  let cancel: Cancel = () => {};
  function change(to: LogLevel, untilWallMs: number | null): void {
    if (log.level() !== to || untilWallMs !== null) operations.setLogLevel(to, untilWallMs);
  }
  return {
    level: () => log.level(),
    set(level, forMs) {
      cancel();
      isSet = true;
      change(level, forMs === null ? null : clock.now().wallMs + forMs);
      if (forMs === null) return;
      cancel = clock.after(forMs, () => {
        isSet = false;
        change(usual, null);
      });
    },
    configured(level) {
      usual = level;
      if (!isSet) change(level, null);
    },
    stop: () => cancel(),
  };
}
