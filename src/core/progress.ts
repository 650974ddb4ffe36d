import { straysUntilMs } from './belief.ts';
import type { CommandName, CoreSettings, Progress } from './events.ts';
import { suspensionOf } from './goal.ts';
import type { Suspension } from './notice.ts';
import { seconds } from './promise.ts';
import { type CoreState, type MarketState } from './state.ts';
import { NOT_GUARDED } from './view.ts';

/** What somebody waits for: a command, or the end of a bot's timers after its goodbye. */
export type Awaited = CommandName | 'goodbye' | 'remove';

/** How far, and the sentence without the market's name. */
type Said = readonly [Progress['state'] | 'refused', string];

/** How far a market has come with what was asked of it, as far as is known at the last step. Reads only. */
export function progressOf(state: CoreState, awaited: Awaited, market: MarketState): Progress {
  const name = market.settings.market;
  const [how, words] = howFar(state, awaited, market);
  // The words of the exchange may end with a full stop.
  const says = `${name} ${words.replace(/\.$/, '')}.`;
  if (how === 'refused') return { market: name, state: 'impossible', refused: true, says };
  return { market: name, state: how, says };
}

/** What is left of a market that a reload has taken out; null where no timer of it may fire any more. */
export function progressOfGone(state: CoreState, market: string): Progress | null {
  const belief = state.leftBehind.get(market);
  const leftMs = belief === undefined ? null : state.firesInMs(belief);
  if (leftMs === null) return null;
  const fires = `its orders are cancelled within ${left(leftMs)} unless somebody renews it`;
  return { market, state: 'done', says: `${market} keeps its timer: ${fires}.` };
}

function howFar(state: CoreState, awaited: Awaited, market: MarketState): Said {
  const { kind } = state.phase;
  // A stop deletes the timers of a bot that says goodbye in it.
  const mayCome = awaited === 'goodbye' && (kind === 'stopping' || market.reached);
  if (kind !== 'running' && !mayCome)
    return ['impossible', 'is up to the stop that has begun: the log says what becomes of its timer'];
  switch (awaited) {
    case 'arm':
    case 'resume':
      return unlessKeyRefused(state, armed(state, market));
    case 'trip':
      return unlessKeyRefused(state, tripped(state, market));
    case 'remove':
      if (market.leaving === null) return ['done', 'is configured again'];
      return ['waiting', 'leaves: its timer is not confirmed deleted yet'];
    case 'disarm':
    case 'pause':
    case 'goodbye':
      return unlessKeyRefused(state, deleted(state, awaited, market));
  }
}

/** Nothing that is waited for comes while the key is refused. */
function unlessKeyRefused({ key }: CoreState, said: Said): Said {
  if (said[0] !== 'waiting' || key.refusal.said === null) return said;
  return ['refused', `cannot be changed: the exchange refuses the API key (${key.refusal.said.detail})`];
}

const GONE = {
  bot_stale: 'gives no sign of life',
  bot_goodbye: 'said goodbye',
  bot_failed: 'has failed',
} as const satisfies Record<Suspension, string>;

const RETURNS = {
  beat: 'next beat',
  file: 'file is touched again',
  http: 'URL answers well again',
  process: 'process runs again',
  none: 'next start',
} as const satisfies Record<CoreSettings['liveness']['mode'], string>;

function armed(state: CoreState, market: MarketState): Said {
  const leftMs = state.slackMs(market);
  if (market.leaving !== null) return ['impossible', 'is no longer configured'];
  if (market.hold !== null) {
    const { why, untilAwakeMs } = market.hold;
    const ends =
      untilAwakeMs === null ? 'it stays so until you arm it' : 'it is armed when the pause is over';
    return ['impossible', `${NOT_GUARDED[why][0]}: ${ends}`];
  }
  const suspension = suspensionOf(market);
  if (suspension !== null) {
    const { mode } = state.settings.liveness;
    return [
      'impossible',
      `is not armed, its bot ${GONE[suspension]}: nothing is renewed before the bot's ${RETURNS[mode]}`,
    ];
  }
  if (leftMs > 0 && isWhole(market)) return ['done', `is armed and renewed: ${left(leftMs)} left now`];
  if (market.refusal.said !== null)
    return ['refused', `is refused by the exchange: ${market.refusal.said.detail}`];
  if (leftMs <= 0) return ['waiting', 'is not confirmed armed yet'];
  return ['waiting', `has a timer for another ${left(leftMs)}, and is not confirmed renewed yet`];
}

