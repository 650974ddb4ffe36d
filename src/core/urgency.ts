import { awakeSlackMs, type CoreState, type MarketState, slackMs } from './state.ts';

/** In which order what is due goes; within a rank the earliest deadline, or the longest waiting, comes first. */
export const RANK = { presses: 0, isNew: 1, hasTime: 2, hasLapsed: 3 } as const;

export function rankOf(state: CoreState, market: MarketState, pressingUntilMs: number): number {
  if (isSalvageable(state, market))
    return leftToSaveMs(state, market) > pressingUntilMs ? RANK.hasTime : RANK.presses;
  return market.confirmedOnce ? RANK.hasLapsed : RANK.isNew;
}

/** The latest deadline among those that have lost half of their time: with what ends sooner they go before all else. */
export function latestPressingMs(state: CoreState, due: readonly MarketState[]): number {
  let latestMs = 0;
  for (const market of due) {
    const leftMs = leftToSaveMs(state, market);
    if (isSalvageable(state, market) && leftMs * 2 <= market.settings.timeoutMs)
      latestMs = Math.max(latestMs, leftMs);
  }
  return latestMs;
}

/**
 * Earliest deadline first over what can still be saved, then what has lapsed, the longest waiting first. A market that
 * was never armed goes behind those of which more than half of their time is gone, and before those that have time.
 */
export function byUrgency(
  state: CoreState,
  pressingUntilMs: number,
): (one: MarketState, other: MarketState) => number {
  return (one, other) => {
    const rank = rankOf(state, one, pressingUntilMs) - rankOf(state, other, pressingUntilMs);
    if (rank !== 0) return rank;
    if (isSalvageable(state, one)) return leftToSaveMs(state, one) - leftToSaveMs(state, other);
    return one.nextMs - other.nextMs || one.index - other.index;
  };
}

/**
 * The first `most` of the markets in that order. What decides it is found once for each: ten thousand are compared a
 * hundred thousand times.
 */
export function byDeadline(
  state: CoreState,
  markets: readonly MarketState[],
  most: number,
  pressingUntilMs: number,
): MarketState[] {
  const ranks = new Uint8Array(markets.length);
  const keys = new Float64Array(markets.length);
  const order = new Uint32Array(markets.length);
  for (const [place, market] of markets.entries()) {
    order[place] = place;
    ranks[place] = rankOf(state, market, pressingUntilMs);
    keys[place] = isSalvageable(state, market) ? leftToSaveMs(state, market) : market.nextMs;
  }
  // The order of the configuration settles what is equal.
  const indexOf = (place: number) => markets[place]?.index ?? 0;
  order.sort((one, other) => {
    const rank = (ranks[one] ?? 0) - (ranks[other] ?? 0);
    return rank === 0 ? (keys[one] ?? 0) - (keys[other] ?? 0) || indexOf(one) - indexOf(other) : rank;
  });
  const first: MarketState[] = [];
  for (const place of order.subarray(0, most)) {
    const market = markets[place];
    if (market !== undefined) first.push(market);
  }
  return first;
}

/**
 * Until when a renewal may save the timer. Where the wall clock was set ahead and no slack is left by the count that
 * includes it, most likely no time has passed, and the timer still runs: it must not wait behind all that have time.
 */
export function leftToSaveMs(state: CoreState, market: MarketState): number {
  const slack = slackMs(state, market);
  return slack > (state.roundTripMs ?? 0) ? slack : awakeSlackMs(state, market);
}

/** Could a renewal that is written now still reach the exchange before the timer fires? */
export function isSalvageable(state: CoreState, market: MarketState): boolean {
  return leftToSaveMs(state, market) > (state.roundTripMs ?? 0);
}
