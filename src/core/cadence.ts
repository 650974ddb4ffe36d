import type { Effect } from './events.ts';
import { plannedPerSecond } from './rate.ts';
import type { CoreState } from './state.ts';
import { planCadence } from './timing.ts';

const REPLAN_MS = 5000;
/** Share of 1/round trip that requests one after the other are planned to use. */
const SERIAL_SHARE = 0.8;
const RECOVERY_MS = 10_000;
const RECOVERY_STEP = 0.25;

/** Lets the cadence follow what the connection carries, and recover from throttling in small steps. */
export function easeCadence(state: CoreState, out: Effect[]): void {
  const { monoMs } = state.now;
  if (monoMs < state.nextReplanMs) return;
  state.nextReplanMs = monoMs + REPLAN_MS;
  state.fastestBeforeMs = state.fastestMs;
  state.fastestMs = Number.POSITIVE_INFINITY;
  if (state.cadenceFactor > 1 && monoMs - state.lastThrottledMs > RECOVERY_MS) {
    state.cadenceFactor = Math.max(1, state.cadenceFactor - RECOVERY_STEP);
  }
  const capacityPerSecond = carriedPerSecond(state);
  if (Math.abs(capacityPerSecond / state.capacityPerSecond - 1) < 0.1) return;
  const { moved, problems } = planPeriods(state, capacityPerSecond);
  if (!moved && problems.length === 0) return;
  const detail =
    problems[0] ??
    `requests one after the other carry ${capacityPerSecond.toFixed(1)} renewals a second at a round trip of ${(state.roundTripMs ?? 0).toFixed(1)} ms; the cadence follows`;
  out.push({ kind: 'notice', notice: { kind: 'cadence', detail, capacityPerSecond } });
}

/** Renewals a second that the rate limit and, where requests go one after the other, the round trip allow. */
export function carriedPerSecond(state: CoreState): number {
  const limitPerSecond = plannedPerSecond(state.settings, state.roundTripMs);
  if (state.roundTripMs === null) return limitPerSecond;
  const lanes = state.settings.nonce === 'window' ? state.settings.connections : 1;
  return Math.min(limitPerSecond, (lanes * SERIAL_SHARE * 1000) / Math.max(state.roundTripMs, 0.1));
}

/** Gives every configured market its period and its place on the grid. `moved`: some period changed noticeably. */
export function planPeriods(
  state: CoreState,
  capacityPerSecond: number,
): { readonly moved: boolean; readonly problems: readonly string[] } {
  const { markets } = state.settings;
  state.capacityPerSecond = capacityPerSecond;
  const { periodsMs, problems } = planCadence(markets, capacityPerSecond);
  let moved = false;
  state.pace.neededPerSecond = 0;
  for (const market of state.markets) {
    const periodMs = periodsMs[market.index] ?? market.periodMs;
    moved ||= Math.abs(periodMs / market.periodMs - 1) > 0.1;
    market.periodMs = periodMs;
    state.pace.neededPerSecond += 1000 / periodMs;
    market.phaseMs = (periodMs * market.index) / Math.max(1, markets.length);
  }
  return { moved, problems };
}
