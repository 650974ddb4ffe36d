import { isConfirmed, isOvertaken, straysUntilMs } from './belief.ts';
import { howGone } from './commands.ts';
import type { CommandName, CoreSettings, Progress } from './events.ts';
import { suspensionOf } from './goal.ts';
import { answerTimeMs } from './next.ts';
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

/** What is to be said of a market that a reload has taken out; null where nothing has fired, nor may. */
export function progressOfGone(state: CoreState, name: string): Progress | null {
  const market = state.leftBehind.get(name);
  if (market === undefined) return null;
  const leftMs = state.firesInMs(market.belief);
  const gone = howGone(market, true);
  if (leftMs === null && gone !== 'fired' && gone !== 'deleted_late') return null;
  return { market: name, state: 'done', says: `${name} ${sayLeft(market, leftMs)}.` };
}

function sayLeft(market: MarketState, leftMs: number | null): string {
  if (leftMs === null) return `has no timer any more${describeGone(market)}`;
  if (isConfirmed(market.belief))
    return `keeps its timer: its orders are cancelled within ${left(leftMs)} unless somebody renews it`;
  return `has no confirmed timer: one that may still run fires within ${left(leftMs)}; else its orders stay`;
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
      return unlessKeyRefused(state, awaited, market, armed(state, awaited, market));
    case 'trip':
      return unlessKeyRefused(state, awaited, market, tripped(state, market));
    case 'remove':
      if (market.leaving === null) return ['done', 'is configured again'];
      return ['waiting', 'leaves: its timer is not confirmed deleted yet'];
    case 'disarm':
    case 'pause':
    case 'goodbye':
      return unlessKeyRefused(state, awaited, market, deleted(state, awaited, market));
  }
}

/** What is not so while the key is refused, and becomes so once it is accepted. */
const BY_KEY = {
  arm: ['is not renewed', 'it is armed'],
  resume: ['is not renewed', 'it is armed'],
  trip: ['is not cut short yet', 'it is cut short'],
  disarm: ['still has its timer', 'that is deleted'],
  pause: ['still has its timer', 'that is deleted'],
  goodbye: ['still has its timer', 'that is deleted'],
} as const satisfies Partial<Record<Awaited, readonly [string, string]>>;

/** Nothing that is waited for comes while the key is refused; but what was asked for stays asked for. */
function unlessKeyRefused(
  state: CoreState,
  awaited: keyof typeof BY_KEY,
  market: MarketState,
  said: Said,
): Said {
  const refused = state.key.refusal.said;
  if (said[0] !== 'waiting' || refused === null) return said;
  const [is, becomes] = BY_KEY[awaited];
  const why = `the exchange refuses the API key (${refused.detail})`;
  return ['refused', `${is}: ${why}; ${becomes} as soon as the key is accepted${untilThen(state, market)}`];
}

/** What becomes of the timer as long as nothing is done. */
function untilThen(state: CoreState, { belief }: MarketState): string {
  const leftMs = state.firesInMs(belief);
  if (leftMs === null) return '; it has no timer now';
  return `; until then the timer is not renewed, and fires within ${left(leftMs)}`;
}

const GONE = {
  bot_stale: 'gives no sign of life',
  bot_goodbye: 'said goodbye',
  bot_failed: 'has failed',
} as const satisfies Record<Suspension, string>;

const RETURNS = {
  beat: 'beats',
  file: 'touches its file',
  http: 'answers well',
  process: 'runs',
  none: 'starts',
} as const satisfies Record<CoreSettings['liveness']['mode'], string>;

