import type { CoreSettings, Effect, MarketSettings, Pinged, Policy, Purpose, ServerTimer } from './events.ts';
import type { BotPhase, Hold, Notice } from './notice.ts';
import { type Bucket, bucketOf, LEAST_ATTEMPTS, planCadence, WINDOW_DRIFT_MS } from './promise.ts';
import { type Instant, lifeMs, startTimebase, type Timebase } from './time.ts';

/**
 * One moment on the clocks of `time.ts`. Beliefs and evidence age by `lifeMs`. `awakeMs` is monotonic time plus suspend:
 * not the time that the host was awake, but what no setting of the wall clock moves.
 */
export interface Moment {
  readonly monoMs: number;
  readonly lifeMs: number;
  readonly awakeMs: number;
  readonly wallMs: number;
}

/**
 * What a request may do to the timer. It stays in the belief of its market for as long as it can decide when the timer
 * fires: while it is on its way, and after that until a confirmed one has surely overtaken it. Numbers rise in the order
 * of writing.
 */
export interface Write {
  readonly id: number;
  /** Its place in the order of signing, which is that of the nonces; infinite where it is not signed yet. */
  order: number;
  /** How often the key had changed by then: no nonce of one key fences a request of another one. */
  readonly key: number;
  readonly purpose: Purpose;
  readonly at: Moment;
  /**
   * `open`: on its way and waited for. `abandoned`: given up, and not settled yet. `confirmed`: the exchange said that it
   * carried it out. `unknown`: it may have carried it out, or may still do so.
   */
  status: 'open' | 'abandoned' | 'confirmed' | 'unknown';
  /** Whether the first byte has left. */
  left: boolean;
  /** The latest monotonic moment at which the exchange carries it out, or has done so. */
  untilMs: number;
  /** The shortest and the longest timer that it can leave: they differ where another one was granted than asked for. */
  shortestMs: number;
  longestMs: number;
}

/** One request that this process has dispatched. `left` tells whether its first byte was written. */
export interface Attempt extends Write {
  readonly market: MarketState;
  readonly base: BaseState;
  /** It holds a lane for this long, or until it is answered: while all lanes are held, other requests wait. */
  laneMs: number;
  /** It holds one of the extra lanes for requests that hang or are slow. */
  readonly own: boolean;
  /** Monotonic time at which it is given up. */
  giveUpMs: number;
}

/** The stamps of a timer, Unix seconds of the exchange's clock. */
type Stamps = Pick<ServerTimer, 'startTime' | 'cancellationTime'>;

/** What is known of a market's timer at the exchange: the requests that decide about it, and what follows from them. */
export interface Belief {
  /** The oldest first. */
  writes: Write[];
  /** Those of the newest timer; null where its firing would be no lapse. */
  server: Stamps | null;
  /**
   * The last ones that answers told, the oldest first, and when one told them first, monotonic. They outlive the timer: an
   * answer may be repeated long after.
   */
  told: readonly (Stamps & { readonly atMs: number })[];
  /** Folded from `writes` by `fold`: until when the timer is surely armed, on both clocks; null where nothing is sure. */
  notBefore: { readonly lifeMs: number; readonly awakeMs: number } | null;
  /** And the monotonic time by which a timer that may exist has surely fired; null where surely none exists. */
  notAfterMs: number | null;
}

/** What is done with a market's timer. `leave`: nothing, so that it fires; the market itself may stay. */
export type Goal = 'guard' | 'renew-once' | 'trip' | 'delete' | 'leave';

/** What the market came to so far. */
export class MarketStats {
  /** Confirmed renewals and trips: above 0 the exchange has accepted the market. */
  renewals = 0;
  failures = 0;
  lapses = 0;
  /** When the last confirmed request was written. */
  lastConfirmedMs = Number.NEGATIVE_INFINITY;
  lastDurationMs: number | null = null;
  slackHistory: readonly number[] = [];
}

