import type { Incarnation } from './incarnation.ts';
import { REQUEST_LIFETIME_MS } from './plan.ts';

/** What operators want of one market: guarded, or out of guard for a reason. */
export type Intent = 'guard' | 'pause' | 'disarm' | 'trip' | 'remove';

/** What operators and the configuration asked of each daemon, and since when. True milliseconds. */
export interface IntentBook {
  note(incarnation: Incarnation, market: string, intent: Intent): void;
  isGuarded(incarnation: Incarnation, market: string): boolean;
  /** When the market was last given back into guard; the start of the daemon where it never was taken out. */
  guardedSinceMs(incarnation: Incarnation, market: string): number;
  /** Until when deletes that were asked for may arrive; `Infinity` while they are asked for. */
  deletesUntilMs(incarnation: Incarnation, market: string): number;
  isPaused(incarnation: Incarnation, market: string): boolean;
  /** Until when requests of a trip may arrive; `Infinity` while it is asked for. */
  tripsUntilMs(incarnation: Incarnation, market: string): number;
}

interface Page {
  intent: Intent;
  guardedSinceMs: number;
  deletesUntilMs: number;
  tripsUntilMs: number;
}

const DELETES: ReadonlySet<Intent> = new Set(['pause', 'disarm']);

/** `removalDeletes`: whether a reload that takes a market out of this daemon is to delete its timer. */
export function createIntentBook(
  nowMs: () => number,
  removalDeletes: (incarnation: Incarnation) => boolean,
): IntentBook {
  const pages = new Map<Incarnation, Map<string, Page>>();
  const pageOf = (incarnation: Incarnation, market: string) => pages.get(incarnation)?.get(market);

  /** What is asked for no longer may still be on its way. */
  function until(asked: boolean, beforeMs: number): number {
    if (asked) return Number.POSITIVE_INFINITY;
    return beforeMs === Number.POSITIVE_INFINITY ? nowMs() + REQUEST_LIFETIME_MS : beforeMs;
  }

  return {
    note(incarnation, market, intent) {
      const own = pages.get(incarnation) ?? new Map<string, Page>();
      pages.set(incarnation, own);
      const page = own.get(market) ?? {
        intent: 'guard',
        guardedSinceMs: 0,
        deletesUntilMs: Number.NEGATIVE_INFINITY,
        tripsUntilMs: Number.NEGATIVE_INFINITY,
      };
      own.set(market, page);
      const asked =
        DELETES.has(intent) ||
        (intent === 'remove' && (DELETES.has(page.intent) || removalDeletes(incarnation)));
      // A market that is taken out while its trip is under way is tripped all the same.
      const trips = intent === 'trip' || (intent === 'remove' && page.intent === 'trip');
      page.intent = intent;
      if (intent === 'guard') page.guardedSinceMs = nowMs();
      page.deletesUntilMs = until(asked, page.deletesUntilMs);
      page.tripsUntilMs = until(trips, page.tripsUntilMs);
    },
    isGuarded: (incarnation, market) => (pageOf(incarnation, market)?.intent ?? 'guard') === 'guard',
    guardedSinceMs: (incarnation, market) =>
      pageOf(incarnation, market)?.guardedSinceMs ?? incarnation.startedMs,
    deletesUntilMs: (incarnation, market) =>
      pageOf(incarnation, market)?.deletesUntilMs ?? Number.NEGATIVE_INFINITY,
    isPaused: (incarnation, market) => pageOf(incarnation, market)?.intent === 'pause',
    tripsUntilMs: (incarnation, market) =>
      pageOf(incarnation, market)?.tripsUntilMs ?? Number.NEGATIVE_INFINITY,
  };
}
