import { isConfirmed } from './belief.ts';
import type { BotWord, Policy } from './events.ts';
import { askFor } from './next.ts';
import type { BotPhase, Hold, Suspension } from './notice.ts';
import { type BotState, type CoreState, type Goal, type MarketState } from './state.ts';
import { lifeAt } from './time.ts';

/**
 * What becomes of the market's timer now. An operator's word and a reload count more than the bot; a delete needs a bot
 * that lives, said goodbye, or is not watched, and during a stop evidence that is newer than the stop.
 */
function goalOf(state: CoreState, market: MarketState): Goal {
  const { phase } = state;
  const { bot, hold, leaving } = market;
  if (hold?.why === 'tripped') return 'trip';
  if (leaving === 'dropped') return 'leave';
  // Where the other shard renews it by now, nothing is deleted here, whatever was asked for before.
  if (hold !== null)
    return hold.why === 'lapsed' || leaving === 'moved' || !mayDelete(state, bot) ? 'leave' : 'delete';
  const { policy } = phase.kind === 'stopping' ? phase : state.settings.shutdown;
  if (leaving !== null) return goalAtEnd(state, market, leaving === 'moved' ? 'handoff' : policy);
  if (bot.state === 'goodbye') return goalAtEnd(state, market, policy === 'delete' ? 'delete' : 'keep');
  const isDead = bot.state === 'failed' || bot.state === 'stale';
  if (isDead && isToBeTripped(state, market)) return 'trip';
  if (phase.kind === 'running') return isDead ? 'leave' : 'guard';
  return bot.state === 'failed' ? 'leave' : goalAtEnd(state, market, policy);
}

/** What becomes of a timer that nobody wants any more: its bot said goodbye, its market leaves, or the daemon stops. */
function goalAtEnd(state: CoreState, market: MarketState, policy: Policy): Goal {
  const { bot } = market;
  if (policy === 'keep') return 'leave';
  if (policy === 'handoff') return isAlive(state, bot) && !isGivenUp(state, market) ? 'renew-once' : 'leave';
  if (mayDelete(state, bot)) return 'delete';
  // A market that leaves is not guarded any more.
  return market.leaving === null && mayStillHear(state, bot) ? 'guard' : 'leave';
}

/**
 * Is it refused, so that it is not renewed once more? What a stop meets itself may be over before its budget is spent. A
 * stop that hands over waits for no evidence: it began at `evidenceUntilMs`.
 */
function isGivenUp({ phase }: CoreState, { refusal: { said } }: MarketState): boolean {
  return said !== null && (phase.kind !== 'stopping' || said.sinceMs < phase.evidenceUntilMs);
}

/**
 * A step of the wall clock makes evidence doubtful: nothing is renewed until the next beat. It does not make a bot dead:
 * a trip is sent only when the bot was silent on a clock that nobody can set. A stop begins none.
 */
function isToBeTripped(state: CoreState, { goal, bot }: MarketState): boolean {
  const { onStale, ttlMs, startupGraceMs } = state.settings.liveness;
  const silentMs = bot.lastLifeMs === Number.NEGATIVE_INFINITY ? Math.max(ttlMs, startupGraceMs) : ttlMs;
  if (state.phase.kind === 'stopping') return goal === 'trip';
  if (onStale !== 'trip') return false;
  return bot.state === 'failed' || state.awakeMs - bot.lastAwakeMs > silentMs;
}

/** Delete only on purpose: of a bot that lives, has said goodbye, or is not watched. */
function mayDelete(state: CoreState, bot: BotState): boolean {
  if (state.settings.liveness.mode === 'none' || bot.state === 'goodbye') return true;
  if (bot.state !== 'alive') return false;
  return state.phase.kind !== 'stopping' || bot.lastAwakeMs > state.phase.heardFromAwakeMs;
}

/** A stop waits for a sign of life that is newer than itself: a bot that died a moment ago still counts as alive. */
function mayStillHear(state: CoreState, bot: BotState): boolean {
  const { phase, now } = state;
  return phase.kind === 'stopping' && now.monoMs < phase.evidenceUntilMs && isAlive(state, bot);
}

/**
 * May the bot's timers be renewed now? Age is counted on the life time, the largest of the three clocks. `mayWrite` asks
 * in the synchronous step of each write, so that nothing is renewed for a dead bot.
 */
export function isAlive(state: CoreState, bot: BotState, atLifeMs: number = state.lifeMs): boolean {
  const { settings, lifeMs } = state;
  if (settings.liveness.mode === 'none') return true;
  // Clocks are set right at the boot of a host, which takes no time: the grace is counted on one that nobody sets.
  if (bot.state === 'starting')
    return state.awakeMs + atLifeMs - lifeMs - bot.lastAwakeMs <= settings.liveness.startupGraceMs;
  return bot.state === 'alive' && atLifeMs - bot.lastLifeMs <= settings.liveness.ttlMs;
}

const SUSPENDS = { stale: 'bot_stale', goodbye: 'bot_goodbye', failed: 'bot_failed' } as const;

/** Why the market is not renewed because of its bot; null where the bot is well or starting. */
export function suspensionOf({ bot: { state } }: MarketState): Suspension | null {
  return state === 'alive' || state === 'starting' ? null : SUSPENDS[state];
}

