import type { OrderType, Policy, Purpose } from './events.ts';
import { suspensionOf } from './goal.ts';
import type { BotPhase, Hold } from './notice.ts';
import { ASSUMED_ANSWER_MS, boundsOf, describePromise } from './promise.ts';
import {
  awakeMs,
  type BotState,
  type CoreState,
  isWanted,
  type MarketState,
  onTheirWay,
  type Phase,
  periodOf,
  slackMs,
} from './state.ts';
import type { Instant } from './time.ts';

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

/** One market, for people and machines to read. Durations in milliseconds, moments in Unix milliseconds. */
export interface MarketSnapshot {
  readonly market: string;
  readonly types: readonly OrderType[] | null;
  readonly bot: string;
  readonly state: MarketPhase;
  /** Should be armed now: not paused, not disarmed, its bot gives evidence. */
  readonly wanted: boolean;
  /** Why an operator, or a lapse, took it out of guard, and until when (Unix milliseconds; null: until armed). */
  readonly hold: { readonly why: Hold; readonly untilWallMs: number | null } | null;
  /** No longer configured; shown until its timer is gone. */
  readonly leaving: boolean;
  readonly timeoutMs: number;
  readonly periodMs: number;
  /** Longest outage of the exchange that cancels nothing. */
  readonly survivesMs: number;
  /** Guaranteed armed for this long; 0 or less where the guarantee ran out; null where no timer was ever confirmed. */
  readonly guaranteedMs: number | null;
  /** Conservative expiry, Unix milliseconds; null where there is none (never armed, or deleted). */
  readonly expiryWallMs: number | null;
  /** Latest moment at which a timer that may exist fires, Unix milliseconds; null where surely none exists. */
  readonly firesByWallMs: number | null;
  /** The exchange's own cancellationTime of the last confirmation, Unix seconds. */
  readonly cancellationTime: number | null;
  readonly lastDurationMs: number | null;
  readonly lastSlackRatio: number | null;
  /** Slack ratios of the last confirmations, oldest first, at most 60. */
  readonly slackHistory: readonly number[];
  readonly renewals: number;
  readonly failures: number;
  readonly failureStreak: number;
  readonly lapses: number;
  readonly lastProblem: string | null;
  /** When a market that the exchange refuses is tried again, Unix milliseconds; null where it refuses none. */
  readonly retryWallMs: number | null;
  /** What a stop with the configured policy would do with this market's timer now, as a sentence. */
  readonly onStop: string;
  /** The promise for this market, see `promise.ts`. */
  readonly promise: readonly string[];
}

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
  /** Why no market at all is wanted armed, in a sentence; null where one is. See `guarding.ts`. */
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

