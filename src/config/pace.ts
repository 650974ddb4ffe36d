import type { CoreSettings } from '../core/events.ts';
import { carriedPerSecond as carriedAt, planCadence, seconds } from '../core/promise.ts';

/** A round trip as it is reckoned with before one was measured, milliseconds. */
export const ASSUMED_ROUND_TRIP_MS = 100;

/**
 * Renewals a second that this configuration can carry: what the rate limit allows, and with rising nonces, where one
 * request waits for the one before it, no more than the round trip lets through. `roundTripMs` null: not measured.
 */
export function carriedPerSecond(
  settings: Pick<CoreSettings, 'budget' | 'nonce' | 'connections'>,
  roundTripMs: number | null,
): number {
  const assumedMs = settings.nonce === 'window' ? null : ASSUMED_ROUND_TRIP_MS;
  return carriedAt(settings, roundTripMs ?? assumedMs);
}

/** What requests that go one after the other are too slow for: a sentence each, without its full stop. */
export function warnOfPace(settings: CoreSettings, roundTripMs: number | null): string[] {
  const { markets, nonce, shutdown } = settings;
  if (nonce === 'window') return [];
  const { problems } = planCadence(markets, carriedPerSecond(settings, roundTripMs));
  const stopMs = markets.length * (roundTripMs ?? ASSUMED_ROUND_TRIP_MS);
  const mind = 'a shorter way to the exchange, fewer markets, or nonce: window';
  return [
    ...problems.slice(0, 1).map((problem) => `exchange.nonce: increasing: ${problem}; ${mind}`),
    ...(stopMs > shutdown.budgetMs && shutdown.policy !== 'keep'
      ? [
          `shutdown.budgetSeconds: a stop writes ${markets.length} requests one after the other, which takes ${seconds(stopMs)}; ${seconds(shutdown.budgetMs)} leave timers armed; raise it`,
        ]
      : []),
  ];
}
