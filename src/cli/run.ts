import type { Command } from 'commander';
import type { Flags } from '../config/environment.ts';
import { isFailedDelete, type LeftArmed } from '../core/notice.ts';
import { type Daemon, type DaemonOptions, startDaemon } from '../daemon/daemon.ts';
import { ListenError } from '../operator/listen.ts';
import { LEFT, leftAs } from '../telemetry/events.ts';
import { isoTime } from '../util/text.ts';
import { addConfigFlags, loadFor } from './config-flags.ts';
import { type Edge, EXIT, type ExitCode, messageOf, onStopSignal } from './edge.ts';

/** `run`: the daemon. Exits with 75 where timers stayed armed that were to be deleted. */
export function register(program: Command, edge: Edge): void {
  addConfigFlags(program.command('run'))
    .description('keep the timers of the configured markets armed')
    .option('--embedded-exchange', 'bring a simulated exchange along: to try the daemon without an account')
    .action(async (flags: Flags) => {
      const loaded = loadFor(edge, flags, 'run');
      const own = createDaemonProcess('run', edge);
      const { daemon, stop, isStopping, endStopped, crash } = own;
      onStopSignal(edge, (signal) => {
        if (endStopped()) return;
        if (!isStopping()) return void stop(signal, (left) => reportLeft(left, edge)).catch(crash);
        edge.err(`killswitchd run: second ${signal}: exits at once, timers may still be armed`);
        edge.exitNow(EXIT.unconfirmed);
      });
      edge.onSignal('SIGHUP', () => {
        daemon.then((started) => started.reload()).catch(crash);
      });
      await own.start({ ...loaded, terminal: edge.screen !== undefined });
    });
}

/** Names on standard error, also where nobody reads the log, which deletes failed. Returns the exit code. */
function reportLeft(left: readonly LeftArmed[], edge: Edge): ExitCode {
  const failed = left.filter(isFailedDelete);
  for (const one of failed) {
    const { market, firesByWallMs, why } = one;
    const [what, advice] = LEFT[leftAs(one)];
    const fires = why === 'may-have-fired' ? '' : `, fires by ${isoTime(firesByWallMs)}`;
    edge.err(`${market}: ${what}${fires}. ${advice}`);
  }
  return failed.length > 0 ? EXIT.unconfirmed : EXIT.ok;
}

type ExitCodeOf = (left: readonly LeftArmed[], daemon: Daemon) => number;

/** A daemon from before its start to the end of the process. */
export type DaemonProcess = ReturnType<typeof createDaemonProcess>;

/**
 * An error that nobody caught leaves nothing to rely on: the process ends at once and touches no timer, so that the
 * exchange fires them. `also` adds what else is left behind.
 */
export function createDaemonProcess(command: 'run' | 'exec', edge: Edge, also: () => string = () => '') {
  const { promise: daemon, resolve } = Promise.withResolvers<Daemon>();
  let running: Daemon | null = null;
  /** Null before the stop. */
  let exitCodeOf: ExitCodeOf | null = null;
  /** Ends the process at once. Before there is a log to `tell`, the last words go to standard error. */
  const exitSaying = (code: ExitCode, words: string, tell: (logger: Daemon['log']['logger']) => void) => {
    const exit = () => edge.exitNow(code);
    if (running === null) {
      edge.err(words);
      return exit();
    }
    tell(running.log.logger);
    running.log.flush().then(exit, exit);
  };
  const crash = (error: unknown) => {
    const text = `Internal error: the process ends and leaves all timers alone; the exchange will fire them.${also()}`;
    const stack = error instanceof Error ? error.stack : String(error);
    exitSaying(EXIT.internal, `${text} ${stack}`, (logger) =>
      logger.fatal({ event: 'crashed', stack }, text),
    );
  };
  edge.onCrash(crash);
  return {
    daemon,
    exitSaying,
    crash,
    isStopping: () => exitCodeOf !== null,
    /** Ends the timers, as is configured or with `keep`, and then this process. */
    stop: async (why: string, codeOf: ExitCodeOf, policy?: 'keep') => {
      exitCodeOf = codeOf;
      const started = await daemon;
      edge.exitNow(codeOf(await started.stop(why, policy), started));
    },
    /** Ends the process where a stop is done with the timers; else returns false. */
    endStopped: (): boolean => {
      const left = running?.left() ?? null;
      if (running === null || left === null || exitCodeOf === null) return false;
      edge.exitNow(exitCodeOf(left, running));
      return true;
    },
    /** Starts the daemon, or ends with 78 where it cannot listen. Listen to signals before: PID 1 loses those that it has no handler for. */
    async start(options: Omit<DaemonOptions, 'clock' | 'nodeVersion' | 'manager'>): Promise<void> {
      const { clock, nodeVersion } = edge;
      try {
        const manager = edge.serviceManager();
        const started = await startDaemon({ ...options, clock, nodeVersion, manager });
        running = started;
        edge.onExit(started.resetConnections);
        resolve(started);
      } catch (error) {
        if (!(error instanceof ListenError)) return crash(error);
        edge.err(`killswitchd ${command}: ${messageOf(error)}`);
        edge.exitNow(EXIT.config);
      }
    },
  };
}