/** What the exchange refuses, and how often in a row. */
export interface Refusal<What> {
  /** Null while it counts as accepted. What was good before counts as refused from the second refusal in a row on. */
  said: (What & { readonly detail: string; readonly sinceMs: number }) | null;
  count: number;
  lastMs: number;
}

function noRefusal<What>(): Refusal<What> {
  return { said: null, count: 0, lastMs: Number.NEGATIVE_INFINITY };
}

/** One market. A new one is due at once, and nothing is known about its timer. */
export class MarketState {
  settings: MarketSettings;
  /** The one that its settings name. */
  bot: BotState;
  belief: Belief = { writes: [], server: null, told: [], notBefore: null, notAfterMs: null };
  /** Taken out of guard by an operator, or by a lapse under `onLapse: hold`; until when, on the awake clock. */
  hold: { readonly why: Hold; readonly untilAwakeMs: number | null } | null = null;
  /**
   * `removed`: no longer configured. `moved`: another shard's by now. `dropped`: the same, and its timer was being deleted
   * here. Forgotten once its goal is reached.
   */
  leaving: 'removed' | 'moved' | 'dropped' | null = null;
  /** Kept up to date by `follow` alone. */
  goal: Goal = 'guard';
  /** The goal's last request was confirmed, or nothing needs to be done for it, as to leave it. */
  reached = false;
  /** What fires now fires on purpose: no renewal was confirmed since it was new, or became unwanted while surely armed. */
  firesOnPurpose = true;
  periodMs: number;
  /** Offset of its renewals on the grid of its period, so that they stay spread after any burst. */
  offsetMs = 0;
  /** Monotonic time of the next attempt. Set by `schedule` alone. */
  nextMs: number;
  /** When a command, or the end of a stall or an outage, asked for an attempt, monotonic; infinitely long ago: nothing did. */
  askedMs: number;
  lastWrittenMs = Number.NEGATIVE_INFINITY;
  /** A stop has written a delete, whatever became of it. */
  triedDelete = false;
  /** When the renewal that is being worked on first became due; null while there is none. */
  cycleSinceMs: number | null = null;
  /** How long its answers take: rises at once, falls slowly. Null before the first answer. */
  answerMs: number | null = null;
  /** Failures since the last confirmation. */
  streak = 0;
  staleNonces = 0;
  /** The connection of its last request may hang, or broke: the next one takes a new connection. */
  timedOut = false;
  refusal = noRefusal<{ readonly code: number }>();
  overdueSaid = false;
  /** The latest firing that was told of, monotonic: a request without an answer does not bring it up again. */
  firedMs = Number.NEGATIVE_INFINITY;
  /** How the exchange's last answer differed from what was asked for. */
  altered: string | null = null;
  lastProblem: string | null = null;
  /** Until when the confirmed renewals kept the timer armed, awake clock; null before any, and after a confirmed delete. */
  armedUntilAwakeMs: number | null = null;
  /** Its timer may have fired before its last delete was confirmed: its orders may be gone. */
  mayHaveFired = false;
  readonly stats = new MarketStats();

  constructor(settings: MarketSettings, bot: BotState, monoMs: number) {
    this.settings = settings;
    this.bot = bot;
    this.periodMs = settings.timeoutMs;
    this.nextMs = monoMs;
    this.askedMs = monoMs;
  }

  /** Is its timer to be kept from firing now, if only until it was renewed once more? */
  get mustNotFire(): boolean {
    return this.goal === 'guard' || (this.goal === 'renew-once' && !this.reached);
  }

  /** Its requests that are on their way and not given up. */
  get openWrites(): Write[] {
    return this.belief.writes.filter(({ status }) => status === 'open');
  }

  /** Its requests that are on their way or given up, and not settled. */
  get onTheirWay(): Write[] {
    return this.belief.writes.filter(({ status }) => status === 'open' || status === 'abandoned');
  }
}

