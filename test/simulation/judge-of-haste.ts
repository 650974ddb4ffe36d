import type { MarketView } from '../../src/core/view.ts';
import {
  hasRoom,
  isQuiet,
  longestPeriods,
  longestStretchMs,
  makesLate,
  PLENTY_REQUESTS,
  slowMs,
} from './conditions.ts';
import {
  type Court,
  type Incarnation,
  type Listener,
  MOST_IN_FLIGHT,
  nameOf,
  perKey,
  perMarket,
  type Sent,
  TOLERANCE_MS,
  type Truth,
} from './court.ts';
import { FAULTS, type Fault, type Plan, REQUEST_LIFETIME_MS, sharesKeys } from './plan.ts';
import { renewalsPerSecond } from './swarm.ts';

const RATE_WINDOW_MS = 10_000;
/** Four attempts a second, new nonces after each of them, and what a stall or a stop adds. */
const MOST_PER_SECOND = 30;
/** Nonces further than this from the exchange's clock are surely refused in a nonce window. */
const NONCE_WINDOW_MS = 6000;

/** Invariants 9 and 10: nonces rise, or are unique where a window is used, and nobody writes more than the budget. */
export function createPaceJudge({ plan, log, nowMs, serverNowMs, blame }: Court): Listener {
  const paceOf = perKey((_by: Incarnation) => ({
    /** True moments of what was written, and of what was awaited and arrived, within the last window. */
    writes: [] as number[],
    arrivals: [] as number[],
    // By API key: the exchange holds each key to nonces of its own.
    noncesOf: perKey((_key: unknown) => ({
      used: new Set<string>(),
      lastNonce: -1,
      lastNumber: -1,
    })),
  }));
  /** The writes of the last second. */
  const writesOf = perMarket((): number[] => []);
  const mostRequests = Math.max(
    plan.budgetRequests,
    ...plan.faults.filter(({ kind }) => kind === 'new-budget').map(({ sizeMs }) => sizeMs),
  );
  const inWindow = plan.nonce === 'window';
  // When the exchange's clock steps back, so does the window, over nonces that were used in it.
  const windowSteps = inWindow && plan.faults.some(({ kind }) => kind === 'server-clock-step');

  function judgeNonce(by: Incarnation, { number, request }: Sent, nonce: string): void {
    const known = paceOf(by).noncesOf(request.headers['x-txc-apikey']);
    const value = Number(nonce);
    // A nonce far from the exchange's clock was never accepted: it may be given out again when its time has come.
    if (windowSteps || (inWindow && Math.abs(value - serverNowMs()) > NONCE_WINDOW_MS)) return;
    if (known.used.has(nonce)) blame('9 nonces', `${nameOf(by)} used ${nonce} twice`);
    known.used.add(nonce);
    if (inWindow || number < known.lastNumber) return;
    if (value <= known.lastNonce) blame('9 nonces', `${nameOf(by)}: ${nonce} after ${known.lastNonce}`);
    known.lastNumber = number;
    known.lastNonce = value;
  }

  /** Takes a write down, and counts those of the last so many milliseconds. */
  function count(writes: number[], withinMs: number): number {
    writes.push(nowMs());
    while ((writes[0] ?? nowMs()) <= nowMs() - withinMs) writes.shift();
    return writes.length;
  }

  function judgeRate(by: Incarnation, counted: 'writes' | 'arrivals'): void {
    const requests = count(paceOf(by)[counted], RATE_WINDOW_MS);
    if (requests <= mostRequests) return;
    blame(
      '10 rate',
      `${nameOf(by)}: ${requests} ${counted} of requests within 10 s, allowed ${mostRequests}`,
    );
  }

  return {
    onWrite({ by, truth: { market }, sent, nonce }) {
      judgeNonce(by, sent, nonce);
      judgeRate(by, 'writes');
      // Retries get denser as the deadline comes near, and never turn into a storm.
      const storm = count(writesOf(by, market), 1000);
      if (storm <= MOST_PER_SECOND) return;
      blame('10 rate', `${market}: ${nameOf(by)} wrote ${storm} requests within a second`);
    },
    // The exchange counts what arrives. What was given up before it did may come at any time.
    onArrival(by, market, { number }) {
      if (log.of(by, market).onTheWay.some((one) => one.number === number)) judgeRate(by, 'arrivals');
    },
  };
}