function armed(state: CoreState, awaited: Awaited, market: MarketState): Said {
  const leftMs = state.slackMs(market);
  const { hold, refusal, lastProblem } = market;
  if (market.leaving !== null) return ['impossible', 'is no longer configured'];
  if (hold !== null) {
    const ends =
      hold.untilAwakeMs === null ? 'it stays so until you arm it' : 'it is armed when the pause is over';
    return ['impossible', `${NOT_GUARDED[hold.why][0]}: ${ends}`];
  }
  const suspension = suspensionOf(market);
  if (suspension !== null) {
    const waits = `${awaited === 'resume' ? 'is not paused' : 'is to be armed'}, but its bot ${GONE[suspension]}`;
    const returns = `its bot ${RETURNS[state.settings.liveness.mode]}`;
    // The end of a bot may end its timer, too.
    const ends = market.goal !== 'leave' && state.mayFire(market.belief);
    const stands = ends ? '' : untilThen(state, market);
    return ['impossible', `${waits}: it is armed as soon as ${returns}${stands}`];
  }
  const stands = `has a timer for another ${left(leftMs)}, and is not`;
  // A request that was written after the refusal may be answered otherwise.
  const isAsked = market.askedMs > Number.NEGATIVE_INFINITY || refusal.lastMs < market.lastWrittenMs;
  if (refusal.said !== null && !isAsked) {
    const { detail } = refusal.said;
    if (leftMs <= 0) return ['refused', `is refused by the exchange: ${detail}`];
    return ['refused', `${stands} renewed: the exchange refuses it: ${detail}`];
  }
  if (leftMs > 0 && isRenewed(state, market))
    return ['done', `is armed and renewed: ${left(leftMs)} left now`];
  if (leftMs > 0 && lastProblem !== null) return ['waiting', `${stands} renewed: ${lastProblem}`];
  return ['waiting', leftMs > 0 ? `${stands} confirmed renewed yet` : 'is not confirmed armed yet'];
}

/** The whole timer was confirmed, and nothing is known to be in the way of the next renewal. */
function isRenewed(state: CoreState, market: MarketState): boolean {
  if (market.streak > 0 || market.refusal.said !== null || state.key.refusal.said !== null) return false;
  const patienceMs = Math.max(1000, 3 * answerTimeMs(state, market));
  const hangs = market.onTheirWay.some(
    (one) => !isOvertaken(market, one) && state.unansweredMs(one) > patienceMs,
  );
  return !hangs && isWhole(market);
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
  if (goal === 'delete' && !reached && leftMs !== null) {
    if (isToBeEndedAgain(state, market, 'delete'))
      return ['waiting', 'is deleted once more when a renewal without an answer cannot arrive any more'];
    return ['waiting', 'still has a timer: the delete is not confirmed yet'];
  }
  if (goal === 'delete' || leftMs === null)
    return ['done', `has no timer any more${describeGone(market)}${sayPause(state, market)}`];
  if (market.leaving !== null)
    return ['impossible', `leaves with its timer, as the reload said; it fires within ${left(leftMs)}`];
  if (hold?.why === 'tripped' || hold?.why === 'lapsed') {
    return ['impossible', `${NOT_GUARDED[hold.why][0]} and keeps its timer; it fires within ${left(leftMs)}`];
  }
  const suspension = suspensionOf(market);
  const isAsked = awaited === 'goodbye' && suspension === 'bot_goodbye';
  const why = isAsked
    ? 'keeps its timer, as the policy says'
    : `${hold === null ? '' : `${NOT_GUARDED[hold.why][0]} and `}keeps its timer: its bot ${GONE[suspension ?? 'bot_stale']}`;
  return [isAsked ? 'done' : 'impossible', `${why}; it fires within ${left(leftMs)}`];
}

/** Its last delete or trip is confirmed, nothing was written after that to arm the timer, and a stray may still do so. */
function isToBeEndedAgain(state: CoreState, market: MarketState, as: 'delete' | 'trip'): boolean {
  const last = market.belief.writes.findLast(
    ({ purpose, status }) => purpose !== as || status === 'confirmed',
  );
  return last?.purpose === as && straysUntilMs(state, market, as) > state.now.monoMs;
}

function sayPause(state: CoreState, { hold }: MarketState): string {
  const untilMs = hold?.untilAwakeMs ?? null;
  return untilMs === null ? '' : `; it is armed again in ${left(untilMs - state.awakeMs)}`;
}

/** What is known of the orders of a market whose timer is gone. */
function describeGone({ mayHaveFired, armedUntilAwakeMs }: MarketState): string {
  if (mayHaveFired) return ', and it may have fired before it was deleted: check which orders are left';
  return armedUntilAwakeMs !== null ? ': it has fired' : ': its orders stay';
}

function left(ms: number): string {
  return seconds(Math.ceil(ms / 100) * 100);
}
