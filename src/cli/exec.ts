import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import type { Flags } from '../config/environment.ts';
import { isFailedDelete, type LeftArmed } from '../core/notice.ts';
import type { Daemon } from '../daemon/daemon.ts';
import { createSignalLook, lookAtProc } from '../liveness/process.ts';
import { writerTo } from '../telemetry/log.ts';
import { openNonBlocking } from '../telemetry/output.ts';
import { listed } from '../util/text.ts';
import { type BotProcess, endRest, exitCodeOf, findObstacle, findWrapper, startBot } from './bot-process.ts';
import { addConfigFlags, loadFor } from './config-flags.ts';
import { type Edge, EXIT, onStopSignal, type Signal, waitUntil } from './edge.ts';
import { createDaemonProcess, type DaemonProcess } from './run.ts';

/** `exec`: the daemon with the bot as its child. The bot starts when every market is armed, and is guarded until it ends. */
export function register(program: Command, edge: Edge): void {
  addConfigFlags(program.command('exec'))
    .description('start a bot, and keep the timers of its markets armed for as long as it lives')
    .usage('[options] -- COMMAND [ARGUMENT]...')
    .showHelpAfterError('The bot comes after two dashes: killswitchd exec [options] -- COMMAND [ARGUMENT]...')
    .argument('<command...>', 'the bot: a program and its arguments, after --')
    .option('--embedded-exchange', 'bring a simulated exchange along: to try the daemon without an account')
    .action(async (command: string[], flags: Flags) => {
      const loaded = loadFor(edge, flags, 'exec');
      const obstacle = findObstacle(command[0] ?? '', edge.env['PATH']);
      if (obstacle !== null) {
        const isFile = /\.(ya?ml|json)$/.test(command[0] ?? '');
        const hint = isFile ? '; a configuration file is named by an option: --config FILE' : '';
        edge.err(`killswitchd exec: cannot start the bot: ${obstacle.why}; no timer was armed${hint}`);
        return edge.exitNow(obstacle.code);
      }
      const run: Run = {
        ...createDaemonProcess('exec', edge, () => describeOrphan(run)),
        bot: null,
        hasEnded: false,
      };
      passSignalsOn(run, edge);
      run.daemon.then((daemon) => guardBot(run, daemon, command, edge)).catch(run.crash);
      // Where there is no /proc, sending no signal tells at least whether the bot is there.
      const hasProc = existsSync('/proc/self/stat');
      const look = hasProc ? lookAtProc : createSignalLook(() => run.bot?.exists() ?? false);
      await run.start({
        ...loaded,
        // What becomes of a bot that has ended, its exit code says.
        lookAtChild: (pid, done) => (run.hasEnded ? undefined : look(pid, done)),
        // Standard output is the bot's.
        write: writerTo(openNonBlocking(2)),
        terminal: edge.errorTerminal,
      });
    });
}

/** `hasEnded`: the bot has; what it left behind may still be there. */
type Run = DaemonProcess & { bot: BotProcess | null; hasEnded: boolean };

const describeOrphan = ({ bot, hasEnded }: Run) => {
  if (bot === null) return '';
  if (hasEnded) return ' What the bot may have left behind goes on without protection: stop it.';
  return ` The bot (process ${bot.pid}) goes on without protection: stop it.`;
};

/** A stop before the bot runs leaves the timers to fire: orders may be older. With policy delete that is no clean stop. */
const codeWithoutBot = ({ length }: readonly LeftArmed[], daemon: Daemon) =>
  length > 0 && daemon.config().shutdown.policy === 'delete' ? EXIT.unconfirmed : EXIT.ok;

/**
 * The first SIGTERM or SIGINT asks the bot to end, and its timers are renewed until it has; the second kills it, and
 * the third ends this process at once. Other signals are the bot's alone; SIGUSR1 is blocked, against the debugger.
 */
function passSignalsOn(run: Run, edge: Edge): void {
  let stopsAsked = 0;
  const exitAtOnce = (signal: Signal) => {
    if (run.endStopped()) return;
    const text = `Another ${signal}: exits at once, timers may still be armed.${describeOrphan(run)}`;
    run.exitSaying(EXIT.unconfirmed, `killswitchd exec: ${text}`, (logger) =>
      logger.error({ event: 'exit-at-once' }, text),
    );
  };
  onStopSignal(edge, (signal) => {
    stopsAsked += 1;
    const { bot } = run;
    if (bot === null && !run.isStopping()) run.stop(signal, codeWithoutBot, 'keep').catch(run.crash);
    else if (bot === null || stopsAsked > 2) {
      if (stopsAsked > 1) exitAtOnce(signal);
    } else if (stopsAsked === 2) bot.signal('SIGKILL');
    else {
      if (signal === 'SIGTERM' || !edge.sharesTerminal) bot.signal(signal);
      const text = run.hasEnded
        ? `${signal}: the bot (process ${bot.pid}) has ended before. Another one kills what it has left behind.`
        : `${signal}: the bot (process ${bot.pid}) is asked to end, and guarded until it has. Another one kills it.`;
      void run.daemon.then(({ log }) => log.logger.info({ event: 'process-asked-to-end' }, text));
    }
  });
  for (const signal of ['SIGHUP', 'SIGUSR2'] as const) edge.onSignal(signal, () => run.bot?.signal(signal));
}

