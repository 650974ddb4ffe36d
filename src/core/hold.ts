import { dueAt, dueBy } from './due.ts';
import type { Effect } from './events.ts';
import { followBot } from './evidence.ts';
import { forgetWhatFired, noteUnwanted, reconsider } from './exit.ts';
import type { Hold } from './notice.ts';
import type { OperatorCommand } from './operate.ts';
import { awakeMs, type CoreState, isWanted, type MarketState } from './state.ts';

/** Carries an operator's command out as far as the state goes; requests follow from the next plan. */
export function operate(state: CoreState, command: OperatorCommand, out: Effect[]): void {
  if (state.phase.kind !== 'running') return;
  const named = command.markets === null ? null : new Set(command.markets);
  for (const market of state.markets) {
    if (market.leaving || (named !== null && !named.has(market.settings.market))) continue;
    obey(state, market, command, out);
  }
}

function obey(state: CoreState, market: MarketState, command: OperatorCommand, out: Effect[]): void {
  switch (command.does) {
    case 'arm':
      if (market.hold !== null) release(state, market, 'operator', out);
      // Whoever asks for it wants to know now, not at the next slow probe.
      market.refused = null;
      market.refusals = 0;
      dueBy(state, market, state.now.monoMs);
      break;
    case 'resume':
      if (market.hold?.why === 'paused') release(state, market, 'operator', out);
      break;
    case 'disarm':
      hold(state, market, 'disarmed', null, out);
      break;
    case 'pause':
      // A pause ends by itself: it must not arm what somebody disarmed for good.
      if (market.hold !== null && market.hold.why !== 'paused') break;
      hold(state, market, 'paused', command.forMs, out);
      break;
    case 'trip':
      hold(state, market, 'tripped', null, out);
      dueAt(state, market, state.now.monoMs);
      break;
  }
}

/** After a lapse under `onLapse: hold` the market is left alone until an operator arms it. */
export function holdAfterLapse(state: CoreState, market: MarketState, out: Effect[]): void {
  if (state.settings.onLapse === 'hold' && market.hold === null) hold(state, market, 'lapsed', null, out);
}

/** Pauses end by themselves; the time that the host slept counts. */
export function endPauses(state: CoreState, out: Effect[]): void {
  const nowMs = awakeMs(state);
  if (nowMs < state.pauseOverAwakeMs) return;
  let nextMs = Number.POSITIVE_INFINITY;
  for (const market of state.markets) {
    const untilMs = market.hold?.untilAwakeMs ?? null;
    if (untilMs === null || market.leaving) continue;
    if (nowMs >= untilMs) release(state, market, 'pause-over', out);
    else nextMs = Math.min(nextMs, untilMs);
  }
  state.pauseOverAwakeMs = nextMs;
}

function hold(state: CoreState, market: MarketState, why: Hold, forMs: number | null, out: Effect[]): void {
  if (isWanted(state, market)) noteUnwanted(state, market);
  // The last word counts: what was to be tripped is now to be left alone.
  market.tripWanted = why === 'tripped';
  const untilAwakeMs = forMs === null ? null : awakeMs(state) + forMs;
  market.hold = { why, untilAwakeMs };
  if (untilAwakeMs !== null) state.pauseOverAwakeMs = Math.min(state.pauseOverAwakeMs, untilAwakeMs);
  reconsider(state, market);
  const untilWallMs = forMs === null ? null : state.now.wallMs + forMs;
  out.push({ kind: 'notice', notice: { kind: 'held', market: market.settings.market, why, untilWallMs } });
}

function release(state: CoreState, market: MarketState, why: 'operator' | 'pause-over', out: Effect[]): void {
  market.hold = null;
  market.tripWanted = false;
  if (market.suspended === null) forgetWhatFired(state, market);
  reconsider(state, market);
  // A dead bot's own trip goes on.
  followBot(state, market, out);
  out.push({ kind: 'notice', notice: { kind: 'released', market: market.settings.market, why } });
}
