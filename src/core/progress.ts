import type { Suspension } from './notice.ts';
import type { CommandName, Progress } from './operate.ts';
import type { CoreSettings } from './settings.ts';
import { type CoreState, type MarketState, slackMs } from './state.ts';
import { seconds } from './timing.ts';

/** What somebody waits for: a command, or the end of a bot's timers after its goodbye. */
export type Awaited = CommandName | 'goodbye' | 'remove';

/** How far a market has come with what was asked of it, as far as is known at the last step. Reads only. */
export function progressOf(state: CoreState, awaited: Awaited, market: MarketState): Progress {
  const name = market.settings.market;
  const said = (progress: Progress['state'], says: string): Progress => {
    // What the exchange said may end as a sentence does.
    return { market: name, state: progress, says: `${name} ${says.replace(/\.$/, '')}.` };
  };
  if (state.phase.kind !== 'running') return said('impossible', 'is left alone: the daemon is stopping');
  switch (awaited) {
    case 'arm':
    case 'resume':
      return armed(state, market, said);
    case 'trip':
      return tripped(state, market, said);
    case 'remove':
      if (!market.leaving) return said('done', 'is configured again');
      return said('waiting', 'leaves: its timer is not confirmed deleted yet');
    case 'disarm':
    case 'pause':
    case 'goodbye':
      return deleted(state, awaited, market, said);
  }
}

const GONE = {
  bot_stale: 'gives no sign of life',
  bot_goodbye: 'said goodbye',
  bot_failed: 'has failed',
} as const satisfies Record<Suspension, string>;

/** What brings a bot back. */
const RETURNS = {
  beat: 'next beat',
  file: 'file is touched again',
  http: 'URL answers well again',
  process: 'process runs again',
  none: 'next start',
} as const satisfies Record<CoreSettings['liveness']['mode'], string>;

type Say = (progress: Progress['state'], says: string) => Progress;

function armed(state: CoreState, market: MarketState, said: Say): Progress {
  const leftMs = slackMs(state, market);
  if (market.leaving) return said('impossible', 'is no longer configured');
  if (market.hold !== null) {
    const { why, untilAwakeMs } = market.hold;
    const ends = untilAwakeMs === null ? 'arm it' : 'it is armed when the pause is over';
    return said('impossible', `stays as it is (${why}): ${ends}`);
  }
  if (market.suspended !== null) {
    const { mode } = state.settings.liveness;
    return said(
      'impossible',
      `is not armed, its bot ${GONE[market.suspended]}: nothing is renewed before the bot's ${RETURNS[mode]}`,
    );
  }
  if (leftMs > 0 && isWhole(market)) return said('done', `is armed and renewed: ${left(leftMs)} left now`);
  if (market.refused !== null)
    return said('impossible', `is refused by the exchange: ${market.refused.detail}`);
  if (state.unauthorised !== null) return said('impossible', keyRefused(state.unauthorised.detail));
  if (leftMs <= 0) return said('waiting', 'is not confirmed armed yet');
  return said('waiting', `has a timer for another ${left(leftMs)}, and is not confirmed renewed yet`);
}

/** The configured timer was confirmed, as far as the exchange grants it: it is not what a trip, or another timeout, left. */
function isWhole({ belief: { server }, altered, settings }: MarketState): boolean {
  if (server === null) return false;
  return altered !== null || (server.cancellationTime - server.startTime) * 1000 === settings.timeoutMs;
}

function tripped(state: CoreState, market: MarketState, said: Say): Progress {
  if (!market.tripWanted) {
    const leftMs = firesInMs(state, market);
    return said(
      'done',
      leftMs === null
        ? 'has no timer any more: it has fired'
        : `is cut short: its orders are cancelled within ${left(leftMs)}`,
    );
  }
  if (state.unauthorised !== null) return said('impossible', keyRefused(state.unauthorised.detail));
  return said('waiting', 'is not confirmed cut short yet');
}

function deleted(state: CoreState, awaited: Awaited, market: MarketState, said: Say): Progress {
  const leftMs = firesInMs(state, market);
  const { exit, hold } = market;
  if (awaited === 'pause' && hold !== null && hold.why !== 'paused') {
    return said('impossible', `is out of guard for good (${hold.why}) and cannot be paused`);
  }
  if (exit === null) {
    const why =
      market.suspended === null
        ? 'is guarded: somebody armed it again'
        : 'keeps its timer: its bot is dead, or failed';
    return said('impossible', why);
  }
  if (exit.want === 'keep' && leftMs !== null && market.movedUntilAwakeMs !== null) {
    return said('impossible', `is another shard's by now, which renews its timer: ask that one`);
  }
  if (exit.want === 'keep' && leftMs !== null) {
    const why =
      awaited === 'goodbye'
        ? 'keeps its timer, as the policy says'
        : 'keeps its timer: its bot gives no sign of life';
    return said(awaited === 'goodbye' ? 'done' : 'impossible', `${why}; it fires within ${left(leftMs)}`);
  }
  if (exit.done) return said('done', `has no timer any more${describeGone(market)}`);
  if (state.unauthorised !== null) return said('impossible', keyRefused(state.unauthorised.detail));
  return said('waiting', 'still has a timer: the delete is not confirmed yet');
}

/** What is known of the orders of a market whose timer is gone. */
function describeGone({ mayHaveFired, deleted, heldUntilAwakeMs, belief }: MarketState): string {
  if (!deleted && belief.notBeforeLifeMs !== null) return ': it has fired';
  // What was to be deleted may be over by now without an answer.
  return (deleted ? mayHaveFired : heldUntilAwakeMs < Number.POSITIVE_INFINITY)
    ? ', and it may have fired before it was deleted: check which orders are left'
    : ': its orders stay';
}

function keyRefused(detail: string): string {
  return `cannot be changed: the exchange refuses the API key (${detail})`;
}

/** The longest that a timer which may exist still runs; null where surely none exists. */
function firesInMs(state: CoreState, market: MarketState): number | null {
  const { notAfterMs } = market.belief;
  return notAfterMs === null || notAfterMs <= state.now.monoMs ? null : notAfterMs - state.now.monoMs;
}

function left(ms: number): string {
  return seconds(Math.ceil(ms / 100) * 100);
}
