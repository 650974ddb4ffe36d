import {
  type BotSnapshot,
  describeNothingGuarded,
  describeNotReady,
  type MarketSnapshot,
  type Snapshot,
} from '../../src/core/view.ts';

/** A market that is armed and well, with what a test wants to be different. */
export function sampleMarket(changes: Partial<MarketSnapshot> = {}): MarketSnapshot {
  return {
    market: 'BTC_USDT',
    types: null,
    bot: 'main',
    state: 'armed',
    timer: 'confirmed',
    wanted: true,
    hold: null,
    leaving: false,
    timeoutMs: 60_000,
    grantedMs: 60_000,
    periodMs: 6000,
    survivesMs: 52_550,
    guaranteedMs: 54_321,
    sureMs: 54_321,
    firesInMs: 57_321,
    expiryWallMs: 1_795_000_060_000,
    firesByWallMs: 1_795_000_063_000,
    cancellationTime: 1_795_000_060,
    lastDurationMs: 50,
    lastSlackRatio: 0.87,
    slackHistory: [0.9, 0.85, 0.87],
    renewals: 42,
    failures: 1,
    failureStreak: 0,
    lapses: 0,
    refused: false,
    inFlight: () => [],
    lastProblem: null,
    retryWallMs: null,
    onStop: 'deletes the timer: the orders stay',
    promise: ['An outage of the exchange shorter than 52 s cancels nothing.'],
    ...changes,
  };
}

/** A bot that is alive, with what a test wants to be different. */
export const sampleBot = (changes: Partial<BotSnapshot> = {}): BotSnapshot => {
  return {
    bot: 'main',
    mode: 'beat',
    state: 'alive',
    evidenceAgeMs: 1200,
    ttlMs: 15_000,
    graceEndsWallMs: null,
    ...changes,
  };
};

/** A daemon that is ready, with what a test wants to be different. */
export function sampleSnapshot(changes: Partial<Snapshot> = {}): Snapshot {
  const snapshot: Snapshot = {
    phase: 'running',
    stopEndsWallMs: null,
    ready: true,
    notReady: [],
    nothingGuarded: null,
    live: true,
    authorised: true,
    shutdownPolicy: 'delete',
    markets: [sampleMarket()],
    bases: [
      { url: 'http://127.0.0.1:1', up: true, pingMs: 12, lastProblem: null, used: true, outage: false },
    ],
    bots: [sampleBot()],
    capacityPerSecond: 100,
    cadenceFactor: 1,
    ...changes,
  };
  const nothingGuarded = describeNothingGuarded(snapshot);
  const notReady = changes.notReady ?? describeNotReady({ ...snapshot, nothingGuarded });
  return { ...snapshot, nothingGuarded, notReady, ready: changes.ready ?? notReady.length === 0 };
}
