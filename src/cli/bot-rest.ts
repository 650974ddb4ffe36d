import type { Clock } from '../ports.ts';
import type { Log } from '../telemetry/log.ts';
import type { BotProcess } from './bot-process.ts';

/** What a bot has started ends with it, as the reader of a pipe does, a moment later. */
const MOMENT_MS = 1000;
const LOOK_EVERY_MS = 100;

export interface RestOptions {
  readonly clock: Clock;
  readonly logger: Log['logger'];
  /** How long they have to end by themselves once they were asked to, milliseconds. */
  readonly withinMs: number;
}

/**
 * Ends what a bot that has ended left in its process group: it may be the bot itself, behind a shell that is gone, and
 * trade on without protection. Resolves with whether there was anything; a moment is given first.
 */
export async function endRest(bot: BotProcess, { clock, logger, withinMs }: RestOptions): Promise<boolean> {
  if (await isGone(bot, clock, MOMENT_MS)) return false;
  const pids = await bot.members();
  logger.error(
    { event: 'process-left-behind', pids },
    `THE BOT HAS ENDED AND LEFT ${pids.length === 1 ? 'A PROCESS' : 'PROCESSES'} BEHIND (${pids.join(', ')}), which may be the bot itself: asked to end, and killed after ${withinMs / 1000} s. The timers are not deleted.`,
  );
  bot.signalAll('SIGTERM');
  if (!(await isGone(bot, clock, withinMs))) bot.signalAll('SIGKILL');
  return true;
}

async function isGone(bot: BotProcess, clock: Clock, withinMs: number): Promise<boolean> {
  const untilMs = clock.now().monoMs + withinMs;
  for (;;) {
    if ((await bot.members()).length === 0) return true;
    if (clock.now().monoMs >= untilMs) return false;
    await new Promise<void>((resolve) => {
      clock.after(LOOK_EVERY_MS, resolve);
    });
  }
}
