import type { Court } from './court.ts';
import { type Incarnation, nameOf } from './incarnation.ts';

interface Pace {
  /** True moments of what was written within the last window. */
  readonly writes: number[];
  readonly nonces: Set<string>;
  /** The same by market, of the last second. */
  readonly byMarket: Map<string, number[]>;
  lastNonce: number;
  lastNumber: number;
}

const RATE_WINDOW_MS = 10_000;
/** Four attempts a second, new nonces after each of them, and what a stall or a stop adds. */
const MOST_PER_SECOND = 30;
/** Nonces further than this from the exchange's clock are surely refused in a nonce window. */
const NONCE_WINDOW_MS = 6000;

/** Invariants 9 and 10: nonces rise, or are unique where a window is used, and nobody writes more than the budget. */
export function createPaceJudge(court: Court) {
  const { plan, nowMs, serverNowMs, blame } = court;
  const byIncarnation = new Map<Incarnation, Pace>();
  // When the exchange's clock steps back, so does the window, over nonces that were used in it.
  const windowSteps = plan.nonce === 'window' && plan.faults.some(({ kind }) => kind === 'server-clock-step');

  function paceOf(incarnation: Incarnation): Pace {
    const known = byIncarnation.get(incarnation);
    if (known !== undefined) return known;
    const pace: Pace = { writes: [], nonces: new Set(), byMarket: new Map(), lastNonce: -1, lastNumber: -1 };
    byIncarnation.set(incarnation, pace);
    return pace;
  }

  function judgeNonce(incarnation: Incarnation, pace: Pace, number: number, nonce: string): void {
    // A nonce far from the exchange's clock was never accepted: it may be given out again when its time has come.
    if (plan.nonce === 'window' && Math.abs(Number(nonce) - serverNowMs()) > NONCE_WINDOW_MS) return;
    if (windowSteps) return;
    if (pace.nonces.has(nonce)) blame('9 nonces', `${nameOf(incarnation)} used ${nonce} twice`);
    pace.nonces.add(nonce);
    if (plan.nonce === 'window' || number < pace.lastNumber) return;
    const value = Number(nonce);
    if (value <= pace.lastNonce)
      blame('9 nonces', `${nameOf(incarnation)}: ${nonce} after ${pace.lastNonce}`);
    pace.lastNumber = number;
    pace.lastNonce = value;
  }

  function judgeRate(incarnation: Incarnation, { writes }: Pace): void {
    writes.push(nowMs());
    while ((writes[0] ?? nowMs()) <= nowMs() - RATE_WINDOW_MS) writes.shift();
    if (writes.length <= plan.budgetRequests) return;
    blame(
      '10 rate',
      `${nameOf(incarnation)} wrote ${writes.length} requests within 10 s, allowed ${plan.budgetRequests}`,
    );
  }

  /** Retries get denser as the deadline comes near, and never turn into a storm. */
  function judgeStorm(incarnation: Incarnation, { byMarket }: Pace, market: string): void {
    const writes = byMarket.get(market) ?? [];
    byMarket.set(market, writes);
    writes.push(nowMs());
    while ((writes[0] ?? nowMs()) <= nowMs() - 1000) writes.shift();
    if (writes.length <= MOST_PER_SECOND) return;
    blame('10 rate', `${market}: ${nameOf(incarnation)} wrote ${writes.length} requests within a second`);
  }

  return {
    /** A request's first byte leaves. `number` counts the requests of one daemon in the order of signing. */
    onWrite(incarnation: Incarnation, market: string, number: number, nonce: string): void {
      const pace = paceOf(incarnation);
      judgeNonce(incarnation, pace, number, nonce);
      judgeRate(incarnation, pace);
      judgeStorm(incarnation, pace, market);
    },
  };
}
