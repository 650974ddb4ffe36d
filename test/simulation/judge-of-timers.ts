import type { Purpose } from '../../src/core/events.ts';
import type { Notice } from '../../src/core/notice.ts';
import type { CoreView, MarketView } from '../../src/core/view.ts';
import { isQuiet, isScarce, PLENTY_REQUESTS } from './conditions.ts';
import {
  type Court,
  type Incarnation,
  type Listener,
  nameOf,
  perKey,
  perMarket,
  type Sent,
  stopBudgetMs,
  TOLERANCE_MS,
  type Truth,
  TTL_MS,
} from './court.ts';
import { botName, type Plan, REQUEST_LIFETIME_MS } from './plan.ts';

/** A daemon that runs looks at its clocks at least this often. */
const TICK_MS = 250;

/** Invariant 1: after every turn of a daemon, and every change of a timer, the true lapse lies between the two ends of what it believes. */
export function createBeliefJudge({ truthOf, running, nowMs, blame }: Court): Listener {
  function judge(by: Incarnation, { phase }: CoreView, seen: MarketView, truth: Truth): void {
    const { market, firesMs, owner } = truth;
    const lastsMs = firesMs === null ? 0 : firesMs - nowMs();
    const sureMs = seen.sureMs ?? 0;
    if (sureMs > TOLERANCE_MS && (lastsMs <= 0 || lastsMs < sureMs - TOLERANCE_MS)) {
      const tooLong =
        lastsMs <= 0
          ? `for ${sureMs.toFixed(0)} ms more, and it is not`
          : `${(sureMs - lastsMs).toFixed(0)} ms longer than it is`;
      blame('1 belief', `${market}: ${nameOf(by)} believes it armed ${tooLong}`);
    }
    if (owner !== by || lastsMs <= 0 || phase === 'stopped') return;
    const latestMs = seen.firesInMs ?? 0;
    if (latestMs >= lastsMs - TOLERANCE_MS) return;
    const says = `${nameOf(by)} says within ${latestMs.toFixed(0)} ms`;
    blame('1 belief', `${market}: fires in ${lastsMs.toFixed(0)} ms, ${says}`);
  }

  return {
    onTurn(by) {
      const view = by.view();
      for (const seen of view.markets()) {
        const truth = truthOf(seen.market);
        if (truth !== undefined && nowMs() >= truth.brokenUntilMs) judge(by, view, seen, truth);
      }
    },
    onChanged(truth) {
      if (nowMs() < truth.brokenUntilMs) return;
      for (const by of running.values()) {
        const view = by.view();
        const seen = view.marketNamed(truth.market);
        // A host that stands still, or slept, reads its clocks first.
        if (seen === undefined || by.clock.isStalled() || by.clock.now().monoMs - view.monoMs > TICK_MS)
          continue;
        judge(by, view, seen, truth);
      }
    },
  };
}

/** Two ticks of the core, in which a host may stand still before anybody can tell, and a little more. */
const UNNOTICED_MS = 750;

/** A request may leave so long after it was decided on: a connection was opened for it. */
function latestDepartureMs({ roundTripMs }: Plan): number {
  return UNNOTICED_MS + roundTripMs;
}

/**
 * Invariant 1, before anything is believed: the daemon counts a request, and how long it may still be carried out, from
 * the moment at which it decided on it. What stayed behind in a stall may not leave after it.
 */
export function createDepartureJudge({ plan, nowMs, blame }: Court): Listener {
  const latestMs = latestDepartureMs(plan);
  return {
    onWrite({ by, truth, decision }) {
      if (decision === null) return;
      const { purpose, atMs, monoMs } = decision;
      // While the host sleeps, what is counted on that clock stands still: a trip or a delete may leave after it.
      const lateMs = purpose === 'renew' ? nowMs() - atMs : by.clock.now().monoMs - monoMs;
      if (lateMs <= latestMs) return;
      const said = `wrote a request ${lateMs.toFixed(0)} ms after it had decided on it`;
      blame('1 belief', `${truth.market}: ${nameOf(by)} ${said}`);
    },
  };
}

/** So much of a stop's budget is left for the delete when it has waited for strays. */
const DELETE_MS = 1000;

/**
 * Invariants 3 and 6: without rising nonces no trip and no delete is called the last while a renewal may still arrive behind
 * it; and in either mode nothing is renewed that is guarded no longer.
 */
