import type { Soon } from './due.ts';
import type { Purpose } from './events.ts';
import type { Hold, Suspension } from './notice.ts';
import type { Pace } from './pace.ts';
import type { CoreSettings, MarketSettings } from './settings.ts';
import type { Instant, Timebase } from './time.ts';

/** One request on its way. Attempt numbers rise in the order of writing, as the nonces do. */
export interface Attempt {
  readonly id: number;
  readonly market: MarketState;
  readonly purpose: Purpose;
  readonly base: number;
  readonly writtenMs: number;
  readonly writtenLifeMs: number;
  readonly writtenAwakeMs: number;
  readonly writtenWallMs: number;
  readonly dueMs: number;
  deadlineMs: number;
  readonly timeoutMs: number;
  /** Stalls seen before it was written: a request from before a stall may not leave after it. */
  readonly epoch: number;
  /** Goes over a connection of its own and holds no lane: its market, or its base, is known to hang. */
  readonly detached: boolean;
  aborted: boolean;
  /** Unanswered for longer than it should: whatever follows takes a fresh connection. It is listened to all the same. */
  overdue: boolean;
}

/** What is believed about a market's timer at the exchange. The truth lies between the two ends. */
export interface Belief {
  /** Life time until which the timer is guaranteed to be armed; null where none was ever confirmed. */
  notBeforeLifeMs: number | null;
  /** The same on the clock that steps of the wall clock do not move: what alarms and figures go by. */
  notBeforeAwakeMs: number | null;
  /** Monotonic time by which a timer has surely fired; null where surely none exists. */
  notAfterMs: number | null;
  /** The part of it that confirmed renewals account for. */
  confirmedUntilMs: number | null;
  /** Unix milliseconds: time of writing of the last confirmed renewal + timeout; for people. */
  expiryWallMs: number | null;
  /** Of the newest confirmed renewal, Unix seconds of the exchange's clock. */
  server: { readonly startTime: number; readonly cancellationTime: number } | null;
  /** Newest confirmed attempt: older ones that answer later change nothing. */
  lastAppliedId: number;
  /** Life time at which that one was written. */
  lastAppliedLifeMs: number;
  /**
   * Confirmations that came while another request was on its way. Without rising nonces nobody knows which of the two
   * the exchange carried out last.
   */
  overlapping: { readonly repliedMs: number; readonly shortestMs: number; readonly latestMs: number }[];
  /** Renewals since the last confirmation that the exchange may have carried out unheard. */
  unresolved: number;
  lastUnresolvedId: number;
  /** Monotonic time until which an unresolved renewal may still be carried out; 0 where none can. */
  strayUntilMs: number;
  /** The longest timeout that an unresolved renewal asked for. */
  strayLongestMs: number;
  /** Monotonic time until which an unresolved request may still cut the timer, and the shortest timer it leaves. */
  strayCutUntilMs: number;
  strayCutMs: number;
  /** Monotonic time until which an unresolved delete may still be carried out; 0 where none can. */
  strayDeleteUntilMs: number;
  /** Awake time until which the timer of the newest confirmed renewal lasts, as it was asked for. */
  lastsAwakeMs: number;
  /** Awake time until which the timer of an unresolved renewal would last if it was carried out when written. */
  strayAwakeMs: number;
}