async function guardBot(run: Run, daemon: Daemon, command: readonly string[], edge: Edge): Promise<void> {
  const { logger } = daemon.log;
  const giveUp = (text: string, why: string, code: number) => {
    logger.error({ event: 'process-not-started' }, text);
    return run.stop(why, () => code, 'keep');
  };
  const missing = await waitUntilArmed(run, daemon, edge);
  if (run.isStopping()) return;
  if (missing !== null) {
    const why = 'not every market could be armed';
    return giveUp(`THE BOT WAS NOT STARTED: ${missing}.`, why, EXIT.unreachable);
  }
  const bot = await startBot(command, daemon, edge);
  if ('why' in bot)
    return giveUp(`THE BOT CANNOT BE STARTED: ${bot.why}.`, 'the bot cannot be started', bot.code);
  run.bot = bot;
  daemon.child.began(bot.pid);
  const { pid } = bot;
  // Its arguments may hold secrets.
  logger.info({ event: 'process-started', pid }, `The bot runs as process ${pid}: ${command[0]}.`);
  const wrapper = findWrapper(command, edge.env['PATH']);
  const isWatched = daemon.config().liveness.mode === 'process';
  if (wrapper !== null && (isWatched || wrapper.hidesEnd)) {
    const { name } = wrapper;
    const watched = isWatched
      ? `What is watched is ${name}, not what it starts: a bot below it that dies or is stopped is not noticed, and its timers are renewed. `
      : '';
    const hidden = wrapper.hidesEnd
      ? `A code 0 of ${name} is no goodbye: the timers are left to fire then, unless the bot has said goodbye itself. `
      : '';
    const text = `${watched}${hidden}Start the bot itself, or end the script with exec; or use liveness.mode: beat.`;
    logger.warn({ event: 'process-behind-wrapper', wrapper: name }, text);
  }
  const init =
    'killswitchd is process 1 here, and does not reap what the bot leaves behind: start it with an init (docker run --init, or shareProcessNamespace in a pod).';
  if (edge.isInit) logger.warn({ event: 'process-without-init' }, init);
  const end = await bot.ended;
  run.hasEnded = true;
  // A bad end counts at once. A good one counts only once nothing of the bot is left.
  if (end.code !== 0) daemon.child.ended(end.code);
  const leftBehind = await endRest(bot, edge.clock, logger, daemon.config().shutdown.budgetSeconds * 1000);
  run.bot = null;
  const saidGoodbye = daemon.keeper.snapshot().bots.every(({ state }) => state === 'goodbye');
  const isUnclear = leftBehind || (wrapper?.hidesEnd === true && !saidGoodbye);
  const well = end.code === 0 && !isUnclear;
  if (end.code === 0) daemon.child.ended(isUnclear ? null : 0);
  const how = end.code === null ? `by ${end.signal ?? 'a signal'}` : `with exit code ${end.code}`;
  logger[well ? 'info' : 'error'](
    { event: 'process-ended', ...end },
    `The bot has ended ${how}${end.code === 0 && isUnclear ? ', which may not be its own: its timers are left to fire' : ''}.`,
  );
  const codeOf = (left: readonly LeftArmed[]) =>
    end.code === 0 && (isUnclear || left.some(isFailedDelete)) ? EXIT.unconfirmed : exitCodeOf(end, edge);
  await run.stop(`the bot has ended ${how}`, codeOf, well ? undefined : 'keep');
}

/** A market that is refused is asked for again by the daemon: it may be armed in time all the same. */
const ASK_AGAIN_MS = 250;
/** More markets than this are counted instead of named. */
const NAMED_MARKETS = 5;

/** Waits for the first confirmation of every market; what is missing at the end of the grace, or null where nothing is. */
async function waitUntilArmed(run: Run, daemon: Daemon, { clock }: Edge): Promise<string | null> {
  const withinMs = daemon.config().liveness.startupGraceSeconds * 1000;
  const isArmed = await waitUntil({ clock, withinMs, everyMs: ASK_AGAIN_MS }, async (leftMs) => {
    const progress = await daemon.keeper.whenDone('arm', null, leftMs);
    return run.isStopping() || progress.every(({ state }) => state === 'done');
  });
  if (isArmed) return null;
  const { markets, authorised } = daemon.keeper.snapshot();
  const missing = markets.filter(({ guaranteedMs, hold }) => hold !== null || (guaranteedMs ?? 0) <= 0);
  const told = missing.map(
    ({ market, lastProblem, hold }) => `${market} (${hold?.why ?? lastProblem ?? 'no answer yet'})`,
  );
  const names = listed(told, NAMED_MARKETS);
  const key = authorised ? '' : '; the exchange refuses the API key';
  return `${missing.length} of ${markets.length} markets not armed within ${withinMs / 1000} s (liveness.startupGraceSeconds): ${names}${key}`;
}
