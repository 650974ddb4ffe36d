import { awakeSlackMs, type CoreState, isWanted, type MarketState, slackMs } from './state.ts';

/** In which order what is due goes; within a rank the earliest deadline, or the longest waiting, comes first. */
export const RANK = { presses: 0, isNew: 1, hasTime: 2, hasLapsed: 3 } as const;

export function rankOf(state: CoreState, market: MarketState, pressingUntilMs: number): number {
  if (isSalvageable(state, market))
    return leftToSaveMs(state, market) > pressingUntilMs ? RANK.hasTime : RANK.presses;
  return market.confirmedOnce ? RANK.hasLapsed : RANK.isNew;
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

/** What is due, the most urgent first. */
export interface Order {
  readonly markets: readonly MarketState[];
  /** The latest deadline among those that have lost half of their time: with what ends sooner they go before all else. */
  readonly pressingUntilMs: number;
}

/**
 * The first `most` of the markets in the order of `byUrgency`. What decides it is found once for each: tens of thousands
 * would be compared a hundred thousand times.
 */
export function orderOf(state: CoreState, due: readonly MarketState[], most: number): Order {
  const roundTripMs = state.roundTripMs ?? 0;
  const keys = new Float64Array(due.length);
  let pressingUntilMs = 0;
  let place = 0;
  for (const market of due) {
    const leftMs = leftToSaveMs(state, market);
    keys[place] = leftMs;
    place += 1;
    const hasLostHalf = leftMs * 2 <= market.settings.timeoutMs;
    if (hasLostHalf && leftMs > roundTripMs) pressingUntilMs = Math.max(pressingUntilMs, leftMs);
  }
  if (due.length < 2) return { markets: due, pressingUntilMs };
  const ranks = new Uint8Array(due.length);
  place = 0;
  for (const market of due) {
    const leftMs = keys[place] ?? 0;
    if (leftMs > roundTripMs) {
      ranks[place] = leftMs > pressingUntilMs ? RANK.hasTime : RANK.presses;
    } else {
      ranks[place] = market.confirmedOnce ? RANK.hasLapsed : RANK.isNew;
      keys[place] = market.nextMs;
    }
    place += 1;
  }
  const indexOf = (one: number) => due[one]?.index ?? 0;
  // The order of the configuration settles what is equal.
  const order = firstOf(ranks, keys, most).sort((one, other) => {
    const rank = (ranks[one] ?? 0) - (ranks[other] ?? 0);
    return rank === 0 ? (keys[one] ?? 0) - (keys[other] ?? 0) || indexOf(one) - indexOf(other) : rank;
  });
  const markets: MarketState[] = [];
  for (const chosen of order) {
    const market = due[chosen];
    if (market !== undefined && markets.length < most) markets.push(market);
  }
  return { markets, pressingUntilMs };
}

/** Above every key within a rank: milliseconds of more than thirty years. */
const RANK_STEP = 2 ** 40;

/**
 * The places of the first `most`, and of all that are equal to the last of them. Numbers that hold rank and key are
 * sorted ten times as fast as places are compared; what they lose in precision makes more of them equal.
 */
function firstOf(ranks: Uint8Array, keys: Float64Array, most: number): number[] {
  const places: number[] = [];
  if (keys.length <= most) {
    for (let place = 0; place < keys.length; place += 1) places.push(place);
    return places;
  }
  const whole = new Float64Array(keys.length);
  for (let place = 0; place < keys.length; place += 1)
    whole[place] = (ranks[place] ?? 0) * RANK_STEP + (keys[place] ?? 0);
  const last = whole.toSorted()[most - 1] ?? 0;
  for (let place = 0; place < keys.length; place += 1) if ((whole[place] ?? 0) <= last) places.push(place);
  return places;
}

/**
 * Until when a renewal may save the timer. Where the wall clock was set ahead and no slack is left by the count that
 * includes it, most likely no time has passed, and the timer still runs: it must not wait behind all that have time.
 */
export function leftToSaveMs(state: CoreState, market: MarketState): number {
  const slack = slackMs(state, market);
  return slack > (state.roundTripMs ?? 0) ? slack : awakeSlackMs(state, market);
}

/** Is any wanted timer armed that a renewal could still reach in time? */
export function canSaveAny(state: CoreState): boolean {
  return state.markets.some((market) => isWanted(state, market) && isSalvageable(state, market));
}

/** Could a renewal that is written now still reach the exchange before the timer fires? */
export function isSalvageable(state: CoreState, market: MarketState): boolean {
  return leftToSaveMs(state, market) > (state.roundTripMs ?? 0);
}
