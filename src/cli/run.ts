import type { Command } from 'commander';
import { createSystemClock } from '../clock.ts';
import { isFailedDelete, type LeftArmed } from '../core/notice.ts';
import { type Daemon, type DaemonOptions, startDaemon } from '../daemon/daemon.ts';
import { lookAtProc } from '../liveness/process.ts';
import type { Clock } from '../ports.ts';
import { addConfigFlags, loadFor } from './config-flags.ts';
import { type Edge, EXIT, messageOf } from './edge.ts';

/**
 * `run`: the daemon. Exits 0 after a clean stop, 75 where timers stayed armed that were to be deleted, 78 for a
 * configuration or an address that cannot be used, 70 after an internal error, which leaves all timers alone.
 */
export function registerRun(program: Command, edge: Edge): void {
  addConfigFlags(program.command('run'))
    .description('keep the timers of the configured markets armed')
    .option('--embedded-exchange', 'bring a simulated exchange along: to try the daemon without an account')
    .action(async (given: Record<string, unknown>) => {
      const loaded = loadFor(edge, given, 'run');
      if (loaded === null) return;
      const { daemon, crash } = watchForCrash(edge);
      // Before anything is started: a process that is PID 1 loses every signal that it has no handler for.
      const clock = createSystemClock();
      stopOnSignals(daemon.promise, { edge, clock, crash });
      const started = await startFor(edge, 'run', {
        ...loaded,
        clock,
        lookAtProcess: lookAtProc,
        terminal: edge.terminal,
      });
      if (started !== null) daemon.resolve(started);
    });
}

function stopOnSignals(daemon: Promise<Daemon>, { edge, clock, crash }: Around): void {
  let running: Daemon | null = null;
  let stopping = false;
  daemon.then((started) => {
    running = started;
  }, crash);
  onStopSignals({ edge, clock }, (signal) => {
    const left = running?.left() ?? null;
    if (left !== null) exitAfter(left, edge);
    else if (stopping) {
      edge.err(`killswitchd run: second ${signal}: exits at once, timers may still be armed`);
      edge.exitNow(EXIT.unconfirmed);
    } else {
      stopping = true;
      daemon.then((started) => started.stop(signal)).then((ended) => exitAfter(ended, edge), crash);
    }
  });
  edge.onSignal('SIGHUP', () => {
    daemon.then((started) => started.reload()).catch(crash);
  });
}

const UNHEARD = 'its bot gave no sign of life after the stop began, so that its timer was not deleted';

/** The last word goes to standard error as well: a log that is gone must not take it along. */
function exitAfter(left: readonly LeftArmed[], edge: Edge): void {
  const failed = left.filter(isFailedDelete);
  for (const { market, firesByWallMs, why } of failed) {
    const moment = edge.isoTime(firesByWallMs);
    edge.err(
      why === 'may-have-fired'
        ? `${market}: the timer may have fired before it was deleted; check which orders are left`
        : `${market}: ${why === 'unheard' ? UNHEARD : 'the delete was not confirmed'}; its orders are cancelled at the latest at ${moment}`,
    );
  }
  edge.exitNow(failed.length > 0 ? EXIT.unconfirmed : EXIT.ok);
}

/** Starts the daemon. Where an address cannot be bound, says so, ends with 78 and returns null. */
export async function startFor(
  edge: Edge,
  command: 'run' | 'exec',
  options: Omit<DaemonOptions, 'nodeVersion' | 'manager'>,
): Promise<Daemon | null> {
  try {
    const { nodeVersion } = edge;
    return await startDaemon({ ...options, nodeVersion, manager: edge.serviceManager?.() ?? null });
  } catch (error) {
    edge.err(`killswitchd ${command}: ${messageOf(error)}`);
    edge.exitNow(EXIT.config);
    return null;
  }
}

/** How long a slow reader of the log is waited for. */
const FLUSH_MS = 500;

/**
 * An error that nobody caught leaves nothing to rely on: the process ends at once and touches no timer, so that the
 * exchange fires them. Install it before anything is started. `also` adds what else is left behind.
 */
export function watchForCrash(edge: Edge, also: () => string = () => '') {
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
  return {
    /** To be resolved with the daemon once it has started. */
    daemon,
    crash,
  };
}

/** `timeout` and some supervisors signal a process and its group: the same signal comes twice within milliseconds. */
const SAME_SIGNAL_MS = 1000;

/** What a daemon that ends by a signal has around it. */
export interface Around {
  readonly edge: Edge;
  readonly clock: Clock;
  /** Ends the process because of an error of its own. */
  readonly crash: (error: unknown) => void;
}

/** Calls `run` for SIGTERM and SIGINT. The same signal again within a second is the one before and does not count. */
export function onStopSignals(
  { edge, clock }: Pick<Around, 'edge' | 'clock'>,
  run: (signal: 'SIGTERM' | 'SIGINT') => void,
): void {
  let last: { readonly signal: string; readonly monoMs: number } | null = null;
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    edge.onSignal(signal, () => {
      const { monoMs } = clock.now();
      if (last?.signal === signal && monoMs - last.monoMs < SAME_SIGNAL_MS) return;
      last = { signal, monoMs };
      run(signal);
    });
}
