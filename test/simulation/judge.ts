import type { BotWord } from '../../src/core/events.ts';
import type { Notice } from '../../src/core/notice.ts';
import type { ExchangeEvent } from '../../src/simulator/event-log.ts';
import {
  breakTruth,
  type Court,
  changeTimeout,
  createEvidenceBook,
  createIntentBook,
  createTruths,
  createWireLog,
  type Incarnation,
  type Intent,
  type Sent,
  type Truth,
  type Violation,
} from './court.ts';
import { createBeliefJudge, createDepartureJudge, createStrayJudge } from './judge-of-beliefs.ts';
import { createDeleteJudge, createEvidenceJudge } from './judge-of-deletes.ts';
import {
  createIsolationJudge,
  createPaceJudge,
  createProgressJudge,
  createRecoveryJudge,
} from './judge-of-haste.ts';
import {
  createFalseLapseJudge,
  createLapseReportJudge,
  createLatchJudge,
  createStreakJudge,
} from './judge-of-lapses.ts';
import type { Plan } from './plan.ts';

export interface JudgedWorld extends Pick<Court, 'plan' | 'nowMs' | 'serverNowMs' | 'running'> {
  readonly toTrueMs: (serverMs: number) => number;
}

const MOST_VIOLATIONS = 20;

type NoteIntent = (incarnation: Incarnation, market: string, intent: Intent) => void;

export type Judge = ReturnType<typeof createJudge>;

/** Watches one run and writes down what breaks an invariant. Knows the truth on both sides; changes nothing. */
export function createJudge(world: JudgedWorld) {
  const { plan, nowMs } = world;
  const violations: Violation[] = [];
  const truths = createTruths(plan);
  const byName = new Map(truths.map((truth) => [truth.market, truth]));
  const truthOf = (market: string) => byName.get(market);
  const evidence = createEvidenceBook(plan.bots, plan.watched, nowMs);
  const intents = createIntentBook(nowMs, ({ daemon }) => plan.daemons[daemon]?.policy === 'delete');
  const blame: Court['blame'] = (invariant, text) => {
    if (violations.length < MOST_VIOLATIONS) violations.push({ invariant, atMs: nowMs(), text });
  };
  const log = createWireLog(nowMs);
  const court: Court = { ...world, truths, truthOf, evidence, intents, log, blame };
  const judges = appoint(court);
  const { senderOf, isForeign, ...lives } = createLives(plan);
  const noteIntent: NoteIntent = (incarnation, market, intent) => {
    intents.note(incarnation, market, intent);
    if (intent === 'guard' || intent === 'trip') judges.deletes.onWanted(market, incarnation);
  };

  return {
    violations: violations as readonly Violation[],
    onStart(incarnation: Incarnation): void {
      lives.add(incarnation);
      evidence.begin(incarnation);
    },
    onTurn(incarnation: Incarnation): void {
      judges.belief.onTurn(incarnation);
      judges.evidence.onTurn(incarnation);
      judges.recoveries.onTurn(incarnation);
    },
    onNotice: createListener(court, judges, noteIntent),
    /** A daemon hears a beat of the bot, maybe long after it was sent. */
    onBack: evidence.takeBackGoodbye,
    /** A reload made the bot known to the daemon. */
    onIntroduced: evidence.introduce,
    /** A bot's word reaches the daemon; it was said at `saidMs`. */
    onEvidence(incarnation: Incarnation, bot: number, says: BotWord, saidMs: number): void {
      // Back after a goodbye, whatever it said since: its timers are wanted again.
      const back = evidence.hear(incarnation, bot, says, saidMs);
      for (const truth of truths)
        if (back && truth.bot === bot) judges.deletes.onWanted(truth.market, incarnation);
    },
    /** An operator, or a reload, asked the daemon for something. */
    onIntent: noteIntent,
    /** A reload made the market another daemon's, `away`, or left it, or gave it back, to this one. */
    onMove: intents.move,
    /** The market is configured with another timeout from now on. */
    onTimeout(market: string, timeoutMs: number): void {
      const truth = truthOf(market);
      if (truth !== undefined) changeTimeout(truth, timeoutMs, nowMs());
    },
    ...createWireListener(court, judges, createRecorder(world, judges, isForeign), senderOf),
    /** What is believed of the market's timer is too much until the answer is there. */
    onCut(market: string): void {
      const truth = truthOf(market);
      if (truth !== undefined)
        truth.brokenUntilMs = Math.max(truth.brokenUntilMs, nowMs() + 2 * plan.roundTripMs + 100);
    },
    /** From here on no belief about the market's timer can be sound for a while. Null for all markets. */
    onTruthBroken(market: string | null): void {
      for (const truth of truths) {
        if (market === null || truth.market === market) breakTruth(truth, nowMs());
      }
    },
    onEnd: judges.progress.onEnd,
  };
}

