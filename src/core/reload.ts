import { forget } from './belief.ts';
import { carriedPerSecond, planPeriods } from './cadence.ts';
import { createBot, createMarket } from './create.ts';
import type { Effect } from './events.ts';
import { followBot } from './evidence.ts';
import { forgetWhatFired, noteUnwanted, reconsider } from './exit.ts';
import type { CoreSettings, MarketSettings } from './settings.ts';
import {
  awakeMs,
  awakeSlackMs,
  type Belief,
  type CoreState,
  hurry,
  isWanted,
  type MarketState,
} from './state.ts';

/**
 * Takes new settings over while running: what is new is armed, what changed is renewed at once, and what is gone leaves
 * as the shutdown policy says. The caller has checked that nothing else differs than what may change.
 */
export function reload(state: CoreState, settings: CoreSettings, out: Effect[]): void {
  if (state.phase.kind !== 'running') return;
  for (const [name, belief] of state.leftBehind) {
    if (isOver(state, belief)) state.leftBehind.delete(name);
  }
  state.settings = { ...settings, flaw: state.settings.flaw };
  for (const { bot } of settings.markets) {
    if (!state.bots.has(bot)) state.bots.set(bot, createBot(settings, bot, state.lifeMs, awakeMs(state)));
  }
  const configured = new Set(settings.markets.map(({ market }) => market));
  const added: string[] = [];
  const changed: string[] = [];
  const staying = settings.markets.map((wanted, index) => {
    const known = state.byName.get(wanted.market);
    if (known === undefined) {
      added.push(wanted.market);
      const market = createMarket(wanted, index, settings.markets.length, wanted.timeoutMs / 3, state.now);
      recall(state, market);
      followBot(state, market, out);
      return market;
    }
    known.index = index;
    if (known.leaving) {
      added.push(wanted.market);
      known.leaving = false;
      // As if it were new.
      known.hold = null;
      known.tripWanted = false;
      if (known.suspended === null) forgetWhatFired(state, known);
      reconsider(state, known);
      followBot(state, known, out);
    }
    if (adopt(state, known, wanted, out)) changed.push(wanted.market);
    return known;
  });
  const going = state.markets.filter(({ settings: { market } }) => !configured.has(market));
  const removed: string[] = [];
  for (const [place, market] of going.entries()) {
    market.index = settings.markets.length + place;
    if (market.leaving) continue;
    removed.push(market.settings.market);
    if (isWanted(state, market)) noteUnwanted(state, market);
    market.leaving = true;
    reconsider(state, market);
  }
  replaceMarkets(state, [...staying, ...going]);
  planPeriods(state, carriedPerSecond(state));
  out.push({ kind: 'notice', notice: { kind: 'reloaded', added, removed, changed } });
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
    if (!isOver(state, market.belief)) state.leftBehind.set(market.settings.market, market.belief);
    const deleted = market.exit?.want === 'delete' && market.exit.done;
    const how = deleted ? 'deleted' : over && notAfterMs !== null ? 'fired' : 'kept';
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
  state.byName = new Map(markets.map((market) => [market.settings.market, market]));
}
