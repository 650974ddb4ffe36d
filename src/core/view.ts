import { isConfirmed } from './belief.ts';
import type { Purpose } from './events.ts';
import { suspensionOf } from './goal.ts';
import { shortTimerGapMs } from './next.ts';
import type { BotPhase, Hold } from './notice.ts';
import { ASSUMED_ANSWER_MS, boundsOf, describePromise, ROUNDING_MS } from './promise.ts';
import type { CoreState, MarketState } from './state.ts';
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

/** What is read of a market at every step, by judges too: durations in milliseconds. */
function glanceAt(state: CoreState, now: Instant, market: MarketState) {
  const { settings, belief, refusal } = market;
  const guaranteedMs = belief.notBefore === null ? null : state.slackMs(market) - sinceStepMs(state, now);
  const stillMs = (belief.notAfterMs ?? 0) - now.monoMs;
  const firesInMs = stillMs > 0 ? stillMs : null;
  return {
    market: settings.market,
    bot: settings.bot,
    /** No longer configured; shown until its timer is gone. */
    leaving: market.leaving !== null,
    /** Should be armed now: the daemon runs, nobody holds the market, and its bot lives or is in its start-up grace. */
    wanted: state.isWanted(market),
    /** Guaranteed armed for this long; 0 or less where the guarantee ran out; null where no timer is known: never confirmed, deleted, or fired. */
    guaranteedMs,
    /** The guarantee where it is in force; null where nothing is guaranteed now. */
    sureMs: guaranteedMs !== null && guaranteedMs > 0 ? guaranteedMs : null,
    /** How long a timer that may exist can still run; null where surely none exists. */
    firesInMs,
    refused: refusal.said !== null,
    /** Where nothing is tried any more, what the last attempt came to is over. */
    lastProblem: refusal.said?.detail ?? (market.reached ? null : market.lastProblem) ?? market.altered,
    /** Its requests that are on their way, the oldest first. */
    inFlight: (): readonly { readonly purpose: Purpose }[] => market.onTheirWay,
  };
}

export type MarketView = Readonly<ReturnType<typeof glanceAt>>;

/**
 * One market as it stands at `now`, for people and machines to read. Durations in milliseconds, moments in Unix
 * milliseconds.
 */
function snapshotOf(state: CoreState, now: Instant, market: MarketState) {
  const { settings, belief, hold, stats } = market;
  const seen = glanceAt(state, now, market);
  const sinceMs = sinceStepMs(state, now);
  const { timeoutMs } = settings;
  const grantedMs =
    belief.server === null
      ? timeoutMs
      : clamp((belief.server.cancellationTime - belief.server.startTime) * 1000, 0, timeoutMs);
  const periodMs = Math.min(
    state.periodOf(market) * state.overload,
    shortTimerGapMs(market, grantedMs - ROUNDING_MS),
  );
  const answerMs = Math.max(ASSUMED_ANSWER_MS, market.answerMs ?? 0);
  const leftOf = ({ untilAwakeMs }: { readonly untilAwakeMs: number | null }) =>
    untilAwakeMs === null ? null : Math.max(0, untilAwakeMs - state.awakeMs - sinceMs);
  const wallIn = (inMs: number | null) => (inMs === null ? null : now.wallMs + inMs);
  return {
    ...seen,
    types: settings.types,
    state: phaseOf(state, market, seen.guaranteedMs),
    timer: seen.firesInMs === null ? 'none' : knownOf(state, market),
    /** Why an operator, or a lapse, took it out of guard, and until when (Unix milliseconds; null: until armed). */
    hold: hold && { why: hold.why, untilWallMs: wallIn(leftOf(hold)) },
    timeoutMs,
    /** The timer that the exchange grants, which may be shorter than what it is asked for. */
    grantedMs,
    /** As it comes out: longer than planned where not all of them can be carried, shorter where less is granted than asked for. */
    periodMs,
    /** Longest outage of the exchange that cancels nothing. Nothing is promised of what nobody renews. */
    survivesMs: seen.leaving ? 0 : boundsOf(state.settings, grantedMs, periodMs, answerMs).survivesMs,
    /** Made when it is read: most readers do without. */
    get promise(): readonly string[] {
      return seen.leaving ? [] : describePromise(state.settings, settings, periodMs, answerMs, grantedMs);
    },
    /** Conservative expiry, Unix milliseconds; null where there is none (never armed, or deleted). */
    expiryWallMs: wallIn(seen.guaranteedMs),
    /** The latest moment at which a timer that may exist fires, Unix milliseconds; null where surely none exists. */
    firesByWallMs: wallIn(seen.firesInMs),
    /** The exchange's own cancellationTime of the last confirmation, Unix seconds. */
    cancellationTime: belief.server?.cancellationTime ?? null,
    lastDurationMs: stats.lastDurationMs,
    lastSlackRatio: stats.slackHistory.at(-1) ?? null,
    /** Slack ratios of the last confirmations, oldest first, at most 60. */
    slackHistory: stats.slackHistory,
    renewals: stats.renewals,
    failures: stats.failures,
    failureStreak: market.streak,
    lapses: stats.lapses,
    /** When a market that the exchange refuses is tried again, Unix milliseconds; null where it refuses none. */
    retryWallMs:
      !seen.refused || market.nextMs === Number.POSITIVE_INFINITY ? null : wallIn(market.nextMs - now.monoMs),
    /** What a stop with the configured policy would do with this market's timer now, as a sentence. */
    onStop: describeStop(state, market, seen.firesInMs !== null),
  };
}

