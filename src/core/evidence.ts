import { forget } from './belief.ts';
import type { Effect } from './events.ts';
import type { Suspension } from './notice.ts';
import { TRIP_MS } from './promise.ts';
import { awakeMs, awakeSlackMs, type BotState, type CoreState, type MarketState } from './state.ts';

/**
 * May the bot's timers be renewed now? Age is counted on the life time, the largest of the three clocks. Design,
 * invariant 4: asked in the same synchronous step as every write.
 */
export function isAlive(state: CoreState, bot: BotState, atLifeMs: number = state.lifeMs): boolean {
  const { liveness, flaw } = state.settings;
  if (liveness.mode === 'none' || flaw === 'not-gated-on-evidence') return true;
  if (bot.state === 'starting') return atLifeMs <= bot.graceUntilLifeMs;
  return (
    bot.state === 'alive' &&
    bot.lastLifeMs !== null &&
    atLifeMs - bot.lastLifeMs <= state.settings.liveness.ttlMs
  );
}

/** Takes new evidence in. A beat revives whatever came before; goodbye and fail hold until the next beat. */
export function hearBot(
  state: CoreState,
  name: string,
  says: 'beat' | 'goodbye' | 'fail',
  out: Effect[],
): void {
  const bot = state.bots.get(name);
  if (bot === undefined) return;
  if (says === 'beat') {
    bot.lastLifeMs = state.lifeMs;
    bot.lastAwakeMs = awakeMs(state);
    changeBot(state, bot, 'alive', out);
  } else {
    changeBot(state, bot, says === 'goodbye' ? 'goodbye' : 'failed', out);
  }
}

/** Finds out which bots' evidence ran out since the last step. */
export function judgeBots(state: CoreState, out: Effect[]): void {
  for (const bot of state.bots.values()) {
    if ((bot.state === 'alive' || bot.state === 'starting') && !isAlive(state, bot)) {
      changeBot(state, bot, 'stale', out);
    }
    if (!bot.tripped && (bot.state === 'failed' || isSilent(state, bot))) trip(state, bot);
  }
}

/**
 * A step of the wall clock makes evidence doubtful: nothing is renewed until the next beat. It does not make a bot
 * dead: orders are cancelled before their time only when the bot was silent on a clock that nobody can set.
 */
function isSilent(state: CoreState, bot: BotState): boolean {
  return bot.state === 'stale' && awakeMs(state) - bot.lastAwakeMs > state.settings.liveness.ttlMs;
}

function trip(state: CoreState, bot: BotState): void {
  bot.tripped = true;
  if (state.settings.liveness.onStale !== 'trip') return;
  for (const market of state.markets) {
    if (market.settings.bot !== bot.bot || market.settings.timeoutMs <= TRIP_MS) continue;
    market.tripWanted = true;
    market.nextMs = state.now.monoMs;
  }
}

const SUSPENDS = { stale: 'bot_stale', goodbye: 'bot_goodbye', failed: 'bot_failed' } as const;

function changeBot(state: CoreState, bot: BotState, to: BotState['state'], out: Effect[]): void {
  if (bot.state === to) return;
  bot.state = to;
  bot.tripped = false;
  out.push({ kind: 'notice', notice: { kind: 'bot', bot: bot.bot, state: to } });
  for (const market of state.markets) {
    if (market.settings.bot !== bot.bot) continue;
    if (to === 'alive') resume(state, market, out);
    else if (to !== 'starting') suspend(market, SUSPENDS[to], out);
  }
}

function suspend(market: MarketState, why: Suspension, out: Effect[]): void {
  if (market.suspended !== why) {
    out.push({ kind: 'notice', notice: { kind: 'suspended', market: market.settings.market, why } });
  }
  market.suspended = why;
}

function resume(state: CoreState, market: MarketState, out: Effect[]): void {
  if (market.suspended === null) return;
  market.suspended = null;
  market.tripWanted = false;
  market.nextMs = state.now.monoMs;
  market.cycleSinceMs = null;
  // Whatever fired while nobody wanted the timer fired on purpose: no lapse to report.
  market.belief.server = null;
  if (awakeSlackMs(state, market) <= 0) forget(market.belief);
  market.overdueSaid = false;
  market.lapseSaid = false;
  out.push({ kind: 'notice', notice: { kind: 'resumed', market: market.settings.market } });
}