/** Tells the judges what happens on the wire, and at the exchange. */
function createWireListener(
  { truthOf, log, nowMs }: Court,
  judges: Judges,
  record: (truth: Truth, event: ExchangeEvent, by: Incarnation | null, arriving: Sent | null) => void,
  senderOf: (sent: Sent | null) => Incarnation | null,
) {
  const truthIn = (event: ExchangeEvent) =>
    'market' in event && event.market !== null ? truthOf(event.market) : undefined;
  return {
    /** A request's first byte leaves. */
    onWrite(sent: Sent): void {
      const { number, market, order } = sent;
      const by = senderOf(sent);
      if (by === null || market === null || order === null) return;
      judges.pace.onWrite(by, market, number, order.nonce);
      const decision = judges.departures.onWrite(by, market, sent);
      const truth = truthOf(market);
      if (truth === undefined) return;
      const renews = order.timeoutSeconds !== null;
      judges.strays.onWrite(truth, by, sent, decision?.purpose ?? (renews ? 'renew' : 'delete'));
      if (order.timeoutSeconds === null) judges.deletes.onWrite(truth, by, sent);
      else judges.evidence.onRenewal(by, truth, order.timeoutSeconds);
      if (renews && decision?.purpose !== 'trip') {
        judges.isolation.onRenewal(by, truth);
        // What waited for its connection was in order when it was decided on.
        if (decision === null || decision.atMs === nowMs()) judges.progress.onRenewal(by, market, sent);
      }
      log.onWrite(by, market, renews, number);
    },
    /** The daemon is told what became of it, or has given it up. */
    onSettled(sent: Sent): void {
      const by = senderOf(sent);
      if (by !== null && sent.market !== null) log.onSettled(by, sent.market, sent.number);
    },
    /** It has reached the exchange, or what stands before it. */
    onArrival(sent: Sent): void {
      const by = senderOf(sent);
      if (by !== null && sent.market !== null) judges.strays.onArrival(by, sent.market, sent);
    },
    /** `arriving` is the request that brought it about; null for time, or somebody else. */
    onExchange(event: ExchangeEvent, arriving: Sent | null): void {
      const truth = truthIn(event);
      if (truth !== undefined) record(truth, event, senderOf(arriving), arriving);
    },
    /** The same event, once it is taken in: what is believed of the timer must fit at this very moment. */
    onChanged(event: ExchangeEvent): void {
      const truth = truthIn(event);
      if (truth !== undefined) judges.belief.onChanged(truth);
    },
  };
}

