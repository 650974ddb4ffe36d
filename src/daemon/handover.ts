import type { Config, MarketConfig } from '../config/config.ts';
import type { Cancel, Clock } from '../ports.ts';

/** Markets that belong to another shard since a reload, and are still guarded here. */
export interface Handover {
  /** The configuration in force, with those markets. */
  readonly config: () => Config;
  /** Another configuration is in force. Markets that it gives to another shard stay for `shard.handoverSeconds`. */
  follow(next: Config): void;
  /** Lets go of all of them at once: the daemon stops, and deletes no timer that another shard renews. */
  end(): void;
}

/**
 * Other shards may learn of a new number of shards later than this one. So this one goes on renewing what it gives away
 * until they have; both renew the same timer meanwhile, which changes nothing. `onOver` is called whenever some of them
 * are guarded here no longer.
 */
export function createHandover(clock: Clock, initial: Config, onOver: () => void): Handover {
  let inForce = initial;
  let guarded = initial;
  /** Until when a market stays here, by its name; monotonic milliseconds. */
  let staying: ReadonlyMap<string, number> = new Map();
  let cancel: Cancel = () => {};

  function keep(stays: (market: MarketConfig) => number | null): void {
    cancel();
    const own = new Set(inForce.markets.map(({ market }) => market));
    const until = new Map<string, number>();
    for (const market of inForce.fleet) {
      const untilMs = own.has(market.market) ? null : stays(market);
      if (untilMs !== null && untilMs > clock.now().monoMs) until.set(market.market, untilMs);
    }
    staying = until;
    const others = inForce.fleet.filter(({ market }) => until.has(market));
    guarded = others.length === 0 ? inForce : { ...inForce, markets: [...inForce.markets, ...others] };
    if (until.size === 0) return;
    const nextMs = [...until.values()].reduce((least, untilMs) => Math.min(least, untilMs));
    cancel = clock.after(nextMs - clock.now().monoMs, () => {
      keep(({ market }) => staying.get(market) ?? null);
      onOver();
    });
  }
  return {
    config: () => guarded,
    follow(next) {
      const here = new Set(guarded.markets.map(({ market }) => market));
      const untilMs = clock.now().monoMs + next.shard.handoverSeconds * 1000;
      inForce = next;
      keep(({ market }) => (here.has(market) ? (staying.get(market) ?? untilMs) : null));
    },
    end() {
      if (staying.size === 0) return;
      keep(() => null);
      onOver();
    },
  };
}