export interface MarketState {
  settings: MarketSettings;
  /** Its place in the configuration; behind all others where it is leaving. */
  index: number;
  readonly belief: Belief;
  readonly inFlight: Attempt[];
  periodMs: number;
  /** Offset of this market's renewals on the grid of its period, so that renewals stay spread after any burst. */
  phaseMs: number;
  /** Its renewal had to wait until the pace allowed it. */
  waitedForTurn: boolean;
  /** Monotonic time of the next attempt. Set by `dueAt` alone. */
  readonly nextMs: number;
  /** The last list of what is due soon that it was put on, and where. */
  soonRound: number;
  soonPlace: number;
  /** When the renewal that is being worked on first became due; for the length of its cycle. */
  cycleSinceMs: number | null;
  suspended: Suspension | null;
  /** Taken out of guard by an operator, or by a lapse under `onLapse: hold`; until when, on the awake clock. */
  hold: { readonly why: Hold; readonly untilAwakeMs: number | null } | null;
  /** No longer configured; forgotten once its timer is gone. */
  leaving: boolean;
  /** Another shard's by now: guarded here as well until then, on the awake clock, and never deleted from here. */
  movedUntilAwakeMs: number | null;
  refused: { readonly code: number; readonly detail: string } | null;
  /** The key was refused for this market and accepted for another one meanwhile: that says nothing about the key. */
  refusedAlone: boolean;
  /** Refusals in a row since the last success. */
  refusals: number;
  refusedAtMs: number;
  nonceRetries: number;
  streak: number;
  timedOut: boolean;
  canaryTries: number;
  /** The timer is to be cut to its shortest: the bot is dead (`onStale: trip`), or an operator said so. */
  tripWanted: boolean;
  /** How the exchange's last answer differed from what was asked for. */
  altered: string | null;
  /** Whether the timer was surely armed when it was last taken out of guard, or its bot went away. */
  armedWhenUnwanted: boolean;
  overdueSaid: boolean;
  /** The gap that is open now was already reported as a lapse. */
  lapseSaid: boolean;
  /** It was said that the timer fired while nobody wanted it. */
  firedSaid: boolean;
  confirmedOnce: boolean;
  /** What becomes of the timer now that it is guarded no longer, and whether that is done; null while guarded. */
  exit: { readonly want: 'delete' | 'keep' | 'handoff'; done: boolean } | null;
  deleted: boolean;
  /** Awake time until which the timer was surely armed that was last to be deleted; infinite once that was confirmed. */
  heldUntilAwakeMs: number;
  /** Its delete was confirmed after that: its orders may be gone. */
  mayHaveFired: boolean;
  lastConfirmedMs: number;
  lastWrittenMs: number;
  lastDurationMs: number | null;
  /** Its own smoothed round trip and mean deviation; null before its first answer. */
  roundTrip: RoundTrip | null;
  slackHistory: number[];
  renewals: number;
  failures: number;
  lapses: number;
  lastProblem: string | null;
}