export class BaseState {
  readonly index: number;
  readonly url: string;
  /** What its last ping came to; null before the first. */
  ping: Pinged | null = null;
  /** When that was sent. */
  pingedMs = Number.NEGATIVE_INFINITY;
  nextPingMs: number;
  /** Failures since the last answer of the API. */
  failures = 0;
  lastAnswerMs = Number.NEGATIVE_INFINITY;
  /** When the request that ended the last outage was written. */
  provenMs = Number.NEGATIVE_INFINITY;
  /** Nothing answers: markets that have failed themselves leave it to one half-open probe at a time. */
  outage: { readonly sinceMs: number; probes: number; probedMs: number } | null = null;

  constructor(index: number, url: string, monoMs: number) {
    this.index = index;
    this.url = url;
    this.nextPingMs = monoMs;
  }

  /** Is it an address for renewals, as far as is known? Where none is, those whose ping alone failed are tried. */
  get takesRenewals(): boolean {
    return this.outage === null && this.ping?.ok !== false;
  }
}

/** One bot. Its start-up grace counts from when it was configured. */
export interface BotState {
  readonly bot: string;
  state: BotPhase;
  /** When the newest evidence was given; infinitely long ago before the first. */
  lastLifeMs: number;
  /** The same on the awake clock, which no setting of the wall clock moves. Before the first: when it was configured, and its grace began. */
  lastAwakeMs: number;
}

export type Phase =
  | { readonly kind: 'running' }
  | {
      readonly kind: 'stopping';
      readonly policy: Policy;
      /** Evidence that is newer than this is newer than the stop. */
      readonly heardFromAwakeMs: number;
      /** Bots that were alive when the stop began. */
      readonly living: ReadonlySet<BotState>;
      /** The stop waits until then for evidence that is newer than itself. */
      readonly evidenceUntilMs: number;
      readonly budgetEndMs: number;
    }
  | { readonly kind: 'stopped' };

/** Attempts that become due within this leave together, in one order: wake-ups cost as well. */
export const COALESCE_MS = 25;
const MANY_MARKETS = 500;

/** Everything the core remembers. `step` changes it in place. Before the first step nothing is armed, and everything due. */
export class CoreState {
  settings: CoreSettings;
  readonly timebase: Timebase;
  readonly startedMs: number;
  /** In the order of the configuration; those that are leaving come last. */
  markets: readonly MarketState[] = [];
  byName: ReadonlyMap<string, MarketState> = new Map();
  /** What may still happen at the exchange to markets that a reload took out. */
  readonly leftBehind = new Map<string, MarketState>();
  readonly bases: readonly BaseState[];
  /** The bots that markets name, and the dead ones that markets have named before. */
  readonly bots = new Map<string, BotState>();
  readonly key = {
    /** How often it was replaced. */
    changes: 0,
    refusal: noRefusal<{ readonly status: number }>(),
    nextProbeMs: Number.NEGATIVE_INFINITY,
    /** The one in force was accepted once: one refusal is no reason to believe that it is wrong. */
    accepted: false,
  };
  /** The requests that are on their way, the oldest first. */
  readonly attempts = new Map<number, Attempt>();
  phase: Phase = { kind: 'running' };
  now: Instant;
  /** When the step before this one was taken, monotonic: a word that is heard now may have been said since then. */
  lastStepMs: number;
  /** When lost time was noticed last: a request from before that may not leave after it. Monotonic. */
  stalledMs = Number.NEGATIVE_INFINITY;
  /** Words that are heard right after a stall may have been said since then. Monotonic. */
  deafSinceMs = Number.NEGATIVE_INFINITY;
  nextAttemptId = 1;
  nextOrder = 1;
  /** The monotonic time at which the next tick was asked for. */
  wakeAtMs: number;
  /** Earliest moment at which a market or a probe wants an attempt. */
  nextDueMs = Number.NEGATIVE_INFINITY;
  /** The markets that are due and could not be written yet, the most urgent first, and when they were put in order. */
  queue: readonly MarketState[] = [];
  orderedMs = Number.NEGATIVE_INFINITY;
  /** When a market that was not surely armed last had its turn. */
  turnMs = Number.NEGATIVE_INFINITY;
  bucket: Bucket;
  /** Tokens of the bucket that were used, and had not flowed back at `spentAtMs`. */
  spent = 0;
  spentAtMs: number;
  /** When requests were settled, as long as that is within the window of the budget; the oldest first. Monotonic. */
  readonly settledMs: number[] = [];
  /** The answer time of the fastest market: a sick one must not slow down the others. Null before the first answer. */
  answerMs: number | null = null;
  capacityPerSecond = 0;
  /** Periods come out this many times longer: not even three renewals of every timer can be carried. Else 1. */
  overload = 1;
  /** 1, or more after throttling: periods are this many times longer. */
  cadenceFactor = 1;
  lastThrottledMs = Number.NEGATIVE_INFINITY;
  nextReplanMs = Number.NEGATIVE_INFINITY;
  allArmedSaid = false;
  /** What the step that is being taken has led to so far. */
  effects: Effect[] = [];

