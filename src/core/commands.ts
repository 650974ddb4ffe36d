import { believeEarlierLife, isConfirmed, tidy } from './belief.ts';
import { giveUp } from './dispatch.ts';
import type { CoreSettings, MarketSettings, OperatorCommand, Policy } from './events.ts';
import { follow, hold, isAlive, saySuspended } from './goal.ts';
import { askFor, hurry, schedule } from './next.ts';
import type { LeftArmed } from './notice.ts';
import { carriedPerSecond, LATE_MS } from './promise.ts';
import { type Belief, type BotState, CoreState, MarketState } from './state.ts';
import type { Instant } from './time.ts';

/** A stop ends this long before its budget does, so that there is time to say what came of it. */
const LAST_WORD_MS = 200;
/** A stop waits for its bots until this share of its budget is left, for the deletes. */
const SHARE_FOR_DELETES = 1 / 3;

/**
 * A beat that lay in a socket when the stop began is read within so long: in the turn of the event loop that accepts its
 * connection, or in the next one, and a turn that takes longer than `LATE_MS` is noticed as a stall.
 */
const UNREAD_MS = 2 * LATE_MS;

/** Carries an operator's command out in the state; the requests follow from the goals. */
export function operate(state: CoreState, command: OperatorCommand): void {
  if (state.phase.kind !== 'running') return;
  const named = command.markets === null ? null : new Set(command.markets);
  for (const market of state.markets) {
    if (market.leaving !== null || (named !== null && !named.has(market.settings.market))) continue;
    obey(state, market, command);
  }
}

function obey(state: CoreState, market: MarketState, command: OperatorCommand): void {
  switch (command.does) {
    case 'arm':
      if (market.hold !== null) release(state, market, 'operator');
      // The operator wants to know now whether it is still refused, not at the next rare probe.
      if (market.goal === 'guard') askFor(state, market);
      break;
    case 'resume':
      if (market.hold?.why === 'paused') release(state, market, 'operator');
      break;
    case 'disarm':
      hold(state, market, 'disarmed', null);
      break;
    case 'pause':
      // A pause ends by itself: it must not arm what somebody disarmed for good.
      if (market.hold === null || market.hold.why === 'paused') hold(state, market, 'paused', command.forMs);
      break;
    case 'trip':
      hold(state, market, 'tripped', null);
      market.reached = false;
      askFor(state, market);
      break;
  }
}

function release(state: CoreState, market: MarketState, why: 'operator' | 'pause-over'): void {
  market.hold = null;
  follow(state, market);
  state.say({ kind: 'released', market: market.settings.market, why });
}

/** Pauses end by themselves; the time that the host slept counts. */
export function endPauses(state: CoreState): void {
  for (const market of state.markets) {
    const untilMs = market.hold?.untilAwakeMs ?? null;
    if (untilMs !== null && market.leaving === null && state.awakeMs >= untilMs)
      release(state, market, 'pause-over');
  }
}

export function createState(settings: CoreSettings, now: Instant): CoreState {
  const state = new CoreState(settings, now);
  state.setMarkets(settings.markets.map((market) => createMarket(state, market)));
  state.planPeriods(carriedPerSecond(settings, null));
  return state;
}

/** A bot that is not known has its start-up grace from now on. */
function meetBot(state: CoreState, name: string): BotState {
  const bot = state.bots.get(name) ?? {
    bot: name,
    state: state.settings.liveness.mode === 'none' ? 'alive' : 'starting',
    lastLifeMs: Number.NEGATIVE_INFINITY,
    lastAwakeMs: state.awakeMs,
  };
  state.bots.set(name, bot);
  return bot;
}

/**
 * A bot without a market here may say nothing here, and its silence means nothing: when one comes back it is met anew. A
 * dead one stays dead until it speaks: it must not be given a new start-up grace.
 */
function forgetBots(state: CoreState): void {
  const named = new Set(state.markets.map(({ settings: { bot } }) => bot));
  for (const [name, bot] of state.bots)
    if (!named.has(name) && bot.state !== 'failed' && bot.state !== 'stale') state.bots.delete(name);
}

/** A market that nothing is known about, but for what it may have left behind: its timer, and requests on their way. */
function createMarket(state: CoreState, settings: MarketSettings): MarketState {
  const market = new MarketState(settings, meetBot(state, settings.bot), state.now.monoMs);
  const before = state.leftBehind.get(settings.market);
  if (before === undefined) {
    believeEarlierLife(state, market);
  } else {
    state.leftBehind.delete(settings.market);
    market.belief = before.belief;
    tidy(state, market);
    market.overdueSaid = state.awakeSlackMs(market) <= 0;
    if (market.overdueSaid) market.belief.server = null;
  }
  return market;
}

/**
 * Takes new settings over while running: a new market is armed, a changed one is renewed at once. A market that is gone
 * leaves as the shutdown policy says, or is renewed once more where another shard has it now. The caller has checked that
 * nothing else differs than what may change.
 */
