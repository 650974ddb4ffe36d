import { exitOf } from './exit.ts';
import { boundsOf, describePromise } from './promise.ts';
import { periodOf } from './settle.ts';
import type { BotSnapshot, MarketPhase, MarketSnapshot, Snapshot } from './snapshot.ts';
import { awakeMs, type BotState, type CoreState, isWanted, type MarketState, slackMs } from './state.ts';
import type { Instant } from './time.ts';

/**
 * The state as it stands at `now`, for people and machines. Reads only; the clocks are not taken in. To be read at once:
 * a few fields are made from the state when they are asked for.
 */
export function describe(state: CoreState, now: Instant): Snapshot {
  const sinceStepMs = Math.max(0, now.monoMs - state.now.monoMs);
  const markets = state.markets.map((market) => new DescribedMarket(state, market, now, sinceStepMs));
  const notReady: string[] = [];
  if (state.unauthorised !== null)
    notReady.push(`the exchange refuses the API key: ${state.unauthorised.detail}`);
  for (const market of markets) {
    if (market.wanted && !(market.guaranteedMs !== null && market.guaranteedMs > 0)) {
      notReady.push(`${market.market} is not confirmed armed (${market.state})`);
    }
  }
  const phase = state.phase.kind;
  if (phase !== 'running') notReady.push(`the daemon is ${phase}`);
  return {
    phase,
    ready: notReady.length === 0,
    notReady,
    live: true,
    authorised: state.unauthorised === null,
    shutdownPolicy: state.settings.shutdown.policy,
    markets,
    bases: state.bases.map((base) => ({
      url: base.url,
      up: base.pingUp,
      pingMs: base.pingMs,
      lastProblem: base.pingProblem,
      outage: base.outage !== null,
    })),
    bots: guardedBots(state).map((bot): BotSnapshot => {
      const watched = state.settings.liveness.mode !== 'none';
      return {
        bot: bot.bot,
        mode: state.settings.liveness.mode,
        state: bot.state,
        evidenceAgeMs: bot.lastLifeMs === null ? null : state.lifeMs + sinceStepMs - bot.lastLifeMs,
        ttlMs: watched ? state.settings.liveness.ttlMs : null,
      };
    }),
    capacityPerSecond: state.capacityPerSecond,
    cadenceFactor: state.cadenceFactor,
  };
}

/**
 * One market of a snapshot. What only pages show is made when it is asked for: most snapshots are taken for a beat, a
 * probe or a scrape, and of ten thousand markets nobody reads more.
 */
class DescribedMarket implements MarketSnapshot {
  readonly market: string;
  readonly types: MarketSnapshot['types'];
  readonly bot: string;
  readonly state: MarketPhase;
  readonly wanted: boolean;
  readonly hold: MarketSnapshot['hold'];
  readonly leaving: boolean;
  readonly handedOverInMs: number | null;
  readonly timeoutMs: number;
  readonly periodMs: number;
  readonly guaranteedMs: number | null;
  readonly expiryWallMs: number | null;
  readonly firesByWallMs: number | null;
  readonly cancellationTime: number | null;
  readonly lastDurationMs: number | null;
  readonly lastSlackRatio: number | null;
  readonly renewals: number;
  readonly failures: number;
  readonly failureStreak: number;
  readonly lapses: number;
  readonly lastProblem: string | null;
  readonly #core: CoreState;
  readonly #settings: CoreState['settings'];
  readonly #market: MarketState;
  readonly #index: number;

  constructor(state: CoreState, market: MarketState, now: Instant, sinceStepMs: number) {
    const { settings, belief } = market;
    const hasTimer = belief.notBeforeLifeMs !== null;
    const guaranteedMs = hasTimer ? slackMs(state, market) - sinceStepMs : null;
    const fires = belief.notAfterMs !== null && belief.notAfterMs > now.monoMs ? belief.notAfterMs : null;
    this.market = settings.market;
    this.types = settings.types;
    this.bot = settings.bot;
    this.state = phaseOf(state, market, guaranteedMs);
    this.wanted = isWanted(state, market);
    this.hold = describeHold(state, market, now, sinceStepMs);
    this.leaving = market.leaving;
    const { movedUntilAwakeMs } = market;
    this.handedOverInMs =
      movedUntilAwakeMs === null ? null : Math.max(0, movedUntilAwakeMs - awakeMs(state) - sinceStepMs);
    this.timeoutMs = settings.timeoutMs;
    this.periodMs = periodOf(state, market);
    this.guaranteedMs = guaranteedMs;
    this.expiryWallMs = belief.expiryWallMs;
    this.firesByWallMs = fires === null ? null : now.wallMs + (fires - now.monoMs);
    this.cancellationTime = belief.server?.cancellationTime ?? null;
    this.lastDurationMs = market.lastDurationMs;
    this.lastSlackRatio = market.slackHistory.at(-1) ?? null;
    this.renewals = market.renewals;
    this.failures = market.failures;
    this.failureStreak = market.streak;
    this.lapses = market.lapses;
    this.lastProblem = market.refused?.detail ?? market.lastProblem ?? market.altered;
    this.#core = state;
    this.#settings = state.settings;
    this.#market = market;
    this.#index = market.index;
  }

  get survivesMs(): number {
    return boundsOf(this.#settings, this.#index, this.periodMs).survivesMs;
  }

  get slackHistory(): readonly number[] {
    return [...this.#market.slackHistory];
  }

  get onStop(): string {
    return describeStop(this.#core, this.#market, this.firesByWallMs !== null);
  }

  get promise(): readonly string[] {
    return describePromise(this.#settings, this.#index, this.periodMs);
  }
}

function guardedBots(state: CoreState): BotState[] {
  const names = new Set(state.markets.map(({ settings }) => settings.bot));
  return [...state.bots.values()].filter(({ bot }) => names.has(bot));
}

function describeHold(
  state: CoreState,
  { hold }: MarketState,
  now: Instant,
  sinceStepMs: number,
): MarketSnapshot['hold'] {
  if (hold === null) return null;
  const { why, untilAwakeMs } = hold;
  const leftMs = untilAwakeMs === null ? null : untilAwakeMs - awakeMs(state) - sinceStepMs;
  return { why, untilWallMs: leftMs === null ? null : now.wallMs + Math.max(0, leftMs) };
}

function phaseOf(state: CoreState, market: MarketState, guaranteedMs: number | null): MarketPhase {
  if (market.deleted && market.hold === null) return 'deleted';
  if (market.refused !== null) return 'rejected';
  if (market.hold !== null) return market.hold.why === 'paused' ? 'paused' : 'disarmed';
  if (market.suspended !== null) return 'suspended';
  if (guaranteedMs === null) return state.unauthorised === null ? 'arming' : 'rejected';
  if (guaranteedMs <= 0) return 'expired';
  return market.streak > 0 ? 'retrying' : 'armed';
}

function describeStop(state: CoreState, market: MarketState, mayExist: boolean): string {
  if (!mayExist) return 'nothing to do: no timer is armed';
  switch (exitOf(state, market, state.settings.shutdown.policy)) {
    case 'delete':
      return 'deletes the timer: the orders stay';
    case 'keep':
      return 'leaves the timer: the exchange cancels the orders when it fires';
    case 'handoff':
      return 'renews the timer once more and leaves it to the successor';
  }
}
