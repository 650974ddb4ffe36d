import { forget } from './belief.ts';
import { carriedPerSecond, planPeriods } from './cadence.ts';
import { createBot, createMarket } from './create.ts';
import { hurry, lookAnew } from './due.ts';
import type { Effect } from './events.ts';
import { followBot } from './evidence.ts';
import { beginExit, forgetWhatFired, noteUnwanted, reconsider } from './exit.ts';
import type { CoreSettings, MarketSettings } from './settings.ts';
import { awakeMs, awakeSlackMs, type Belief, type CoreState, isWanted, type MarketState } from './state.ts';

/** Markets that go to other shards are let go of together so often: each time the list of all markets is made anew. */
const PARTING_MS = 1000;

/**
 * Takes new settings over while running: what is new is armed, what changed is renewed at once, what is gone leaves as
 * the shutdown policy says, and what went to another shard is guarded here as well until that one has surely taken it
 * over. The caller has checked that nothing else differs than what may change.
 */
export function reload(state: CoreState, settings: CoreSettings, out: Effect[]): void {
  if (state.phase.kind !== 'running') return;
  for (const [name, belief] of state.leftBehind) {
    if (isOver(state, belief)) state.leftBehind.delete(name);
  }
  const own = namesOf(settings.markets);
  const elsewhere = namesOf(state.settings.handover.elsewhere);
  const markets = [...settings.markets, ...movedAway(state, settings, own)];
  state.settings = { ...settings, markets };
  for (const { bot } of markets) {
    if (!state.bots.has(bot)) state.bots.set(bot, createBot(settings, bot, state.lifeMs, awakeMs(state)));
  }
  const added: string[] = [];
  const changed: string[] = [];
  const moved: string[] = [];
  const staying = markets.map((wanted, index) => {
    const known = state.byName.get(wanted.market);
    if (known === undefined) {
      added.push(wanted.market);
      const market = createMarket(wanted, index, state.now);
      recall(state, market);
      followBot(state, market, out, elsewhere.has(wanted.market));
      return market;
    }
    known.index = index;
    if (move(state, known, own.has(wanted.market))) moved.push(wanted.market);
    if (known.leaving) {
      added.push(wanted.market);
      returnToGuard(state, known, out);
    }
    if (adopt(state, known, wanted, out)) changed.push(wanted.market);
    return known;
  });
  const configured = namesOf(markets);
  const going = state.markets.filter(({ settings: { market } }) => !configured.has(market));
  const removed: string[] = [];
  const away = namesOf(settings.handover.elsewhere);
  for (const [place, market] of going.entries()) {
    market.index = markets.length + place;
    if (market.leaving) {
      followElsewhere(state, market, away.has(market.settings.market));
      continue;
    }
    removed.push(market.settings.market);
    market.movedUntilAwakeMs = null;
    leave(state, market);
  }
  replaceMarkets(state, [...staying, ...going]);
  // Some of them may be another shard's from now on.
  state.nextPartingMs = Math.min(state.nextPartingMs, state.now.monoMs);
  planPeriods(state, carriedPerSecond(state));
  out.push({ kind: 'notice', notice: { kind: 'reloaded', added, removed, changed, moved } });
}

/** The settings of markets that are guarded here and belong to another shard from now on. */
function movedAway(
  state: CoreState,
  { handover }: CoreSettings,
  own: ReadonlySet<string>,
): readonly MarketSettings[] {
  return handover.elsewhere.filter(({ market }) => {
    const known = state.byName.get(market);
    return known !== undefined && !known.leaving && !own.has(market);
  });
}

/** A market of this daemon is another shard's from now on, or this daemon's own again. True where it went away. */
function move(state: CoreState, market: MarketState, isOwn: boolean): boolean {
  const goes = !isOwn && market.movedUntilAwakeMs === null;
  const comesBack = isOwn && market.movedUntilAwakeMs !== null;
  if (goes) market.movedUntilAwakeMs = awakeMs(state) + state.settings.handover.forMs;
  else if (comesBack) market.movedUntilAwakeMs = null;
  // A delete that is still tried would take the timer from the other shard.
  if ((goes || comesBack) && market.exit !== null) reconsider(state, market);
  return goes;
}

/** A market on its way out is deleted where no shard has it, and left where another one does. */
function followElsewhere(state: CoreState, market: MarketState, elsewhere: boolean): void {
  if (elsewhere === (market.movedUntilAwakeMs !== null)) return;
  market.movedUntilAwakeMs = elsewhere ? awakeMs(state) : null;
  // A delete that was written may still be carried out: nothing is written after it, the other shard renews.
  if (elsewhere && market.exit?.want === 'delete') beginExit(state, market, 'keep');
  else reconsider(state, market);
}

/**
 * Lets go of markets that another shard has guarded for long enough by now. Each is renewed in full once more, when it is
 * due for it: all of them together would take the limit from those that stay.
 */