export function reload(state: CoreState, settings: CoreSettings): void {
  if (state.phase.kind !== 'running') return;
  for (const [name, { belief }] of state.leftBehind)
    if (isSpent(state, belief)) state.leftBehind.delete(name);
  state.settings = settings;
  const added: string[] = [];
  const changed: string[] = [];
  const staying = settings.markets.map((wanted) => {
    const known = state.byName.get(wanted.market);
    if (known === undefined || known.leaving !== null) added.push(wanted.market);
    if (known === undefined) return createMarket(state, wanted);
    if (known.leaving !== null) known.hold = null;
    known.leaving = null;
    if (adopt(state, known, wanted)) changed.push(wanted.market);
    return known;
  });
  const configured = new Set(settings.markets.map(({ market }) => market));
  const moved = new Set(settings.elsewhere.map(({ market }) => market));
  const removed: string[] = [];
  const going = state.markets.filter(({ settings: { market } }) => !configured.has(market));
  for (const market of going) {
    const name = market.settings.market;
    if (market.leaving === null) removed.push(name);
    // A market that another shard has taken over is never deleted from here, whatever reload follows.
    if (market.leaving === 'moved' || market.leaving === 'dropped') continue;
    // Nor is it renewed where it was being deleted: nothing follows a delete.
    if (moved.has(name)) market.leaving = market.goal === 'delete' ? 'dropped' : 'moved';
    else market.leaving = 'removed';
  }
  state.setMarkets([...staying, ...going]);
  forgetBots(state);
  const guarded = state.markets.filter(({ goal, leaving }) => goal === 'guard' && leaving === null);
  for (const market of state.markets) follow(state, market);
  state.planPeriods(carriedPerSecond(settings, state.answerMs));
  state.say({ kind: 'reloaded', added, removed, changed });
  // Their bot now is one that is dead, or has ended.
  for (const market of guarded) if (market.goal !== 'guard') saySuspended(state, market);
}

/** True where anything of the market changed. It is renewed at once, so that there is no gap between old and new. */
function adopt(state: CoreState, market: MarketState, wanted: MarketSettings): boolean {
  const { settings } = market;
  const same =
    settings.bot === wanted.bot &&
    settings.timeoutMs === wanted.timeoutMs &&
    settings.renewEveryMs === wanted.renewEveryMs &&
    String(settings.types) === String(wanted.types);
  if (same) return false;
  market.settings = wanted;
  market.bot = meetBot(state, wanted.bot);
  if (market.goal === 'guard') hurry(state, market);
  return true;
}

/** Nothing of the market can happen at the exchange any more. */
function isSpent(state: CoreState, belief: Belief): boolean {
  return !state.mayFire(belief) && belief.writes.every(({ untilMs }) => untilMs <= state.now.monoMs);
}

/** Forgets markets that have left: their timer is gone, or will fire as it was meant to, and nothing is under way. */
export function forgetGone(state: CoreState): void {
  if (state.phase.kind !== 'running' || (state.markets.at(-1)?.leaving ?? null) === null) return;
  const gone = new Set<MarketState>();
  for (const market of state.markets) {
    if (market.leaving === null || market.onTheirWay.length > 0) continue;
    const isGone = !state.mayFire(market.belief);
    // A timer that has fired is told of before its market is forgotten.
    const isTold = (market.belief.notAfterMs ?? market.firedMs) <= market.firedMs;
    if (isGone ? !isTold : !market.reached) continue;
    gone.add(market);
    const name = market.settings.market;
    state.leftBehind.set(name, market);
    const how = howGone(market, isGone);
    const confirmed = isConfirmed(market.belief);
    state.say({ kind: 'removed', market: name, how, firesByWallMs: state.firesBy(market), confirmed });
  }
  if (gone.size === 0) return;
  state.setMarkets(state.markets.filter((market) => !gone.has(market)));
  forgetBots(state);
}

export function howGone({ goal, reached, mayHaveFired, armedUntilAwakeMs }: MarketState, isGone: boolean) {
  if (goal === 'renew-once') return reached ? 'handed_off' : 'kept';
  if (isGone && armedUntilAwakeMs !== null) return 'fired';
  if (isGone) return mayHaveFired ? 'deleted_late' : 'deleted';
  return goal === 'delete' ? 'deleted' : 'kept';
}

/**
 * Enters the stop. Where timers are to be deleted, evidence is waited for that is newer than the stop: a bot that died a
 * moment ago still counts as alive, and its orders must not stay without a timer. What waits is guarded meanwhile.
 */
