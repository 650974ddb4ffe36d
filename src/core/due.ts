import type { CoreState, MarketState } from './state.ts';
import { SHORTEST_GAP_MS, TICK_MS } from './timing.ts';

/** All markets are looked through for what is due within so long; for a while only those that were found are. */
const AHEAD_MS = 750;
/** They are looked through again before less than this is left of it: that alone is then no reason to wake up. */
const LEAST_AHEAD_MS = TICK_MS + 1;

/**
 * The markets that may want an attempt before long. To look at ten thousand of them forty times a second takes as long
 * as to sign their requests.
 */
export interface Soon {
  /** All that want something before `untilMs`, and others that did when they were listed. */
  readonly markets: MarketState[];
  /**
   * When each of them wants it, side by side: most are not due yet, and need not be looked at themselves. Always for those
   * of which something else is wanted than renewals.
   */
  readonly atMs: number[];
  /** Monotonic milliseconds: all are looked through again before that. */
  untilMs: number;
  /** Which list it is: a market remembers the one that it was put on. */
  round: number;
}

/** Nobody has looked yet. */
export function createSoon(): Soon {
  return { markets: [], atMs: [], untilMs: Number.NEGATIVE_INFINITY, round: 0 };
}

/** Sets when the market wants its next attempt, monotonic milliseconds. Nothing else may: the list would miss it. */
export function dueAt(state: CoreState, market: MarketState, atMs: number): void {
  (market as { nextMs: number }).nextMs = atMs;
  const { soon } = state;
  if (market.soonRound === soon.round) soon.atMs[market.soonPlace] = listedAtMs(market);
  else if (atMs <= soon.untilMs) enlist(soon, market);
}

/** Brings the market's next attempt forward, where it is not sooner anyway. */
export function dueBy(state: CoreState, market: MarketState, atMs: number): void {
  if (atMs < market.nextMs) dueAt(state, market, atMs);
}

/** Brings the market's next attempt forward to now, but not closer than the shortest gap to the last one. */
export function hurry(state: CoreState, market: MarketState): void {
  dueBy(state, market, Math.max(state.now.monoMs, market.lastWrittenMs + SHORTEST_GAP_MS));
}

/** Every market that is due until `untilMs`, or whose timer is to be cut or given up, and some that are due later. */
export function dueUntil(state: CoreState, untilMs: number): Readonly<Soon> {
  const { soon } = state;
  if (untilMs + LEAST_AHEAD_MS > soon.untilMs) lookThrough(soon, state.markets, untilMs + AHEAD_MS);
  return soon;
}

function lookThrough(soon: Soon, markets: readonly MarketState[], untilMs: number): void {
  soon.untilMs = untilMs;
  soon.round += 1;
  soon.markets.length = 0;
  soon.atMs.length = 0;
  for (const market of markets) {
    if (market.nextMs <= untilMs || isEnding(market)) enlist(soon, market);
  }
}

/** There are other markets than before. */
export function lookAnew({ soon }: CoreState): void {
  soon.untilMs = Number.NEGATIVE_INFINITY;
}

/** Is something else wanted of it than renewals? */
export function isEnding({ tripWanted, exit }: MarketState): boolean {
  return tripWanted || exit !== null;
}

function enlist({ markets, atMs, round }: Soon, market: MarketState): void {
  market.soonRound = round;
  market.soonPlace = markets.length;
  markets.push(market);
  atMs.push(listedAtMs(market));
}

function listedAtMs(market: MarketState): number {
  return isEnding(market) ? Number.NEGATIVE_INFINITY : market.nextMs;
}
