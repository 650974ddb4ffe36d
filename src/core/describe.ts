import { exitOf } from './exit.ts';
import { describeNothingGuarded, describeNotReady } from './guarding.ts';
import { boundsOf, describePromise } from './promise.ts';
import { periodOf } from './settle.ts';
import type { BotSnapshot, MarketPhase, MarketSnapshot, Snapshot } from './snapshot.ts';
import { awakeMs, type BotState, type CoreState, isWanted, type MarketState, slackMs } from './state.ts';
import type { Instant } from './time.ts';

/**
 * The state as it stands at `now`, for people and machines. Reads only; the clocks are not taken in. Which markets there
 * are is settled here; what is asked of one later tells what was learnt since then, counted from `now` all the same.
 */
export function describe(state: CoreState, now: Instant): Snapshot {
  const view = { state, now };
  const markets = state.markets.map((market) => new DescribedMarket(view, market));
  const phase = state.phase.kind;
  const bots = guardedBots(state).map((bot): BotSnapshot => {
    const watched = state.settings.liveness.mode !== 'none';
    return {
      bot: bot.bot,
      mode: state.settings.liveness.mode,
      state: bot.state,
      evidenceAgeMs: bot.lastLifeMs === null ? null : state.lifeMs + sinceStepMs(view) - bot.lastLifeMs,
      ttlMs: watched ? state.settings.liveness.ttlMs : null,
    };
  });
  const nothingGuarded = describeNothingGuarded({ phase, markets, bots });
  const notReady = describeNotReady({ phase, markets, bots, nothingGuarded });
  if (state.unauthorised !== null)
    notReady.unshift(`the exchange refuses the API key: ${state.unauthorised.detail}`);
  return {
    phase,
    ready: notReady.length === 0,
    notReady,
    nothingGuarded,
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
    bots,
    capacityPerSecond: state.capacityPerSecond,
    cadenceFactor: state.cadenceFactor,
  };
}

/** When a snapshot was taken, and of what. */
interface View {
  readonly state: CoreState;
  readonly now: Instant;
}

/** What the clocks of the state are behind the snapshot's; less than 0 once the state took a step after it. */
function sinceStepMs({ state, now }: View): number {
  return now.monoMs - state.now.monoMs;
}

/**
 * One market of a snapshot, worked out when it is asked for: of ten thousand markets most readers want a field or two,
 * and copies of them all, for every beat and every look at the page, would be most of what the collector has to move.
 */
class DescribedMarket implements MarketSnapshot {
  readonly #view: View;
  readonly #market: MarketState;

  constructor(view: View, market: MarketState) {
    this.#view = view;
    this.#market = market;
  }

  get market(): string {
    return this.#market.settings.market;
  }

  get types(): MarketSnapshot['types'] {
    return this.#market.settings.types;
  }

  get bot(): string {
    return this.#market.settings.bot;
  }

  get state(): MarketPhase {
    return phaseOf(this.#view.state, this.#market, this.guaranteedMs);
  }

  get wanted(): boolean {
    return isWanted(this.#view.state, this.#market);
  }

  get hold(): MarketSnapshot['hold'] {
    return describeHold(this.#view, this.#market);
  }

  get leaving(): boolean {
    return this.#market.leaving;
  }

  get handedOverInMs(): number | null {
    const { movedUntilAwakeMs } = this.#market;
    if (movedUntilAwakeMs === null) return null;
    return Math.max(0, movedUntilAwakeMs - awakeMs(this.#view.state) - sinceStepMs(this.#view));
  }

  get timeoutMs(): number {
    return this.#market.settings.timeoutMs;
  }

  get periodMs(): number {
    return periodOf(this.#view.state, this.#market);
  }

  get survivesMs(): number {
    // Its place may be another's once it is gone, and nothing is promised of what nobody renews.
    if (this.leaving) return 0;
    return boundsOf(this.#view.state.settings, this.#market.index, this.periodMs).survivesMs;
  }

  get guaranteedMs(): number | null {
    return guaranteedMsOf(this.#view, this.#market);
  }

  get expiryWallMs(): number | null {
    return this.#market.belief.expiryWallMs;
  }

  get firesByWallMs(): number | null {
    const { now } = this.#view;
    const { notAfterMs } = this.#market.belief;
    return notAfterMs === null || notAfterMs <= now.monoMs ? null : now.wallMs + (notAfterMs - now.monoMs);
  }

  get cancellationTime(): number | null {
    return this.#market.belief.server?.cancellationTime ?? null;
  }

  get lastDurationMs(): number | null {
    return this.#market.lastDurationMs;
  }

  get lastSlackRatio(): number | null {
    return this.#market.slackHistory.at(-1) ?? null;
  }

  get slackHistory(): readonly number[] {
    return [...this.#market.slackHistory];
  }

  get renewals(): number {
    return this.#market.renewals;
  }

  get failures(): number {
    return this.#market.failures;
  }

  get failureStreak(): number {
    return this.#market.streak;
  }

  get lapses(): number {
    return this.#market.lapses;
  }

  get lastProblem(): string | null {
    const { refused, lastProblem, altered } = this.#market;
    return refused?.detail ?? lastProblem ?? altered;
  }

  get onStop(): string {
    return describeStop(this.#view.state, this.#market, this.firesByWallMs !== null);
  }

  get promise(): readonly string[] {
    if (this.leaving) return [];
    return describePromise(this.#view.state.settings, this.#market.index, this.periodMs);
  }
}

function guaranteedMsOf(view: View, market: MarketState): number | null {
  return market.belief.notBeforeLifeMs === null ? null : slackMs(view.state, market) - sinceStepMs(view);
}

function guardedBots(state: CoreState): BotState[] {
  const names = new Set<string>();
  for (const { settings } of state.markets) {
    names.add(settings.bot);
    if (names.size === state.bots.size) break;
  }
  return [...state.bots.values()].filter(({ bot }) => names.has(bot));
}

function describeHold(view: View, { hold }: MarketState): MarketSnapshot['hold'] {
  if (hold === null) return null;
  const { why, untilAwakeMs } = hold;
  if (untilAwakeMs === null) return { why, untilWallMs: null };
  const leftMs = untilAwakeMs - awakeMs(view.state) - sinceStepMs(view);
  return { why, untilWallMs: view.now.wallMs + Math.max(0, leftMs) };
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