/** Tells the judges what the daemons say. */
function createListener(
  court: Court,
  judges: Judges,
  noteIntent: NoteIntent,
): (incarnation: Incarnation, notice: Notice) => void {
  const { intents } = court;
  return (incarnation, notice) => {
    if (endsPause(intents, incarnation, notice)) noteIntent(incarnation, notice.market, 'guard');
    judges.deletes.onNotice(incarnation, notice);
    if (notice.kind === 'stopped') judges.deletes.onStopped(incarnation, notice);
    judges.departures.onNotice(incarnation, notice);
    judges.falseLapses.onNotice(incarnation, notice);
    judges.lapseReports.onNotice(incarnation, notice);
    judges.streaks.onNotice(incarnation, notice);
    judges.latches.onNotice(incarnation, notice);
    judges.recoveries.onNotice(incarnation, notice);
    court.log.onNotice(incarnation, notice);
    if (notice.kind === 'held' && notice.why === 'lapsed') noteIntent(incarnation, notice.market, 'lapsed');
  };
}

/** A pause ends by itself, on the daemon's own clock. */
function endsPause(
  intents: Court['intents'],
  incarnation: Incarnation,
  notice: Notice,
): notice is Extract<Notice, { kind: 'released' }> {
  if (notice.kind !== 'released' || notice.why !== 'pause-over') return false;
  return intents.isPaused(incarnation, notice.market);
}

/** All lives of all daemons, in the order of their beginnings. */
function createLives({ daemons }: Plan) {
  const lives = new Map<number, Incarnation[]>();
  return {
    add: (incarnation: Incarnation): void => {
      lives.set(incarnation.daemon, [...(lives.get(incarnation.daemon) ?? []), incarnation]);
    },
    senderOf: (sent: Sent | null): Incarnation | null =>
      sent === null ? null : (lives.get(sent.daemon)?.[sent.life - 1] ?? null),
    /**
     * What another daemon or somebody else does to a timer is nothing that this one can know of. With a request of its
     * own earlier life it must reckon.
     */
    isForeign: (by: Incarnation | null): boolean => by === null || daemons.length > 1,
  };
}

type Judges = ReturnType<typeof appoint>;

/** One judge for each kind of promise. */
function appoint(court: Court) {
  return {
    belief: createBeliefJudge(court),
    evidence: createEvidenceJudge(court),
    deletes: createDeleteJudge(court),
    departures: createDepartureJudge(court),
    falseLapses: createFalseLapseJudge(court),
    lapseReports: createLapseReportJudge(court),
    pace: createPaceJudge(court),
    isolation: createIsolationJudge(court),
    latches: createLatchJudge(court),
    progress: createProgressJudge(court),
    recoveries: createRecoveryJudge(court),
    strays: createStrayJudge(court),
    streaks: createStreakJudge(court),
  };
}

/** Keeps the truth of a market up to date with what happens at the exchange, and lets the judges see it. */
function createRecorder(
  { plan, nowMs, toTrueMs }: JudgedWorld,
  { evidence, deletes, strays, falseLapses }: Judges,
  isForeign: (by: Incarnation | null) => boolean,
): Parameters<typeof createWireListener>[2] {
  return (truth, event, by, arriving) => {
    switch (event.kind) {
      case 'timer-armed':
      case 'timer-updated':
        if (truth.remadeMs < truth.lastFiredMs) truth.remadeMs = nowMs();
        truth.firesMs = toTrueMs(event.cancellationTime * 1000 + plan.cancellationDelayMs);
        truth.owner = by;
        falseLapses.onArmed(truth, by, event.kind === 'timer-armed');
        if (event.timeoutSeconds * 1000 < truth.longestMs && isForeign(by)) breakTruth(truth, nowMs());
        if (by === null) break;
        deletes.onArmed(truth, by, strays.hasNoTime(truth.market, by));
        evidence.onArmed(truth, by);
        break;
      case 'timer-deleted':
      case 'timer-delete-idle':
        truth.firesMs = null;
        truth.owner = null;
        if (isForeign(by)) breakTruth(truth, nowMs());
        if (by !== null && arriving !== null) deletes.onDeleted(truth, by, arriving);
        break;
      case 'timer-fired':
        truth.firesMs = null;
        truth.owner = null;
        truth.fired.push(event.cancellationTime);
        truth.lastFiredMs = nowMs();
        falseLapses.onFired(truth);
        break;
      default:
        break;
    }
  };
}
