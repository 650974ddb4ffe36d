import type { Notice } from '../core/notice.ts';
import type { Court } from './court.ts';
import { type Incarnation, nameOf } from './incarnation.ts';

/** Confirmations, and the end of a market that a reload took out. */
const ENDS: ReadonlySet<Notice['kind']> = new Set(['renewed', 'tripped', 'deleted', 'removed']);

/**
 * A streak of failures is one market's own: it ends with a confirmation of that market and with nothing else. Alerts
 * count on it; another market's success once hid forty failed renewals.
 */
export function createStreakJudge({ blame }: Court) {
  const streaks = new Map<Incarnation, Map<string, number>>();
  return {
    onNotice(incarnation: Incarnation, notice: Notice): void {
      const own = streaks.get(incarnation) ?? new Map<string, number>();
      streaks.set(incarnation, own);
      if (ENDS.has(notice.kind) && 'market' in notice) own.delete(notice.market);
      // Streak 0 marks a late failure of an attempt that a newer one has overtaken.
      if (notice.kind !== 'attempt-failed' || notice.streak === 0) return;
      const expected = (own.get(notice.market) ?? 0) + 1;
      own.set(notice.market, expected);
      if (notice.streak === expected) return;
      const name = nameOf(incarnation);
      blame(
        '8 lapses',
        `${notice.market}: ${name} counts ${notice.streak} failures in a row, there were ${expected}`,
      );
    },
  };
}
