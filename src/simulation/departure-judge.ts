import type { Notice } from '../core/notice.ts';
import type { Court } from './court.ts';
import { type Incarnation, nameOf } from './incarnation.ts';
import type { Sent } from './sent.ts';

/** Two ticks of the core, in which a host may stand still before anybody can tell, and a little more. */
const UNNOTICED_MS = 750;

/**
 * Invariant 1, before anything is believed: the daemon counts a request, and how long it may still be carried out, from
 * the moment at which it decided on it. What stayed behind in a stall may not leave after it.
 */
export function createDepartureJudge({ plan, nowMs, blame }: Court) {
  const latestMs = UNNOTICED_MS + plan.roundTripMs;
  /** True moments at which the requests of each market were decided on, in the order of signing. */
  const decided = new Map<Incarnation, Map<string, number[]>>();

  return {
    onNotice(incarnation: Incarnation, notice: Notice): void {
      if (notice.kind !== 'attempt') return;
      const own = decided.get(incarnation) ?? new Map<string, number[]>();
      decided.set(incarnation, own);
      const moments = own.get(notice.market);
      if (moments === undefined) own.set(notice.market, [nowMs()]);
      else moments.push(nowMs());
    },
    /** A request's first byte leaves. Returns whether it does at the very moment at which it was decided on. */
    onWrite(by: Incarnation, market: string, { nth }: Sent): boolean {
      const lateMs = nowMs() - (decided.get(by)?.get(market)?.[nth] ?? nowMs());
      if (lateMs > latestMs) {
        const said = `wrote a request ${lateMs.toFixed(0)} ms after it had decided on it`;
        blame('1 belief', `${market}: ${nameOf(by)} ${said}`);
      }
      return lateMs === 0;
    },
  };
}
