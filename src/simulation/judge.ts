import type { Notice } from '../core/notice.ts';
import type { ExchangeEvent } from '../simulator/event-log.ts';
import { createBeliefJudge } from './belief-judge.ts';
import type { Court, Violation } from './court.ts';
import { createDeleteJudge } from './delete-judge.ts';
import { createEvidenceBook } from './evidence-book.ts';
import { createEvidenceJudge } from './evidence-judge.ts';
import type { Incarnation } from './incarnation.ts';
import { createLapseJudge } from './lapse-judge.ts';
import type { Sent } from './network.ts';
import { createPaceJudge } from './pace-judge.ts';
import type { Plan } from './plan.ts';
import { createProgressJudge } from './progress-judge.ts';
import { breakTruth, createTruths, type Truth } from './truth.ts';

/** Watches one run and writes down what breaks an invariant. Knows the truth on both sides; changes nothing. */
export interface Judge {
  readonly violations: readonly Violation[];
  onStart(incarnation: Incarnation): void;
  onTurn(incarnation: Incarnation): void;
  onNotice(incarnation: Incarnation, notice: Notice): void;
  onEvidence(incarnation: Incarnation, bot: number, says: 'beat' | 'goodbye' | 'fail'): void;
  onWrite(sent: Sent): void;
  /** `arriving` is the request that brought it about; null for time, or somebody else. */
  onExchange(event: ExchangeEvent, arriving: Sent | null): void;
  /** From here on no belief about the market's timer can be sound for a while. Null for all markets. */
  onTruthBroken(market: string | null): void;
  onEnd(): void;
}

export interface JudgedWorld {
  readonly plan: Plan;
  readonly nowMs: () => number;
  /** The exchange's clock, Unix milliseconds. */
  readonly serverNowMs: () => number;
  readonly toTrueMs: (serverMs: number) => number;
  readonly running: ReadonlyMap<number, Incarnation>;
}

const MOST_VIOLATIONS = 20;

export function createJudge({ plan, nowMs, serverNowMs, toTrueMs, running }: JudgedWorld): Judge {
  const violations: Violation[] = [];
  const truths = createTruths(plan);
  const byName = new Map(truths.map((truth) => [truth.market, truth]));
  const evidence = createEvidenceBook(plan.bots, plan.watched, nowMs);
  const court: Court = {
    plan,
    nowMs,
    serverNowMs,
    truths,
    evidence,
    running,
    blame(invariant, text) {
      if (violations.length < MOST_VIOLATIONS) violations.push({ invariant, atMs: nowMs(), text });
    },
  };
  const belief = createBeliefJudge(court);
  const renewals = createEvidenceJudge(court);
  const deletes = createDeleteJudge(court);
  const lapses = createLapseJudge(court);
  const pace = createPaceJudge(court);
  const progress = createProgressJudge(court);

  const lives = new Map<number, Incarnation[]>();
  const senderOf = (sent: Sent | null) =>
    sent === null ? null : (lives.get(sent.daemon)?.[sent.life - 1] ?? null);
  /** What an earlier life, another daemon or somebody else does to a timer is nothing that this one can know of. */
  function isForeign(by: Incarnation | null): boolean {
    return by === null || plan.daemons.length > 1 || lives.get(by.daemon)?.at(-1) !== by;
  }

  function onArmed(
    truth: Truth,
    event: Extract<ExchangeEvent, { cancellationTime: number }>,
    by: Incarnation | null,
  ) {
    truth.firesMs = toTrueMs(event.cancellationTime * 1000 + plan.cancellationDelayMs);
    const shortened = 'startTime' in event && event.timeoutSeconds * 1000 < truth.timeoutMs;
    if (shortened && isForeign(by)) breakTruth(truth, nowMs());
    truth.owner = by;
    if (by === null) return;
    deletes.onArmed(truth, by);
    renewals.onArmed(truth);
  }

  function onDeleted(truth: Truth, by: Incarnation | null): void {
    truth.firesMs = null;
    truth.owner = null;
    if (isForeign(by)) breakTruth(truth, nowMs());
    if (by !== null) deletes.onDeleted(truth, by);
  }

  function onFired(truth: Truth, cancellationTime: number): void {
    truth.firesMs = null;
    truth.owner = null;
    truth.fired.push(cancellationTime);
    lapses.onFired(truth);
  }

  return {
    violations,
    onStart(incarnation) {
      const { daemon } = incarnation;
      lives.set(daemon, [...(lives.get(daemon) ?? []), incarnation]);
      evidence.begin(incarnation);
    },
    onTurn: belief.onTurn,
    onNotice(incarnation, notice) {
      if (notice.kind === 'stopped') deletes.onStopped(incarnation, notice);
      lapses.onNotice(incarnation, notice);
    },
    onEvidence: evidence.hear,
    onWrite(sent) {
      const { number, market, order } = sent;
      const by = senderOf(sent);
      if (by === null || market === null || order === null) return;
      pace.onWrite(by, number, order.nonce);
      const truth = byName.get(market);
      if (truth !== undefined && order.timeoutSeconds !== null)
        renewals.onRenewal(by, truth, order.timeoutSeconds);
    },
    onExchange(event, arriving) {
      const truth = 'market' in event && event.market !== null ? byName.get(event.market) : undefined;
      if (truth === undefined) return;
      switch (event.kind) {
        case 'timer-armed':
        case 'timer-updated':
          onArmed(truth, event, senderOf(arriving));
          break;
        case 'timer-deleted':
        case 'timer-delete-idle':
          onDeleted(truth, senderOf(arriving));
          break;
        case 'timer-fired':
          onFired(truth, event.cancellationTime);
          break;
        default:
          break;
      }
    },
    onTruthBroken(market) {
      for (const truth of truths) if (market === null || truth.market === market) breakTruth(truth, nowMs());
    },
    onEnd: progress.onEnd,
  };
}
