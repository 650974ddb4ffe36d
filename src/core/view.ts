import type { OrderType, Policy, Purpose } from './events.ts';
import { suspensionOf } from './goal.ts';
import { shortTimerGapMs } from './next.ts';
import type { BotPhase, Hold } from './notice.ts';
import { ASSUMED_ANSWER_MS, boundsOf, describePromise, ROUNDING_MS } from './promise.ts';
import { type CoreState, type MarketState, type Phase } from './state.ts';
import { clamp, type Instant } from './time.ts';

export const MARKET_STATES = [
  'arming',
  'armed',
  'retrying',
  'expired',
  'suspended',
  'disarmed',
  'paused',
  'rejected',
  'deleted',
] as const;
export type MarketPhase = (typeof MARKET_STATES)[number];

/**
 * One market as it stands at the moment of the view, for people, machines, judges and tests to read. Durations in
 * milliseconds, moments in Unix milliseconds. A figure is worked out when it is read: a look at thousands of markets
 * costs no more than what is read of them.
 */
export class MarketView {
  readonly #state: CoreState;
  readonly #now: Instant;
  readonly #market: MarketState;
  constructor(state: CoreState, now: Instant, market: MarketState) {
    this.#state = state;
    this.#now = now;
    this.#market = market;
  }
  get market(): string {
    return this.#market.settings.market;
  }
  get types(): readonly OrderType[] | null {
    return this.#market.settings.types;
  }
  get bot(): string {
    return this.#market.settings.bot;
  }
  get state(): MarketPhase {
    return phaseOf(this.#state, this.#market, this.guaranteedMs);
  }
  /** Should be armed now: the daemon runs, nobody holds the market, and its bot lives or is in its start-up grace. */
  get wanted(): boolean {
    return this.#state.isWanted(this.#market);
  }
  /** Why an operator, or a lapse, took it out of guard, and until when (Unix milliseconds; null: until armed). */
  get hold(): { readonly why: Hold; readonly untilWallMs: number | null } | null {
    const { hold } = this.#market;
    if (hold === null) return null;
    const { why, untilAwakeMs } = hold;
    if (untilAwakeMs === null) return { why, untilWallMs: null };
    const leftMs = untilAwakeMs - this.#state.awakeMs - sinceStepMs(this.#state, this.#now);
    return { why, untilWallMs: this.#now.wallMs + Math.max(0, leftMs) };
  }
  /** No longer configured; shown until its timer is gone. */
  get leaving(): boolean {
    return this.#market.leaving !== null;
  }
  get timeoutMs(): number {
    return this.#market.settings.timeoutMs;
  }
  /** The timer that the exchange grants, which may be shorter than what it is asked for. */
  get grantedMs(): number {
    const { server } = this.#market.belief;
    if (server === null) return this.timeoutMs;
    return clamp((server.cancellationTime - server.startTime) * 1000, 0, this.timeoutMs);
  }
  /** As it comes out: longer than planned where not all of them can be carried, shorter where less is granted than asked for. */
  get periodMs(): number {
    const periodMs = this.#state.periodOf(this.#market) * this.#state.overload;
    return Math.min(periodMs, shortTimerGapMs(this.#market, this.grantedMs - ROUNDING_MS));
  }
  get #answerMs(): number {
    return Math.max(ASSUMED_ANSWER_MS, this.#market.answerMs ?? 0);
  }
  /** Longest outage of the exchange that cancels nothing. Nothing is promised of what nobody renews. */
  get survivesMs(): number {
    if (this.leaving) return 0;
    return boundsOf(this.#state.settings, this.grantedMs, this.periodMs, this.#answerMs).survivesMs;
  }
  get promise(): readonly string[] {
    const { settings } = this.#market;
    if (this.leaving) return [];
    return describePromise(this.#state.settings, settings, this.periodMs, this.#answerMs, this.grantedMs);
  }
  /** Guaranteed armed for this long; 0 or less where the guarantee ran out; null where no timer is known: never confirmed, deleted, or fired. */
  get guaranteedMs(): number | null {
    if (this.#market.belief.notBefore === null) return null;
    return this.#state.slackMs(this.#market) - sinceStepMs(this.#state, this.#now);
  }
  /** The guarantee where it is in force; null where nothing is guaranteed now. */
  get sureMs(): number | null {
    const { guaranteedMs } = this;
    return guaranteedMs !== null && guaranteedMs > 0 ? guaranteedMs : null;
  }
  /** Conservative expiry, Unix milliseconds; null where there is none (never armed, or deleted). */
  get expiryWallMs(): number | null {
    const { guaranteedMs } = this;
    return guaranteedMs === null ? null : this.#now.wallMs + guaranteedMs;
  }
  /** How long a timer that may exist can still run; null where surely none exists. */
  get firesInMs(): number | null {
    const inMs = (this.#market.belief.notAfterMs ?? 0) - this.#now.monoMs;
    return inMs > 0 ? inMs : null;
  }
  /** The same in Unix milliseconds. */
  get firesByWallMs(): number | null {
    const { firesInMs } = this;
    return firesInMs === null ? null : this.#now.wallMs + firesInMs;
  }
  /** The exchange's own cancellationTime of the last confirmation, Unix seconds. */
  get cancellationTime(): number | null {
    return this.#market.belief.server?.cancellationTime ?? null;
  }
  get lastDurationMs(): number | null {
    return this.#market.stats.lastDurationMs;
  }
  get lastSlackRatio(): number | null {
    return this.#market.stats.slackHistory.at(-1) ?? null;
  }
  /** Slack ratios of the last confirmations, oldest first, at most 60. */
  get slackHistory(): readonly number[] {
    return [...this.#market.stats.slackHistory];
  }
  get renewals(): number {
    return this.#market.stats.renewals;
  }
  get failures(): number {
    return this.#market.stats.failures;
  }
  get failureStreak(): number {
    return this.#market.streak;
  }
  get lapses(): number {
    return this.#market.stats.lapses;
  }
  get lastProblem(): string | null {
    const { refusal, lastProblem, altered } = this.#market;
    return refusal.said?.detail ?? lastProblem ?? altered;
  }
  get refused(): boolean {
    return this.#market.refusal.said !== null;
  }
  /** When a market that the exchange refuses is tried again, Unix milliseconds; null where it refuses none. */
  get retryWallMs(): number | null {
    const { refusal, nextMs } = this.#market;
    if (refusal.said === null || nextMs === Number.POSITIVE_INFINITY) return null;
    return this.#now.wallMs + nextMs - this.#now.monoMs;
  }
  /** What a stop with the configured policy would do with this market's timer now, as a sentence. */
  get onStop(): string {
    return describeStop(this.#state, this.#market, this.firesInMs !== null);
  }
  /** Its requests that are on their way, the oldest first. */
  get inFlight(): readonly { readonly purpose: Purpose }[] {
    return this.#market.onTheirWay;
  }
}

/** What is read of a market, whoever shows it. */
export type MarketSnapshot = Omit<
  Pick<MarketView, keyof MarketView>,
  'sureMs' | 'firesInMs' | 'refused' | 'inFlight'
>;

export interface BaseSnapshot {
  readonly url: string;
  readonly up: boolean | null;
  readonly pingMs: number | null;
  readonly lastProblem: string | null;
  /** Renewals may take it: the first, and others that serve the same account. */
  readonly used: boolean;
  readonly outage: boolean;
}

export interface BotSnapshot {
  readonly bot: string;
  readonly mode: string;
  readonly state: BotPhase;
  readonly evidenceAgeMs: number | null;
  readonly ttlMs: number | null;
}

/** The whole daemon at one moment. */
export interface Snapshot {
  readonly phase: Phase['kind'];
  readonly ready: boolean;
  /** Why not ready, one sentence per reason; empty when ready. */
  readonly notReady: readonly string[];
  /** Why no market at all is wanted armed, in a sentence; null where one is. */
  readonly nothingGuarded: string | null;
  readonly live: boolean;
  readonly authorised: boolean;
  readonly shutdownPolicy: Policy;
  readonly markets: readonly MarketSnapshot[];
  readonly bases: readonly BaseSnapshot[];
  readonly bots: readonly BotSnapshot[];
  readonly capacityPerSecond: number;
  readonly cadenceFactor: number;
}

/** A core that took no step for this long makes no progress: it asks for a tick every 500 ms. */
const LIVE_WITHIN_MS = 5000;

/** The state as it stands at `now`, for people and machines. Reads only; the clocks are not taken in. */
export function describe(state: CoreState, now: Instant): Snapshot {
  const { settings } = state;
  const { phase, authorised, markets, bots } = new CoreView(state, now);
  const live = sinceStepMs(state, now) < LIVE_WITHIN_MS;
  const nothingGuarded = describeNothingGuarded({ phase, markets, bots });
  const notReady = describeNotReady({ phase, live, markets, bots, nothingGuarded });
  const refused = state.key.refusal.said;
  if (refused !== null) notReady.unshift(`the exchange refuses the API key: ${refused.detail}`);
  return {
    phase,
    ready: notReady.length === 0,
    notReady,
    nothingGuarded,
    live,
    authorised,
    shutdownPolicy: settings.shutdown.policy,
    markets,
    bases: state.bases.map(({ url, index, ping, outage }) => ({
      url,
      up: ping?.ok ?? null,
      pingMs: ping?.ok === true ? ping.latencyMs : null,
      lastProblem: ping?.ok === false ? ping.detail : null,
      used: index === 0 || settings.sameAccount,
      outage: outage !== null,
    })),
    bots,
    capacityPerSecond: state.capacityPerSecond,
    cadenceFactor: state.cadenceFactor,
  };
}

/** How far the clocks of the state are behind `now`; less than 0 once the state took a step after it. */
function sinceStepMs(state: CoreState, now: Instant): number {
  return now.monoMs - state.now.monoMs;
}

function phaseOf(state: CoreState, market: MarketState, guaranteedMs: number | null): MarketPhase {
  if (market.goal === 'delete' && market.reached && market.hold === null) return 'deleted';
  if (market.refusal.said !== null) return 'rejected';
  if (market.hold !== null) return market.hold.why === 'paused' ? 'paused' : 'disarmed';
  if (suspensionOf(market) !== null) return 'suspended';
  // Its guarantee ran out, and it has not surely fired since.
  const mayStand = market.overdueSaid && market.belief.server !== null && market.belief.notAfterMs !== null;
  if (guaranteedMs === null && !mayStand) return state.key.refusal.said === null ? 'arming' : 'rejected';
  if (guaranteedMs === null || guaranteedMs <= 0) return 'expired';
  return market.streak > 0 ? 'retrying' : 'armed';
}

/** What a stop with the configured policy would do with the timer now, if the bot gives a sign of life after it. */
function describeStop(state: CoreState, market: MarketState, mayExist: boolean): string {
  if (!mayExist) return 'nothing to do: no timer is armed';
  const { policy } = state.settings.shutdown;
  const bot = market.bot.state;
  const isWell =
    market.hold === null && bot === 'alive' && (policy !== 'handoff' || market.refusal.count === 0);
  const will = isWell ? policy : market.goal === 'delete' ? 'delete' : 'keep';
  const isSick = market.streak > 0 || market.refusal.said !== null || state.key.refusal.said !== null;
  switch (will) {
    case 'delete':
      return isSick
        ? 'tries to delete the timer: the orders stay only if the exchange confirms it before the timer fires'
        : 'deletes the timer: the orders stay';
    case 'keep':
      return 'leaves the timer: the exchange cancels the orders when it fires';
    case 'handoff':
      return isSick
        ? 'tries to renew the timer once more and leaves it to the successor'
        : 'renews the timer once more and leaves it to the successor';
  }
}

/** Why a market is not guarded, said of one market and of several. */
export const NOT_GUARDED: Readonly<Record<Hold | BotPhase, readonly [one: string, several: string]>> = {
  disarmed: ['is disarmed', 'are disarmed'],
  paused: ['is paused', 'are paused'],
  tripped: ['is tripped', 'are tripped'],
  lapsed: ['is held after a lapse', 'are held after a lapse'],
  starting: ['waits for its bot', 'wait for their bots'],
  alive: ['is left alone', 'are left alone'],
  stale: ['has a bot that is silent', 'have bots that are silent'],
  goodbye: ['has a bot that said goodbye', 'have bots that said goodbye'],
  failed: ['has a bot that failed', 'have bots that failed'],
};

/** What is said of a bot that is dead. */
export const DEAD: Partial<Record<BotPhase, string>> = { stale: 'is silent', failed: 'has failed' };

/** The bots whose markets should be armed. */
export function livingOf(bots: readonly BotSnapshot[]): ReadonlySet<string> {
  return new Set(bots.flatMap(({ bot, state }) => (state === 'alive' || state === 'starting' ? bot : [])));
}

/**
 * Why the daemon is not ready, a sentence each. Ready means protected: the loop turns, every configured market of a bot
 * that lives is surely armed, no bot is dead, and something is guarded where anything is configured.
 */
export function describeNotReady({
  phase,
  live,
  markets,
  bots,
  nothingGuarded,
}: Pick<Snapshot, 'phase' | 'live' | 'markets' | 'bots' | 'nothingGuarded'>): string[] {
  if (phase !== 'running') return [`the daemon is ${phase}`];
  const stuck = live ? [] : ['the keeper makes no progress'];
  const living = livingOf(bots);
  const dead = bots.flatMap(({ bot, state }) =>
    DEAD[state] === undefined ? [] : [`the bot ${bot} ${DEAD[state]}: its timers are not renewed`],
  );
  const unarmed = markets.flatMap((seen) => {
    if (seen.wanted ? (seen.guaranteedMs ?? 0) > 0 : seen.leaving || !living.has(seen.bot)) return [];
    const { market, hold } = seen;
    return hold === null
      ? `${market} is not confirmed armed (${seen.state})`
      : `${market} ${NOT_GUARDED[hold.why][0]}`;
  });
  const reasons = [...stuck, ...dead, ...unarmed];
  const configured = markets.some(({ leaving }) => !leaving);
  return reasons.length === 0 && nothingGuarded !== null && configured ? [nothingGuarded] : reasons;
}

/**
 * Why no market at all is wanted armed now: `nothing is guarded: all 2 markets are disarmed`; null where one is, or the
 * daemon does not run.
 */
export function describeNothingGuarded({
  phase,
  markets,
  bots,
}: Pick<Snapshot, 'phase' | 'markets' | 'bots'>): string | null {
  if (phase !== 'running' || markets.some(({ wanted }) => wanted)) return null;
  const configured = markets.filter(({ leaving }) => !leaving);
  if (configured.length === 0) return 'nothing is guarded: no market falls to this daemon';
  const botStates = new Map(bots.map(({ bot, state }) => [bot, state]));
  const groups = [
    ...Map.groupBy(configured, ({ hold, bot }) => NOT_GUARDED[hold?.why ?? botStates.get(bot) ?? 'alive']),
  ].map(([[one, several], { length }], _, all) => {
    if (all.length > 1) return `${length} ${length === 1 ? one : several}`;
    return length === 1 ? `${configured[0]?.market} ${one}` : `all ${length} markets ${several}`;
  });
  return `nothing is guarded: ${groups.length > 1 ? `of ${configured.length} markets ` : ''}${groups.join(', ')}`;
}

/**
 * What is read of a core at one moment, without a sentence: at a cost that may be paid at every step. Reads only; the
 * clocks are not taken in.
 */
export class CoreView {
  readonly #state: CoreState;
  readonly #now: Instant;
  constructor(state: CoreState, now: Instant) {
    this.#state = state;
    this.#now = now;
  }
  get phase(): Phase['kind'] {
    return this.#state.phase.kind;
  }
  /** Monotonic time at which the core looked at its clocks last. */
  get monoMs(): number {
    return this.#state.now.monoMs;
  }
  get authorised(): boolean {
    return this.#state.key.refusal.said === null;
  }
  get markets(): readonly MarketView[] {
    return this.#state.markets.map((market) => this.#viewOf(market));
  }
  /** The bots that a market names. */
  get bots(): readonly BotSnapshot[] {
    const { settings, markets, bots, lifeMs } = this.#state;
    const { mode, ttlMs } = settings.liveness;
    const guarded = new Set(markets.map(({ bot }) => bot));
    const sinceMs = lifeMs + sinceStepMs(this.#state, this.#now);
    return [...bots.values()]
      .filter((bot) => guarded.has(bot))
      .map(({ bot, state, lastLifeMs }) => ({
        bot,
        mode,
        state,
        evidenceAgeMs: lastLifeMs === Number.NEGATIVE_INFINITY ? null : sinceMs - lastLifeMs,
        ttlMs: mode === 'none' ? null : ttlMs,
      }));
  }
  marketNamed(name: string): MarketView | undefined {
    const market = this.#state.byName.get(name);
    return market === undefined ? undefined : this.#viewOf(market);
  }
  /** The markets of one bot, but for those that leave. */
  marketsOf(bot: string): readonly MarketView[] {
    return this.#state.markets
      .filter(({ settings, leaving }) => settings.bot === bot && leaving === null)
      .map((market) => this.#viewOf(market));
  }
  #viewOf(market: MarketState): MarketView {
    return new MarketView(this.#state, this.#now, market);
  }
}
