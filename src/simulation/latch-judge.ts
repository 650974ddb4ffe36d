import type { Notice } from '../core/notice.ts';
import type { Court } from './court.ts';
import { type Incarnation, nameOf } from './incarnation.ts';

/** What one daemon was refused since it was last answered well: each market by itself, and the key. */
interface Refusals {
  readonly byMarket: Map<string, number>;
  /** Of a key that was good once; null before that. */
  ofKey: number | null;
}

const ANSWERED: ReadonlySet<Notice['kind']> = new Set(['renewed', 'tripped']);
/** What was good before is latched at the second refusal in a row. */
const LOOKS = 2;

/**
 * A market or a key that was good is not given up for a single refusal. A latch leaves timers to fire, and while it holds
 * invariant 2 says nothing: that there was a reason for it is judged here.
 */
export function createLatchJudge({ blame }: Court) {
  const byIncarnation = new Map<Incarnation, Refusals>();

  function judge(incarnation: Incarnation, what: string, refusals: number): void {
    if (refusals >= LOOKS) return;
    blame('2 false lapse', `${what}: ${nameOf(incarnation)} gave it up after ${refusals} refusals`);
  }

  return {
    onNotice(incarnation: Incarnation, notice: Notice): void {
      const refusals = byIncarnation.get(incarnation) ?? { byMarket: new Map<string, number>(), ofKey: null };
      byIncarnation.set(incarnation, refusals);
      const { byMarket } = refusals;
      if (ANSWERED.has(notice.kind) && 'market' in notice) {
        byMarket.set(notice.market, 0);
        refusals.ofKey = 0;
      } else if (notice.kind === 'deleted') {
        if (byMarket.has(notice.market)) byMarket.set(notice.market, 0);
        refusals.ofKey = 0;
      } else if (notice.kind === 'removed') {
        byMarket.delete(notice.market);
      } else if (notice.kind === 'attempt-failed') {
        const known = byMarket.get(notice.market);
        if (notice.reason === 'validation' && known !== undefined) byMarket.set(notice.market, known + 1);
        if (notice.reason === 'auth' && refusals.ofKey !== null) refusals.ofKey += 1;
      } else if (notice.kind === 'refused') {
        judge(incarnation, notice.market, byMarket.get(notice.market) ?? LOOKS);
      } else if (notice.kind === 'unauthorised') {
        judge(incarnation, 'the key', refusals.ofKey ?? LOOKS);
      }
    },
  };
}
