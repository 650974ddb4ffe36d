import type { LeftArmed, Notice, Suspension } from './notice.ts';
import type { FailureReason, OrderType, Outcome } from './outcome.ts';
import { plannedPerSecond } from './rate.ts';
import type { CoreSettings, MarketSettings } from './settings.ts';
import { type Instant, startTimebase, type Timebase } from './time.ts';
import { planCadence, SHORTEST_GAP_MS } from './timing.ts';

export type Purpose = 'renew' | 'trip' | 'delete';

/** What happened outside, as the core is told it. */
export type CoreEvent =
  | { readonly kind: 'tick' }
  | { readonly kind: 'granted'; readonly permits: number; readonly how: 'in-turn' | 'overdue' }
  | { readonly kind: 'settled'; readonly attempt: number; readonly outcome: Outcome }
  | {
      readonly kind: 'pinged';
      readonly base: number;
      readonly ok: boolean;
      readonly latencyMs: number;
      readonly reason: FailureReason | null;
      readonly detail: string;
    }
  | { readonly kind: 'evidence'; readonly bot: string; readonly says: 'beat' | 'goodbye' | 'fail' }
  /** The secret files were read again and hold something new. */
  | { readonly kind: 'credentials-changed' }
  | { readonly kind: 'stop'; readonly policy: 'delete' | 'keep' | 'handoff'; readonly why: string };

/** What the keeper carries out, in this order. */
export type Effect =
  | { readonly kind: 'acquire'; readonly permits: number; readonly withinMs: number }
  | {
      readonly kind: 'write';
      readonly attempt: number;
      readonly market: string;
      readonly timeoutSeconds: number | null;
      readonly types: readonly OrderType[] | null;
      readonly base: number;
      readonly fresh: boolean;
    }
  | { readonly kind: 'abort'; readonly attempt: number }
  | { readonly kind: 'ping'; readonly base: number; readonly timeoutMs: number }
  | { readonly kind: 'notice'; readonly notice: Notice }
  | { readonly kind: 'finished'; readonly left: readonly LeftArmed[] };

/** One request on its way. Attempt numbers rise in the order of writing, as the nonces do. */
export interface Attempt {
  readonly id: number;
  readonly market: MarketState;
  readonly purpose: Purpose;
  readonly base: number;
  readonly writtenMs: number;
  readonly writtenLifeMs: number;
  readonly writtenWallMs: number;
  readonly dueMs: number;
  deadlineMs: number;
  readonly timeoutMs: number;
  /** Stalls seen before it was written: a request from before a stall may not leave after it. */
  readonly epoch: number;
  /** Goes over a connection of its own and holds no lane: its market, or its base, is known to hang. */
  readonly detached: boolean;
  aborted: boolean;
}

/** What is believed about a market's timer at the exchange. The truth lies between the two ends. */
export interface Belief {
  /** Life time until which the timer is guaranteed to be armed; null where none was ever confirmed. */
  notBeforeLifeMs: number | null;
  /** Monotonic time by which a timer has surely fired; null where surely none exists. */
  notAfterMs: number | null;
  /** Unix milliseconds: time of writing of the last confirmed renewal + timeout; for people. */
  expiryWallMs: number | null;
  /** Of the newest confirmed renewal, Unix seconds of the exchange's clock. */
  server: { readonly startTime: number; readonly cancellationTime: number } | null;
  /** Newest confirmed attempt: older ones that answer later change nothing. */
  lastAppliedId: number;
  /** Renewals since the last confirmation that the exchange may have carried out unheard. */
  unresolved: number;
  lastUnresolvedId: number;
  /** Monotonic time until which an unresolved renewal may still be carried out; 0 where none can. */
  strayUntilMs: number;
  /** Monotonic time until which an unresolved trip may still cut the timer to its shortest; 0 where none can. */
  strayTripUntilMs: number;
  /** Life time until which the timer of an unresolved renewal would last if it was carried out when written. */
  strayLifeMs: number;
}

