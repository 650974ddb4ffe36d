import type { CoreSettings } from './settings.ts';
import { retryGapMs, seconds } from './timing.ts';

/** A round trip as the promise assumes it before one was measured. */
const ASSUMED_ROUND_TRIP_MS = 200;
/** Timers are counted in whole seconds of the exchange's clock: a second is lost to rounding. */
export const ROUNDING_MS = 1000;
/** `trip` sets the shortest timer that the exchange takes. */
export const TRIP_MS = 5000;

/** The promise of the design, section 1, in milliseconds for one market. */
export interface Bounds {
  /** Any stretch without a successful request shorter than this lapses nothing. */
  readonly survivesMs: number;
  /** After the bot's last evidence its orders are cancelled within this; null where nobody watches the bot. */
  readonly botDeathMs: number | null;
  /** After the daemon's last renewal its orders are cancelled within this. */
  readonly daemonDeathMs: number;
}

/** W = T - 1 - P - d - g, H + l + T + 1 + s and l + T + 1 + s. */
export function boundsOf(settings: CoreSettings, index: number, periodMs: number): Bounds {
  const timeoutMs = settings.markets[index]?.timeoutMs ?? 0;
  const lastGapMs = retryGapMs(1, false);
  const survivesMs = Math.max(0, timeoutMs - ROUNDING_MS - periodMs - ASSUMED_ROUND_TRIP_MS - lastGapMs);
  const daemonDeathMs = settings.requestLifetimeMs + timeoutMs + ROUNDING_MS + settings.cancellationDelayMs;
  const { mode, ttlMs, onStale } = settings.liveness;
  const lastTimeoutMs = onStale === 'trip' ? Math.min(TRIP_MS, timeoutMs) : timeoutMs;
  const botDeathMs =
    mode === 'none'
      ? null
      : ttlMs + settings.requestLifetimeMs + lastTimeoutMs + ROUNDING_MS + settings.cancellationDelayMs;
  return { survivesMs, botDeathMs, daemonDeathMs };
}

/** The bounds as sentences with numbers: printed at start, in `check-config` and on the status page. */
export function describePromise(settings: CoreSettings, index: number, periodMs: number): string[] {
  const market = settings.markets[index];
  if (market === undefined) return [];
  const bounds = boundsOf(settings, index, periodMs);
  const what = market.types === null ? 'orders' : `${market.types.join(' and ')} orders`;
  return [
    `${market.market}: renewed every ${seconds(periodMs)}, timer of ${seconds(market.timeoutMs)}.`,
    `An outage of the exchange shorter than ${seconds(bounds.survivesMs)} cancels nothing.`,
    bounds.botDeathMs === null
      ? `Nobody watches the bot (liveness mode none): if it dies, its ${what} stay for as long as this daemon runs.`
      : `If the bot dies, its ${what} are cancelled after at most ${seconds(bounds.botDeathMs)}.`,
    `If this daemon, the host or the network dies, the ${what} are cancelled after at most ${seconds(bounds.daemonDeathMs)}.`,
  ];
}