export function createStrayJudge({ plan, intents, nowMs, blame }: Court) {
  /** What a daemon wrote for one market to arm its timer. */
  const postOf = perMarket(() => ({
    /** Renewals and trips that the exchange has not got, and when they left; lost ones too, since nobody can tell. */
    onTheWay: new Map<Sent, { readonly purpose: Purpose; readonly leftMs: number }>(),
    /** When the last one left, on the daemon's own clock. */
    lastMonoMs: Number.NEGATIVE_INFINITY,
    /** A stop has written a delete. */
    deletedInStop: false,
    /** A renewal could still arrive behind the last delete or trip. */
    isEarly: false,
  }));
  // A daemon counts from when it decided on a request, which is a little earlier.
  const dangerousMs = REQUEST_LIFETIME_MS - latestDepartureMs(plan);

  /**
   * Could a renewal of the market still arrive when the budget of the stop ends? A suspend brings that end nearer, and no
   * daemon counts it as time in which the renewal has arrived.
   */
  function hasNoTime(market: string, by: Incarnation): boolean {
    if (plan.nonce !== 'window' || by.stoppingMs === null) return false;
    const dangerMs = postOf(by, market).lastMonoMs + REQUEST_LIFETIME_MS - by.clock.now().monoMs;
    return dangerMs >= by.stoppingMs + stopBudgetMs(plan) - DELETE_MS - TOLERANCE_MS - nowMs();
  }

  /** Could a renewal still arrive behind what is written now? A trip behind a trip undoes nothing. */
  function mayBeUndone(market: string, by: Incarnation, purpose: 'trip' | 'delete'): boolean {
    const { onTheWay } = postOf(by, market);
    for (const [sent, { leftMs }] of onTheWay) if (nowMs() - leftMs >= dangerousMs) onTheWay.delete(sent);
    if (plan.nonce !== 'window') return false;
    return onTheWay.values().some((one) => one.purpose === 'renew' || purpose === 'delete');
  }

  const blameEnd = (
    market: string,
    by: Incarnation,
    said: string,
    as: '3 bounded kill' | '6 nothing after delete',
  ) => blame(as, `${market}: ${nameOf(by)} ${said} while a renewal could still arrive behind it`);

  function judgeRenewal({ market }: Truth, by: Incarnation): void {
    const { intent, guardedSinceMs, deletesUntilMs, tripsUntilMs, movedSinceMs } = intents.of(by, market);
    const policy = plan.daemons[by.daemon]?.policy;
    // A handoff ends with a last renewal, and so does a market that another daemon has by now.
    if (policy === 'handoff' || movedSinceMs !== null) return;
    if (intent === 'lapsed' && nowMs() - guardedSinceMs > plan.roundTripMs + TOLERANCE_MS)
      blame('8 lapses', `${market}: ${nameOf(by)} renewed what a lapse has taken out of guard`);
    // A stop that deletes waits for a sign of life of the bot, and guards the market until its first delete.
    const waits = plan.watched && policy === 'delete' && !postOf(by, market).deletedInStop;
    const isEnded = Math.max(deletesUntilMs, tripsUntilMs) === Number.POSITIVE_INFINITY;
    if (isEnded || (by.stoppingMs !== null && !waits))
      blame('6 nothing after delete', `${market}: ${nameOf(by)} renewed what it guards no longer`);
  }

  const listener: Listener = {
    onWrite({ truth, by, sent, purpose }) {
      const { market } = truth;
      const post = postOf(by, market);
      if (purpose === 'renew') judgeRenewal(truth, by);
      else post.isEarly = mayBeUndone(market, by, purpose) && !hasNoTime(market, by);
      if (purpose === 'delete') {
        if (by.stoppingMs !== null) post.deletedInStop = true;
        return;
      }
      post.onTheWay.set(sent, { purpose, leftMs: nowMs() });
      post.lastMonoMs = by.clock.now().monoMs;
    },
    onArrival: (by, market, sent) => void postOf(by, market).onTheWay.delete(sent),
    onNotice(by, notice) {
      if ((notice.kind !== 'deleted' && notice.kind !== 'tripped') || !notice.isFinal) return;
      if (!postOf(by, notice.market).isEarly || hasNoTime(notice.market, by)) return;
      if (notice.kind === 'tripped') blameEnd(notice.market, by, 'called a timer cut', '3 bounded kill');
      else blameEnd(notice.market, by, 'called a timer deleted', '6 nothing after delete');
    },
  };
  /** Is the delete that was just written one that another one must follow? */
  const isEarly = (market: string, by: Incarnation) => postOf(by, market).isEarly;
  return { ...listener, hasNoTime, isEarly };
}