export type MarketSnapshot = Readonly<ReturnType<typeof snapshotOf>>;

/** A core that took no step for this long makes no progress: it asks for a tick every 500 ms. */
const LIVE_WITHIN_MS = 5000;

/** What is read of a core at every step. Reads only; the clocks are not taken in. */
export function look(state: CoreState, now: Instant) {
  const { settings } = state;
  return {
    phase: state.phase.kind,
    /** Monotonic time at which the core looked at its clocks last. */
    monoMs: state.now.monoMs,
    authorised: state.key.refusal.said === null,
    /** Is a market that should be armed not surely armed? Looks at no more of them than it must. */
    isWaiting: (): boolean =>
      state.markets.some(
        (market) => state.isWanted(market) && state.slackMs(market) <= sinceStepMs(state, now),
      ),
    markets: () => state.markets.map((market) => glanceAt(state, now, market)),
    marketNamed(name: string): MarketView | undefined {
      const market = state.byName.get(name);
      return market && glanceAt(state, now, market);
    },
    /** The markets of one bot, but for those that leave. */
    marketsOf: (bot: string) =>
      state.markets
        .filter(({ settings, leaving }) => settings.bot === bot && leaving === null)
        .map((market) => {
          const { guaranteedMs, firesInMs } = glanceAt(state, now, market);
          const firesByWallMs = firesInMs === null ? null : now.wallMs + firesInMs;
          const name = market.settings.market;
          return { market: name, state: phaseOf(state, market, guaranteedMs), guaranteedMs, firesByWallMs };
        }),
    /** The bots that a market names. */
    bots(): readonly BotSnapshot[] {
      const { mode, ttlMs, startupGraceMs } = settings.liveness;
      const guarded = new Set(state.markets.map(({ bot }) => bot));
      const sinceMs = sinceStepMs(state, now);
      const nowMs = state.lifeMs + sinceMs;
      return [...state.bots.values()]
        .filter((bot) => guarded.has(bot))
        .map(({ bot, state: phase, lastLifeMs, lastAwakeMs }) => ({
          bot,
          mode,
          state: phase,
          evidenceAgeMs: lastLifeMs === Number.NEGATIVE_INFINITY ? null : nowMs - lastLifeMs,
          ttlMs: mode === 'none' ? null : ttlMs,
          graceEndsWallMs:
            phase === 'starting' ? now.wallMs + lastAwakeMs + startupGraceMs - state.awakeMs - sinceMs : null,
        }));
    },
  };
}

