import type { Purpose } from '../core/events.ts';
import type { Notice } from '../core/notice.ts';
import type { Court } from './court.ts';
import { type Incarnation, nameOf } from './incarnation.ts';
import type { Plan } from './plan.ts';
import type { Sent } from './sent.ts';

/** Two ticks of the core, in which a host may stand still before anybody can tell, and a little more. */
const UNNOTICED_MS = 750;

/** What a daemon had decided on when a request of its market was signed. */
export interface Decision {
  readonly purpose: Purpose;
  readonly atMs: number;
  /** The same on the monotonic clock of the host. */
  readonly monoMs: number;
}

/** A request may leave so long after it was decided on: a connection was opened for it. */
export function latestDepartureMs({ roundTripMs }: Plan): number {
  return UNNOTICED_MS + roundTripMs;
}

/**
 * Invariant 1, before anything is believed: the daemon counts a request, and how long it may still be carried out, from
 * the moment at which it decided on it. What stayed behind in a stall may not leave after it.
 */
export function createDepartureJudge({ plan, nowMs, blame }: Court) {
  const latestMs = latestDepartureMs(plan);
  /** Of each market, in the order of signing. */
  const decided = new Map<Incarnation, Map<string, Decision[]>>();

  return {
    onNotice(incarnation: Incarnation, notice: Notice): void {
      if (notice.kind !== 'attempt') return;
      const { market, purpose } = notice;
      const own = decided.get(incarnation) ?? new Map<string, Decision[]>();
      decided.set(incarnation, own);
      const decisions = own.get(market) ?? [];
      own.set(market, decisions);
      decisions.push({ purpose, atMs: nowMs(), monoMs: incarnation.clock.now().monoMs });
    },
    /** A request's first byte leaves. Returns what had been decided; null where that is not known. */
    onWrite(by: Incarnation, market: string, { nth }: Sent): Decision | null {
      const decision = decided.get(by)?.get(market)?.[nth] ?? null;
      if (decision === null) return null;
      const { purpose, atMs, monoMs } = decision;
      // While the host sleeps, what is counted on that clock stands still: a trip or a delete may leave after it.
      const lateMs = purpose === 'renew' ? nowMs() - atMs : by.clock.now().monoMs - monoMs;
      if (lateMs > latestMs) {
        const said = `wrote a request ${lateMs.toFixed(0)} ms after it had decided on it`;
        blame('1 belief', `${market}: ${nameOf(by)} ${said}`);
      }
      return decision;
    },
  };
}