/** The state as it stands at `now`, for people and machines. Reads only; the clocks are not taken in. */
export function describe(state: CoreState, now: Instant): Snapshot {
  const { settings, key } = state;
  const phase = state.phase.kind;
  const markets = state.markets.map((market) => describeMarket(state, now, market));
  const guarded = new Set(markets.map(({ bot }) => bot));
  const bots = [...state.bots.values()]
    .filter(({ bot }) => guarded.has(bot))
    .map((bot) => ({
      bot: bot.bot,
      mode: settings.liveness.mode,
      state: bot.state,
      evidenceAgeMs: evidenceAgeMs(state, now, bot),
      ttlMs: settings.liveness.mode === 'none' ? null : settings.liveness.ttlMs,
    }));
  const nothingGuarded = describeNothingGuarded({ phase, markets, bots });
  const notReady = describeNotReady({ phase, markets, bots, nothingGuarded });
  if (key.refusal.said !== null)
    notReady.unshift(`the exchange refuses the API key: ${key.refusal.said.detail}`);
  return {
    phase,
    ready: notReady.length === 0,
    notReady,
    nothingGuarded,
    live: true,
    authorised: key.refusal.said === null,
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

/** What the clocks of the state are behind `now`; less than 0 once the state took a step after it. */
function sinceStepMs(state: CoreState, now: Instant): number {
  return now.monoMs - state.now.monoMs;
}

function evidenceAgeMs(state: CoreState, now: Instant, { lastLifeMs }: BotState): number | null {
  return lastLifeMs === null ? null : state.lifeMs + sinceStepMs(state, now) - lastLifeMs;
}

/**
 * What few readers ask for of a market is worked out when they do. By the getters of a class: with getters of its own every
 * one of ten thousand objects would be a dictionary to V8, five times as slow to make and as large.
 */
class OnRequest {
  readonly #state: CoreState;
  readonly #market: MarketState;
  readonly #mayExist: boolean;
  readonly #answerMs: number;
  constructor(state: CoreState, market: MarketState, mayExist: boolean, answerMs: number) {
    this.#state = state;
    this.#market = market;
    this.#mayExist = mayExist;
    this.#answerMs = answerMs;
  }
  get slackHistory(): readonly number[] {
    return [...this.#market.stats.slackHistory];
  }
  get onStop(): string {
    return describeStop(this.#state, this.#market, this.#mayExist);
  }
  get promise(): readonly string[] {
    const { leaving, settings } = this.#market;
    if (leaving !== null) return [];
    return describePromise(
      this.#state.settings,
      settings,
      periodOf(this.#state, this.#market),
      this.#answerMs,
    );
  }
}

/** One market of a snapshot. */
function describeMarket(state: CoreState, now: Instant, market: MarketState): MarketSnapshot {
  const { settings, belief, stats, hold } = market;
  const agoMs = sinceStepMs(state, now);
  const guaranteedMs = belief.notBefore === null ? null : slackMs(state, market) - agoMs;
  const periodMs = periodOf(state, market);
  const isLeaving = market.leaving !== null;
  const firesInMs = belief.notAfterMs === null ? 0 : belief.notAfterMs - now.monoMs;
  const answerMs = Math.max(ASSUMED_ANSWER_MS, market.answerMs ?? 0);
  const heldMs =
    hold === null || hold.untilAwakeMs === null ? null : hold.untilAwakeMs - awakeMs(state) - agoMs;
  return Object.assign(new OnRequest(state, market, firesInMs > 0, answerMs), {
    market: settings.market,
    types: settings.types,
    bot: settings.bot,
    state: phaseOf(state, market, guaranteedMs),
    wanted: isWanted(state, market),
    hold: hold && {
      why: hold.why,
      untilWallMs: heldMs === null ? null : now.wallMs + Math.max(0, heldMs),
    },
    leaving: isLeaving,
    timeoutMs: settings.timeoutMs,
    periodMs,
    // Nothing is promised of what nobody renews.
    survivesMs: isLeaving ? 0 : boundsOf(state.settings, settings.timeoutMs, periodMs, answerMs).survivesMs,
    guaranteedMs,
    expiryWallMs: guaranteedMs === null ? null : now.wallMs + guaranteedMs,
    firesByWallMs: firesInMs > 0 ? now.wallMs + firesInMs : null,
    cancellationTime: belief.server?.cancellationTime ?? null,
    lastDurationMs: stats.lastDurationMs,
    lastSlackRatio: stats.slackHistory.at(-1) ?? null,
    renewals: stats.renewals,
    failures: stats.failures,
    failureStreak: market.streak,
    lapses: stats.lapses,
    lastProblem: market.refusal.said?.detail ?? market.lastProblem ?? market.altered,
    retryWallMs:
      market.refusal.said === null || market.nextMs === Number.POSITIVE_INFINITY
        ? null
        : now.wallMs + market.nextMs - now.monoMs,
  });
}

function phaseOf(state: CoreState, market: MarketState, guaranteedMs: number | null): MarketPhase {
  if (market.goal === 'delete' && market.reached && market.hold === null) return 'deleted';
  if (market.refusal.said !== null) return 'rejected';
  if (market.hold !== null) return market.hold.why === 'paused' ? 'paused' : 'disarmed';
  if (suspensionOf(state, market) !== null) return 'suspended';
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
  const bot = state.bots.get(market.settings.bot)?.state;
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

const DEAD: Partial<Record<BotPhase, string>> = { stale: 'is silent', failed: 'has failed' };

/**
 * Why the daemon is not ready, a sentence each. Ready means protected: every configured market of a bot that lives is
 * surely armed, no bot is dead, and something is guarded where anything is configured.
 */
export function describeNotReady({
  phase,
  markets,
  bots,
  nothingGuarded,
}: Pick<Snapshot, 'phase' | 'markets' | 'bots' | 'nothingGuarded'>): string[] {
  if (phase !== 'running') return [`the daemon is ${phase}`];
  const living = new Set(
    bots.filter(({ state }) => state === 'alive' || state === 'starting').map(({ bot }) => bot),
  );
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
  const reasons = [...dead, ...unarmed];
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
  if (configured.length === 0) return 'nothing is guarded: no market is configured';
  const botStates = new Map(bots.map(({ bot, state }) => [bot, state]));
  const groups = [
    ...Map.groupBy(configured, ({ hold, bot }) => NOT_GUARDED[hold?.why ?? botStates.get(bot) ?? 'alive']),
  ].map(([[one, several], { length }], _, all) => {
    if (all.length > 1) return `${length} ${length === 1 ? one : several}`;
    return length === 1 ? `${configured[0]?.market} ${one}` : `all ${length} markets ${several}`;
  });
  return `nothing is guarded: ${groups.length > 1 ? `of ${configured.length} markets ` : ''}${groups.join(', ')}`;
}

/** The state in a few figures: what `describe` says, without a text for every one of ten thousand markets. */
export interface Summary {
  readonly authorised: boolean;
  readonly configured: number;
  /** Markets that should be armed now, and how many of those surely are. */
  readonly wanted: number;
  readonly armed: number;
  /** The first market that should be armed and is not, and what stands in the way as far as is known. */
  readonly waiting: { readonly bot: string; readonly market: string; readonly why: string | null } | null;
  /** The market of those that are armed whose guarantee runs out first. */
  readonly leastSlack: { readonly market: string; readonly ms: number } | null;
  /** The bot that was silent for longest; null where no bot is watched. `ageMs` null: not heard of so far. */
  readonly quietest: {
    readonly bot: string;
    readonly state: BotPhase;
    readonly ageMs: number | null;
  } | null;
  /** Timers that may exist at the exchange. */
  readonly mayFire: number;
}

/** The state as it stands at `now` in a few figures. Reads only. */
export function summarise(state: CoreState, now: Instant): Summary {
  const agoMs = Math.max(0, sinceStepMs(state, now));
  const summary = { configured: 0, wanted: 0, armed: 0, mayFire: 0 };
  let leastSlack: Summary['leastSlack'] = null;
  let waiting: Summary['waiting'] = null;
  const guarded = new Set<string>();
  for (const market of state.markets) {
    const { market: name, bot } = market.settings;
    if ((market.belief.notAfterMs ?? 0) > now.monoMs) summary.mayFire += 1;
    if (market.leaving === null) {
      summary.configured += 1;
      guarded.add(bot);
    }
    if (!isWanted(state, market)) continue;
    summary.wanted += 1;
    const ms = slackMs(state, market) - agoMs;
    if (ms <= 0) {
      waiting ??= {
        bot,
        market: name,
        why: (market.refusal.said ?? state.key.refusal.said)?.detail ?? market.lastProblem,
      };
      continue;
    }
    summary.armed += 1;
    if (leastSlack === null || ms < leastSlack.ms) leastSlack = { market: name, ms };
  }
  return {
    ...summary,
    authorised: state.key.refusal.said === null,
    waiting,
    leastSlack,
    quietest: quietestOf(state, now, guarded),
  };
}

function quietestOf(state: CoreState, now: Instant, guarded: ReadonlySet<string>): Summary['quietest'] {
  if (state.settings.liveness.mode === 'none') return null;
  let quietest: Summary['quietest'] = null;
  let longestMs = Number.NEGATIVE_INFINITY;
  for (const one of state.bots.values()) {
    const ageMs = evidenceAgeMs(state, now, one);
    // One that said goodbye is silent on purpose.
    const silentMs = one.state === 'goodbye' ? -1 : (ageMs ?? Number.MAX_VALUE);
    if (silentMs <= longestMs || !guarded.has(one.bot)) continue;
    longestMs = silentMs;
    quietest = { bot: one.bot, state: one.state, ageMs };
  }
  return quietest;
}

/** What is believed of one market's timer, in milliseconds from the moment of the view. Read when it is asked for. */
export interface MarketView {
  readonly market: string;
  /** It should be armed now. */
  readonly wanted: boolean;
  /** For so long the timer is surely armed; null where nothing is guaranteed. */
  readonly guaranteedMs: number | null;
  /** Until the latest moment at which a timer that may exist has fired; null where surely none exists. */
  readonly firesInMs: number | null;
  /** The exchange refuses the market. */
  readonly refused: boolean;
  /** Its requests that are on their way, the oldest first. */
  readonly inFlight: readonly { readonly purpose: Purpose }[];
}

/** The beliefs of a core, for judges and tests: they read nothing else of it. */
export interface CoreView {
  readonly phase: Phase['kind'];
  /** Monotonic time at which the core looked at its clocks last. */
  readonly monoMs: number;
  readonly markets: readonly MarketView[];
  marketNamed(name: string): MarketView | undefined;
}

/** The beliefs as they stand at `now`. Reads only. */
export function view(state: CoreState, now: Instant): CoreView {
  return {
    phase: state.phase.kind,
    monoMs: state.now.monoMs,
    get markets() {
      return state.markets.map((market) => seeMarket(state, now, market));
    },
    marketNamed(name) {
      const market = state.byName.get(name);
      return market === undefined ? undefined : seeMarket(state, now, market);
    },
  };
}

function seeMarket(state: CoreState, now: Instant, market: MarketState): MarketView {
  const leftMs = slackMs(state, market) - sinceStepMs(state, now);
  const firesInMs = (market.belief.notAfterMs ?? 0) - now.monoMs;
  return {
    market: market.settings.market,
    wanted: isWanted(state, market),
    guaranteedMs: leftMs > 0 ? leftMs : null,
    firesInMs: firesInMs > 0 ? firesInMs : null,
    refused: market.refusal.said !== null,
    inFlight: onTheirWay(market),
  };
}
