import type { Effect } from './events.ts';
import type { LeftArmed } from './notice.ts';
import { routeOf } from './outage.ts';
import type { Candidate } from './release.ts';
import type { CoreState, MarketState } from './state.ts';

type Policy = 'delete' | 'keep' | 'handoff';

/** A confirmed delete that is still this far from the end of the budget leaves time to say so. */
const LAST_WORD_MS = 200;

/**
 * Enters the stop: from here on no renewal is written but the last one of a handoff, and in-flight requests get a
 * shorter deadline so that deletes can follow inside the budget. Design, invariants 5 to 7.
 */
export function beginStop(state: CoreState, policy: Policy, why: string, out: Effect[]): void {
  if (state.phase.kind !== 'running') return;
  const { budgetMs } = state.settings.shutdown;
  const { monoMs } = state.now;
  state.phase = { kind: 'stopping', policy, startedMs: monoMs, budgetEndMs: monoMs + budgetMs };
  out.push({ kind: 'notice', notice: { kind: 'stopping', policy, budgetMs, why } });
  for (const market of state.markets) {
    const want = exitOf(state, market, policy);
    const nothingLeft = market.belief.notAfterMs === null || market.belief.notAfterMs <= monoMs;
    market.exit = { want, done: want === 'keep' || (want === 'delete' && nothingLeft) };
    market.nextMs = monoMs;
    for (const attempt of market.inFlight) {
      attempt.deadlineMs = Math.min(attempt.deadlineMs, monoMs + budgetMs / 4);
    }
  }
}

/** Delete only on purpose: the bot lives, said goodbye, or is not watched. A dead bot's timer stays and fires. */
export function exitOf(state: CoreState, market: MarketState, policy: Policy): Policy {
  const bot = state.bots.get(market.settings.bot);
  const consents = bot !== undefined && (bot.state === 'alive' || bot.state === 'goodbye');
  if (!consents) return 'keep';
  if (policy === 'handoff' && (market.suspended !== null || market.held || market.refused !== null))
    return 'keep';
  return policy;
}

/** What the stop wants to write now: deletes, or the last renewal of a handoff, each after all of its market settled. */
export function dueWhileStopping(state: CoreState): Candidate[] {
  const due: Candidate[] = [];
  if (state.unauthorised !== null) return due;
  const base = routeOf(state)?.index ?? 0;
  for (const market of state.markets) {
    const { exit } = market;
    if (exit === null || exit.done || exit.want === 'keep') continue;
    const waits = state.settings.flaw !== 'delete-beside-renewal';
    if ((waits && market.inFlight.some(({ purpose }) => purpose !== 'delete')) || market.inFlight.length >= 3)
      continue;
    const fromMs =
      exit.want === 'delete' ? Math.max(market.nextMs, deletableFromMs(state, market)) : market.nextMs;
    if (fromMs <= state.now.monoMs) {
      const purpose = exit.want === 'delete' ? 'delete' : 'renew';
      due.push({ market, purpose, base, detached: market.timedOut, onWrite: null });
    } else {
      state.nextDueMs = Math.min(state.nextDueMs, fromMs);
    }
  }
  return due;
}

/**
 * Without rising nonces a renewal of unknown outcome may arrive after the delete and arm the timer again. The delete
 * waits for the end of its lifetime where the budget has the time; where it has not, it goes at once and the timer is
 * reported as unconfirmed.
 */
function deletableFromMs(state: CoreState, market: MarketState): number {
  if (state.phase.kind !== 'stopping' || state.settings.nonce === 'increasing') return 0;
  const { strayUntilMs } = market.belief;
  return strayUntilMs < state.phase.budgetEndMs - 1000 ? strayUntilMs : 0;
}

/** Ends the stop when every market is done or the budget is spent. */
export function judgeStop(state: CoreState, out: Effect[]): void {
  if (state.phase.kind !== 'stopping') return;
  const { monoMs } = state.now;
  const spent = monoMs >= state.phase.budgetEndMs - LAST_WORD_MS;
  const hopeless = state.unauthorised !== null && state.attempts.size === 0;
  if (!spent && !hopeless && state.markets.some((market) => !market.exit?.done)) return;
  const left: LeftArmed[] = [];
  for (const market of state.markets) {
    const { notAfterMs } = market.belief;
    if (notAfterMs === null || notAfterMs <= monoMs) continue;
    left.push({
      market: market.settings.market,
      firesByWallMs: state.now.wallMs + (notAfterMs - monoMs),
      why: market.exit?.want === 'delete' ? 'unconfirmed' : 'policy',
    });
  }
  for (const attempt of state.attempts.values()) {
    if (!attempt.aborted) out.push({ kind: 'abort', attempt: attempt.id });
    attempt.aborted = true;
  }
  state.phase = { kind: 'stopped' };
  out.push({ kind: 'notice', notice: { kind: 'stopped', left } });
  out.push({ kind: 'finished', left });
}

/** When the stop must be judged again at the latest. */
export function stopWakeMs(state: CoreState): number {
  return state.phase.kind === 'stopping' ? state.phase.budgetEndMs - LAST_WORD_MS : Number.POSITIVE_INFINITY;
}