/** Ticks, and the gaps that hurried renewals keep. */
const LEAST_MS = 1000;
/** What a fault that is over may still delay. */
const QUIET_MS = 5_000;
/** The longest that an unanswered request keeps others from leaving where they go one after the other. */
const PATIENCE_MS = 500;
/** The share of its slack that a market may lose to a bad address, or to neighbours where requests go one by one. */
const LOST_TO_OTHERS = 1 / 3;

/**
 * Invariants 10 and 12: a market is renewed once a period, whatever other markets' requests and pings are up to. Where
 * requests go one after the other, each that hangs may keep it waiting once.
 */
export function createIsolationJudge({ plan, evidence, intents, log, nowMs, blame }: Court): Listener {
  const oneByOne = plan.nonce === 'increasing';
  const eachMs = 1.5 * plan.roundTripMs + slowMs(plan, null);
  // A daemon whose clock is off learns the exchange's time from its first answer, and asks again.
  const learns = !oneByOne && plan.daemons.some(({ wallOffsetMs }) => wallOffsetMs !== 0);
  const leastMs = LEAST_MS + (oneByOne ? plan.markets.length : learns ? 2 : 1) * eachMs;
  const patienceMs = oneByOne ? Math.min(PATIENCE_MS, 4 * plan.roundTripMs + 150) : 0;
  const promised = hasRoom(plan);
  const periodOf = longestPeriods(plan);

  /** How long the market may wait for its neighbours. */
  function neighboursMs({ market, timeoutMs }: Truth, ownMs: number, fromMs: number): number {
    const sick = sickMarkets(plan, fromMs, nowMs());
    // What is slow itself counts as failed in an outage of several, and leaves it to one probe at a time.
    const isGated = oneByOne || (sick > 1 && slowMs(plan, market) > 0);
    const lost = isGated || plan.faults.some(({ kind }) => FAULTS[kind] === 'base');
    if (lost && sick > 0) return LOST_TO_OTHERS * (timeoutMs - 1000 - ownMs);
    return MOST_IN_FLIGHT * sick * patienceMs;
  }
  /**
   * Until when three requests of the market were on their way, which is the most: the next one leaves when one of them was
   * settled, or when the oldest should have been answered, as the plan says.
   */
  function fullUntilMs(by: Incarnation, market: string): number {
    const { onTheWay, full } = log.of(by, market);
    const leftMs = onTheWay.at(-MOST_IN_FLIGHT)?.leftMs;
    const { untilMs, oldestMs } = leftMs === undefined ? full : { untilMs: nowMs(), oldestMs: leftMs };
    return Math.min(untilMs, oldestMs + 1.5 * plan.roundTripMs + slowMs(plan, market));
  }
  /** Nothing was asked of the daemon since then but to guard the market, and its bot lived. */
  function wasGuarded(by: Incarnation, { market, bot, changedMs }: Truth, fromMs: number): boolean {
    const { intent, guardedSinceMs, movedSinceMs } = intents.of(by, market);
    const isGuarded = intent === 'guard' && movedSinceMs === null && by.stoppingMs === null;
    const sinceMs = Math.max(changedMs, guardedSinceMs, evidence.of(by, bot).sinceMs);
    return isGuarded && sinceMs < fromMs && evidence.isSteady(by, bot);
  }

  return {
    onWrite({ by, truth, timeoutSeconds, purpose }) {
      const { renewedMs: fromMs } = log.of(by, truth.market);
      if (timeoutSeconds === null || purpose === 'trip' || !promised || fromMs === Number.NEGATIVE_INFINITY)
        return;
      const ownMs = periodOf(truth);
      const lateMs = nowMs() - Math.max(fromMs + ownMs, fullUntilMs(by, truth.market));
      if (lateMs <= leastMs || lateMs <= leastMs + neighboursMs(truth, ownMs, fromMs)) return;
      if (!wasGuarded(by, truth, fromMs) || !isQuiet(plan, truth.market, fromMs - QUIET_MS, nowMs())) return;
      const late = `${lateMs.toFixed(0)} ms after it was due`;
      blame('12 isolation', `${truth.market}: ${nameOf(by)} renewed it ${late}`);
    },
  };
}

/** How many markets, or addresses, have requests that faults strike, or did between the two moments. */
function sickMarkets({ faults }: Plan, fromMs: number, toMs: number): number {
  const sick = new Set<number>();
  for (const { kind, target, atMs, forMs } of faults)
    if (/requests|base/.test(FAULTS[kind]) && atMs <= toMs && atMs + forMs >= fromMs) sick.add(target);
  return sick.size;
}

