import type { Config, MarketConfig } from '../config/config.ts';
import type { Cancel, Clock } from '../ports.ts';

/** The configuration as whoever watches the bots must see it. */
export interface Watched {
  /** That in force, with the markets that went to another shard and are still guarded here. */
  readonly config: () => Config;
  /** Another one is in force; `moved` are the names of markets that went to another shard with it. */
  follow(next: Config, moved: readonly string[]): void;
  stop(): void;
}

/** A market that leaves is guarded until the core has settled with it: bots are watched for this much longer. */
const SETTLES_WITHIN_MS = 10_000;

/**
 * Bots of markets that went to another shard are watched for as long as those are guarded here: without a sign of life
 * they would be left to fire at once.
 */
export function createWatched(clock: Clock, initial: Config): Watched {
  let inForce = initial;
  let seen = initial;
  const staying = new Map<string, { readonly market: MarketConfig; readonly untilMs: number }>();
  let cancel: Cancel = () => {};

  function look(): void {
    cancel();
    const nowMs = clock.now().monoMs;
    const own = new Set(inForce.markets.map(({ market }) => market));
    let nextMs = Number.POSITIVE_INFINITY;
    for (const [name, { untilMs }] of staying) {
      if (untilMs <= nowMs || own.has(name)) staying.delete(name);
      else nextMs = Math.min(nextMs, untilMs);
    }
    const others = [...staying.values()].map(({ market }) => market);
    seen = others.length === 0 ? inForce : { ...inForce, markets: [...inForce.markets, ...others] };
    cancel = others.length === 0 ? () => {} : clock.after(nextMs - nowMs, look);
  }
  return {
    config: () => seen,
    follow(next, moved) {
      const untilMs = clock.now().monoMs + next.shard.handoverSeconds * 1000 + SETTLES_WITHIN_MS;
      const known = new Map(next.fleet.map((market) => [market.market, market]));
      for (const name of moved) {
        const market = known.get(name);
        if (market !== undefined) staying.set(name, { market, untilMs });
      }
      for (const [name, { untilMs: stays }] of staying) {
        const market = known.get(name);
        if (market === undefined) staying.delete(name);
        else staying.set(name, { market, untilMs: stays });
      }
      inForce = next;
      look();
    },
    stop: () => cancel(),
  };
}
