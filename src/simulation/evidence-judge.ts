import { type Court, TOLERANCE_MS } from './court.ts';
import { isQuiet, PLENTY_REQUESTS } from './disturbance.ts';
import { type Incarnation, nameOf } from './incarnation.ts';
import { REQUEST_LIFETIME_MS } from './plan.ts';
import type { Truth } from './truth.ts';

const ROUNDING_MS = 1000;
const TRIP_SECONDS = 5;

/** Invariants 3 and 4: nothing is renewed for a bot without evidence, and its orders are cancelled within the bound. */
export function createEvidenceJudge(court: Court) {
  const { plan, truths, evidence, intents, nowMs, blame } = court;
  /** The end of the evidence up to which each market was judged. */
  const judgedMs = new Map<Truth, number>();

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
    /** A daemon took a step: what it should have cut short by now must have been. */
    onTurn(incarnation: Incarnation): void {
      if (plan.onStale !== 'trip') return;
      for (const truth of truths) {
        const deadMs = evidence.allowedUntilMs(incarnation, truth.bot);
        if (nowMs() < deadMs + REQUEST_LIFETIME_MS || judgedMs.get(truth) === deadMs) continue;
        judgedMs.set(truth, deadMs);
        const lateMs = (truth.firesMs ?? 0) - tripBoundMs(court, incarnation, truth);
        if (lateMs <= TOLERANCE_MS) continue;
        const name = nameOf(incarnation);
        blame(
          '3 bounded kill',
          `${truth.market}: ${name} did not cut it short, it fires ${lateMs.toFixed(0)} ms too late`,
        );
      }
    },
  };
}

/**
 * When the timer of a bot without evidence must have fired under `onStale: trip`; `Infinity` where nothing is promised: the
 * daemon could not reach the exchange when it was time, or was told something else about the market or the bot.
 */
function tripBoundMs({ plan, evidence, intents }: Court, by: Incarnation, truth: Truth): number {
  const { market, bot, owner, timeoutMs, changedMs, brokenAtMs } = truth;
  const deadMs = evidence.allowedUntilMs(by, bot);
  const lastMs = deadMs + REQUEST_LIFETIME_MS;
  const promised =
    plan.onStale === 'trip' &&
    plan.daemons.length === 1 &&
    plan.budgetRequests >= PLENTY_REQUESTS &&
    timeoutMs > TRIP_SECONDS * 1000 &&
    owner === by &&
    by.stoppingMs === null &&
    !evidence.saidGoodbye(by, bot) &&
    intents.isGuarded(by, market) &&
    Math.max(by.startedMs, changedMs, intents.guardedSinceMs(by, market), brokenAtMs) <= deadMs &&
    !plan.faults.some(
      ({ kind, target }) => kind === 'reload-moves' && plan.markets[target]?.market === market,
    ) &&
    isQuiet(plan, market, deadMs, lastMs);
  return promised
    ? lastMs + TRIP_SECONDS * 1000 + ROUNDING_MS + plan.cancellationDelayMs
    : Number.POSITIVE_INFINITY;
}