/** The configured timer was confirmed, as far as the exchange grants it: it is not what a trip, or another timeout, left. */
function isWhole({ belief: { server }, altered, settings }: MarketState): boolean {
  if (server === null) return false;
  return altered !== null || (server.cancellationTime - server.startTime) * 1000 === settings.timeoutMs;
}

function tripped(state: CoreState, market: MarketState): Said {
  if (market.goal !== 'trip')
    return ['impossible', 'is not cut short: another command or a reload came after the trip'];
  if (market.reached) {
    const leftMs = state.firesInMs(market.belief);
    return [
      'done',
      leftMs === null
        ? 'has no timer any more: it has fired'
        : `is cut short: its orders are cancelled within ${left(leftMs)}`,
    ];
  }
  return isToBeEndedAgain(state, market, 'trip')
    ? ['waiting', 'is cut short once more when a renewal without an answer cannot arrive any more']
    : ['waiting', 'is not confirmed cut short yet'];
}

function deleted(state: CoreState, awaited: Awaited, market: MarketState): Said {
  const leftMs = state.firesInMs(market.belief);
  const { goal, reached, hold } = market;
  if (awaited === 'pause' && hold !== null && hold.why !== 'paused') {
    return [
      'impossible',
      `${NOT_GUARDED[hold.why][0]} and cannot be paused: the end of the pause would arm it`,
    ];
  }
  if (goal === 'guard') return ['impossible', 'is guarded again'];
  if (goal === 'delete') {
    if (reached) return ['done', `has no timer any more${describeGone(market)}`];
    if (isToBeEndedAgain(state, market, 'delete'))
      return ['waiting', 'is deleted once more when a renewal without an answer cannot arrive any more'];
    return ['waiting', 'still has a timer: the delete is not confirmed yet'];
  }
  if (leftMs === null) return ['done', `has no timer any more${describeGone(market)}`];
  if (market.leaving !== null)
    return ['impossible', `leaves with its timer, as the reload said; it fires within ${left(leftMs)}`];
  if (hold?.why === 'tripped' || hold?.why === 'lapsed') {
    return ['impossible', `${NOT_GUARDED[hold.why][0]} and keeps its timer; it fires within ${left(leftMs)}`];
  }
  const suspension = suspensionOf(market);
  const isAsked = awaited === 'goodbye' && suspension === 'bot_goodbye';
  const why = isAsked
    ? 'keeps its timer, as the policy says'
    : `keeps its timer: its bot ${GONE[suspension ?? 'bot_stale']}`;
  return [isAsked ? 'done' : 'impossible', `${why}; it fires within ${left(leftMs)}`];
}

/** Its last delete or trip is confirmed, nothing was written after that to arm the timer, and a stray may still do so. */
function isToBeEndedAgain(state: CoreState, market: MarketState, as: 'delete' | 'trip'): boolean {
  const last = market.belief.writes.findLast(
    ({ purpose, status }) => purpose !== as || status === 'confirmed',
  );
  return last?.purpose === as && straysUntilMs(state, market, as) > state.now.monoMs;
}

/** What is known of the orders of a market whose timer is gone. */
function describeGone({ mayHaveFired, armedUntilAwakeMs }: MarketState): string {
  if (mayHaveFired) return ', and it may have fired before it was deleted: check which orders are left';
  return armedUntilAwakeMs !== null ? ': it has fired' : ': its orders stay';
}

function left(ms: number): string {
  return seconds(Math.ceil(ms / 100) * 100);
}
