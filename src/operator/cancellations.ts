import type { Certainty, Firing, Notice } from '../core/notice.ts';
import { TRIP_MS } from '../core/promise.ts';

/** What is known of the last time that a market's orders were cancelled for this reason, and is not acknowledged. */
export interface Cancellation {
  readonly market: string;
  readonly certainty: Certainty;
  readonly why: Exclude<Firing, 'undeleted'> | 'unrenewed' | 'deleted_late';
  /** Unix milliseconds: by then they were, or are, cancelled. */
  readonly byWallMs: number;
  /** How often that was the reason since somebody acknowledged it. */
  readonly count: number;
}

/** The markets that were on record until now, and those that stay there until their timer has surely fired, or not. */
export interface Acknowledged {
  readonly acknowledged: readonly string[];
  readonly notYet: readonly string[];
}

interface Entry extends Cancellation {
  /** Where an answer may take it back: what was on record before, and until when the timer has surely not fired. */
  readonly expected: { readonly earlier: Entry | undefined; readonly safeUntilMs: number } | null;
}

const keyOf = ({ market, why }: Pick<Cancellation, 'market' | 'why'>) => `${why} ${market}`;

/** One entry for each market and reason, the oldest first. */
function createRecord() {
  const record = new Map<string, Entry>();
  /** What was expected of a market has not happened where that is sure; else nobody will know. */
  function resolve(
    market: string,
    isSure: (safeUntilMs: number) => boolean,
    but?: Cancellation['why'],
  ): void {
    for (const [key, one] of record) {
      if (one.market !== market || one.why === but || one.expected === null) continue;
      const { earlier, safeUntilMs } = one.expected;
      if (!isSure(safeUntilMs)) record.set(key, { ...one, certainty: 'possible', expected: null });
      else if (earlier === undefined) record.delete(key);
      else record.set(key, { ...earlier, expected: null });
    }
  }
  /** Records a cancellation in the place of an expected one. With `safeUntilMs` the next answer may take it back. */
  function put(found: Omit<Cancellation, 'count'>, safeUntilMs: number | null = null): void {
    resolve(found.market, (safeMs) => safeMs > Number.NEGATIVE_INFINITY, found.why);
    const now = record.get(keyOf(found));
    const earlier = now?.expected ? now.expected.earlier : now;
    const expected = safeUntilMs === null ? null : { earlier, safeUntilMs };
    record.delete(keyOf(found));
    record.set(keyOf(found), { ...found, count: (earlier?.count ?? 0) + 1, expected });
  }
  /** The exchange kept the timer, or deleted it in time: nothing has fired, as far as `wallMs` lets it be sure. */
  const takeBack = (market: string, wallMs: number) => resolve(market, (safeMs) => wallMs < safeMs);
  return { record, put, takeBack };
}

/** Which markets' orders were cancelled since somebody looked: the newest of each, by reason. A reload takes nothing away. */
export function createCancellations() {
  const { record, put, takeBack } = createRecord();
  /** Markets whose timer lapsed, and of which nothing was confirmed since: a delete tells of the same firing. */
  const lapsed = new Set<string>();
  function observe(notice: Notice, { wallMs }: { readonly wallMs: number }): void {
    switch (notice.kind) {
      case 'overdue': {
        const { market, expiryWallMs: byWallMs, leftToFire } = notice;
        const safeUntilMs = leftToFire ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
        return put({ market, certainty: 'possible', why: 'unrenewed', byWallMs }, safeUntilMs);
      }
      case 'lapsed': {
        const { market, certainty } = notice;
        const now = record.get(keyOf({ market, why: 'unrenewed' }));
        const byWallMs = certainty === 'possible' && now?.expected ? now.byWallMs : wallMs;
        lapsed.add(market);
        return put({ market, certainty, why: 'unrenewed', byWallMs });
      }
      case 'renewed':
        lapsed.delete(notice.market);
        return takeBack(notice.market, wallMs);
      case 'tripped': {
        const { market, why, durationMs, firesByWallMs: byWallMs } = notice;
        // The exchange counts whole seconds: the timer may fire a second sooner.
        const safeUntilMs = wallMs - durationMs + TRIP_MS - 1000;
        lapsed.delete(market);
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
        if (lapsed.delete(market)) return;
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
    /** Somebody has seen it; null means all of it. What has not fired yet cannot be seen: it stays. */
    acknowledge(markets: readonly string[] | null): Acknowledged {
      const [acknowledged, notYet] = [new Set<string>(), new Set<string>()];
      for (const [key, one] of record) {
        if (markets !== null && !markets.includes(one.market)) continue;
        const { expected } = one;
        const isOpen = expected !== null && expected.safeUntilMs > Number.NEGATIVE_INFINITY;
        if (isOpen) record.set(key, { ...one, count: 1, expected: { ...expected, earlier: undefined } });
        else record.delete(key);
        (isOpen ? notYet : acknowledged).add(one.market);
      }
      return { acknowledged: [...acknowledged], notYet: [...notYet] };
    },
  };
}