export interface MarketState {
  readonly settings: MarketSettings;
  readonly index: number;
  readonly belief: Belief;
  readonly inFlight: Attempt[];
  periodMs: number;
  /** Offset of this market's renewals on the grid of its period, so that renewals stay spread after any burst. */
  phaseMs: number;
  /** Monotonic time of the next attempt. */
  nextMs: number;
  /** When the renewal that is being worked on first became due; for the length of its cycle. */
  cycleSinceMs: number | null;
  suspended: Suspension | null;
  /** After a lapse under `onLapse: hold`. */
  held: boolean;
  refused: { readonly code: number; readonly detail: string } | null;
  /** Refusals in a row since the last success. */
  refusals: number;
  nonceRetries: number;
  streak: number;
  timedOut: boolean;
  canaryTries: number;
  /** The bot is dead and the timer is to be cut to its shortest, `onStale: trip`. */
  tripWanted: boolean;
  /** How the exchange's last answer differed from what was asked for. */
  altered: string | null;
  overdueSaid: boolean;
  /** The gap that is open now was already reported as a lapse. */
  lapseSaid: boolean;
  confirmedOnce: boolean;
  /** What the stop does with this market's timer, and whether that is done; null while running. */
  exit: { readonly want: 'delete' | 'keep' | 'handoff'; done: boolean } | null;
  deleted: boolean;
  lastConfirmedMs: number;
  lastWrittenMs: number;
  lastDurationMs: number | null;
  slackHistory: number[];
  renewals: number;
  failures: number;
  lapses: number;
  lastProblem: string | null;
}

export interface BaseState {
  readonly index: number;
  readonly url: string;
  pingUp: boolean | null;
  pingMs: number | null;
  pingProblem: string | null;
  nextPingMs: number;
  /** Failures since the last answer of the API. */
  failures: number;
  firstFailed: MarketState | null;
  severalFailed: boolean;
  lastAnswerMs: number;
  outage: {
    readonly sinceMs: number;
    attempts: number;
    nextCanaryMs: number;
    lastCanary: MarketState | null;
  } | null;
}

export interface BotState {
  readonly bot: string;
  state: 'starting' | 'alive' | 'stale' | 'goodbye' | 'failed';
  /** Life time of the newest evidence; null before the first. */
  lastLifeMs: number | null;
  /** The same on the clock that steps of the wall clock do not move. */
  lastAwakeMs: number;
  /** Its timers were cut short, or will not be. */
  tripped: boolean;
  readonly graceUntilLifeMs: number;
}

export type Phase =
  | { readonly kind: 'running' }
  | {
      readonly kind: 'stopping';
      readonly policy: 'delete' | 'keep' | 'handoff';
      readonly startedMs: number;
      /** Comes nearer by the time that the host slept. */
      budgetEndMs: number;
    }
  | { readonly kind: 'stopped' };

/** Everything the core remembers. `step` changes it in place: at ten thousand markets copies cost more than renewals. */
export interface CoreState {
  readonly settings: CoreSettings;
  readonly timebase: Timebase;
  readonly startedMs: number;
  readonly markets: readonly MarketState[];
  readonly byName: ReadonlyMap<string, MarketState>;
  readonly bases: readonly BaseState[];
  readonly bots: ReadonlyMap<string, BotState>;
  readonly attempts: Map<number, Attempt>;
  phase: Phase;
  now: Instant;
  lifeMs: number;
  nextAttemptId: number;
  epoch: number;
  /** Permits in hand, and until when they may be spent. */
  permits: number;
  permitsUntilMs: number;
  acquiring: boolean;
  lastReleaseMs: number;
  /** The monotonic time at which the next tick was asked for. */
  wakeAtMs: number;
  /** Earliest moment at which a market, a canary or a probe wants an attempt. */
  nextDueMs: number;
  nextReplanMs: number;
  /** Something was due and had to wait for a lane, a permit or the rate: any settled attempt plans again. */
  backlog: boolean;
  /** Smoothed round trip and its mean deviation. */
  roundTripMs: number | null;
  roundTripDeviationMs: number;
  capacityPerSecond: number;
  /** 1, or more after throttling: periods are this many times longer. */
  cadenceFactor: number;
  lastThrottledMs: number;
  unauthorised: { readonly status: number; readonly detail: string; nextProbeMs: number } | null;
  unauthorisedStreak: number;
  /** A key that was good once gets a second look before everything is latched. */
  authorisedOnce: boolean;
  allArmedSaid: boolean;
  /** Write moments of the sliding window, oldest first. */
  readonly written: number[];
  writtenHead: number;
}