  constructor(settings: CoreSettings, now: Instant) {
    const { monoMs } = now;
    this.settings = settings;
    this.timebase = startTimebase(now);
    this.startedMs = monoMs;
    this.bases = settings.bases.map((url, index) => new BaseState(index, url, monoMs));
    this.now = now;
    this.lastStepMs = monoMs;
    this.wakeAtMs = monoMs;
    this.bucket = bucketOf(settings, 0);
    this.spentAtMs = monoMs;
  }

  say(notice: Notice): void {
    this.effects.push({ kind: 'notice', notice });
  }

  /** The time that counts for the age of beliefs and evidence, see `time.ts`. */
  get lifeMs(): number {
    return lifeMs(this.timebase, this.now);
  }

  /** Monotonic time plus suspend, see `Moment`. */
  get awakeMs(): number {
    return this.now.monoMs + this.timebase.sleptMs;
  }

  get moment(): Moment {
    const { monoMs, wallMs } = this.now;
    return { monoMs, lifeMs: this.lifeMs, awakeMs: this.awakeMs, wallMs };
  }

  /** A monotonic moment in Unix milliseconds, as the clocks stand now. */
  wallAt(monoMs: number): number {
    return this.now.wallMs + (monoMs - this.now.monoMs);
  }

  /** Time that the market's timer is still guaranteed to be armed; 0 or less where nothing is left to save. */
  slackMs({ belief }: MarketState): number {
    return belief.notBefore === null ? 0 : belief.notBefore.lifeMs - this.lifeMs;
  }

  /** The slack without doubts about the wall clock, whose setting fires no timer: alarms and the order of urgency go by it. */
  awakeSlackMs({ belief }: MarketState): number {
    return belief.notBefore === null ? 0 : belief.notBefore.awakeMs - this.awakeMs;
  }

  /** The longest that a timer which may exist still runs; null where surely none exists. */
  firesInMs({ notAfterMs }: Belief): number | null {
    return notAfterMs === null || notAfterMs <= this.now.monoMs ? null : notAfterMs - this.now.monoMs;
  }

  /** May a timer of the market still fire, as far as is known at the last step? */
  mayFire(belief: Belief): boolean {
    return this.firesInMs(belief) !== null;
  }

  /** The latest moment at which a timer that may exist fires, Unix milliseconds; null where surely none exists. */
  firesBy({ belief }: MarketState): number | null {
    const inMs = this.firesInMs(belief);
    return inMs === null ? null : this.now.wallMs + inMs;
  }

  /** Should the market be armed now: the bot lives, nobody stopped it, and the daemon is not on its way out. */
  isWanted({ goal }: MarketState): boolean {
    return this.phase.kind === 'running' && goal === 'guard';
  }

  /** How long ago the request was prepared. */
  ageMs({ at }: Write): number {
    return this.now.monoMs - at.monoMs;
  }

  /** How long its answer could have been read: while the loop stands still, nothing is read. */
  unansweredMs({ at }: Write): number {
    return this.now.monoMs - Math.max(at.monoMs, this.stalledMs);
  }

