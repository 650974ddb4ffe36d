import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import type { BotLine } from './bot.ts';
import { beginGuard, type GuardOptions, type Scope } from './harness.ts';
import { eventually, type Program, said } from './program.ts';
import { deletedIn, type RunningExchange } from './simulated-exchange.ts';

export const BOT = [process.execPath, 'test/process/bot.ts', 'quietly'];
export const MARKET = 'AAA_USDT';
/** Short timers, so that firing can be waited for. */
export const T_SECONDS = 5;
export const PROCESS = { mode: 'process', ttlSeconds: 2 };

/** An exchange with an order in its books, and `exec` with a bot that is started once the timer is armed. */
export const play = (scope: Scope, { config, ...options }: GuardOptions = {}) =>
  beginGuard(scope, {
    markets: [MARKET],
    timeoutSeconds: T_SECONDS,
    bot: BOT,
    config: { liveness: PROCESS, ...config },
    ...options,
  });

/** The same, once the bot has started; it is not left behind where the test fails. */
export async function begin(scope: Scope, options: GuardOptions = {}) {
  const played = await play(scope, options);
  const { pid } = await botSays(played.daemon, 'started');
  scope.onTestFinished(() => {
    if (runs(pid)) process.kill(pid, 'SIGKILL');
  });
  return { ...played, pid };
}

/** Whether the process runs; one that has ended and waits to be asked for is none. */
export function runs(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

/** What the bot printed: whole lines, and nothing but its own. */
export function botLines(program: Pick<Program, 'stdout'>): BotLine[] {
  const lines = program.stdout().split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as BotLine);
}

export function botSays(program: Program, what: BotLine['bot']): Promise<BotLine> {
  return eventually(`the bot's ${what}`, 15_000, () => {
    if (program.hasExited()) throw new Error(`exec ended:\n${said(program)}`);
    return botLines(program).find(({ bot }) => bot === what) ?? null;
  });
}

/** The timer has fired, and nobody had deleted it. */
export async function fired(exchange: RunningExchange) {
  const cancelled = await exchange.event('order-cancelled', 10_000);
  expect(await deletedIn(exchange)).toEqual([]);
  return cancelled;
}