export function endHandovers(state: CoreState, out: Effect[]): void {
  if (state.now.monoMs < state.nextPartingMs) return;
  const moved = state.markets.filter((market) => market.movedUntilAwakeMs !== null && !market.leaving);
  state.nextPartingMs = moved.length === 0 ? Number.POSITIVE_INFINITY : state.now.monoMs + PARTING_MS;
  const due = moved.filter((market) => isHandedOver(state, market));
  if (due.length === 0) return;
  const going = new Set(due);
  for (const market of due) leave(state, market);
  const staying = state.markets.filter((market) => !market.leaving);
  const markets = [...staying, ...state.markets.filter(({ leaving }) => leaving)];
  for (const [index, market] of markets.entries()) market.index = index;
  state.settings = { ...state.settings, markets: staying.map(({ settings }) => settings) };
  replaceMarkets(state, markets);
  // Until the last of them has gone those that stay are renewed as before: what is free goes to last renewals.
  if (due.length === moved.length) planPeriods(state, carriedPerSecond(state));
  out.push({ kind: 'notice', notice: { kind: 'handed-over', markets: [...going].map(nameOf) } });
}

/** The other shard has it, and what is to be renewed here is due before this is looked at again. */
function isHandedOver(state: CoreState, market: MarketState): boolean {
  const untilMs = market.movedUntilAwakeMs ?? Number.POSITIVE_INFINITY;
  if (awakeMs(state) < untilMs) return false;
  return market.nextMs < state.now.monoMs + PARTING_MS || market.refused !== null || !isWanted(state, market);
}

function namesOf(markets: readonly MarketSettings[]): ReadonlySet<string> {
  return new Set(markets.map(({ market }) => market));
}

function nameOf({ settings }: MarketState): string {
  return settings.market;
}

function leave(state: CoreState, market: MarketState): void {
  if (isWanted(state, market)) noteUnwanted(state, market);
  market.leaving = true;
  reconsider(state, market);
}

/** A market that was on its way out is guarded again, as if it were new. */
function returnToGuard(state: CoreState, market: MarketState, out: Effect[]): void {
  market.leaving = false;
  market.hold = null;
  market.tripWanted = false;
  if (market.suspended === null) forgetWhatFired(state, market);
  reconsider(state, market);
  followBot(state, market, out);
}

/** True where anything of the market changed. It is renewed at once, so that there is no gap between old and new. */
function adopt(state: CoreState, market: MarketState, wanted: MarketSettings, out: Effect[]): boolean {
  const { settings } = market;
  const botChanged = settings.bot !== wanted.bot;
  const same =
    !botChanged &&
    settings.timeoutMs === wanted.timeoutMs &&
    settings.renewEveryMs === wanted.renewEveryMs &&
    String(settings.types) === String(wanted.types);
  if (same) return false;
  market.settings = wanted;
  if (botChanged) followBot(state, market, out);
  if (market.refused === null) hurry(state, market);
  return true;
}

/** Forgets markets that have left: their timer is gone, or will fire as it was meant to, and nothing is under way. */
export function forgetGone(state: CoreState, out: Effect[]): void {
  if (state.phase.kind !== 'running' || state.markets.at(-1)?.leaving !== true) return;
  const gone = new Set<MarketState>();
  for (const market of state.markets) {
    if (!market.leaving || market.inFlight.length > 0) continue;
    const { notAfterMs } = market.belief;
    const over = notAfterMs === null || notAfterMs <= state.now.monoMs;
    if (market.exit?.done !== true && !over) continue;
    gone.add(market);
    state.leftBehind.set(market.settings.market, market.belief);
    const deleted =
      market.exit?.want === 'delete' && market.exit.done && (market.deleted || notAfterMs === null);
    const left = market.exit?.want === 'handoff' ? 'handed_off' : 'kept';
    const how = deleted ? 'deleted' : over && notAfterMs !== null ? 'fired' : left;
    out.push({ kind: 'notice', notice: { kind: 'removed', market: market.settings.market, how } });
  }
  if (gone.size === 0) return;
  replaceMarkets(
    state,
    state.markets.filter((market) => !gone.has(market)),
  );
}

/** A market that comes back may still have the timer that it left behind, and requests of its own on their way. */
function recall(state: CoreState, market: MarketState): void {
  const name = market.settings.market;
  const belief = state.leftBehind.get(name);
  if (belief === undefined) return;
  Object.assign(market.belief, belief, { server: null });
  if (awakeSlackMs(state, market) <= 0) forget(market.belief);
  state.leftBehind.delete(name);
}

/** Nothing of the market can happen at the exchange any more. */
function isOver(state: CoreState, belief: Belief): boolean {
  const { notAfterMs, strayUntilMs, strayCutUntilMs, strayDeleteUntilMs } = belief;
  return Math.max(notAfterMs ?? 0, strayUntilMs, strayCutUntilMs, strayDeleteUntilMs) <= state.now.monoMs;
}

function replaceMarkets(state: CoreState, markets: readonly MarketState[]): void {
  state.markets = markets;
  lookAnew(state);
  // What waited in the order of the last plan may be a market that is gone.
  state.queue = [];
  state.byName = new Map(markets.map((market) => [market.settings.market, market]));
}
