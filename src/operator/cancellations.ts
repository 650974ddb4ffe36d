import type { Certainty, Firing, Notice } from '../core/notice.ts';
import { TRIP_MS } from '../core/promise.ts';

/** What is known of the last time that a market's orders were cancelled, and is not acknowledged. */
export interface Cancellation {
  readonly market: string;
  readonly certainty: Certainty;
  readonly why: Exclude<Firing, 'undeleted'> | 'unrenewed' | 'deleted_late';
  /** Unix milliseconds: by then they were, or are, cancelled. */
  readonly byWallMs: number;
  /** How often it happened since somebody acknowledged it. */
  readonly count: number;
}

interface Entry extends Cancellation {
  /** Where an answer may take it back: what was on record before, and until when the timer has surely not fired. */
  readonly expected: { readonly earlier: Entry | undefined; readonly safeUntilMs: number } | null;
}

/** Which markets' orders were cancelled since somebody looked: the newest of each. A reload takes nothing away. */
export function createCancellations() {
  const record = new Map<string, Entry>();
  /** Records a cancellation in the place of an expected one. With `safeUntilMs` the next answer may take it back. */
  function put(found: Omit<Cancellation, 'count'>, safeUntilMs: number | null = null): void {
    const now = record.get(found.market);
    const replaced = now?.expected ? now.expected.earlier : now;
    const earlier = now?.why === found.why ? replaced : now;
    const expected = safeUntilMs === null ? null : { earlier, safeUntilMs };
    record.delete(found.market);
    record.set(found.market, { ...found, count: (replaced?.count ?? 0) + 1, expected });
  }
  /** The exchange kept the timer, or deleted it in time: nothing has fired, as far as `wallMs` lets it be sure. */
  function takeBack(market: string, wallMs: number): void {
    const now = record.get(market);
    if (!now?.expected) return;
    const { earlier, safeUntilMs } = now.expected;
    if (wallMs >= safeUntilMs) record.set(market, { ...now, certainty: 'possible', expected: null });
    else if (earlier === undefined) record.delete(market);
    else record.set(market, { ...earlier, expected: null });
  }
  function observe(notice: Notice, { wallMs }: { readonly wallMs: number }): void {
    switch (notice.kind) {
      case 'overdue': {
        const { market, expiryWallMs: byWallMs, leftToFire } = notice;
        const safeUntilMs = leftToFire ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
        return put({ market, certainty: 'possible', why: 'unrenewed', byWallMs }, safeUntilMs);
      }
      case 'lapsed': {
        const { market, certainty } = notice;
        const now = record.get(market);
        const byWallMs = certainty === 'possible' && now?.expected ? now.byWallMs : wallMs;
        return put({ market, certainty, why: 'unrenewed', byWallMs });
      }
      case 'renewed':
        return takeBack(notice.market, wallMs);
      case 'tripped': {
        const { market, why, durationMs, firesByWallMs: byWallMs } = notice;
        // The exchange counts whole seconds: the timer may fire a second sooner.
        const safeUntilMs = wallMs - durationMs + TRIP_MS - 1000;
        return put({ market, certainty: 'certain', why, byWallMs }, safeUntilMs);
      }
      case 'fired': {
        const { market, why, firedByWallMs: byWallMs } = notice;
        const late = { market, certainty: 'possible', why: 'deleted_late', byWallMs } as const;
        // A delete that is confirmed after that tells of the same.
        if (why === 'undeleted') return put(late, Number.NEGATIVE_INFINITY);
        return put({ market, certainty: 'certain', why, byWallMs });
      }
      case 'deleted': {
        const { market, mayHaveFired } = notice;
        if (!mayHaveFired) return takeBack(market, wallMs);
        return put({ market, certainty: 'possible', why: 'deleted_late', byWallMs: wallMs });
      }
      default:
    }
  }
  return {
    observe,
    /** The newest first. */
    list: (): readonly Cancellation[] =>
      [...record.values()].map(({ expected: _expected, ...one }) => one).toReversed(),
    /** Somebody has seen it; null means all of it. Returns the markets that were on record. */
    acknowledge(markets: readonly string[] | null): readonly string[] {
      const names = (markets ?? [...record.keys()]).filter((market) => record.has(market));
      for (const name of names) record.delete(name);
      return names;
    },
  };
}
