import { believeEarlierLife } from './belief.ts';
import type { CoreSettings, MarketSettings } from './events.ts';
import { bucketOf, carriedPerSecond } from './promise.ts';
import {
  type BaseState,
  type BotState,
  type CoreState,
  type MarketState,
  planPeriods,
  setMarkets,
} from './state.ts';
import { type Instant, startTimebase } from './time.ts';

/** The state before the first step: nothing armed, everything due. */
export function createState(settings: CoreSettings, now: Instant): CoreState {
  const state: CoreState = {
    settings,
    timebase: startTimebase(now),
    startedMs: now.monoMs,
    markets: [],
    byName: new Map(),
    leftBehind: new Map(),
    bases: settings.bases.map((url, index) => createBase(url, index, now)),
    bots: new Map(),
    key: {
      changes: 0,
      refused: null,
      refusals: 0,
      refusedAtMs: Number.NEGATIVE_INFINITY,
      nextProbeMs: now.monoMs,
      accepted: false,
      sinceMs: Number.NEGATIVE_INFINITY,
    },
    attempts: [],
    phase: { kind: 'running' },
    now,
    lifeMs: now.monoMs,
    lastStepMs: now.monoMs,
    deafUntilMs: Number.NEGATIVE_INFINITY,
    deafSinceMs: Number.NEGATIVE_INFINITY,
    nextAttemptId: 1,
    nextOrder: 1,
    epoch: 0,
    wakeAtMs: now.monoMs,
    nextDueMs: now.monoMs,
    queue: [],
    orderedMs: Number.NEGATIVE_INFINITY,
    turnMs: Number.NEGATIVE_INFINITY,
    bucket: bucketOf(settings, 0),
    spent: 0,
    spentAtMs: now.monoMs,
    answerMs: null,
    capacityPerSecond: 0,
    cadenceFactor: 1,
    lastThrottledMs: Number.NEGATIVE_INFINITY,
    nextReplanMs: now.monoMs,
    allArmedSaid: false,
  };
  for (const { bot } of settings.markets)
    if (!state.bots.has(bot)) state.bots.set(bot, createBot(state, bot));
  setMarkets(
    state,
    settings.markets.map((market) => createMarket(state, market)),
  );
  planPeriods(state, carriedPerSecond(settings, null));
  return state;
}

/** A bot that has not been heard of: it has its start-up grace from now on. */
export function createBot({ settings, lifeMs, now, timebase }: CoreState, bot: string): BotState {
  return {
    bot,
    state: settings.liveness.mode === 'none' ? 'alive' : 'starting',
    lastLifeMs: null,
    lastAwakeMs: now.monoMs + timebase.sleptMs,
    sinceLifeMs: lifeMs,
  };
}

/** A market that nothing is known about yet: due at once. */
export function createMarket(state: CoreState, settings: MarketSettings): MarketState {
  const { monoMs } = state.now;
  const market: MarketState = {
    settings,
    belief: { writes: [], server: null, told: [], notBefore: null, notAfterMs: null },
    hold: null,
    leaving: null,
    goal: 'guard',
    reached: false,
    firesOnPurpose: true,
    periodMs: settings.timeoutMs,
    phaseMs: 0,
    nextMs: monoMs,
    askedMs: monoMs,
    lastWrittenMs: Number.NEGATIVE_INFINITY,
    triedDelete: false,
    cycleSinceMs: null,
    answerMs: null,
    streak: 0,
    staleNonces: 0,
    timedOut: false,
    refused: null,
    refusals: 0,
    refusedAtMs: Number.NEGATIVE_INFINITY,
    overdueSaid: false,
    firedMs: Number.NEGATIVE_INFINITY,
    altered: null,
    lastProblem: null,
    heldUntilAwakeMs: Number.POSITIVE_INFINITY,
    mayHaveFired: false,
    stats: {
      renewals: 0,
      failures: 0,
      lapses: 0,
      lastConfirmedMs: Number.NEGATIVE_INFINITY,
      lastDurationMs: null,
      slackHistory: [],
    },
  };
  believeEarlierLife(state, market);
  return market;
}

function createBase(url: string, index: number, now: Instant): BaseState {
  return {
    index,
    url,
    ping: null,
    nextPingMs: now.monoMs,
    failures: 0,
    lastAnswerMs: now.monoMs,
    provenMs: Number.NEGATIVE_INFINITY,
    outage: null,
  };
}