  /** Replaces the markets. What waits in the queue keeps its place; what is new gets one at the next dispatch. */
  setMarkets(markets: readonly MarketState[]): void {
    this.markets = markets;
    this.byName = new Map(markets.map((market) => [market.settings.market, market]));
    this.queue = this.queue.filter((market) => this.byName.get(market.settings.market) === market);
    this.nextDueMs = Number.NEGATIVE_INFINITY;
  }

  /** Gives every configured market its period and its place on the grid. `moved`: some period changed noticeably. */
  planPeriods(capacityPerSecond: number): { readonly moved: boolean; readonly problems: readonly string[] } {
    const { markets } = this.settings;
    this.capacityPerSecond = capacityPerSecond;
    const { periodsMs, overload, problems } = planCadence(markets, capacityPerSecond);
    this.overload = overload;
    let moved = false;
    let neededPerSecond = 0;
    for (const [place, market] of this.markets.entries()) {
      const periodMs = periodsMs[place] ?? market.periodMs;
      moved ||= Math.abs(periodMs / market.periodMs - 1) > 0.1;
      market.periodMs = periodMs;
      market.offsetMs = (periodMs * place) / Math.max(1, markets.length);
      neededPerSecond += 1000 / periodMs;
    }
    const before = this.#owed;
    this.bucket = bucketOf(this.settings, neededPerSecond);
    this.spent = Math.min(before, this.bucket.burst);
    this.spentAtMs = this.now.monoMs;
    return { moved, problems };
  }

  /** The cadence in force: longer after throttling, as long as the fewest renewals fit into the timeout. */
  periodOf({ periodMs, settings }: MarketState): number {
    return Math.max(periodMs, Math.min(periodMs * this.cadenceFactor, settings.timeoutMs / LEAST_ATTEMPTS));
  }

  /**
   * Tokens that may be used now. The bucket sets the pace of writing. The budget bounds what the exchange can count in one
   * of its windows: a request counts from its writing until a window after it was settled.
   */
  get tokens(): number {
    const { bucket, settings, attempts, settledMs } = this;
    return Math.min(
      bucket.burst - this.#owed + 1e-6,
      settings.budget.requests - attempts.size - settledMs.length,
    );
  }

  /** When the next token is there, monotonic, if no request is settled sooner. */
  get tokenAtMs(): number {
    const { bucket, now, settings, attempts, settledMs } = this;
    const pacedMs = now.monoMs + (1 - bucket.burst + this.#owed) / bucket.perMs;
    const [oldestMs = Number.POSITIVE_INFINITY] = settledMs;
    const isFull = attempts.size + settledMs.length >= settings.budget.requests;
    return Math.max(now.monoMs + 1, pacedMs, isFull ? oldestMs + this.#countsForMs : 0);
  }

  /** Tokens that have not flowed back by now. */
  get #owed(): number {
    return Math.max(0, this.spent - (this.now.monoMs - this.spentAtMs) * this.bucket.perMs);
  }

  /** How long a settled request counts in the budget. */
  get #countsForMs(): number {
    return this.settings.budget.windowMs + WINDOW_DRIFT_MS;
  }

  /** A request is written: its token flows back from now on. */
  spend(): void {
    this.spent = this.#owed + 1;
    this.spentAtMs = this.now.monoMs;
  }

  /** Forgets requests that were settled before the window of the budget. */
  forgetSettled(): void {
    const { settledMs, now } = this;
    while ((settledMs[0] ?? now.monoMs) + this.#countsForMs <= now.monoMs) settledMs.shift();
  }

  /**
   * Was every one of many markets looked at within the last 25 ms? Until then an answer only sends what is next in the
   * queue: thousands of answers, each with a look at thousands of markets, would stop the loop.
   */
  get isRecent(): boolean {
    return this.markets.length > MANY_MARKETS && this.now.monoMs < this.orderedMs + COALESCE_MS;
  }

  /** The addresses that renewals may take: all where they serve the same account, else the first. */
  get usableBases(): readonly BaseState[] {
    return this.settings.sameAccount ? this.bases : this.bases.slice(0, 1);
  }
}
