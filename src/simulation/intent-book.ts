import type { Incarnation } from './incarnation.ts';
import { REQUEST_LIFETIME_MS } from './plan.ts';

/** What operators want of one market: guarded, or out of guard for a reason. */
export type Intent = 'guard' | 'pause' | 'disarm' | 'trip' | 'remove';

/** What operators and the configuration asked of each daemon, and since when. True milliseconds. */
export interface IntentBook {
  note(incarnation: Incarnation, market: string, intent: Intent): void;
  /** The market belongs to another daemon from now on, or to this one again. Nothing where that is known. */
  readonly move: (incarnation: Incarnation, market: string, away: boolean) => void;
  /** The daemon has let go of a market that had moved. Since when it had, or null where it had not. */
  readonly leave: (incarnation: Incarnation, market: string) => number | null;
  /** Another daemon renews the market's timer. */
  isMoved(incarnation: Incarnation, market: string): boolean;
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
  movedSinceMs: number | null;
}

const DELETES: ReadonlySet<Intent> = new Set(['pause', 'disarm']);

/** `removalDeletes`: whether a reload that takes a market out of this daemon is to delete its timer. */
export function createIntentBook(
  nowMs: () => number,
  removalDeletes: (incarnation: Incarnation) => boolean,
): IntentBook {
  const pages = new Map<Incarnation, Map<string, Page>>();
  const pageOf = (incarnation: Incarnation, market: string) => pages.get(incarnation)?.get(market);

  function openPage(incarnation: Incarnation, market: string): Page {
    const own = pages.get(incarnation) ?? new Map<string, Page>();
    pages.set(incarnation, own);
    const page = own.get(market) ?? {
      intent: 'guard',
      guardedSinceMs: incarnation.startedMs,
      deletesUntilMs: Number.NEGATIVE_INFINITY,
      tripsUntilMs: Number.NEGATIVE_INFINITY,
      movedSinceMs: null,
    };
    own.set(market, page);
    return page;
  }

  /** What is asked for no longer may still be on its way. */
  function until(asked: boolean, beforeMs: number): number {
    if (asked) return Number.POSITIVE_INFINITY;
    return beforeMs === Number.POSITIVE_INFINITY ? nowMs() + REQUEST_LIFETIME_MS : beforeMs;
  }

  return {
    note(incarnation, market, intent) {
      const page = openPage(incarnation, market);
      if (intent === 'remove') page.movedSinceMs = null;
      const asked =
        (DELETES.has(intent) && page.movedSinceMs === null) ||
        (intent === 'remove' && (DELETES.has(page.intent) || removalDeletes(incarnation)));
      // A market that is taken out while its trip is under way is tripped all the same.
      const trips = intent === 'trip' || (intent === 'remove' && page.intent === 'trip');
      page.intent = intent;
      if (intent === 'guard') page.guardedSinceMs = nowMs();
      page.deletesUntilMs = until(asked, page.deletesUntilMs);
      page.tripsUntilMs = until(trips, page.tripsUntilMs);
    },
    move(incarnation, market, away) {
      const page = openPage(incarnation, market);
      if (away === (page.movedSinceMs !== null)) return;
      page.movedSinceMs = away ? nowMs() : null;
      page.deletesUntilMs = until(!away && DELETES.has(page.intent), page.deletesUntilMs);
    },
    leave(incarnation, market) {
      const page = openPage(incarnation, market);
      page.intent = 'remove';
      return page.movedSinceMs;
    },
    isMoved: (incarnation, market) => (pageOf(incarnation, market)?.movedSinceMs ?? null) !== null,
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