/** The whole daemon at one moment. */
export function describe(state: CoreState, now: Instant) {
  const seen = look(state, now);
  const { phase, authorised } = seen;
  const live = sinceStepMs(state, now) < LIVE_WITHIN_MS;
  const bots = seen.bots();
  const markets: readonly MarketSnapshot[] = state.markets.map((market) => snapshotOf(state, now, market));
  const nothingGuarded = describeNothingGuarded({ phase, markets, bots });
  const notReady = describeNotReady({ phase, live, markets, bots, nothingGuarded });
  const refused = state.key.refusal.said;
  if (refused !== null) notReady.unshift(`the exchange refuses the API key: ${refused.detail}`);
  return {
    phase,
    /** The end of a stop's budget, Unix milliseconds; null where none has begun. */
    stopEndsWallMs: state.phase.kind === 'stopping' ? state.wallAt(state.phase.budgetEndMs) : null,
    ready: notReady.length === 0,
    /** Why not ready, one sentence per reason; empty when ready. */
    notReady: notReady as readonly string[],
    /** Why no market at all is wanted armed, in a sentence; null where one is. */
    nothingGuarded,
    /** The loop turns. */
    live,
    authorised,
    shutdownPolicy: state.settings.shutdown.policy,
    markets,
    bases: state.bases.map(({ url, index, ping, outage }) => ({
      url,
      up: ping?.ok ?? null,
      pingMs: ping?.ok === true ? ping.latencyMs : null,
      lastProblem: ping?.ok === false ? ping.detail : null,
      /** Renewals may take it: the first, and others that serve the same account. */
      used: index === 0 || state.settings.sameAccount,
      outage: outage !== null,
    })),
    bots,
    capacityPerSecond: state.capacityPerSecond,
    cadenceFactor: state.cadenceFactor,
  };
}

export type Snapshot = Readonly<ReturnType<typeof describe>>;
export type BaseSnapshot = Snapshot['bases'][number];

export interface BotSnapshot {
  readonly bot: string;
  readonly mode: string;
  readonly state: BotPhase;
  readonly evidenceAgeMs: number | null;
  readonly ttlMs: number | null;
  /** Unless it is heard before, its timers are not renewed from then on, Unix milliseconds; null outside its start-up grace. */
  readonly graceEndsWallMs: number | null;
}

export type CoreView = Readonly<ReturnType<typeof look>>;

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
  if (guaranteedMs === null && !mayStand) {
    if (!state.isWanted(market)) return 'suspended';
    return state.key.refusal.said === null ? 'arming' : 'rejected';
  }
  if (guaranteedMs === null || guaranteedMs <= 0) return 'expired';
  return market.streak > 0 ? 'retrying' : 'armed';
}

/**
 * What is known of a timer that may exist. `unconfirmed`: no answer told of one. `deleting`: it is being deleted, or will
 * be once its bot is heard in the stop.
 */
function knownOf({ phase }: CoreState, { belief, goal, reached }: MarketState) {
  if (!isConfirmed(belief)) return 'unconfirmed';
  const isLeft = goal === 'delete' ? reached : goal !== 'guard' || phase.kind !== 'stopping';
  return isLeft ? 'confirmed' : 'deleting';
}

/** What a stop with the configured policy would do with the timer now, if the bot gives a sign of life after it. */
function describeStop(state: CoreState, market: MarketState, mayExist: boolean): string {
  if (!mayExist) return 'nothing to do: no timer is armed';
  const { policy } = state.settings.shutdown;
  const bot = market.bot.state;
  const isWell =
    market.hold === null && bot === 'alive' && (policy !== 'handoff' || market.refusal.said === null);
  const will = isWell ? policy : market.goal === 'delete' ? 'delete' : 'keep';
  const isSick = market.streak > 0 || market.refusal.said !== null || state.key.refusal.said !== null;
  switch (will) {
    case 'delete':
      return isSick
        ? 'tries to delete the timer: the orders stay only if the exchange confirms it before the timer fires'
        : 'deletes the timer: the orders stay';
    case 'keep':
      return isConfirmed(market.belief)
        ? 'leaves the timer: the exchange cancels the orders when it fires'
        : 'leaves a timer that may still run: if none does, the orders stay';
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
  stale: ['has a bot that is silent', 'wait for a bot that is silent'],
  goodbye: ['has a bot that said goodbye', 'wait for a bot that said goodbye'],
  failed: ['has a bot that failed', 'wait for a bot that failed'],
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
