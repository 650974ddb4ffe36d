import { dueAt } from './due.ts';
import type { BotWord, Effect } from './events.ts';
import { forgetWhatFired, noteUnwanted, reconsider } from './exit.ts';
import type { Suspension } from './notice.ts';
import { TRIP_MS } from './promise.ts';
import { awakeMs, type BotState, type CoreState, isWanted, type MarketState } from './state.ts';
import { lifeAt } from './time.ts';

/**
 * May the bot's timers be renewed now? Age is counted on the life time, the largest of the three clocks. Design,
 * invariant 4: asked in the same synchronous step as every write.
 */
export function isAlive(state: CoreState, bot: BotState, atLifeMs: number = state.lifeMs): boolean {
  if (state.settings.liveness.mode === 'none') return true;
  if (bot.state === 'starting') return atLifeMs <= bot.graceUntilLifeMs;
  return (
    bot.state === 'alive' &&
    bot.lastLifeMs !== null &&
    atLifeMs - bot.lastLifeMs <= state.settings.liveness.ttlMs
  );
}

/**
 * Takes a bot's word in, which is at most `agoMs` old. A beat revives whatever came before, unless it is too old to
 * count; goodbye and fail hold until the next beat.
 */
export function hearBot(state: CoreState, name: string, says: BotWord, agoMs: number, out: Effect[]): void {
  const bot = state.bots.get(name);
  if (bot === undefined) return;
  if (says === 'beat') {
    const then = lifeAt(state.timebase, saidAtMs(state, agoMs));
    bot.lastLifeMs = Math.max(bot.lastLifeMs ?? Number.NEGATIVE_INFINITY, then.lifeMs);
    bot.lastAwakeMs = Math.max(bot.lastAwakeMs, then.awakeMs);
    // By its own age: a fresher beat from before a failure must not revive the bot for an old one.
    if (state.lifeMs - then.lifeMs <= state.settings.liveness.ttlMs) changeBot(state, bot, 'alive', out);
    // It came back, who knows how long ago: its goodbye holds no more, and its timers are not deleted for it.
    else if (bot.state === 'goodbye') changeBot(state, bot, 'stale', out);
  } else if (says === 'fail' || bot.state !== 'failed') {
    // A bot that has said that it is broken does not end well any more.
    changeBot(state, bot, says === 'goodbye' ? 'goodbye' : 'failed', out);
  }
}

/**
 * The monotonic moment that a word counts from. After a stall, words that had piled up in the sockets come in as if they
 * were new; the bot may have said them, and died, any time since the stall began.
 */
function saidAtMs(state: CoreState, agoMs: number): number {
  const { monoMs } = state.now;
  const latestMs = monoMs < state.deafUntilMs ? Math.min(monoMs, state.deafSinceMs) : monoMs;
  return Math.min(latestMs, monoMs - Math.max(0, agoMs));
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
  for (const market of state.markets) {
    if (market.settings.bot === bot.bot) tripMarket(state, market);
  }
}

function tripMarket(state: CoreState, market: MarketState): void {
  if (state.settings.liveness.onStale !== 'trip' || market.settings.timeoutMs <= TRIP_MS) return;
  // A stop has decided about every timer when it began.
  if (state.phase.kind !== 'running') return;
  // An operator took it out of guard: its orders are not this daemon's to cancel.
  if (market.hold !== null || market.leaving) return;
  // Another shard judges its bot, which may have beaten to that one only. A failure that it told of is one everywhere.
  if (market.movedUntilAwakeMs !== null && state.bots.get(market.settings.bot)?.state !== 'failed') return;
  market.tripWanted = true;
  dueAt(state, market, state.now.monoMs);
}

const SUSPENDS = { stale: 'bot_stale', goodbye: 'bot_goodbye', failed: 'bot_failed' } as const;

function changeBot(state: CoreState, bot: BotState, to: BotState['state'], out: Effect[]): void {
  if (bot.state === to) return;
  bot.state = to;
  bot.tripped = false;
  const markets = state.markets.filter(({ settings }) => settings.bot === bot.bot);
  // A reload has left it without any: it was told to end, and its silence is nobody's concern.
  if (markets.length === 0) return;
  out.push({ kind: 'notice', notice: { kind: 'bot', bot: bot.bot, state: to } });
  for (const market of markets) {
    if (to === 'alive') resume(state, market, out);
    else if (to !== 'starting') suspend(state, market, SUSPENDS[to], out);
  }
}

/**
 * Brings a market in line with the bot that it has been given to. One that comes from another shard, `fromElsewhere`,
 * is not cut short: nobody watched its bot here.
 */
export function followBot(
  state: CoreState,
  market: MarketState,
  out: Effect[],
  fromElsewhere: boolean = false,
): void {
  const bot = state.bots.get(market.settings.bot);
  if (bot === undefined) return;
  if (bot.state === 'alive' || bot.state === 'starting') resume(state, market, out);
  else suspend(state, market, SUSPENDS[bot.state], out);
  if (bot.tripped && !fromElsewhere) tripMarket(state, market);
}

function suspend(state: CoreState, market: MarketState, why: Suspension, out: Effect[]): void {
  if (market.suspended === why) return;
  if (isWanted(state, market)) noteUnwanted(state, market);
  market.suspended = why;
  reconsider(state, market);
  const { notAfterMs } = market.belief;
  const leftMs = notAfterMs === null ? 0 : notAfterMs - state.now.monoMs;
  const firesByWallMs = leftMs > 0 ? state.now.wallMs + leftMs : null;
  out.push({
    kind: 'notice',
    notice: { kind: 'suspended', market: market.settings.market, why, firesByWallMs },
  });
}

function resume(state: CoreState, market: MarketState, out: Effect[]): void {
  if (market.suspended === null) return;
  market.suspended = null;
  if (market.hold === null && !market.leaving) forgetWhatFired(state, market);
  reconsider(state, market);
  out.push({ kind: 'notice', notice: { kind: 'resumed', market: market.settings.market } });
}
