import type { Effect } from './events.ts';
import { beginExit, type ExitPolicy } from './exit.ts';
import type { LeftArmed } from './notice.ts';
import type { CoreState, MarketState } from './state.ts';

/** A confirmed delete that is still this far from the end of the budget leaves time to say so. */
const LAST_WORD_MS = 200;

/**
 * Enters the stop: from here on no renewal is written but the last one of a handoff, and in-flight requests get a
 * shorter deadline so that deletes can follow inside the budget. Design, invariants 5 to 7.
 */
export function beginStop(state: CoreState, policy: ExitPolicy, why: string, out: Effect[]): void {
  if (state.phase.kind !== 'running') return;
  const { budgetMs } = state.settings.shutdown;
  const { monoMs } = state.now;
  state.phase = { kind: 'stopping', policy, startedMs: monoMs, budgetEndMs: monoMs + budgetMs };
  out.push({ kind: 'notice', notice: { kind: 'stopping', policy, budgetMs, why } });
  for (const market of state.markets) {
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
    const { notAfterMs } = market.belief;
    if (notAfterMs === null || notAfterMs <= monoMs) continue;
    left.push({
      market: market.settings.market,
      firesByWallMs: state.now.wallMs + (notAfterMs - monoMs),
      why: whyLeft(market),
    });
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

function whyLeft({ exit }: MarketState): LeftArmed['why'] {
  if (exit?.want === 'delete') return 'unconfirmed';
  return exit?.want === 'handoff' && !exit.done ? 'unrenewed' : 'policy';
}

/** When the stop must be judged again at the latest. */
export function stopWakeMs(state: CoreState): number {
  return state.phase.kind === 'stopping' ? state.phase.budgetEndMs - LAST_WORD_MS : Number.POSITIVE_INFINITY;
}
