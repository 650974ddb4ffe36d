import type { TestContext } from 'vitest';
import type { BotLine } from './bot.ts';
import type { DaemonProcess } from './daemon.ts';
import { type Stage, stageFor } from './harness.ts';
import { eventually, type Program, said } from './program.ts';
import { ofKind, type RunningExchange } from './simulated-exchange.ts';

export const BOT = [process.execPath, 'test/process/bot.ts', 'quietly'];
export const MARKET = 'AAA_USDT';
/** Short timers, so that firing can be waited for. */
export const T_SECONDS = 5;
export const PROCESS = { mode: 'process', ttlSeconds: 2 };

export interface Play {
  readonly stage: Stage;
  readonly exchange: RunningExchange;
  readonly daemon: DaemonProcess;
}

interface PlayOptions {
  readonly bot?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly timeoutSeconds?: number;
  readonly secret?: string;
  readonly canSabotage?: boolean;
}

/** An exchange with an order in its books, and `exec` with a bot. */
export async function play(context: TestContext, options: PlayOptions = {}): Promise<Play> {
  const stage = stageFor(context);
  const exchange = await stage.exchange();
  await exchange.placeOrders({ market: MARKET, type: 'spot' });
  const { bot = BOT, timeoutSeconds = T_SECONDS, config = {}, ...others } = options;
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: [{ market: MARKET, timeoutSeconds }],
    bot,
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

export const timersDeleted = async ({ exchange }: Play) =>
  ofKind(await exchange.events(), 'timer-deleted').length;
