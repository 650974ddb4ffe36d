import type { Certainty, Firing, Notice } from '../core/notice.ts';

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
  /** What was on record of a market whose renewal is overdue: it may turn out that nothing fired. */
  const before = new Map<string, Cancellation | undefined>();
  const add = (found: Omit<Cancellation, 'count'>): void => {
    const { market } = found;
    const earlier = before.has(market) ? before.get(market) : record.get(market);
    before.delete(market);
    // What was tripped is told of when it is cut short, and again when it has fired.
    const isSame =
      earlier?.why === 'tripped' && found.why === 'tripped' && found.byWallMs - earlier.byWallMs < 60_000;
    record.delete(market);
    record.set(market, { ...found, count: (earlier?.count ?? 0) + (isSame ? 0 : 1) });
  };
  return {
    observe(notice, { wallMs }) {
      switch (notice.kind) {
        case 'overdue': {
          const { market, expiryWallMs } = notice;
          const earlier = record.get(market);
          add({ market, certainty: 'possible', why: 'unrenewed', byWallMs: expiryWallMs });
          before.set(market, earlier);
          break;
        }
        case 'lapsed':
          add({ market: notice.market, certainty: notice.certainty, why: 'unrenewed', byWallMs: wallMs });
          break;
        case 'renewed': {
          // The exchange kept the timer: what was overdue has not fired.
          if (!before.has(notice.market)) break;
          const earlier = before.get(notice.market);
          before.delete(notice.market);
          if (earlier === undefined) record.delete(notice.market);
          else record.set(notice.market, earlier);
          break;
        }
        case 'tripped':
          add({
            market: notice.market,
            certainty: 'certain',
            why: 'tripped',
            byWallMs: notice.firesByWallMs,
          });
          break;
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
