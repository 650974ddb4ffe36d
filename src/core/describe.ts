import { exitOf } from './exit.ts';
import { boundsOf, describePromise } from './promise.ts';
import { periodOf } from './settle.ts';
import type { BotSnapshot, MarketPhase, MarketSnapshot, Snapshot } from './snapshot.ts';
import { awakeMs, type BotState, type CoreState, isWanted, type MarketState, slackMs } from './state.ts';
import type { Instant } from './time.ts';

/** The state as it stands at `now`, for people and machines. Reads only; the clocks are not taken in. */
export function describe(state: CoreState, now: Instant): Snapshot {
  const sinceStepMs = Math.max(0, now.monoMs - state.now.monoMs);
  const markets = state.markets.map((market) => describeMarket(state, market, now, sinceStepMs));
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

function describeMarket(
  state: CoreState,
  market: MarketState,
  now: Instant,
  sinceStepMs: number,
): MarketSnapshot {
  const { settings, belief } = market;
  const hasTimer = belief.notBeforeLifeMs !== null;
  const guaranteedMs = hasTimer ? slackMs(state, market) - sinceStepMs : null;
  const fires = belief.notAfterMs !== null && belief.notAfterMs > now.monoMs ? belief.notAfterMs : null;
  const periodMs = periodOf(state, market);
  return {
    market: settings.market,
    types: settings.types,
    bot: settings.bot,
    state: phaseOf(state, market, guaranteedMs),
    wanted: isWanted(state, market),
    hold: describeHold(state, market, now, sinceStepMs),
    leaving: market.leaving,
    handedOverInMs:
      market.movedUntilAwakeMs === null
        ? null
        : Math.max(0, market.movedUntilAwakeMs - awakeMs(state) - sinceStepMs),
    timeoutMs: settings.timeoutMs,
    periodMs,
    survivesMs: boundsOf(state.settings, market.index, periodMs).survivesMs,
    guaranteedMs,
    expiryWallMs: belief.expiryWallMs,
    firesByWallMs: fires === null ? null : now.wallMs + (fires - now.monoMs),
    cancellationTime: belief.server?.cancellationTime ?? null,
    lastDurationMs: market.lastDurationMs,
    lastSlackRatio: market.slackHistory.at(-1) ?? null,
    slackHistory: [...market.slackHistory],
    renewals: market.renewals,
    failures: market.failures,
    failureStreak: market.streak,
    lapses: market.lapses,
    lastProblem: market.refused?.detail ?? market.lastProblem ?? market.altered,
    onStop: describeStop(state, market, fires !== null),
    promise: describePromise(state.settings, market.index, periodMs),
  };
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
