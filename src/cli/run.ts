import type { Command } from 'commander';
import { createSystemClock } from '../clock.ts';
import { isFailedDelete, type LeftArmed } from '../core/notice.ts';
import type { Daemon } from '../daemon/daemon.ts';
import { lookAtProc } from '../liveness/process.ts';
import { addConfigFlags } from './config-flags.ts';
import { type Edge, EXIT } from './edge.ts';
import { loadFor, startFor, watchForCrash } from './start.ts';
import { type Around, onStopSignals } from './stop-signals.ts';

/**
 * `run`: the daemon. Exits 0 after a clean stop, 75 where timers stayed armed that were to be deleted, 78 for a
 * configuration or an address that cannot be used, 70 after an internal error, which leaves all timers alone.
 */
export function registerRun(program: Command, edge: Edge): void {
  addConfigFlags(program.command('run'))
    .description('keep the timers of the configured markets armed')
    .option('--embedded-exchange', 'bring a simulated exchange along: to try the daemon without an account')
    .action(async (given: Record<string, unknown>) => {
      const loaded = loadFor(edge, 'run', given);
      if (loaded === null) return;
      const { daemon, crash } = watchForCrash(edge);
      // Before anything is started: a process that is PID 1 loses every signal that it has no handler for.
      const clock = createSystemClock();
      stopOnSignals(daemon.promise, { edge, clock, crash });
      const started = await startFor(edge, loaded, {
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
    if (left !== null) conclude(left, edge);
    else if (stopping) {
      edge.err(`killswitchd run: second ${signal}: exits at once, timers may still be armed`);
      edge.exitNow(EXIT.unconfirmed);
    } else {
      stopping = true;
      daemon.then((started) => started.stop(signal)).then((ended) => conclude(ended, edge), crash);
    }
  });
  edge.onSignal('SIGHUP', () => {
    daemon.then((started) => started.reload()).catch(crash);
  });
}

const UNHEARD = 'its bot gave no sign of life after the stop began, so that its timer was not deleted';

/** The last word goes to standard error as well: a log that is gone must not take it along. */
function conclude(left: readonly LeftArmed[], edge: Edge): void {
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
