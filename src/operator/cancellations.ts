import type { Certainty, Firing, Notice } from '../core/notice.ts';
import { TRIP_MS } from '../core/promise.ts';

/** Why orders were, or may have been, cancelled. */
export type CancellationCause = Exclude<Firing, 'undeleted'> | 'unrenewed' | 'deleted_late';

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

type Found = Omit<Cancellation, 'count'>;

/** The record before an expected cancellation, which an answer may take back: an overdue renewal, or a trip. */
interface Before {
  readonly earlier: Cancellation | undefined;
  /** Until then the timer has surely not fired. */
  readonly safeUntilMs: number;
}

/** The newest cancellation of each market, and what an answer of the exchange may take back. */
function createRecord() {
  const record = new Map<string, Cancellation>();
  const expected = new Map<string, Before>();

  function remove(market: string): void {
    record.delete(market);
    expected.delete(market);
  }
  /** Takes the place of what was expected. */
  function add(found: Found): void {
    const { market } = found;
    const before = expected.get(market);
    const earlier = before === undefined ? record.get(market) : before.earlier;
    remove(market);
    record.set(market, { ...found, count: (earlier?.count ?? 0) + 1 });
  }
  /** As `add`, of what the next answer may take back. */
  function expect(found: Found, safeUntilMs: number): void {
    const now = record.get(found.market);
    const before = expected.get(found.market);
    const earlier = now?.why === found.why && before !== undefined ? before.earlier : now;
    add(found);
    expected.set(found.market, { earlier, safeUntilMs });
  }
  /** The exchange kept the timer, or deleted it in time: nothing has fired, as far as `wallMs` lets it be sure. */
  function takeBack(market: string, wallMs: number): void {
    const before = expected.get(market);
    const now = record.get(market);
    expected.delete(market);
    if (before === undefined || now === undefined) return;
    if (wallMs >= before.safeUntilMs) record.set(market, { ...now, certainty: 'possible' });
    else if (before.earlier === undefined) record.delete(market);
    else record.set(market, before.earlier);
  }
  return { record, expected, remove, add, expect, takeBack };
}

/**
 * Which markets' orders were cancelled since somebody looked. Fed by the notices of the core; a reload takes nothing
 * away, also not the record of a market that is no longer configured.
 */
export function createCancellations() {
  const { record, expected, remove, add, expect, takeBack } = createRecord();
  function observe(notice: Notice, { wallMs }: { readonly wallMs: number }): void {
    switch (notice.kind) {
      case 'overdue': {
        const { market, expiryWallMs: byWallMs } = notice;
        const found = { market, certainty: 'possible', why: 'unrenewed', byWallMs } as const;
        expect(found, Number.POSITIVE_INFINITY);
        break;
      }
      case 'lapsed': {
        const { market, certainty } = notice;
        const overdue = expected.has(market) ? record.get(market) : undefined;
        const byWallMs = certainty === 'possible' ? (overdue?.byWallMs ?? wallMs) : wallMs;
        add({ market, certainty, why: 'unrenewed', byWallMs });
        break;
      }
      case 'renewed':
        if (expected.size > 0) takeBack(notice.market, wallMs);
        break;
      case 'tripped': {
        const { market, why, durationMs, firesByWallMs: byWallMs } = notice;
        // The exchange counts whole seconds: the timer may fire a second sooner.
        const safeUntilMs = wallMs - durationMs + TRIP_MS - 1000;
        expect({ market, certainty: 'certain', why, byWallMs }, safeUntilMs);
        break;
      }
      case 'fired': {
        const { market, why, firedByWallMs: byWallMs } = notice;
        const late = { market, certainty: 'possible', why: 'deleted_late', byWallMs } as const;
        // A delete that is confirmed after that tells of the same.
        if (why === 'undeleted') expect(late, Number.NEGATIVE_INFINITY);
        else add({ market, certainty: 'certain', why, byWallMs });
        break;
      }
      case 'deleted': {
        const { market, mayHaveFired } = notice;
        if (mayHaveFired) add({ market, certainty: 'possible', why: 'deleted_late', byWallMs: wallMs });
        else takeBack(market, wallMs);
        break;
      }
      default:
    }
  }
  return {
    observe,
    /** The newest first. */
    list: (): readonly Cancellation[] => [...record.values()].toReversed(),
    /** Somebody has seen it; null means all of it. Returns the markets that were on record. */
    acknowledge(markets: readonly string[] | null): readonly string[] {
      const names = (markets ?? [...record.keys()]).filter((market) => record.has(market));
      for (const name of names) remove(name);
      return names;
    },
  };
}
