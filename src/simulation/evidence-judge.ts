import { type Court, TOLERANCE_MS } from './court.ts';
import { type Incarnation, nameOf } from './incarnation.ts';
import { REQUEST_LIFETIME_MS } from './plan.ts';
import type { Truth } from './truth.ts';

const ROUNDING_MS = 1000;
const TRIP_SECONDS = 5;

/** Invariants 3 and 4: nothing is renewed for a bot without evidence, and its orders are cancelled within the bound. */
export function createEvidenceJudge(court: Court) {
  const { plan, evidence, intents, nowMs, blame } = court;

  return {
    /** A renewal's first byte leaves. */
    onRenewal(incarnation: Incarnation, truth: Truth, timeoutSeconds: number): void {
      const cutsShort = timeoutSeconds === TRIP_SECONDS && truth.longestMs > TRIP_SECONDS * 1000;
      if (cutsShort && plan.onStale === 'trip') return;
      if (timeoutSeconds === TRIP_SECONDS && intents.tripsUntilMs(incarnation, truth.market) >= nowMs())
        return;
      const lateMs = nowMs() - evidence.allowedUntilMs(incarnation, truth.bot);
      if (lateMs <= TOLERANCE_MS) return;
      blame(
        '4 posthumous renewal',
        `${truth.market}: ${nameOf(incarnation)} renewed ${lateMs.toFixed(0)} ms after the evidence ran out`,
      );
    },
    /** The exchange carried a renewal of a daemon out. */
    onArmed(truth: Truth, by: Incarnation): void {
      if (truth.firesMs === null || nowMs() < truth.brokenUntilMs) return;
      // An operator wants the orders gone, however long their bot has been dead.
      if (intents.tripsUntilMs(by, truth.market) >= nowMs()) return;
      const boundMs =
        evidence.allowedAnyoneUntilMs(truth.bot) +
        REQUEST_LIFETIME_MS +
        truth.longestMs +
        ROUNDING_MS +
        plan.cancellationDelayMs;
      const lateMs = truth.firesMs - boundMs;
      if (lateMs <= TOLERANCE_MS) return;
      blame(
        '3 bounded kill',
        `${truth.market}: fires ${lateMs.toFixed(0)} ms after the latest moment promised`,
      );
    },
  };
}
