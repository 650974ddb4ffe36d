import { planPeriods } from './cadence.ts';
import { createSoon } from './due.ts';
import { plannedPerSecond } from './rate.ts';
import type { CoreSettings, MarketSettings } from './settings.ts';
import type { BaseState, BotState, CoreState, MarketState } from './state.ts';
import { type Instant, startTimebase } from './time.ts';

/** The state before the first step: nothing armed, everything due. */
export function createState(settings: CoreSettings, now: Instant): CoreState {
  const capacityPerSecond = plannedPerSecond(settings, null);
  const markets = settings.markets.map((market, index) => createMarket(market, index, now));
  const timebase = startTimebase(now);
  const bots = new Map(
    settings.markets.map(({ bot }): [string, BotState] => [
      bot,
      createBot(settings, bot, now.monoMs, now.monoMs),
    ]),
  );
  const state: CoreState = {
    settings,
    timebase,
    startedMs: now.monoMs,
    markets,
    byName: new Map(markets.map((market) => [market.settings.market, market])),
    leftBehind: new Map(),
    bases: settings.bases.map((url, index) => createBase(url, index, now)),
    bots,
    attempts: [],
    stopAsked: null,
    phase: { kind: 'running' },
    now,
    lifeMs: now.monoMs,
    deafUntilMs: Number.NEGATIVE_INFINITY,
    deafSinceMs: Number.NEGATIVE_INFINITY,
    nextAttemptId: 1,
    epoch: 0,
    permits: 0,
    permitsUntilMs: 0,
    acquiring: false,
    askedAhead: false,
    limiterLate: false,
    lastReleaseMs: Number.NEGATIVE_INFINITY,
    wakeAtMs: now.monoMs,
    nextDueMs: now.monoMs,
    nextReplanMs: now.monoMs,
    nextPartingMs: Number.POSITIVE_INFINITY,
    backlog: false,
    queue: [],
    queueHead: 0,
    plannedMs: Number.NEGATIVE_INFINITY,
    plannedEpoch: 0,
    plannedRoundTripMs: 0,
    soon: createSoon(),
    unarmedHint: 0,
    guardedUntilAwakeMs: Number.NEGATIVE_INFINITY,
    pauseOverAwakeMs: Number.POSITIVE_INFINITY,
    pace: { credit: settings.budget.requests, atMs: now.monoMs, neededPerSecond: 0 },
    roundTripMs: null,
    roundTripDeviationMs: 0,
    capacityPerSecond,
    cadenceFactor: 1,
    lastThrottledMs: Number.NEGATIVE_INFINITY,
    unauthorisedAtMs: Number.NEGATIVE_INFINITY,
    keySinceMs: Number.NEGATIVE_INFINITY,
    authorisedOnce: false,
    ...nothingMeasured(),
    allArmedSaid: false,
    underWay: 0,
    settled: [],
    settledHead: 0,
  };
  planPeriods(state, capacityPerSecond);
  return state;
}

/** No answer has come yet. */
function nothingMeasured() {
  return {
    fastest: null,
    fastestMs: Number.POSITIVE_INFINITY,
    fastestBeforeMs: Number.POSITIVE_INFINITY,
    unauthorised: null,
    unauthorisedStreak: 0,
    keyRefusers: [],
  };
}

/** A bot that has not been heard of: it has its start-up grace from now on. */
export function createBot(settings: CoreSettings, bot: string, lifeMs: number, awakeMs: number): BotState {
  return {
    bot,
    state: settings.liveness.mode === 'none' ? 'alive' : 'starting',
    lastLifeMs: null,
    lastAwakeMs: awakeMs,
    tripped: false,
    graceUntilLifeMs: lifeMs + settings.liveness.startupGraceMs,
  };
}

/** A market that nothing is known about yet: due at once. Its cadence is planned with that of all others. */
export function createMarket(settings: MarketSettings, index: number, now: Instant): MarketState {
  return {
    settings,
    index,
    belief: {
      notBeforeLifeMs: null,
      notBeforeAwakeMs: null,
      notAfterMs: null,
      confirmedUntilMs: null,
      expiryWallMs: null,
      server: null,
      lastAppliedId: 0,
      lastAppliedLifeMs: 0,
      overlapping: [],
      unresolved: 0,
      lastUnresolvedId: 0,
      strayUntilMs: 0,
      strayLongestMs: 0,
      strayCutUntilMs: 0,
      strayCutMs: 0,
      strayDeleteUntilMs: 0,
      strayAwakeMs: 0,
      lastsAwakeMs: 0,
    },
    inFlight: [],
    periodMs: settings.timeoutMs,
    phaseMs: 0,
    waitedForTurn: false,
    nextMs: now.monoMs,
    soonRound: -1,
    soonPlace: 0,
    cycleSinceMs: null,
    suspended: null,
    hold: null,
    leaving: false,
    movedUntilAwakeMs: null,
    refused: null,
    refusedAlone: false,
    refusals: 0,
    refusedAtMs: Number.NEGATIVE_INFINITY,
    nonceRetries: 0,
    streak: 0,
    timedOut: false,
    canaryTries: 0,
    tripWanted: false,
    altered: null,
    armedWhenUnwanted: true,
    overdueSaid: false,
    lapseSaid: false,
    firedSaid: false,
    confirmedOnce: false,
    exit: null,
    deleted: false,
    heldUntilAwakeMs: Number.POSITIVE_INFINITY,
    mayHaveFired: false,
    lastConfirmedMs: Number.NEGATIVE_INFINITY,
    lastWrittenMs: Number.NEGATIVE_INFINITY,
    lastDurationMs: null,
    roundTrip: null,
    slackHistory: [],
    renewals: 0,
    failures: 0,
    lapses: 0,
    lastProblem: null,
  };
}

function createBase(url: string, index: number, now: Instant): BaseState {
  return {
    index,
    url,
    pingUp: null,
    pingMs: null,
    pingProblem: null,
    nextPingMs: now.monoMs,
    failures: 0,
    firstFailed: null,
    severalFailed: false,
    lastAnswerMs: now.monoMs,
    outage: null,
  };
}