export function beginStop(state: CoreState, policy: Policy, why: string): void {
  if (state.phase.kind !== 'running') return;
  const { budgetMs } = state.settings.shutdown;
  const { monoMs } = state.now;
  // Meanwhile the timers of bots that were heard are deleted, so that a long wait costs nothing where deletes take long.
  const deletesMs = budgetMs * SHARE_FOR_DELETES;
  state.phase = {
    kind: 'stopping',
    policy,
    heardFromAwakeMs: state.awakeMs + (state.settings.liveness.mode === 'beat' ? UNREAD_MS : 0),
    living: new Set([...state.bots.values()].filter((bot) => isAlive(state, bot))),
    evidenceUntilMs: policy === 'delete' ? monoMs + budgetMs - deletesMs : monoMs,
    budgetEndMs: monoMs + budgetMs,
  };
  state.say({ kind: 'stopping', policy, budgetMs, why });
  state.key.nextProbeMs = monoMs;
  for (const market of state.markets) {
    follow(state, market);
    // A delete that waits for strays may wait for longer than the stop lasts.
    schedule(state, market);
  }
  for (const attempt of state.attempts.values())
    if (attempt.market.goal !== 'guard') attempt.giveUpMs = Math.min(attempt.giveUpMs, monoMs + budgetMs / 4);
}

/** Ends the stop when every market is done or the budget is spent. */
export function judgeStop(state: CoreState): void {
  if (state.phase.kind !== 'stopping') return;
  const { monoMs } = state.now;
  const spent = monoMs >= state.phase.budgetEndMs - LAST_WORD_MS;
  if (!spent && state.markets.some(({ reached }) => !reached)) return;
  const left: LeftArmed[] = [];
  for (const market of state.markets) {
    const why = whyLeft(state, market);
    if (why === null) continue;
    const firesByWallMs = state.wallAt(market.belief.notAfterMs ?? monoMs);
    left.push({ market: market.settings.market, firesByWallMs, why, confirmed: isConfirmed(market.belief) });
  }
  for (const [market, { belief }] of state.leftBehind) {
    if (!state.mayFire(belief)) continue;
    const firesByWallMs = state.wallAt(belief.notAfterMs ?? monoMs);
    left.push({ market, firesByWallMs, why: 'policy', confirmed: isConfirmed(belief) });
  }
  for (const attempt of state.attempts.values()) giveUp(state, attempt);
  state.phase = { kind: 'stopped' };
  state.say({ kind: 'stopped', left });
  state.effects.push({ kind: 'finished', left });
}

/** Why a market is named at the end of a stop: its timer may still fire, or may have fired before it was deleted. */
function whyLeft(state: CoreState, market: MarketState): LeftArmed['why'] | null {
  const { goal, reached, belief, armedUntilAwakeMs } = market;
  const mayExist = state.mayFire(belief);
  // A timer that was confirmed and never deleted counts for as long as the process lives, also where it fired long ago.
  const isOwn = market.mayHaveFired || armedUntilAwakeMs !== null;
  if (belief.writes.every(({ id }) => id === 0) && !isOwn) return null;
  if (goal === 'delete') {
    if (mayExist || !reached) return 'unconfirmed';
    const ranOut = armedUntilAwakeMs !== null && armedUntilAwakeMs <= state.awakeMs;
    return (market.mayHaveFired || ranOut) && market.hold === null ? 'may-have-fired' : null;
  }
  if (goal === 'renew-once' && !reached) return mayExist ? 'unrenewed' : null;
  // The stop wrote a delete that nobody has confirmed, or that was refused, and its bot failed after that.
  if (mayExist && market.triedDelete) return 'unconfirmed';
  if (mayExist && isUnheard(state, market)) return 'unheard';
  if (mayExist) return isRefusedHandoff(state, market) ? 'unrenewed' : 'policy';
  return isOwn && isUnheard(state, market) ? 'may-have-fired' : null;
}

/** Its timer was to be deleted, and its bot, alive when the stop began, gave no sign of life after that, or died in it. */
function isUnheard({ phase, settings: { liveness } }: CoreState, { bot, hold }: MarketState): boolean {
  if (phase.kind !== 'stopping' || phase.policy !== 'delete' || hold !== null) return false;
  if (liveness.mode === 'none' || bot.state === 'failed' || bot.state === 'goodbye') return false;
  return (bot.lastAwakeMs <= phase.heardFromAwakeMs || bot.state === 'stale') && phase.living.has(bot);
}

/** Its timer was to be renewed once more, but for the exchange, which refuses that. */
function isRefusedHandoff(state: CoreState, { goal, bot, hold, leaving }: MarketState): boolean {
  const { phase } = state;
  const handsOver = phase.kind === 'stopping' && phase.policy === 'handoff';
  return handsOver && goal === 'leave' && hold === null && leaving === null && isAlive(state, bot);
}

/** When the stop must be judged again at the latest. */
export function stopWakeMs({ phase, now }: CoreState): number {
  if (phase.kind !== 'stopping') return Number.POSITIVE_INFINITY;
  const endMs = phase.budgetEndMs - LAST_WORD_MS;
  return phase.evidenceUntilMs > now.monoMs ? Math.min(phase.evidenceUntilMs, endMs) : endMs;
}
