import { usableBases } from './outage.ts';
import { type BotState, type CoreState, isWanted, slackMs } from './state.ts';
import type { Instant } from './time.ts';

/** The state in a few figures: what `describe` says, without a text for every one of ten thousand markets. */
export interface Summary {
  readonly phase: 'running' | 'stopping' | 'stopped';
  readonly authorised: boolean;
  /** No address that renewals may take answers a ping. False before the first answer. */
  readonly away: boolean;
  readonly configured: number;
  /** Markets that should be armed now, and how many of those surely are. */
  readonly wanted: number;
  readonly armed: number;
  /** The market of those that are armed whose guarantee runs out first. */
  readonly leastSlack: { readonly market: string; readonly ms: number } | null;
  /** The bot that was silent for longest; null where no bot is watched. `ageMs` null: not heard of so far. */
  readonly quietest: {
    readonly bot: string;
    readonly state: BotState['state'];
    readonly ageMs: number | null;
  } | null;
  /** Timers that may exist at the exchange. */
  readonly mayFire: number;
}

/** The state as it stands at `now` in a few figures. Reads only. */
export function summarise(state: CoreState, now: Instant): Summary {
  const sinceStepMs = Math.max(0, now.monoMs - state.now.monoMs);
  const guarded = new Set<string>();
  let wanted = 0;
  let armed = 0;
  let mayFire = 0;
  let leastSlack: Summary['leastSlack'] = null;
  for (const market of state.markets) {
    const { notAfterMs } = market.belief;
    if (notAfterMs !== null && notAfterMs > now.monoMs) mayFire += 1;
    if (!market.leaving) guarded.add(market.settings.bot);
    if (!isWanted(state, market)) continue;
    wanted += 1;
    const ms = slackMs(state, market) - sinceStepMs;
    if (ms <= 0) continue;
    armed += 1;
    if (leastSlack === null || ms < leastSlack.ms) leastSlack = { market: market.settings.market, ms };
  }
  const phase = state.phase.kind;
  const authorised = state.unauthorised === null;
  return {
    phase,
    authorised,
    away: usableBases(state).every(({ pingUp }) => pingUp === false),
    configured: state.markets.filter(({ leaving }) => !leaving).length,
    wanted,
    armed,
    leastSlack,
    quietest: quietestOf(state, guarded, sinceStepMs),
    mayFire,
  };
}

function quietestOf(
  state: CoreState,
  guarded: ReadonlySet<string>,
  sinceStepMs: number,
): Summary['quietest'] {
  if (state.settings.liveness.mode === 'none') return null;
  let quietest: Summary['quietest'] = null;
  let longestMs = Number.NEGATIVE_INFINITY;
  for (const { bot, state: how, lastLifeMs } of state.bots.values()) {
    if (!guarded.has(bot)) continue;
    const ageMs = lastLifeMs === null ? null : state.lifeMs + sinceStepMs - lastLifeMs;
    // One that said goodbye is silent on purpose.
    const silentMs = how === 'goodbye' ? -1 : (ageMs ?? Number.MAX_VALUE);
    if (silentMs <= longestMs) continue;
    longestMs = silentMs;
    quietest = { bot, state: how, ageMs };
  }
  return quietest;
}