/** A daemon that was lied to finds out with its next renewal, and this much later at the most. */
const FINDS_OUT_MS = 15_000;
/** What has lapsed lets what has more than half of its time go first for this long. */
const LAPSED_WAITS_MS = 5000;
/** A market is behind once it is this much later than its cadence, or than a quarter of what is left. */
const BEHIND_MS = 500;

/**
 * Invariant 11: what can be saved goes in the order of the deadlines, then what has lapsed; and at the end of a run, long
 * after the last fault, everything is armed, and those who arm it know.
 */
export function createProgressJudge(court: Court): Listener {
  const { plan, truths, truthOf, evidence, intents, running, log, nowMs, blame } = court;
  // Two daemons with one key and rising nonces overtake each other for as long as both run: every other request is
  // refused, and half of what serial requests carry may not be enough for all markets.
  const starves = plan.nonce === 'increasing' && sharesKeys(plan);
  const promised = hasRoom(plan);
  const periodOf = longestPeriods(plan);
  const travelMs = 4 * (plan.roundTripMs + slowMs(plan, null)) + 200;
  const ofHosts = plan.faults.filter(({ kind }) => FAULTS[kind] === 'daemon');

  /** Waits for a renewal that should have left a while ago, and could still be saved by it. */
  function isBehind(by: Incarnation, seen: MarketView): boolean {
    const truth = truthOf(seen.market);
    const { sureMs, wanted, refused, inFlight } = seen;
    if (truth === undefined || sureMs === null || sureMs <= travelMs) return false;
    if (!wanted || refused || inFlight().length > 0 || truth.changedMs > by.startedMs) return false;
    const { triedMs } = log.of(by, seen.market);
    const wantedMs = Math.max(evidence.of(by, truth.bot).sinceMs, intents.of(by, seen.market).guardedSinceMs);
    const sinceMs = nowMs() - Math.max(triedMs, triedMs > 0 ? wantedMs : triedMs);
    // Requests of a market whose answers came late are spread, over a third of its timeout at most.
    const spreadMs = plan.faults.some(makesLate) ? truth.timeoutMs / 3 : 0;
    const dueMs = Math.max(periodOf(truth), spreadMs, (sureMs + sinceMs) / 4);
    return sinceMs !== Number.POSITIVE_INFINITY && sinceMs > dueMs + BEHIND_MS;
  }

  /**
   * In a nonce window a delete without an answer may land behind every renewal that leaves within its lifetime: the one
   * after that is the first that counts. With a tight budget that one leaves at the cadence, at a third of the timeout at
   * the latest. A host that sleeps neither renews nor lets the lifetime pass: its own clock counts.
   */
  function mayBeDeleted(by: Incarnation, { market, longestMs }: Truth): boolean {
    if (plan.nonce !== 'window' || plan.budgetRequests >= PLENTY_REQUESTS) return false;
    const sinceMs = by.clock.now().monoMs - REQUEST_LIFETIME_MS - longestMs / 3 - FINDS_OUT_MS;
    return log.of(by, market).deletes.some((leftMs) => leftMs >= sinceMs);
  }

  /** When each last let one that was not surely armed go before others. */
  const turnOf = perKey((_by: Incarnation) => ({ atMs: Number.NEGATIVE_INFINITY }));

  const timeoutOf = ({ market }: MarketView) => truthOf(market)?.timeoutMs ?? 0;

  /** How long its timer may still be saved. One that only a stray request makes doubtful most likely stands. */
  function leftToSaveMs(by: Incarnation, seen: MarketView): number {
    const { deletes, confirmedMs } = log.of(by, seen.market);
    // The exchange counts whole seconds: one is lost to rounding, as in what is surely left.
    const heldMs = confirmedMs + timeoutOf(seen) - 1000 - nowMs();
    const isDoubted = deletes.length > 0 || confirmedMs < by.startedMs + REQUEST_LIFETIME_MS;
    return seen.sureMs ?? (isDoubted && heldMs > 0 ? heldMs : Number.POSITIVE_INFINITY);
  }

  /** Which share of its timeout is left: what has more than half of it goes in this order, and not by its deadline. */
  const shareOf = (by: Incarnation, seen: MarketView) => leftToSaveMs(by, seen) / timeoutOf(seen);
  const hasLostHalf = (seen: MarketView) => 2 * (seen.sureMs ?? 0) <= timeoutOf(seen);

  return {
    onWrite({ by, truth: { market: name }, sent, timeoutSeconds, purpose, decision }) {
      if (!promised || timeoutSeconds === null || purpose === 'trip') return;
      // What waited for its connection was in order when it was decided on.
      if (decision !== null && decision.atMs !== nowMs()) return;
      // One that takes a connection of its own waits for nobody, and canaries and probes of the key go in turns.
      if (sent.fresh || log.isDisturbed(by)) return;
      const view = by.view();
      const own = view.marketNamed(name);
      const { confirmedMs, renewedMs } = log.of(by, name);
      if (own?.wanted !== true || confirmedMs === Number.NEGATIVE_INFINITY) return;
      const ownMs = leftToSaveMs(by, own);
      const isLate = nowMs() - renewedMs > LAPSED_WAITS_MS;
      const hasWaited = isLate && ownMs === Number.POSITIVE_INFINITY;
      const first = view
        .markets()
        .find(
          (other) =>
            (other.sureMs ?? Number.POSITIVE_INFINITY) < ownMs - TOLERANCE_MS &&
            (hasLostHalf(other) || (!hasWaited && shareOf(by, other) < shareOf(by, own))) &&
            isBehind(by, other),
        );
      if (first === undefined || longestStretchMs(ofHosts, nowMs() - QUIET_MS, nowMs()) > 0) return;
      // One that is not surely armed has a turn each few seconds: others that use up the wire must not leave it so.
      const turn = turnOf(by);
      if (isLate && own.sureMs === null && nowMs() - turn.atMs > LAPSED_WAITS_MS) {
        turn.atMs = nowMs();
        return;
      }
      blame('11 progress', `${name}: ${nameOf(by)} renewed it before ${first.market}, which ends sooner`);
    },
    onEnd() {
      for (const truth of truths) {
        const armed = truth.firesMs !== null && truth.firesMs > nowMs();
        const foundOutMs = truth.brokenAtMs + truth.longestMs / 3 + FINDS_OUT_MS;
        if (!armed && nowMs() > foundOutMs && !starves)
          blame('11 progress', `${truth.market}: not armed at the exchange long after the last fault`);
        for (const by of running.values()) {
          const seen = by.view().marketNamed(truth.market);
          if (starves || seen === undefined || seen.sureMs !== null) continue;
          // In a nonce window the renewal after the lifetime of old requests is the first that counts.
          const countsMs = by.startedMs + REQUEST_LIFETIME_MS + truth.longestMs / 3 + FINDS_OUT_MS;
          if ((plan.nonce === 'window' && nowMs() <= countsMs) || mayBeDeleted(by, truth)) continue;
          const said = 'does not believe it armed long after the last fault';
          blame('11 progress', `${truth.market}: ${nameOf(by)} ${said}`);
        }
      }
      if (running.size === 0) blame('11 progress', 'no daemon runs at the end');
    },
  };
}

