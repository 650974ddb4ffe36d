import type { Effect } from './events.ts';
import { beginExit, type ExitPolicy } from './exit.ts';
import type { LeftArmed } from './notice.ts';
import { type CoreState, isHeardSinceStop, type MarketState, type StopAsked } from './state.ts';
import { clamp } from './time.ts';

/** A confirmed delete that is still this far from the end of the budget leaves time to say so. */
const LAST_WORD_MS = 200;

/** Of the budget, this share at least is left for the deletes when the bots have been waited for. */
const SHARE_FOR_DELETES = 1 / 3;

/**
 * Takes the wish to stop in. Where timers are to be deleted, the bots are first waited for: all goes on as before until
 * each that was thought alive has been heard again, or said goodbye, or has run out of time.
 */
export function askStop(state: CoreState, policy: ExitPolicy, why: string, out: Effect[]): void {
  if (state.phase.kind !== 'running' || state.stopAsked !== null) return;
  const alive = [...state.bots.values()].filter((bot) => bot.state === 'alive');
  state.stopAsked = {
    policy,
    startedMs: state.now.monoMs,
    lifeMs: state.lifeMs,
    alive: new Set(state.settings.liveness.mode === 'none' ? [] : alive),
  };
  const { budgetMs } = state.settings.shutdown;
  out.push({ kind: 'notice', notice: { kind: 'stopping', policy, budgetMs, why } });
}

/** Enters the stop that was asked for, once nobody has to be waited for any more. */
export function judgeStopAsked(state: CoreState): void {
  const { stopAsked, phase } = state;
  if (stopAsked === null || phase.kind !== 'running') return;
  if (state.now.monoMs < heardByMs(state) && state.markets.some((market) => isAwaited(state, market))) return;
  enterStop(state, stopAsked);
}

function isAwaited(state: CoreState, market: MarketState): boolean {
  const bot = state.bots.get(market.settings.bot);
  if (state.stopAsked?.policy !== 'delete' || bot?.state !== 'alive' || isHeardSinceStop(state, bot))
    return false;
  const { notAfterMs } = market.belief;
  return market.movedUntilAwakeMs === null && notAfterMs !== null && notAfterMs > state.now.monoMs;
}

/** How long the bots are waited for at most: what is left of the budget must do for the deletes. */
function heardByMs({ stopAsked, settings, markets, roundTripMs }: CoreState): number {
  const { budgetMs } = settings.shutdown;
  const serialMs = settings.nonce === 'increasing' ? markets.length * (roundTripMs ?? 200) * 1.5 : 0;
  const shareMs = clamp(serialMs + 1000, budgetMs * SHARE_FOR_DELETES, budgetMs);
  return (stopAsked?.startedMs ?? 0) + budgetMs - shareMs;
}

/**
 * From here on no renewal is written but the last one of a handoff, and in-flight requests get a shorter deadline so
 * that deletes can follow inside the budget. Design, invariants 5 to 7.
 */
function enterStop(state: CoreState, { policy, startedMs }: StopAsked): void {
  const { budgetMs } = state.settings.shutdown;
  const { monoMs } = state.now;
  state.phase = { kind: 'stopping', policy, startedMs, budgetEndMs: startedMs + budgetMs };
  for (const market of state.markets) {
    market.mayHaveFired = false;
    beginExit(state, market, policy);
    for (const attempt of market.inFlight) {
      attempt.deadlineMs = Math.min(attempt.deadlineMs, monoMs + budgetMs / 4);
    }
  }
}

/** Ends the stop when every market is done or the budget is spent. */
export function judgeStop(state: CoreState, out: Effect[]): void {
  if (state.phase.kind !== 'stopping') return;
  const { monoMs } = state.now;
  const spent = monoMs >= state.phase.budgetEndMs - LAST_WORD_MS;
  if (!spent && state.markets.some((market) => !market.exit?.done)) return;
  const left: LeftArmed[] = [];
  for (const market of state.markets) {
    const why = whyLeft(state, market);
    if (why === null) continue;
    const firesInMs = (market.belief.notAfterMs ?? monoMs) - monoMs;
    left.push({ market: market.settings.market, firesByWallMs: state.now.wallMs + firesInMs, why });
  }
  for (const [market, { notAfterMs }] of state.leftBehind) {
    if (notAfterMs === null || notAfterMs <= monoMs) continue;
    left.push({ market, firesByWallMs: state.now.wallMs + (notAfterMs - monoMs), why: 'policy' });
  }
  for (const attempt of state.attempts) {
    if (!attempt.aborted) out.push({ kind: 'abort', attempt: attempt.id });
    attempt.aborted = true;
  }
  state.phase = { kind: 'stopped' };
  // What the last plan left behind must not follow: its timers were told of just now.
  state.queue = [];
  out.push({ kind: 'notice', notice: { kind: 'stopped', left } });
  out.push({ kind: 'finished', left });
}

/** What is left of the market's timer; null where surely nothing is, and nothing else became of it than was wanted. */
function whyLeft(state: CoreState, market: MarketState): LeftArmed['why'] | null {
  const { exit, belief, settings } = market;
  // It may have fired meanwhile: that is no success either.
  const mayExist = belief.notAfterMs !== null && belief.notAfterMs > state.now.monoMs;
  if (exit?.want === 'delete' && (!exit.done || mayExist)) return 'unconfirmed';
  if (exit?.want === 'delete' && market.deleted && market.mayHaveFired) return 'may-have-fired';
  const bot = state.bots.get(settings.bot);
  const isUnheard = bot !== undefined && bot.state !== 'failed' && !isHeardSinceStop(state, bot);
  const wasAlive =
    bot !== undefined && state.stopAsked?.policy === 'delete' && state.stopAsked.alive.has(bot);
  if (!mayExist) return null;
  if (exit?.want === 'keep' && wasAlive && isUnheard && market.hold === null) return 'unheard';
  return exit?.want === 'handoff' && !exit.done ? 'unrenewed' : 'policy';
}

/** When the stop must be judged again at the latest. */
export function stopWakeMs(state: CoreState): number {
  if (state.phase.kind === 'stopping') return state.phase.budgetEndMs - LAST_WORD_MS;
  const waits = state.phase.kind === 'running' && state.stopAsked !== null;
  return waits ? heardByMs(state) : Number.POSITIVE_INFINITY;
}