const ROUNDING_MS = 1000;
const TRIP_SECONDS = 5;

/** Invariants 3 and 4: nothing is renewed for a bot without evidence, and its orders are cancelled within the bound. */
export function createEvidenceJudge(court: Court): Listener {
  const { plan, truths, evidence, intents, nowMs, blame } = court;
  const afterMs = REQUEST_LIFETIME_MS + ROUNDING_MS + plan.cancellationDelayMs;
  /** The end of the evidence up to which each market was judged. */
  const judgedMs = new Map<Truth, number>();

  return {
    onWrite({ by, truth, timeoutSeconds }) {
      if (timeoutSeconds === null) return;
      const cutsShort = timeoutSeconds === TRIP_SECONDS && truth.longestMs > TRIP_SECONDS * 1000;
      if (cutsShort && plan.onStale === 'trip') return;
      if (timeoutSeconds === TRIP_SECONDS && intents.of(by, truth.market).tripsUntilMs >= nowMs()) return;
      const { untilMs, graceUntilMs } = evidence.of(by, truth.bot);
      const lateMs = nowMs() - untilMs;
      if (lateMs <= TOLERANCE_MS) return;
      // A bot that is looked at has lived before its daemon has seen it, which ends its grace.
      const bots = by.view().bots();
      const isStarting = bots.some(({ bot, state }) => bot === botName(truth.bot) && state === 'starting');
      const isSeen = plan.evidence === 'beat' || !isStarting;
      if (!isSeen && nowMs() <= graceUntilMs + TOLERANCE_MS) return;
      const said = `renewed ${lateMs.toFixed(0)} ms after the evidence ran out`;
      blame('4 posthumous renewal', `${truth.market}: ${nameOf(by)} ${said}`);
    },
    onArmed(truth, by) {
      if (by === null || truth.firesMs === null || nowMs() < truth.brokenUntilMs) return;
      // An operator wants the orders gone, however long their bot has been dead.
      if (intents.of(by, truth.market).tripsUntilMs >= nowMs()) return;
      const lateMs = truth.firesMs - (evidence.allowedAnyoneUntilMs(truth.bot) + truth.longestMs + afterMs);
      if (lateMs <= TOLERANCE_MS) return;
      const late = `${lateMs.toFixed(0)} ms`;
      blame('3 bounded kill', `${truth.market}: fires ${late} after the latest moment promised`);
    },
    /** What should have been cut short by now must have been. */
    onTurn(incarnation) {
      if (plan.onStale !== 'trip') return;
      for (const truth of truths) {
        const deadMs = evidence.of(incarnation, truth.bot).untilMs;
        if (nowMs() < deadMs + REQUEST_LIFETIME_MS || judgedMs.get(truth) === deadMs) continue;
        judgedMs.set(truth, deadMs);
        const lateMs = (truth.firesMs ?? 0) - tripBoundMs(court, incarnation, truth);
        if (lateMs <= TOLERANCE_MS) continue;
        const said = `did not cut it short, it fires ${lateMs.toFixed(0)} ms too late`;
        blame('3 bounded kill', `${truth.market}: ${nameOf(incarnation)} ${said}`);
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
  const deadMs = evidence.of(by, bot).untilMs;
  const lastMs = deadMs + REQUEST_LIFETIME_MS;
  const promised =
    plan.onStale === 'trip' &&
    plan.daemons.length === 1 &&
    plan.budgetRequests >= PLENTY_REQUESTS &&
    !isScarce(plan) &&
    timeoutMs > TRIP_SECONDS * 1000 &&
    owner === by &&
    by.stoppingMs === null &&
    !evidence.saidGoodbye(by, bot) &&
    intents.of(by, market).intent === 'guard' &&
    Math.max(by.startedMs, changedMs, intents.of(by, market).guardedSinceMs, brokenAtMs) <= deadMs &&
    !plan.faults.some(
      ({ kind, target }) => kind === 'reload-moves' && plan.markets[target]?.market === market,
    ) &&
    isQuiet(plan, market, deadMs, lastMs);
  return promised
    ? lastMs + TRIP_SECONDS * 1000 + ROUNDING_MS + plan.cancellationDelayMs
    : Number.POSITIVE_INFINITY;
}

/**
 * Invariants 5 to 7: deletes only on purpose, nothing after them, and what they did not reach is named. `hasNoTime`: a stop
 * cannot wait for a renewal that is on its way.
 */
export function createDeleteJudge(
  court: Court,
  { hasNoTime, isEarly }: ReturnType<typeof createStrayJudge>,
): Listener {
  const { plan, evidence, intents, running, nowMs, blame } = court;
  const noted: Incarnation[] = [];
  const doingsOf = perKey((by: Incarnation) => {
    noted.push(by);
    return {
      /** Markets whose timers it deleted at the exchange. */
      deleted: new Set<string>(),
      /** Those of them that a renewal made again before it ended. */
      strays: new Set<string>(),
      /** The deletes that it wrote since their market was wanted last: their numbers and markets. */
      fresh: new Map<number, string>(),
      /** Numbers of the deletes that another one follows, as a renewal could still arrive behind them. */
      early: new Set<number>(),
      /** Markets for which it ever decided on something else than a delete. */
      armed: new Set<string>(),
      /** The deletes that it wrote while it stopped: their numbers and markets. */
      tried: new Map<number, string>(),
      /** Numbers of the deletes that it wrote while it stopped, for bots that had given evidence since, or said goodbye. */
      earned: new Set<number>(),
      /** Markets whose timers it said it left, once it has ended. */
      left: null as ReadonlySet<string> | null,
    };
  });

  /** Until when deletes may arrive that an operator, a reload, or the bot's goodbye asked for. */
  function askedForUntilMs({ market, bot }: Truth, by: Incarnation): number {
    const { deletesUntilMs } = intents.of(by, market);
    if (plan.daemons[by.daemon]?.policy !== 'delete') return deletesUntilMs;
    return Math.max(deletesUntilMs, evidence.of(by, bot).goodbyeUntilMs);
  }

  const blameStray = (market: string, by: Incarnation) =>
    blame('6 nothing after delete', `${market}: a renewal of ${nameOf(by)} was carried out after its delete`);

  /** The life ended saying that no timer of the market is left. */
  function judgeEnding(market: string, life: Incarnation, and: string): void {
    if (doingsOf(life).left?.has(market) !== false) return;
    const said = `${nameOf(life)} ended saying that no timer is left, and ${and}`;
    blame('7 unconfirmed delete', `${market}: ${said}`);
  }

  return {
    /** What is armed from here on is no renewal after a delete. */
    onWanted(market, by) {
      const { deleted, fresh } = doingsOf(by);
      deleted.delete(market);
      for (const [number, of] of fresh) if (of === market) fresh.delete(number);
    },
    onWrite({ truth, by, sent, timeoutSeconds }) {
      if (timeoutSeconds !== null) return;
      const { tried, earned, armed, fresh, early } = doingsOf(by);
      fresh.set(sent.number, truth.market);
      if (isEarly(truth.market, by)) early.add(sent.number);
      if (by.stoppingMs !== null) tried.set(sent.number, truth.market);
      if (isEarned(court, truth, by)) earned.add(sent.number);
      judgeLate(court, truth, by, askedForUntilMs(truth, by));
      judgeWrite(court, truth, by, armed.has(truth.market));
    },
    onNotice(by, notice) {
      if (notice.kind === 'attempt' && notice.purpose !== 'delete') doingsOf(by).armed.add(notice.market);
      if (notice.kind !== 'stopped') return;
      const doings = doingsOf(by);
      const left = new Set(notice.left.map(({ market }) => market));
      doings.left = left;
      for (const market of doings.strays) if (!left.has(market)) blameStray(market, by);
      judgeLeft(court, by, notice.left, new Set(doings.tried.values()));
    },
    onArmed({ market }, by) {
      if (by === null) return;
      const { deleted, left, strays } = doingsOf(by);
      if (deleted.has(market)) {
        // A stop that has no time to wait for strays must say so in the end.
        if (by.stoppingMs !== null && left === null && hasNoTime(market, by)) strays.add(market);
        else if (left?.has(market) !== true) blameStray(market, by);
      }
      // The newest life of the same daemon that has ended since, if none runs now.
      const newest = running.has(by.daemon) ? by : noted.findLast(({ daemon }) => daemon === by.daemon);
      if (newest !== undefined && newest.life > by.life)
        judgeEnding(market, newest, 'a renewal of an earlier life makes one');
      judgeEnding(market, by, 'one is');
    },
    onDeleted(truth, by, { number }) {
      const untilMs = askedForUntilMs(truth, by);
      // One that was still on its way when the timer was wanted again, or was to be tripped, ends nothing.
      if (intents.of(by, truth.market).tripsUntilMs >= nowMs()) return;
      const { earned, tried, deleted, fresh, early } = doingsOf(by);
      const isAsked = fresh.has(number) && untilMs === Number.POSITIVE_INFINITY;
      // Nor does one of a pause that was over when the stop began: the timer is guarded until the stop hears of the bot.
      if ((tried.has(number) || isAsked) && !early.has(number)) deleted.add(truth.market);
      if (untilMs < nowMs()) judgeUnasked(court, truth, by, earned.has(number));
    },
  };
}

/** May a stop write a delete now? Evidence of before the stop is not enough: the bot may have died right before it. */
function isEarned({ evidence }: Court, { bot }: Truth, by: Incarnation): boolean {
  if (by.stoppingMs === null) return false;
  const heardInStop = evidence.of(by, bot).untilMs >= by.stoppingMs + TTL_MS - TOLERANCE_MS;
  return heardInStop || evidence.saidGoodbye(by, bot);
}

/**
 * A delete that neither an operator nor a goodbye asked for: only a stop with that policy may write it. What counts is
 * the moment of its writing: nobody can call back what is on its way when the bot fails.
 */
function judgeUnasked({ plan, blame }: Court, { market }: Truth, by: Incarnation, wasEarned: boolean): void {
  const isStop = by.stoppingMs !== null && plan.daemons[by.daemon]?.policy === 'delete';
  if (isStop && wasEarned) return;
  const what = isStop ? 'the timer of a dead bot' : 'a timer that nobody asked it to delete';
  blame('5 delete on purpose', `${market}: ${nameOf(by)} deleted ${what}`);
}

/** At the moment of its writing somebody must still ask for a delete; it may arrive later. */
function judgeLate(
  { evidence, intents, nowMs, blame }: Court,
  { market, bot }: Truth,
  by: Incarnation,
  untilMs: number,
): void {
  const isAsked = by.stoppingMs !== null || untilMs === Number.POSITIVE_INFINITY;
  // Bots that are looked at may be seen before their daemon hears of it.
  if (isAsked || evidence.of(by, bot).goodbyeUntilMs >= nowMs()) return;
  if (intents.of(by, market).movedSinceMs === null)
    blame('5 delete on purpose', `${market}: ${nameOf(by)} wrote a delete that nobody asks for now`);
}

function judgeWrite(
  { evidence, intents, nowMs, blame }: Court,
  { market, bot }: Truth,
  by: Incarnation,
  armedIt: boolean,
): void {
  const blameDelete = (what: string) =>
    blame('5 delete on purpose', `${market}: ${nameOf(by)} wrote a delete ${what}`);
  if (!armedIt) blameDelete('of what it never armed');
  if (intents.of(by, market).movedSinceMs !== null) blameDelete('of what another daemon renews');
  const alive = evidence.of(by, bot).untilMs >= nowMs() - TOLERANCE_MS;
  if (by.stoppingMs === null && !alive && !evidence.saidGoodbye(by, bot)) blameDelete('for a dead bot');
  const inFlight = by.view().marketNamed(market)?.inFlight() ?? [];
  if (inFlight.some(({ purpose }) => purpose !== 'delete'))
    blame('6 nothing after delete', `${market}: ${nameOf(by)} wrote a delete beside a renewal in flight`);
}

/** What a stop left must be named, with the latest moment at which it fires, and the reason. */
function judgeLeft(
  { truths, nowMs, blame }: Court,
  by: Incarnation,
  left: Extract<Notice, { kind: 'stopped' }>['left'],
  tried: ReadonlySet<string>,
): void {
  const name = nameOf(by);
  const blameEnd = (market: string, said: string) => blame('7 unconfirmed delete', `${market}: ${said}`);
  for (const { market, why } of left)
    if (why !== 'unconfirmed' && why !== 'may-have-fired' && tried.has(market))
      blameEnd(market, `${name} says that it left on purpose what it tried to delete`);
  const { wallMs } = by.clock.now();
  for (const { market, owner, firesMs, brokenUntilMs } of truths) {
    if (owner !== by || firesMs === null || nowMs() < brokenUntilMs) continue;
    const said = left.find((one) => one.market === market);
    if (said === undefined) blameEnd(market, `${name} ended without naming the timer that it left`);
    else if (firesMs - nowMs() > said.firesByWallMs - wallMs + TOLERANCE_MS)
      blameEnd(market, `fires later than ${name} said when it ended`);
  }
}
