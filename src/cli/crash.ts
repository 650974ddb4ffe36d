import type { Daemon } from '../daemon/daemon.ts';
import { type Edge, EXIT } from './edge.ts';

/** How long a slow reader of the log is waited for. */
const FLUSH_MS = 500;

export interface CrashWatch {
  /** To be resolved with the daemon once it has started. */
  readonly daemon: PromiseWithResolvers<Daemon>;
  /** Ends the process because of an error of its own. */
  readonly crash: (error: unknown) => void;
}

/**
 * An error that nobody caught leaves nothing to rely on: the process ends at once and touches no timer, so that the
 * exchange fires them. Install it before anything is started. `also` adds what else is left behind.
 */
export function watchForCrash(edge: Edge, also: () => string = () => ''): CrashWatch {
  const daemon = Promise.withResolvers<Daemon>();
  let log: Daemon['log'] | null = null;
  const crash = (error: unknown) => {
    const text = `Internal error: the process ends and leaves all timers alone; the exchange will fire them.${also()}`;
    const stack = error instanceof Error ? error.stack : String(error);
    if (log === null) edge.err(`${text} ${stack}`);
    else log.logger.fatal({ event: 'crashed', stack }, text);
    const exit = () => edge.exitNow(EXIT.internal);
    if (log === null) exit();
    else log.flush(FLUSH_MS).then(exit, exit);
  };
  edge.onCrash(crash);
  daemon.promise.then((started) => {
    log = started.log;
    edge.onExit?.(() => started.cut());
  }, crash);
  return { daemon, crash };
}