/** Hurried renewals keep 250 ms from the one before; and a tick. */
const HURRIES_MS = 1000;
/** Who fails for so long while others are renewed is sick by itself. */
const SICK_MS = 500;

/** Invariant 11: after the first success following an outage, everything that missed a renewal meanwhile is renewed. */
export function createRecoveryJudge({ plan, truthOf, log, nowMs, blame }: Court): Listener {
  const eachMs = plan.roundTripMs + slowMs(plan, null);
  const serialMs = plan.nonce === 'increasing' ? plan.markets.length * eachMs * 1.5 : 0;
  const withinMs = HURRIES_MS + eachMs + serialMs;
  // With several addresses one may come back while another is still out.
  const promised = hasRoom(plan) && plan.bases === 1;
  const periodOf = longestPeriods(plan);
  /** When an outage of a daemon ended, and what had missed a renewal by then. */
  const open = new Map<Incarnation, { readonly endedMs: number; readonly missing: readonly MarketView[] }>();

  const confirmed = (by: Incarnation, { market }: MarketView) => log.of(by, market).confirmedMs;

  function isMissing(by: Incarnation, seen: MarketView, sinceMs: number, wellMs: number): boolean {
    const confirmedMs = confirmed(by, seen);
    const truth = truthOf(seen.market);
    if (!seen.wanted || seen.refused || seen.inFlight().length >= MOST_IN_FLIGHT || !truth) return false;
    if (confirmedMs <= by.startedMs || confirmedMs >= sinceMs) return false;
    if (nowMs() - confirmedMs <= periodOf(truth)) return false;
    // What failed while others were confirmed is sick by itself, and keeps to its own retries. What was not tried since was due by then.
    const { missedMs } = log.of(by, seen.market);
    return Math.min(missedMs, confirmedMs + periodOf(truth) / 2) >= wellMs - SICK_MS;
  }

  return {
    onNotice(by, notice) {
      if (!promised || notice.kind !== 'outage-ended') return;
      const sinceMs = nowMs() - notice.lastedMs;
      const markets = by.view().markets();
      const before = markets.map((seen) => confirmed(by, seen)).filter((atMs) => atMs < sinceMs);
      const wellMs = Math.max(...before);
      const missing = markets.filter((seen) => isMissing(by, seen, sinceMs, wellMs));
      open.set(by, { endedMs: nowMs(), missing });
    },
    onTurn(by) {
      const { endedMs = Number.POSITIVE_INFINITY, missing = [] } = open.get(by) ?? {};
      if (nowMs() < endedMs + withinMs) return;
      open.delete(by);
      const view = by.view();
      if (view.phase !== 'running' || longestStretchMs(plan.faults, endedMs, nowMs()) > 0) return;
      for (const { market } of missing) {
        const { triedMs, confirmedMs } = log.of(by, market);
        // What left beside the request that ended the outage has an answer of its own.
        if (triedMs >= endedMs - 2 * eachMs || confirmedMs >= endedMs) continue;
        const seen = view.marketNamed(market);
        if (seen === undefined || !seen.wanted || seen.refused) continue;
        const within = `${withinMs.toFixed(0)} ms`;
        blame('11 progress', `${market}: ${nameOf(by)} did not renew it within ${within} of an outage`);
      }
    },
  };
}