/** Milliseconds, smoothed as in RFC 6298. */
export interface RoundTrip {
  readonly meanMs: number;
  readonly deviationMs: number;
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

/** An attempt that wants to be written. */
export interface Candidate {
  readonly market: MarketState;
  readonly purpose: Purpose;
  readonly base: number;
  /** Takes a fresh connection and no lane: something before it is known to hang. */
  readonly detached: boolean;
  /** Whether it opens a connection for that; as `detached` where it is not given. */
  readonly fresh?: boolean;
  /** It does not press: it keeps to the pace. */
  readonly paced: boolean;
  /** Told when it is really written; a candidate may be found several times before that. */
  readonly onWrite: (() => void) | null;
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

export interface StopAsked {
  readonly policy: 'delete' | 'keep' | 'handoff';
  startedMs: number;
  readonly lifeMs: number;
  /** The bots that were thought alive then. */
  readonly alive: ReadonlySet<BotState>;
}

/** Everything the core remembers. `step` changes it in place: at ten thousand markets copies cost more than renewals. */
export interface CoreState {
  settings: CoreSettings;
  readonly timebase: Timebase;
  readonly startedMs: number;
  /** In the order of the configuration; those that are leaving come last. */
  markets: readonly MarketState[];
  byName: ReadonlyMap<string, MarketState>;
  /** What is believed of the timers that markets left behind when a reload took them out. */
  readonly leftBehind: Map<string, Belief>;
  readonly bases: readonly BaseState[];
  /** Every bot that was ever configured: one that comes back must not be given a new start-up grace. */
  readonly bots: Map<string, BotState>;
  /**
   * What is on its way, the oldest first. A list, though attempts are looked up by number: a Map that grows and shrinks
   * with every request leaves old tables behind, and each keeps what was in it, and the next table, from being collected
   * early.
   */
  readonly attempts: Attempt[];
  phase: Phase;
  /** A stop was asked for. A delete waits for a sign of life of the bot that is newer: until then all goes on as before. */
  stopAsked: StopAsked | null;
  now: Instant;
  lifeMs: number;
  /** Words of bots that are heard before this may have waited since the monotonic time `deafSinceMs`. */
  deafUntilMs: number;
  deafSinceMs: number;
  nextAttemptId: number;
  epoch: number;
  /** Permits in hand, and until when they may be spent. */
  permits: number;
  permitsUntilMs: number;
  acquiring: boolean;
  /** By the last plan that wanted permits nothing could be written with them yet. */
  askedAhead: boolean;
  /** The limiter did not answer the last request in time. */
  limiterLate: boolean;
  lastReleaseMs: number;
  /** The monotonic time at which the next tick was asked for. */
  wakeAtMs: number;
  /** Earliest moment at which a market, a canary or a probe wants an attempt. */
  nextDueMs: number;
  nextReplanMs: number;
  /** When it is looked next for markets whose last renewal before they are another shard's alone is due; not while there are none. */
  nextPartingMs: number;
  /** Something was due and had to wait for a lane, a permit or the rate: any settled attempt plans again. */
  backlog: boolean;
  /** What the last plan found due and could not write, the most urgent first, from `queueHead` on. */
  queue: readonly Candidate[];
  queueHead: number;
  /** When all markets were looked at last, how many stalls had been seen by then, and the round trip that was reckoned with. */
  plannedMs: number;
  plannedEpoch: number;
  plannedRoundTripMs: number;
  readonly soon: Soon;
  /** Index of a market that was not armed when one was last looked for. */
  unarmedHint: number;
  /** Before this awake time no guarantee runs out, so that nobody has to look for one that did. */
  guardedUntilAwakeMs: number;
  /** Before this awake time no pause ends. */
  pauseOverAwakeMs: number;
  readonly pace: Pace;
  /** Smoothed round trip and its mean deviation, of the markets that are answered fastest: a slow one is slow by itself. */
  roundTripMs: number | null;
  roundTripDeviationMs: number;
  /** The fastest answer since the last replan, and since the one before it; and whose it was. */
  fastest: MarketState | null;
  fastestMs: number;
  fastestBeforeMs: number;
  capacityPerSecond: number;
  /** 1, or more after throttling: periods are this many times longer. */
  cadenceFactor: number;
  lastThrottledMs: number;
  unauthorised: { readonly status: number; readonly detail: string; nextProbeMs: number } | null;
  unauthorisedStreak: number;
  /** The markets for which the key was refused since it was last accepted. */
  readonly keyRefusers: MarketState[];
  /** When the newest refusal of the key that counts arrived, and since when the key is in use. */
  unauthorisedAtMs: number;
  keySinceMs: number;
  /** A key that was good once gets a second look before everything is latched. */
  authorisedOnce: boolean;
  allArmedSaid: boolean;
  /** Requests that the sliding window counts: those on their way, and when the others were settled, the oldest first. */
  underWay: number;
  readonly settled: number[];
  settledHead: number;
}

/** The attempt of that number, if it is still on its way. */
export function attemptOf({ attempts }: CoreState, id: number): Attempt | undefined {
  return attempts.find((attempt) => attempt.id === id);
}

/** Time that the market's timer is still guaranteed to be armed; 0 or less where nothing is left to save. */
export function slackMs(state: CoreState, market: MarketState): number {
  const { notBeforeLifeMs } = market.belief;
  return notBeforeLifeMs === null ? 0 : notBeforeLifeMs - state.lifeMs;
}

/** Monotonic time and suspend: what no setting of the wall clock moves. */
export function awakeMs(state: CoreState): number {
  return state.now.monoMs + state.timebase.sleptMs;
}

/**
 * The slack without doubts about the wall clock. Decisions go by `slackMs`, which a step of that clock can end; alarms
 * and figures go by this one, since setting a clock fires no timer.
 */
export function awakeSlackMs(state: CoreState, market: MarketState): number {
  const { notBeforeAwakeMs } = market.belief;
  return notBeforeAwakeMs === null ? 0 : notBeforeAwakeMs - awakeMs(state);
}

/**
 * May a stop take the bot for alive? Only by what was said after it was asked for: a bot that died a moment before looks
 * alive until its evidence runs out, and its orders would stay unguarded.
 */
export function isHeardSinceStop({ stopAsked, settings }: CoreState, bot: BotState): boolean {
  if (stopAsked === null || settings.liveness.mode === 'none' || bot.state === 'goodbye') return true;
  return bot.lastLifeMs !== null && bot.lastLifeMs > stopAsked.lifeMs;
}

/** Should the market be armed now: the bot lives, nobody stopped it, and the daemon is not on its way out. */
export function isWanted(state: CoreState, market: MarketState): boolean {
  return (
    state.phase.kind === 'running' && market.suspended === null && market.hold === null && !market.leaving
  );
}
