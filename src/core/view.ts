import type { Purpose } from './events.ts';
import { type CoreState, isWanted, type MarketState, slackMs } from './state.ts';
import type { Instant } from './time.ts';

/** What is believed of one market's timer, in milliseconds from the moment of the view. Read when it is asked for. */
export interface MarketView {
  readonly market: string;
  /** It should be armed now. */
  readonly wanted: boolean;
  /** For so long the timer is surely armed; null where nothing is guaranteed. */
  readonly guaranteedMs: number | null;
  /** Until the latest moment at which a timer that may exist has fired; null where surely none exists. */
  readonly firesInMs: number | null;
  /** The exchange refuses the market. */
  readonly refused: boolean;
  /** Its requests that are on their way, the oldest first. */
  readonly inFlight: readonly { readonly purpose: Purpose }[];
}

/** The beliefs of a core, for judges and tests: they read nothing else of it. */
export interface CoreView {
  readonly phase: 'running' | 'stopping' | 'stopped';
  /** Monotonic time at which the core looked at its clocks last. */
  readonly monoMs: number;
  readonly markets: readonly MarketView[];
  marketNamed(name: string): MarketView | undefined;
}

/** The state as it stands at `now`. Changes nothing, and takes no clock in. */
export function view(state: CoreState, now: Instant): CoreView {
  const see = (market: MarketState) => new SeenMarket(state, now, market);
  return {
    phase: state.phase.kind,
    monoMs: state.now.monoMs,
    get markets() {
      return state.markets.map(see);
    },
    marketNamed(name) {
      const market = state.byName.get(name);
      return market === undefined ? undefined : see(market);
    },
  };
}

class SeenMarket implements MarketView {
  readonly #state: CoreState;
  readonly #now: Instant;
  readonly #market: MarketState;

  constructor(state: CoreState, now: Instant, market: MarketState) {
    this.#state = state;
    this.#now = now;
    this.#market = market;
  }

  get market(): string {
    return this.#market.settings.market;
  }

  get wanted(): boolean {
    return isWanted(this.#state, this.#market);
  }

  get guaranteedMs(): number | null {
    const leftMs = slackMs(this.#state, this.#market) - (this.#now.monoMs - this.#state.now.monoMs);
    return leftMs > 0 ? leftMs : null;
  }

  get firesInMs(): number | null {
    const { notAfterMs } = this.#market.belief;
    return notAfterMs === null || notAfterMs <= this.#now.monoMs ? null : notAfterMs - this.#now.monoMs;
  }

  get refused(): boolean {
    return this.#market.refused !== null;
  }

  get inFlight(): MarketView['inFlight'] {
    return this.#market.inFlight;
  }
}