export function createState(settings: CoreSettings, now: Instant): CoreState {
  const capacityPerSecond = plannedPerSecond(settings);
  const plan = planCadence(settings.markets, capacityPerSecond);
  const markets = settings.markets.map((market, index) =>
    createMarket(market, index, settings.markets.length, plan.periodsMs[index] ?? market.timeoutMs / 3, now),
  );
  const timebase = startTimebase(now);
  const watched = settings.liveness.mode !== 'none';
  const bots = new Map(
    settings.markets.map(({ bot }): [string, BotState] => [
      bot,
      {
        bot,
        state: watched ? 'starting' : 'alive',
        lastLifeMs: null,
        lastAwakeMs: now.monoMs,
        tripped: false,
        graceUntilLifeMs: now.monoMs + settings.liveness.startupGraceMs,
      },
    ]),
  );
  return {
    settings,
    timebase,
    startedMs: now.monoMs,
    markets,
    byName: new Map(markets.map((market) => [market.settings.market, market])),
    bases: settings.bases.map((url, index) => createBase(url, index, now)),
    bots,
    attempts: new Map(),
    phase: { kind: 'running' },
    now,
    lifeMs: now.monoMs,
    nextAttemptId: 1,
    epoch: 0,
    permits: 0,
    permitsUntilMs: 0,
    acquiring: false,
    lastReleaseMs: Number.NEGATIVE_INFINITY,
    wakeAtMs: now.monoMs,
    nextDueMs: now.monoMs,
    nextReplanMs: now.monoMs,
    backlog: false,
    roundTripMs: null,
    roundTripDeviationMs: 0,
    capacityPerSecond,
    cadenceFactor: 1,
    lastThrottledMs: Number.NEGATIVE_INFINITY,
    unauthorised: null,
    unauthorisedStreak: 0,
    authorisedOnce: false,
    allArmedSaid: false,
    written: [],
    writtenHead: 0,
  };
}

function createMarket(
  settings: MarketSettings,
  index: number,
  count: number,
  periodMs: number,
  now: Instant,
): MarketState {
  return {
    settings,
    index,
    belief: {
      notBeforeLifeMs: null,
      notAfterMs: null,
      expiryWallMs: null,
      server: null,
      lastAppliedId: 0,
      unresolved: 0,
      lastUnresolvedId: 0,
      strayUntilMs: 0,
      strayTripUntilMs: 0,
      strayLifeMs: 0,
    },
    inFlight: [],
    periodMs,
    phaseMs: (periodMs * index) / Math.max(1, count),
    nextMs: now.monoMs,
    cycleSinceMs: null,
    suspended: null,
    held: false,
    refused: null,
    refusals: 0,
    nonceRetries: 0,
    streak: 0,
    timedOut: false,
    canaryTries: 0,
    tripWanted: false,
    altered: null,
    overdueSaid: false,
    lapseSaid: false,
    confirmedOnce: false,
    exit: null,
    deleted: false,
    lastConfirmedMs: Number.NEGATIVE_INFINITY,
    lastWrittenMs: Number.NEGATIVE_INFINITY,
    lastDurationMs: null,
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

/** Time that the market's timer is still guaranteed to be armed; 0 or less where nothing is left to save. */
export function slackMs(state: CoreState, market: MarketState): number {
  const { notBeforeLifeMs } = market.belief;
  return notBeforeLifeMs === null ? 0 : notBeforeLifeMs - state.lifeMs;
}

/** Brings the market's next attempt forward to now, but not closer than the shortest gap to the last one. */
export function hurry(state: CoreState, market: MarketState): void {
  const soonestMs = Math.max(state.now.monoMs, market.lastWrittenMs + SHORTEST_GAP_MS);
  market.nextMs = Math.min(market.nextMs, soonestMs);
}

/** Should the market be armed now: the bot lives, nobody stopped it, and the daemon is not on its way out. */
export function isWanted(state: CoreState, market: MarketState): boolean {
  return state.phase.kind === 'running' && market.suspended === null && !market.held;
}
