import type { BotWord } from '../../src/core/events.ts';
import type { Notice } from '../../src/core/notice.ts';
import type { ExchangeEvent } from '../../src/simulator/event-log.ts';
import {
  type Court,
  createEvidenceBook,
  createIntentBook,
  createTruths,
  createWireLog,
  type Incarnation,
  type Intent,
  type Listener,
  perKey,
  type Sent,
  type Truth,
  type Violation,
} from './court.ts';
import * as haste from './judge-of-haste.ts';
import * as lapses from './judge-of-lapses.ts';
import * as timers from './judge-of-timers.ts';
import { REQUEST_LIFETIME_MS } from './plan.ts';
import type { SimulatedServer } from './server.ts';
import type { Timeline } from './virtual-clock.ts';

interface JudgedWorld extends Pick<Court, 'plan' | 'running'> {
  readonly timeline: Timeline;
  readonly server: Pick<SimulatedServer, 'nowMs' | 'toTrueMs'>;
}

function appoint(court: Court): readonly Listener[] {
  const strays = timers.createStrayJudge(court);
  return [
    haste.createPaceJudge(court),
    timers.createBeliefJudge(court),
    timers.createDepartureJudge(court),
    strays,
    timers.createDeleteJudge(court, strays),
    timers.createEvidenceJudge(court),
    haste.createIsolationJudge(court),
    haste.createProgressJudge(court),
    lapses.createFalseLapseJudge(court),
    lapses.createLapseReportJudge(court),
    lapses.createStreakJudge(court),
    lapses.createLatchJudge(court),
    haste.createRecoveryJudge(court),
    haste.createEndsJudge(court),
  ];
}

type Told<What extends keyof Listener> = Parameters<NonNullable<Listener[What]>>;
export type Judge = ReturnType<typeof createJudge>;

