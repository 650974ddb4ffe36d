import { type Events, renewalsOf } from './simulated-exchange.ts';

/** A shard that was killed or told to stop. Times by the exchange, Unix milliseconds. */
export interface Departure {
  /** The markets that it guarded. */
  readonly own: ReadonlySet<string>;
  readonly leftMs: number;
  readonly endedMs: number;
}

/** What its markets met with, by the renewals that the exchange saw; milliseconds. */
export interface Takeover {
  /** The longest time since a market's renewal, when the shard was killed or told to stop. */
  readonly oldestMs: number;
  /** Markets that it renewed once more before it ended. */
  readonly renewedAtStop: number;
  /** From its last renewal, of whichever market, to the first of its successor: so long nobody guarded them. */
  readonly ownerlessMs: number;
  /** From that first renewal until each of the markets had one. */
  readonly untilAllMs: number;
  /** The longest time between the last renewal of the one and the first of the other. */
  readonly longestGapMs: number;
}

/** The events of each market. */
export function byMarket(events: Events): (market: string) => Events {
  const of = Map.groupBy(events, (event) => ('market' in event ? event.market : ''));
  return (market) => of.get(market) ?? [];
}

/** How the markets of a shard came to its successor. */
export function takeoverOf(
  eventsOf: (market: string) => Events,
  { own, leftMs, endedMs }: Departure,
): Takeover {
  const markets = [...own].map((market) => {
    const all = renewalsOf(eventsOf(market), market);
    const lastBefore = (ms: number) => all.findLast((atMs) => atMs <= ms) ?? Number.NEGATIVE_INFINITY;
    return {
      beforeMs: lastBefore(leftMs),
      lastMs: lastBefore(endedMs),
      nextMs: all.find((atMs) => atMs > endedMs) ?? Number.POSITIVE_INFINITY,
    };
  });
  const most = (of: (market: (typeof markets)[number]) => number) =>
    markets.reduce((longest, market) => Math.max(longest, of(market)), 0);
  const firstMs = markets.reduce((least, { nextMs }) => Math.min(least, nextMs), Number.POSITIVE_INFINITY);
  return {
    oldestMs: most(({ beforeMs }) => leftMs - beforeMs),
    renewedAtStop: markets.filter(({ lastMs }) => lastMs > leftMs).length,
    ownerlessMs: firstMs - most(({ lastMs }) => lastMs),
    untilAllMs: most(({ nextMs }) => nextMs - firstMs),
    longestGapMs: most(({ lastMs, nextMs }) => nextMs - lastMs),
  };
}
