import type { CoreSettings, MarketSettings } from '../../src/core/events.ts';

/** `AAA:60:maker` is a market with a timeout of 60 s and the bot `maker`; `AAA` has 60 s and the bot `bot`. */
export function marketOf(text: string, types: MarketSettings['types'] = null): MarketSettings {
  const [market = '', timeoutSeconds = '60', bot = 'bot'] = text.split(':');
  return { market, timeoutMs: Number(timeoutSeconds) * 1000, types, renewEveryMs: null, bot };
}

/** `M0:60`, `M1:60` and so on. */
export const many = (count: number, seconds = 60, name = 'M') =>
  Array.from({ length: count }, (_, place) => `${name}${place}:${seconds}`);

export interface SettingsOptions
  extends Partial<Omit<CoreSettings, 'markets' | 'elsewhere' | 'liveness' | 'shutdown'>> {
  /** Markets in the form of `marketOf`; default: one of 60 s. */
  readonly markets?: readonly (string | MarketSettings)[];
  /** Those of other shards, in the same form. */
  readonly elsewhere?: readonly string[];
  readonly liveness?: Partial<CoreSettings['liveness']>;
  readonly shutdown?: Partial<CoreSettings['shutdown']>;
}

/** The defaults of the configuration, changed where a test says so. */
export function coreSettings(options: SettingsOptions = {}): CoreSettings {
  const { markets = ['AAA'], elsewhere = [], liveness, shutdown, ...rest } = options;
  return {
    nonce: 'increasing',
    bases: ['https://exchange.example'],
    sameAccount: false,
    budget: { requests: 5000, windowMs: 10_000 },
    connections: 64,
    onLapse: 'rearm',
    ping: { everyMs: 5000, timeoutMs: 3000 },
    cancellationDelayMs: 0,
    requestLifetimeMs: 10_000,
    elsewhere: elsewhere.map((text) => marketOf(text)),
    ...rest,
    markets: markets.map((market) => (typeof market === 'string' ? marketOf(market) : market)),
    liveness: { mode: 'none', ttlMs: 15_000, startupGraceMs: 60_000, onStale: 'expire', ...liveness },
    shutdown: { policy: 'delete', budgetMs: 8000, ...shutdown },
  };
}