/** What is new lets what is armed go first for 5 s, and its first request may be overtaken. */
const ARMS_MS = 6000;
/** So soon a stop finds out that an outage is over: it probes twice a second, and deletes after the answer. */
const DELETES_MS = 1500;

/**
 * Invariant 11: where nothing goes wrong, all is armed soon after a start; and a stop deletes soon what was given up with
 * a goodbye, also where the exchange has been away until then.
 */
export function createEndsJudge({ plan, truths, evidence, intents, nowMs, blame }: Court): Listener {
  const oneByOne = plan.nonce === 'increasing';
  const serialMs = 1.5 * plan.roundTripMs * (oneByOne ? plan.markets.length : 1);
  const fits = !oneByOne || renewalsPerSecond(plan.markets) * plan.roundTripMs <= 700;
  const promised = plan.daemons.length === 1 && plan.budgetRequests >= PLENTY_REQUESTS && fits;
  const started = new Set<Incarnation>();

  function judgeStart(by: Incarnation): void {
    const forMs = nowMs() - by.startedMs;
    if (started.has(by) || forMs < ARMS_MS + serialMs) return;
    started.add(by);
    const unarmed = truths.find(({ firesMs }) => firesMs === null);
    // A market comes back from another daemon up to `sizeMs` after its fault has ended.
    const endMs = ({ kind, atMs, forMs, sizeMs }: Fault) =>
      atMs + forMs + (kind === 'reload-moves' ? sizeMs : 0);
    const strikes = (one: Fault) => one.atMs <= nowMs() && endMs(one) >= by.startedMs - QUIET_MS;
    if (unarmed === undefined || plan.faults.some(strikes)) return;
    blame('11 progress', `${unarmed.market}: ${nameOf(by)} did not arm it within ${forMs.toFixed(0)} ms`);
  }
  /** In a nonce window, and after a change of the key, a delete waits for what may land behind it. */
  function judgeStop(by: Incarnation, stoppingMs: number): void {
    const sinceMs = nowMs() - DELETES_MS - serialMs;
    if (!oneByOne || plan.daemons[by.daemon]?.policy !== 'delete' || stoppingMs > sinceMs) return;
    const left = truths.find(({ market, bot, owner, firesMs }) => {
      const isAsked = evidence.saidGoodbye(by, bot) && evidence.of(by, bot).heardMs <= sinceMs;
      const { intent, movedSinceMs } = intents.of(by, market);
      // Another daemon renews what was moved: nothing of it may be deleted here.
      const isOwn = owner === by && intent === 'guard' && movedSinceMs === null;
      return isAsked && isOwn && firesMs !== null;
    });
    const others = plan.faults.filter(({ kind }) => kind !== 'terminate' && kind !== 'restart');
    const isRekeyed = others.some(({ kind, atMs }) => kind === 'new-key' && atMs <= nowMs());
    if (left === undefined || isRekeyed || longestStretchMs(others, sinceMs, nowMs()) > 0) return;
    blame('11 progress', `${left.market}: ${nameOf(by)} has not deleted it ${DELETES_MS} ms later`);
  }

  return {
    onTurn(by) {
      if (!promised) return;
      if (by.stoppingMs === null) judgeStart(by);
      else judgeStop(by, by.stoppingMs);
    },
  };
}
