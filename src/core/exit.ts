import { loseGuarantee } from './belief.ts';
import { dueAt } from './due.ts';
import { routeFor } from './outage.ts';
import type { Candidate } from './release.ts';
import { awakeSlackMs, type CoreState, isHeardSinceStop, isWanted, type MarketState } from './state.ts';
import { orderOf } from './urgency.ts';

export type ExitPolicy = 'delete' | 'keep' | 'handoff';

/** More requests of one exit than this in flight only add load. */
const MOST_IN_FLIGHT = 3;

/**
 * The market is guarded no longer, on purpose: the daemon stops, an operator disarms or pauses it, its bot said goodbye,
 * or a reload took it out. What becomes of its timer is decided here, and carried out once all in flight has settled.
 * Design, invariants 5 to 7.
 */
export function beginExit(state: CoreState, market: MarketState, policy: ExitPolicy): void {
  const { monoMs } = state.now;
  // What an operator wants deleted is deleted under any policy.
  const want = exitOf(state, market, isOutOfGuard(market) ? 'delete' : policy);
  const nothingLeft = market.belief.notAfterMs === null || market.belief.notAfterMs <= monoMs;
  // A timer that is to be cut short is left once that has happened.
  market.exit = {
    want,
    done: want === 'keep' ? !market.tripWanted : want === 'delete' && nothingLeft,
  };
  dueAt(state, market, monoMs);
}

function isOutOfGuard({ hold }: MarketState): boolean {
  return hold?.why === 'disarmed' || hold?.why === 'paused';
}

/**
 * Delete only on purpose: the bot lives, and was heard since the stop was asked for, said goodbye, or is not watched. A dead bot's timer stays and fires, and so
 * does one that was cut short to fire. A market that went to another shard is handed off, whatever the policy.
 */
export function exitOf(state: CoreState, market: MarketState, wanted: ExitPolicy): ExitPolicy {
  // The timer is another shard's as well: a delete would leave that one's orders without it.
  const policy = market.movedUntilAwakeMs !== null && wanted === 'delete' ? 'handoff' : wanted;
  const bot = state.bots.get(market.settings.bot);
  const consents = bot !== undefined && (bot.state === 'alive' || bot.state === 'goodbye');
  if (consents && policy === 'delete' && !isHeardSinceStop(state, bot)) return 'keep';
  if (!consents || market.tripWanted || market.hold?.why === 'tripped') return 'keep';
  if (policy === 'handoff' && (market.suspended !== null || market.hold !== null || market.refused !== null))
    return 'keep';
  return policy;
}

/**
 * What the exits among `ending` want to write now: deletes, or the last renewal of a handoff, each after all of its
 * market settled. A stop may not have the time for all renewals: the most urgent comes first.
 */
export function dueExits(state: CoreState, ending: readonly MarketState[]): Candidate[] {
  const deletes: MarketState[] = [];
  const renewals: MarketState[] = [];
  for (const market of ending) {
    const { exit } = market;
    if (exit === null || exit.done || exit.want === 'keep') continue;
    // The last renewal of a handoff waits for everything, a delete for all but other deletes.
    const before = market.inFlight.filter(({ purpose }) => exit.want === 'handoff' || purpose !== 'delete');
    if (before.length > 0) continue;
    if (market.inFlight.length >= MOST_IN_FLIGHT) continue;
    const fromMs =
      exit.want === 'delete' ? Math.max(market.nextMs, deletableFromMs(state, market)) : market.nextMs;
    if (fromMs <= state.now.monoMs) {
      (exit.want === 'delete' ? deletes : renewals).push(market);
    } else {
      state.nextDueMs = Math.min(state.nextDueMs, fromMs);
    }
  }
  return [
    ...deletes.map((market) => candidate(state, market, 'delete')),
    ...orderOf(state, renewals, renewals.length).markets.map((market) => candidate(state, market, 'renew')),
  ];
}

function candidate(state: CoreState, market: MarketState, purpose: Candidate['purpose']): Candidate {
  const base = routeFor(state, market);
  return { market, purpose, base, detached: market.timedOut, paced: false, onWrite: null };
}

/**
 * Without rising nonces a renewal of unknown outcome may arrive after the delete and arm the timer again. The delete
 * waits for the end of its lifetime where there is the time; a stop whose budget has not goes ahead at once, and the
 * timer is reported as unconfirmed.
 */
function deletableFromMs(state: CoreState, market: MarketState): number {
  if (state.settings.nonce === 'increasing') return 0;
  const { strayUntilMs } = market.belief;
  return state.phase.kind !== 'stopping' || strayUntilMs < state.phase.budgetEndMs - 1000 ? strayUntilMs : 0;
}

/**
 * Finds the market's exit again after anything that decides about it has changed: its bot, an operator's hold, or the
 * configuration. During a stop exits stay as they were decided when it began.
 */
export function reconsider(state: CoreState, market: MarketState): void {
  if (state.phase.kind !== 'running') return;
  const { policy } = state.settings.shutdown;
  const ends = isOutOfGuard(market) || market.leaving || market.suspended === 'bot_goodbye';
  if (ends) beginExit(state, market, policy);
  else market.exit = null;
  if (isWanted(state, market)) wantAgain(state, market);
}

/** The timer needs no cut, or has had it. */
export function tripDone(market: MarketState): void {
  market.tripWanted = false;
  if (market.exit?.want === 'keep') market.exit.done = true;
}

/** The market is guarded again: due at once. */
function wantAgain(state: CoreState, market: MarketState): void {
  market.tripWanted = false;
  market.deleted = false;
  dueAt(state, market, state.now.monoMs);
  market.cycleSinceMs = null;
}

/** The timer is wanted no longer: what fires from here on fires on purpose. */
export function noteUnwanted(state: CoreState, market: MarketState): void {
  market.armedWhenUnwanted = awakeSlackMs(state, market) > 0 || market.belief.server === null;
}

/**
 * The timer is wanted again. What fired meanwhile fired on purpose, and is no lapse; but where the guarantee had run out
 * before, while it was wanted, the next confirmation has to tell.
 */
export function forgetWhatFired(state: CoreState, market: MarketState): void {
  if (awakeSlackMs(state, market) <= 0) loseGuarantee(market);
  if (market.armedWhenUnwanted) market.belief.server = null;
}
