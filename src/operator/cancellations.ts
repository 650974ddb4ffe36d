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

type Found = Omit<Cancellation, 'count'>;

/** The record before an expected cancellation, which an answer may take back: an overdue renewal, or a trip. */
interface Before {
  readonly earlier: Cancellation | undefined;
  /** Until then the timer has surely not fired. */
  readonly safeUntilMs: number;
}

/** The newest of each market, and what an answer of the exchange may take back. */
class CancellationRecord {
  readonly #record = new Map<string, Cancellation>();
  readonly #before = new Map<string, Before>();

  get(market: string): Cancellation | undefined {
    return this.#record.get(market);
  }

  list(): Cancellation[] {
    return [...this.#record.values()].toReversed();
  }

  remove(market: string): void {
    this.#record.delete(market);
    this.#before.delete(market);
  }

  /** Takes the place of what was expected. */
  add(found: Found): void {
    const { market } = found;
    const before = this.#before.get(market);
    const earlier = before === undefined ? this.#record.get(market) : before.earlier;
    this.remove(market);
    this.#record.set(market, { ...found, count: (earlier?.count ?? 0) + 1 });
  }

  /** As `add`, of what the next answer may take back. */
  expect(found: Found, safeUntilMs: number): void {
    const now = this.#record.get(found.market);
    const isRepeated = now?.why === found.why && this.#before.has(found.market);
    const earlier = isRepeated ? this.#before.get(found.market)?.earlier : now;
    this.add(found);
    this.#before.set(found.market, { earlier, safeUntilMs });
  }

  /** Whether what is on record is only expected. */
  isExpected(market: string): boolean {
    return this.#before.has(market);
  }

  /** The exchange kept the timer, or deleted it in time: nothing has fired, as far as `wallMs` lets it be sure. */
  takeBack(market: string, wallMs: number): void {
    const before = this.#before.get(market);
    const now = this.#record.get(market);
    this.#before.delete(market);
    if (before === undefined || now === undefined) return;
    if (wallMs >= before.safeUntilMs) this.#record.set(market, { ...now, certainty: 'possible' });
    else if (before.earlier === undefined) this.#record.delete(market);
    else this.#record.set(market, before.earlier);
  }
}

export function createCancellations(): Cancellations {
  const record = new CancellationRecord();
  return {
    observe(notice, { wallMs }) {
      switch (notice.kind) {
        case 'overdue': {
          const { market, expiryWallMs: byWallMs } = notice;
          record.expect(
            { market, certainty: 'possible', why: 'unrenewed', byWallMs },
            Number.POSITIVE_INFINITY,
          );
          break;
        }
        case 'lapsed': {
          const { market, certainty } = notice;
          const overdue = record.isExpected(market) ? record.get(market) : undefined;
          const byWallMs = certainty === 'possible' ? (overdue?.byWallMs ?? wallMs) : wallMs;
          record.add({ market, certainty, why: 'unrenewed', byWallMs });
          break;
        }
        case 'renewed':
          record.takeBack(notice.market, wallMs);
          break;
        case 'tripped': {
          const { market, durationMs, firesByWallMs: byWallMs } = notice;
          // The exchange counts whole seconds: the timer may fire a second sooner.
          const safeUntilMs = wallMs - durationMs + TRIP_MS - 1000;
          record.expect({ market, certainty: 'certain', why: 'tripped', byWallMs }, safeUntilMs);
          break;
        }
        case 'fired': {
          const { market, why, firedByWallMs: byWallMs } = notice;
          record.add({ market, certainty: 'certain', why, byWallMs });
          break;
        }
        case 'deleted':
          if (notice.mayHaveFired)
            record.add({
              market: notice.market,
              certainty: 'possible',
              why: 'deleted_late',
              byWallMs: wallMs,
            });
          else record.takeBack(notice.market, wallMs);
          break;
        default:
      }
    },
    list: () => record.list(),
    acknowledge(markets) {
      const known = record.list().toReversed();
      const names = (markets ?? known.map(({ market }) => market)).filter((market) => record.get(market));
      for (const name of names) record.remove(name);
      return names;
    },
  };
}
