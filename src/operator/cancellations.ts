import type { Certainty, Firing, Notice } from '../core/notice.ts';
import { TRIP_MS } from '../core/promise.ts';

/** Why orders were, or may have been, cancelled. */
export type CancellationCause = Firing | 'unrenewed' | 'deleted_late';

/** What is known of the last time that a market's orders were cancelled, and is not acknowledged. */
export interface Cancellation {
  readonly market: string;
  readonly certainty: Certainty;
  readonly why: CancellationCause;
  /** Unix milliseconds: by then they were, or are, cancelled. */
  readonly byWallMs: number;
  /** How often it happened since somebody acknowledged it. */
  readonly count: number;
}

/**
 * Which markets' orders were cancelled since somebody looked. Fed by the notices of the core; a reload takes nothing
 * away, also not the record of a market that is no longer configured.
 */
export interface Cancellations {
  readonly observe: (notice: Notice, now: { readonly wallMs: number }) => void;
  /** The newest first. */
  readonly list: () => readonly Cancellation[];
  /** Somebody has seen it; null means all of it. Returns the markets that were on record. */
  readonly acknowledge: (markets: readonly string[] | null) => readonly string[];
}

export function createCancellations(): Cancellations {
  const record = new Map<string, Cancellation>();
  /** What was on record of a market whose orders may yet stay: its renewal is overdue, or its trip has not fired. */
  const before = new Map<
    string,
    { readonly earlier: Cancellation | undefined; readonly safeUntilMs: number }
  >();
  const add = (found: Omit<Cancellation, 'count'>): void => {
    const { market } = found;
    const earlier = before.has(market) ? before.get(market)?.earlier : record.get(market);
    before.delete(market);
    // What was tripped is told of when it is cut short, and again when it has fired.
    const isSame =
      earlier?.why === 'tripped' && found.why === 'tripped' && found.byWallMs - earlier.byWallMs < 60_000;
    record.delete(market);
    record.set(market, { ...found, count: (earlier?.count ?? 0) + (isSame ? 0 : 1) });
  };
  /** As `add`, of what the next answer may take back. */
  const expect = (found: Omit<Cancellation, 'count'>, safeUntilMs: number): void => {
    const earlier = record.get(found.market);
    add(found);
    before.set(found.market, { earlier, safeUntilMs });
  };
  /** The exchange kept the timer, or deleted it in time: nothing has fired, as far as `wallMs` lets it be sure. */
  const takeBack = (market: string, wallMs: number): void => {
    const kept = before.get(market);
    const now = record.get(market);
    before.delete(market);
    if (kept === undefined || now === undefined) return;
    if (wallMs >= kept.safeUntilMs) record.set(market, { ...now, certainty: 'possible' });
    else if (kept.earlier === undefined) record.delete(market);
    else record.set(market, kept.earlier);
  };
  return {
    observe(notice, { wallMs }) {
      switch (notice.kind) {
        case 'overdue': {
          const { market, expiryWallMs: byWallMs } = notice;
          expect({ market, certainty: 'possible', why: 'unrenewed', byWallMs }, Number.POSITIVE_INFINITY);
          break;
        }
        case 'lapsed': {
          const { market, certainty } = notice;
          const overdue = before.has(market) ? record.get(market) : undefined;
          const byWallMs = certainty === 'possible' ? (overdue?.byWallMs ?? wallMs) : wallMs;
          add({ market, certainty, why: 'unrenewed', byWallMs });
          break;
        }
        case 'renewed':
          takeBack(notice.market, wallMs);
          break;
        case 'tripped': {
          const { market, durationMs, firesByWallMs: byWallMs } = notice;
          // The exchange counts whole seconds: the timer may fire a second sooner.
          const safeUntilMs = wallMs - durationMs + TRIP_MS - 1000;
          expect({ market, certainty: 'certain', why: 'tripped', byWallMs }, safeUntilMs);
          break;
        }
        case 'fired':
          add({
            market: notice.market,
            certainty: 'certain',
            why: notice.why,
            byWallMs: notice.firedByWallMs,
          });
          break;
        case 'deleted':
          if (notice.mayHaveFired)
            add({ market: notice.market, certainty: 'possible', why: 'deleted_late', byWallMs: wallMs });
          else takeBack(notice.market, wallMs);
          break;
        default:
      }
    },
    list: () => [...record.values()].toReversed(),
    acknowledge(markets) {
      const names = (markets ?? [...record.keys()]).filter((market) => record.has(market));
      for (const name of names) record.delete(name);
      for (const name of names) before.delete(name);
      return names;
    },
  };
}
