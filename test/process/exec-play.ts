import type { BotLine } from './bot.ts';
import type { DaemonOptions } from './daemon.ts';
import { type Scope, stageFor } from './harness.ts';
import { eventually, type Program, said } from './program.ts';
import { ofKind, type RunningExchange } from './simulated-exchange.ts';

export const BOT = [process.execPath, 'test/process/bot.ts', 'quietly'];
export const MARKET = 'AAA_USDT';
/** Short timers, so that firing can be waited for. */
export const T_SECONDS = 5;
export const PROCESS = { mode: 'process', ttlSeconds: 2 };

/** An exchange with an order in its books, and `exec` with a bot that is started once the timer is armed. */
export async function play(scope: Scope, options: Partial<DaemonOptions> & { timeoutSeconds?: number } = {}) {
  const stage = stageFor(scope);
  const exchange = await stage.exchange();
  await exchange.placeOrders({ market: MARKET, type: 'spot' });
  const { timeoutSeconds = T_SECONDS, config = {}, ...others } = options;
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: [{ market: MARKET, timeoutSeconds }],
    bot: BOT,
    config: { liveness: PROCESS, ...config },
    ...others,
  });
  return { stage, exchange, daemon };
}

/** What the bot printed: whole lines, and nothing but its own. */
export function botLines(program: Program): BotLine[] {
  return program
    .stdout()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as BotLine);
}

export function botSays(program: Program, what: BotLine['bot']): Promise<BotLine> {
  return eventually(`the bot's ${what}`, 15_000, () => {
    if (program.hasExited()) throw new Error(`exec ended:\n${said(program)}`);
    return botLines(program).find(({ bot }) => bot === what) ?? null;
  });
}

export const timersDeleted = async (exchange: RunningExchange) =>
  ofKind(await exchange.events(), 'timer-deleted').length;