/** Brings the market's goal up to date after anything that decides about it has changed. */
export function follow(state: CoreState, market: MarketState): void {
  const goal = goalOf(state, market);
  if (goal === market.goal) return;
  // A stop's delete is not taken back once it is confirmed, nor while the bot is not dead. One that is not written yet, and
  // has to wait, gives way to renewals.
  const isDead = market.bot.state === 'failed' || market.bot.state === 'stale';
  const waits = goal === 'guard' && !market.triedDelete;
  if (state.phase.kind === 'stopping' && market.goal === 'delete' && (market.reached || !(isDead || waits)))
    return;
  // A timer that nobody wants fires on purpose, unless its guarantee had run out before.
  if (market.mustNotFire) market.firesOnPurpose = state.awakeSlackMs(market) > 0;
  market.goal = goal;
  market.reached = goal === 'leave';
  if (market.mustNotFire && market.firesOnPurpose && state.awakeSlackMs(market) <= 0)
    market.belief.server = null;
  market.cycleSinceMs = null;
  askFor(state, market);
}

/** Takes the market out of guard, for a time or until an operator arms it. */
export function hold(state: CoreState, market: MarketState, why: Hold, forMs: number | null): void {
  market.hold = { why, untilAwakeMs: forMs === null ? null : state.awakeMs + forMs };
  follow(state, market);
  const untilWallMs = forMs === null ? null : state.now.wallMs + forMs;
  const firesByWallMs = state.firesBy(market);
  state.say({ kind: 'held', market: market.settings.market, why, untilWallMs, firesByWallMs });
}

/**
 * Takes a bot's word in, which is at most `agoMs` old. A beat revives whatever came before, unless it is too old to
 * count; goodbye and fail hold until the next beat.
 */
export function hearBot(state: CoreState, name: string, says: BotWord, agoMs: number): void {
  const bot = state.bots.get(name);
  if (bot === undefined) return;
  if (says === 'beat') {
    const then = lifeAt(state.timebase, saidAtMs(state, agoMs));
    bot.lastLifeMs = Math.max(bot.lastLifeMs, then.lifeMs);
    bot.lastAwakeMs = Math.max(bot.lastAwakeMs, then.awakeMs);
    // By its own age: a fresher beat from before a failure must not revive the bot for an old one.
    if (state.lifeMs - then.lifeMs <= state.settings.liveness.ttlMs) changeBot(state, bot, 'alive');
    // The beat is too old to count. It ends a goodbye all the same, so that no timers are deleted for it, and it ends the
    // start-up grace.
    else if (bot.state === 'goodbye' || bot.state === 'starting') changeBot(state, bot, 'stale');
  } else if (bot.state !== 'failed') {
    // A bot that has said that it is broken does not end well any more.
    changeBot(state, bot, says === 'goodbye' ? 'goodbye' : 'failed');
  }
  if (state.phase.kind === 'stopping')
    for (const market of state.markets) if (market.bot === bot) follow(state, market);
}

/** After a stall it takes this long at most until everything that waited in the sockets has been read. */
const DEAF_MS = 1000;

/**
 * The monotonic moment that a word counts from. It may have been said at any time since the step before, and after a
 * stall at any time since that began: words that had piled up in the sockets come in as if they were new.
 */
function saidAtMs(state: CoreState, agoMs: number): number {
  const { monoMs } = state.now;
  const latestMs =
    monoMs < state.stalledMs + DEAF_MS ? Math.min(state.lastStepMs, state.deafSinceMs) : state.lastStepMs;
  return Math.min(latestMs, monoMs - Math.max(0, agoMs));
}

/** Finds out which bots' evidence ran out since the last step. */
export function judgeBots(state: CoreState): void {
  for (const bot of state.bots.values())
    if ((bot.state === 'alive' || bot.state === 'starting') && !isAlive(state, bot))
      changeBot(state, bot, 'stale');
  if (state.isRecent) return;
  // Silence on the awake clock, and the end of a stop's wait for evidence, may change a goal as well.
  for (const market of state.markets)
    if (market.bot.state === 'stale' || state.phase.kind === 'stopping') follow(state, market);
}

function changeBot(state: CoreState, bot: BotState, to: BotPhase): void {
  if (bot.state === to) return;
  const wasAway = bot.state !== 'starting';
  bot.state = to;
  const markets = state.markets.filter((market) => market.bot === bot);
  // A reload has left it without any: its silence is nobody's concern.
  if (markets.length === 0) return;
  const isDead = to === 'stale' || to === 'failed';
  const dead = isDead ? Map.groupBy(markets, (market) => firesSurely(state, market)) : null;
  const firings = dead?.get(true)?.flatMap((market) => state.firesBy(market) ?? []) ?? [];
  const lastWallMs = firings.length === 0 ? null : firings.reduce((one, other) => Math.max(one, other));
  const unconfirmed = dead?.get(false)?.filter((market) => market.hold === null).length ?? 0;
  state.say({ kind: 'bot', bot: bot.bot, state: to, firesByWallMs: lastWallMs, unconfirmed });
  for (const market of markets) {
    follow(state, market);
    saySuspended(state, market);
    if (wasAway && market.goal === 'guard') state.say({ kind: 'resumed', market: market.settings.market });
  }
}

/** Has it a confirmed timer that fires unless somebody renews or deletes it? */
function firesSurely(state: CoreState, { belief }: MarketState): boolean {
  return state.mayFire(belief) && isConfirmed(belief);
}

/** Says that the market is not renewed because of its bot, where that is so. */
export function saySuspended(state: CoreState, market: MarketState): void {
  const why = suspensionOf(market);
  const { market: name } = market.settings;
  if (why === null) return;
  const confirmed = firesSurely(state, market);
  state.say({ kind: 'suspended', market: name, why, firesByWallMs: state.firesBy(market), confirmed });
}