/** Watches one run and writes down what breaks an invariant. Knows the truth on both sides; changes nothing. */
export function createJudge({ plan, running, timeline: { nowMs }, server }: JudgedWorld) {
  let violation: Violation | null = null;
  const truths = createTruths(plan);
  const byName = new Map(truths.map((truth) => [truth.market, truth]));
  const truthOf = (market: string | null) => (market === null ? undefined : byName.get(market));
  const evidence = createEvidenceBook(plan, nowMs);
  const intents = createIntentBook(plan, nowMs);
  const log = createWireLog(nowMs);
  const blame: Court['blame'] = (invariant, text) => {
    violation ??= { invariant, atMs: nowMs(), text };
  };
  const sides = { plan, running, nowMs, serverNowMs: server.nowMs };
  const judges = appoint({ ...sides, truths, truthOf, evidence, intents, log, blame });
  const listenersTo = perKey((what: keyof Listener) => judges.flatMap((judge) => judge[what] ?? []));
  function tell<What extends keyof Listener>(what: What, ...told: Told<What>): void {
    for (const listen of listenersTo(what)) (listen as (...told: Told<What>) => void)(...told);
  }
  /** From here on no belief about the market's timer can be sound for a while. */
  function breakTruth(truth: Truth): void {
    truth.brokenAtMs = nowMs();
    truth.brokenUntilMs = nowMs() + 2 * truth.longestMs + REQUEST_LIFETIME_MS;
  }
  /** An operator, or a reload, asked the daemon for something. */
  function onIntent(by: Incarnation, market: string, intent: Intent): void {
    intents.note(by, market, intent);
    if (intent === 'guard' || intent === 'trip') tell('onWanted', market, by);
  }
  const livesOf = perKey((_daemon: number): Incarnation[] => []);
  const senderOf = (sent: Sent | null) =>
    sent === null ? null : (livesOf(sent.daemon)[sent.life - 1] ?? null);
  let requests = 0;

  function record(truth: Truth, event: ExchangeEvent, by: Incarnation | null, arriving: Sent | null): void {
    // What another daemon or somebody else does to a timer is nothing that this one can know of. With a request of its own
    // earlier life it must reckon.
    const isForeign = by === null || plan.daemons.length > 1;
    const end = () => Object.assign(truth, { firesMs: null, owner: null });
    switch (event.kind) {
      case 'timer-armed':
      case 'timer-updated':
        if (truth.remadeMs < truth.lastFiredMs) truth.remadeMs = nowMs();
        truth.firesMs = server.toTrueMs(event.cancellationTime * 1000 + plan.cancellationDelayMs);
        truth.owner = by;
        if (event.timeoutSeconds * 1000 < truth.longestMs && isForeign) breakTruth(truth);
        tell('onArmed', truth, by, event.kind === 'timer-armed');
        break;
      case 'timer-deleted':
      case 'timer-delete-idle':
        end();
        if (isForeign) breakTruth(truth);
        if (by !== null && arriving !== null) tell('onDeleted', truth, by, arriving);
        break;
      case 'timer-fired':
        end();
        truth.fired.push(event.cancellationTime);
        truth.lastFiredMs = nowMs();
        tell('onFired', truth);
        break;
      default:
        break;
    }
  }

  return {
    violation: () => violation,
    requests: () => requests,
    onStart(by: Incarnation): void {
      livesOf(by.daemon).push(by);
      evidence.begin(by);
    },
    onTurn: (by: Incarnation) => tell('onTurn', by),
    onNotice(by: Incarnation, notice: Notice): void {
      // A pause ends by itself, on the daemon's own clock.
      const isOver = notice.kind === 'released' && notice.why === 'pause-over';
      if (isOver && intents.of(by, notice.market).intent === 'pause') onIntent(by, notice.market, 'guard');
      tell('onNotice', by, notice);
      log.onNotice(by, notice);
      if (notice.kind === 'held' && notice.why === 'lapsed') onIntent(by, notice.market, 'lapsed');
    },
    /** A daemon hears a beat of the bot, maybe long after it was sent. */
    onBack: evidence.takeBackGoodbye,
    onIntroduced: evidence.introduce,
    onDismissed: evidence.dismiss,
    /** A bot's word reaches the daemon; it was said at `saidMs`. */
    onEvidence(by: Incarnation, bot: number, says: BotWord, saidMs: number): void {
      // Back after a goodbye, whatever it said since: its timers are wanted again.
      const back = evidence.hear(by, bot, says, saidMs);
      for (const truth of truths) if (back && truth.bot === bot) tell('onWanted', truth.market, by);
    },
    onIntent,
    /** A reload made the market another daemon's, `away`, or left it, or gave it back, to this one. */
    onMove: intents.move,
    onTimeout(market: string, timeoutMs: number): void {
      const truth = truthOf(market);
      if (truth === undefined) return;
      const longestMs = Math.max(truth.longestMs, timeoutMs);
      Object.assign(truth, { timeoutMs, longestMs, changedMs: nowMs() });
    },
    /** What is believed of the market's timer is too much until the answer is there. */
    onCut(market: string | null): void {
      const truth = truthOf(market);
      if (truth !== undefined)
        truth.brokenUntilMs = Math.max(truth.brokenUntilMs, nowMs() + 2 * plan.roundTripMs + 100);
    },
    /** The exchange lied, or somebody else meddled. Null for all markets. */
    onTruthBroken(market: string | null): void {
      for (const truth of truths) if (market === null || truth.market === market) breakTruth(truth);
    },
    onWrite(sent: Sent): void {
      requests += 1;
      const { number, nth, order } = sent;
      const [by, truth] = [senderOf(sent), truthOf(sent.market)];
      if (by === null || truth === undefined || order === null) return;
      const decision = log.of(by, truth.market).decided[nth] ?? null;
      const purpose = decision?.purpose ?? (order.timeoutSeconds === null ? 'delete' : 'renew');
      tell('onWrite', { by, truth, sent, ...order, decision, purpose });
      log.onWrite(by, truth.market, order.timeoutSeconds !== null, number);
    },
    /** The daemon is told what became of it, or has given it up. */
    onSettled(sent: Sent): void {
      const by = senderOf(sent);
      if (by !== null && sent.market !== null) log.onSettled(by, sent.market, sent.number);
    },
    /** It has reached the exchange, or what stands before it. */
    onArrival(sent: Sent): void {
      const by = senderOf(sent);
      if (by !== null && sent.market !== null) tell('onArrival', by, sent.market, sent);
    },
    /** `arriving` is the request that brought it about; null for time, or somebody else. */
    onExchange(event: ExchangeEvent, arriving: Sent | null): void {
      const truth = 'market' in event ? truthOf(event.market) : undefined;
      if (truth === undefined) return;
      record(truth, event, senderOf(arriving), arriving);
      // Once it is taken in: what is believed of the timer must fit at this very moment.
      tell('onChanged', truth);
    },
    onEnd: () => tell('onEnd'),
  };
}
