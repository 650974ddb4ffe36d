import { isFailedDelete, type LeftArmed, type Notice } from '../core/notice.ts';
import { TRIP_MS } from '../core/promise.ts';
import type { Instant } from '../core/time.ts';
import type { EventLevel, RecentEvent } from '../ports.ts';
import { counted, listed, timeOfDay } from '../util/text.ts';

/** A notice as a line of the log. `event`: a stable code, kebab-case: what alerts and searches hold on to. */
export interface EventLine extends Pick<RecentEvent, 'level' | 'event' | 'market'> {
  readonly msg: string;
  /** The numbers of the notice under its own names. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** How a sentence names a moment, and a base address. */
interface Saying {
  readonly at: (wallMs: number) => string;
  readonly base: (index: number) => string;
}

export type Kind = Notice['kind'];
export type Of<K extends Kind> = Extract<Notice, { kind: K }>;

/** Every purpose of a request, bot state and end of a removed market is a key here: metrics read them off these. */
export const PURPOSE = { renew: 'renewal', trip: 'trip', delete: 'delete' } as const;
const STANDSTILL = {
  stall: 'This process did not run',
  suspend: 'This host was suspended',
  'clock-step': 'The clock of this host was set',
} as const;
export const BOT = {
  starting: 'has given no evidence yet: its timers are renewed during the start-up grace',
  alive: 'is alive',
  stale: 'is silent: its timers are no longer renewed',
  goodbye: 'said goodbye: its timers are no longer renewed',
  failed: 'has failed: its timers are no longer renewed',
} as const;

const LEVELS: { readonly [K in Kind]: EventLevel | ((notice: Of<K>) => EventLevel) } = {
  ...all('error', 'overdue', 'lapsed', 'fired', 'refused', 'unauthorised'),
  ...all('warn', 'altered', 'throttled', 'stall', 'tripped'),
  ...all('info', 'recovered', 'accepted-again', 'authorised-again', 'outage-ended', 'cadence', 'resumed'),
  ...all('info', 'released', 'reloaded', 'all-armed', 'stopping'),
  ...all('debug', 'attempt'),
  renewed: (n) => (n.first ? 'info' : 'debug'),
  'attempt-failed': (n) => (n.streak === 1 ? 'warn' : 'debug'),
  suspended: (n) => (n.why === 'bot_stale' || n.why === 'bot_failed' ? 'warn' : 'info'),
  held: (n) => (n.why === 'tripped' || n.why === 'lapsed' ? 'warn' : 'info'),
  removed: (n) => (n.how === 'fired' || n.how === 'deleted_late' ? 'warn' : 'info'),
  'outage-began': (n) => (n.standsIn === null ? 'error' : 'warn'),
  bot: (n) => (n.state === 'stale' || n.state === 'failed' ? 'error' : 'info'),
  pinged: (n) => (n.changed ? (n.ok ? 'info' : 'warn') : 'debug'),
  deleted: (n) => (n.mayHaveFired ? 'warn' : 'info'),
  stopped: (n) => (n.left.some(isFailedDelete) ? 'error' : n.left.length > 0 ? 'warn' : 'info'),
};

function all<K extends Kind>(level: EventLevel, ...kinds: readonly K[]) {
  return Object.fromEntries(kinds.map((kind) => [kind, level])) as Record<K, EventLevel>;
}

/** The code of the log, where the kind of the notice is none. */
const CODES: { readonly [K in Kind]?: (notice: Of<K>) => string } = {
  renewed: (n) => (n.first ? 'armed' : 'renewed'),
  stall: (n) => n.what,
  bot: (n) => `bot-${n.state}`,
  pinged: (n) => (n.ok ? 'ping-answered' : 'ping-failed'),
};

const unconfirmed = (when: string) =>
  `NO TIMER IS CONFIRMED: one that may still run fires by ${when}; else its orders STAY.`;

const SENTENCES: { readonly [K in Kind]: (notice: Of<K>, saying: Saying) => string } = {
  attempt: (n) => `${n.market}: a ${PURPOSE[n.purpose]} is being sent.`,
  renewed: (n, { at }) =>
    `${n.market} is ${n.first ? 'armed' : 'renewed'} until ${at(n.expiryWallMs)}; ` +
    `the exchange answered in ${durationText(n.durationMs)}.`,
  'attempt-failed': (n) =>
    `${n.market}: a ${PURPOSE[n.purpose]} failed after ${durationText(n.durationMs)} (${n.reason}: ${n.detail}). ` +
    `It is retried; repeats are counted.`,
  recovered: (n) => `${n.market} is renewed again after ${counted(n.failures, 'failed attempt')}.`,
  overdue: (n, { at }) =>
    `${n.market} MAY BE UNARMED: no renewal was confirmed in time. Its orders may have been cancelled since about ` +
    `${at(n.expiryWallMs)}; renewals are still tried.`,
  lapsed: describeLapse,
  fired: (n, { at }) =>
    (n.why === 'undeleted'
      ? `The timer of ${n.market} MAY HAVE FIRED, and its orders may have been cancelled`
      : `The timer of ${n.market} has fired: its orders were cancelled`) +
    ` by ${at(n.firedByWallMs)} at the latest, because ${FIRED[n.why]}.`,
  refused: (n, { at }) =>
    `${n.market} is REFUSED by the exchange (code ${n.code}: ${n.detail}). ` +
    `${n.expiryWallMs === null ? 'No timer guards its orders' : `Its orders are cancelled from ${at(n.expiryWallMs)} on if this lasts`}. ` +
    `Other markets go on.${n.probeInMs === null ? '' : ` It is tried again in ${durationText(n.probeInMs)}.`}`,
  'accepted-again': (n) => `${n.market} is accepted by the exchange again.`,
  unauthorised: (n, { at }) =>
    `THE API KEY IS REFUSED (${n.detail}). No timer can be renewed or deleted: each fires when its time is up, and its orders ` +
    `are cancelled${n.expiryWallMs === null ? '' : `, the first from ${at(n.expiryWallMs)} on`}. ` +
    `Check the key, its permissions and its IP list; the secret files are read every second. The key is tried again ` +
    `in ${durationText(n.probeInMs)}, and in time for every timer that is still armed.`,
  'authorised-again': () =>
    'The API key is accepted again; renewals and deletes that waited for it are sent now.',
  altered: (n) => `${n.market}: the exchange set another timer than asked for (${n.detail}).`,
  'outage-began': (n, { at, base }) =>
    n.standsIn === null
      ? `NO REQUEST GETS THROUGH to ${base(n.base)} (${n.detail}). ` +
        (n.expiryWallMs === null
          ? 'No timer is surely armed: one that still runs fires when its time is up; where none runs, the orders STAY. '
          : `The timers run on at the exchange: if this lasts, orders are cancelled from ${at(n.expiryWallMs)} on. `) +
        `One request at a time is tried as a probe; after the first success all markets follow, the most urgent first.`
      : `No request gets through to ${base(n.base)} (${n.detail}). They go to ${base(n.standsIn)} instead; ` +
        `${base(n.base)} is tried again once it answers pings.`,
  'outage-ended': (n, { base }) =>
    `Requests get through to ${base(n.base)} again, after ${durationText(n.lastedMs)} and ${counted(n.attempts, 'attempt')}.`,
  throttled: (n) =>
    `The exchange asks for fewer requests: renewals are now up to ${Number(n.factor.toFixed(2))} times as far apart as planned.`,
  cadence: (n) =>
    `Cadence: ${n.detail} (room for ${Number(n.capacityPerSecond.toFixed(2))} renewals a second).`,
  stall: (n) =>
    `${STANDSTILL[n.what]} ${n.what !== 'clock-step' ? 'for' : n.byMs < 0 ? 'back by' : 'forward by'} ${durationText(Math.abs(n.byMs))}. ` +
    (n.byMs < 0
      ? 'Timers and bots go by other clocks.'
      : `Every bot is checked, and ${n.what === 'stall' ? 'what is due' : 'every guarded timer'} is renewed.`),
  suspended: ({ market, why, firesByWallMs: by, confirmed }, { at }) => {
    const cancels = (when: string) =>
      confirmed ? `Its orders are cancelled by ${when}.` : unconfirmed(when);
    const fires = by === null ? 'It has no timer: its orders stay.' : cancels(at(by));
    const ends = why === 'bot_goodbye' ? 'Its timer ends as shutdown.policy says.' : fires;
    return `${SUSPENDED[why]}: ${market} is no longer renewed. ${ends}`;
  },
  resumed: (n) => `The bot of ${n.market} is alive: its timer is renewed again.`,
  held: (n, { at }) => HELD[n.why](n, at),
  released: (n) =>
    `${n.market} is no longer on hold: ${n.why === 'operator' ? 'an operator asked for it' : 'its pause is over'}.`,
  tripped: (n, { at }) =>
    `The exchange cut the timer of ${n.market} short: its orders are cancelled by ${at(n.firesByWallMs)}.${n.isFinal ? '' : LONGER}`,
  reloaded: ({ added, changed, removed }) => {
    const touched = Object.entries({ added, changed, removed }).filter(([, markets]) => markets.length > 0);
    const said = touched.map(([what, markets]) => `${what} ${listed(markets)}`).join('; ');
    return `The new configuration is in force${said === '' ? '; its markets are the same' : `: ${said}`}.`;
  },
  removed: ({ market, how, firesByWallMs: by, confirmed }, { at }) => {
    const cancels = (when: string) => `Its orders are cancelled by ${when} unless somebody renews it.`;
    const fires = by === null ? '' : ` ${confirmed ? cancels(at(by)) : unconfirmed(at(by))}`;
    return `${market} has left the configuration: ${REMOVED[how]}${fires}`;
  },
  bot: (n, { at }) =>
    `Bot ${n.bot} ${BOT[n.state]}.` +
    (n.firesByWallMs === null ? '' : ` The orders of its markets are cancelled by ${at(n.firesByWallMs)}.`) +
    (n.unconfirmed === 0
      ? ''
      : ` NO TIMER IS CONFIRMED for ${n.unconfirmed} of its markets: orders there may STAY.`),
  pinged: (n, { base }) =>
    n.ok
      ? `${base(n.base)} answers pings (${durationText(n.latencyMs)}).`
      : `${base(n.base)} does not answer pings (${n.reason ?? 'unknown'}: ${n.detail}). Requests are still sent${n.base === 0 ? '' : ' there where no other address is left'}.`,
  'all-armed': (n) =>
    `${n.markets === 1 ? 'The market is' : `All ${n.markets} markets are`} armed, ${durationText(n.sinceStartMs)} after the start.`,
  stopping: (n) =>
    `Stopping (${n.why}), policy ${n.policy}: ${STOPPING[n.policy]}, within ${durationText(n.budgetMs)}.`,
  deleted: (n) =>
    n.mayHaveFired
      ? `${n.market} has no timer any more: the exchange deleted it, or it had fired before. Check which orders are left.`
      : `The exchange deleted the timer of ${n.market}: its orders stay.${n.isFinal ? '' : AGAIN}`,
  stopped: describeStop,
};

const LONGER = ' A renewal without an answer may still make it longer again.';
const AGAIN = ' A renewal without an answer may still arm it again.';
const STOPPING = {
  delete: 'the timers of living bots are deleted and their orders stay',
  keep: 'the timers are left to fire',
  handoff: 'every timer of a living bot is renewed once more for whoever takes over',
} as const;

/** How loud a notice is. Cheap: asked for every notice, before a sentence is made. */
export function levelOf(notice: Notice): EventLevel {
  const level = LEVELS[notice.kind] as EventLevel | ((notice: Notice) => EventLevel);
  return typeof level === 'function' ? level(notice) : level;
}

/** A notice as code, sentence and numbers. `bases`: the base addresses in the order that notices number them. */
export function describeNotice(notice: Notice, bases: readonly string[], now: Instant): EventLine {
  const { kind, ...fields } = notice;
  const at = (wallMs: number) => momentText(wallMs, now.wallMs);
  const base = (index: number) => bases[index] ?? `base address ${index}`;
  return {
    level: levelOf(notice),
    event: (CODES[kind] as ((notice: Notice) => string) | undefined)?.(notice) ?? kind,
    market: 'market' in notice ? notice.market : null,
    msg: (SENTENCES[kind] as (notice: Notice, saying: Saying) => string)(notice, { at, base }),
    fields: boundLists('base' in notice ? { ...fields, base: base(notice.base) } : fields),
  };
}

/** Lists of more than twenty are cut, with their length in another field: ten thousand markets would make a megabyte. */
export function boundLists(fields: object): Record<string, unknown> {
  const bounded: Record<string, unknown> = { ...fields };
  for (const [name, value] of Object.entries(fields)) {
    if (!Array.isArray(value) || value.length <= NAMED_MARKETS) continue;
    bounded[name] = value.slice(0, NAMED_MARKETS);
    bounded[`${name}Count`] = value.length;
  }
  return bounded;
}

/** Timers named in one line of `left-armed`. */
const LEFT_IN_LINE = 100;

/** All timers that a stop left armed, where the line of the stop has no room for them; of each kind the first that fires first. */
export function describeLeft({ left }: Of<'stopped'>): EventLine[] {
  if (left.length <= NAMED_MARKETS) return [];
  const sorted = left.toSorted((one, other) => one.firesByWallMs - other.firesByWallMs);
  return groupLeft(sorted).flatMap(({ why, before, timers }) => {
    const level = timers.some(isFailedDelete) ? 'error' : 'warn';
    const isOver = why === 'may-have-fired';
    const heading = isOver ? before : `${before}, with the moment (UTC) by which each fires`;
    return Array.from({ length: Math.ceil(timers.length / LEFT_IN_LINE) }, (_, index): EventLine => {
      const some = timers.slice(index * LEFT_IN_LINE, (index + 1) * LEFT_IN_LINE);
      // Short: ten thousand of them must fit into the queue of the log.
      const names = some.map(({ market, firesByWallMs }) =>
        isOver ? market : `${market} ${timeOfDay(firesByWallMs)}`,
      );
      const msg = `${heading}: ${names.join(', ')}.`;
      const left = some.map(({ confirmed: _confirmed, ...one }) => one);
      return { level, event: 'left-armed', market: null, msg, fields: { left } };
    });
  });
}

/** More markets than this are counted in a line instead of named. */
const NAMED_MARKETS = 20;

const SUSPENDED: { readonly [W in Of<'suspended'>['why']]: string } = {
  bot_stale: 'Its bot is silent',
  bot_goodbye: 'Its bot said goodbye',
  bot_failed: 'Its bot failed',
};

/** What a trader who is woken up has to know: what happened to the orders, since when, and what stands now. */
function describeLapse(notice: Of<'lapsed'>): string {
  const { market, certainty, gapMs, unresolved, rearms, held } = notice;
  const what =
    certainty === 'certain'
      ? `${market} LAPSED: its timer fired and the exchange cancelled its orders.`
      : `${market} MAY HAVE LAPSED: its timer fired, unless a request whose answer was lost came in time.`;
  const gap = gapMs !== null && gapMs > 0 ? ` No renewal was confirmed for ${durationText(gapMs)}.` : '';
  const lost =
    unresolved > 0 ? ` Whether the exchange carried out ${counted(unresolved, 'renewal')} is not known.` : '';
  const next = rearms
    ? ' The daemon arms it again as soon as the exchange lets it. Check which orders the bot has now.'
    : held
      ? ' It is NOT armed again (onLapse: hold): arm it when the bot has been checked.'
      : ' It is NOT armed again as things stand: its bot is not alive, or somebody took it out of guard.';
  return what + gap + lost + next;
}

/** Why a timer that nobody renewed has fired. */
const FIRED: { readonly [W in Of<'fired'>['why']]: string } = {
  bot_stale: 'its bot was silent',
  bot_failed: 'its bot failed',
  kept: 'it was left to run out',
  tripped: 'an operator tripped it',
  disarmed: 'it was disarmed or paused before its bot was heard',
  undeleted: 'no delete was confirmed in time',
};

/** Who took a market out of guard, until when, and what that means for its orders. */
const HELD: { readonly [W in Of<'held'>['why']]: (notice: Of<'held'>, at: Saying['at']) => string } = {
  paused: ({ market, untilWallMs }, at) =>
    `${market} is paused${untilWallMs === null ? '' : ` until ${at(untilWallMs)}`}: it is not renewed, and new orders ` +
    'are not guarded. The pause ends by itself.',
  disarmed: ({ market }) =>
    `${market} is disarmed: it is not renewed, and new orders are not guarded until somebody arms it.`,
  tripped: ({ market }) =>
    `${market} is TRIPPED by an operator: its timer is being cut to ${durationText(TRIP_MS)}; once the exchange ` +
    'has confirmed that, its orders are cancelled. It is not armed again until somebody arms it.',
  lapsed: ({ market, firesByWallMs: by }, at) =>
    `${market} is NOT armed again after its lapse (onLapse: hold), until somebody arms it.` +
    (by === null
      ? ''
      : ` The renewal that told of the lapse made a timer: its orders are cancelled by ${at(by)}.`),
};

export const REMOVED = {
  deleted: 'the exchange deleted its timer, or it had none.',
  deleted_late: 'its timer may have fired before the exchange deleted it. Check which orders are left.',
  kept: 'its timer, if it still has one, is left armed.',
  handed_off: 'its timer was renewed once more in full.',
  fired:
    'its timer was not deleted in time. If it had one, it has fired and the exchange has cancelled its orders, ' +
    'unless a delete whose answer was lost came first.',
} as const;

/**
 * What a stop says of the timers that it left, by the reason: before and after their names and moments. The worst reason
 * comes first.
 */
export const LEFT: {
  readonly [W in LeftArmed['why'] | 'unarmed']: readonly [before: string, after: string];
} = {
  unconfirmed: [
    'NOT CONFIRMED DELETED',
    'Expect the orders to be cancelled by then unless the timer is deleted or renewed.',
  ],
  unheard: [
    'NOT DELETED, because the bot gave no sign of life in the stop, or fell silent in it',
    'The orders are cancelled by then unless somebody renews the timer.',
  ],
  'may-have-fired': ['MAY HAVE FIRED before the delete was confirmed', 'Check which orders are left.'],
  unarmed: [
    'NO TIMER IS CONFIRMED',
    'One that may still run fires by then unless it is deleted or renewed; else the orders STAY.',
  ],
  unrenewed: [
    'NOT RENEWED ONCE MORE',
    'The orders are cancelled by then, or sooner, unless the successor renews the timer in time.',
  ],
  policy: ['Left armed on purpose', 'The orders are cancelled by then unless somebody renews the timer.'],
};

/** Which of them a timer belongs to: one that nobody knows of promises no cancellation, whatever the reason. */
export const leftAs = ({ why, confirmed }: LeftArmed): keyof typeof LEFT =>
  confirmed || why === 'may-have-fired' ? why : 'unarmed';

/** The timers that a stop left, by what is said of them; the worst first. */
export const groupLeft = (left: readonly LeftArmed[]) =>
  Object.entries(LEFT).flatMap(([why, [before, after]]) => {
    const timers = left.filter((one) => leftAs(one) === why);
    return timers.length === 0 ? [] : { why, before, after, timers };
  });

function describeStop({ left }: Of<'stopped'>, { at }: Saying): string {
  if (left.length === 0) return 'Stopped. No timer of this process is left armed at the exchange.';
  const parts = groupLeft(left).map(({ why, before, after, timers }) => {
    const fires = why === 'unarmed' ? 'may fire' : 'fires';
    // A timer that may have fired has no moment to come.
    const names = timers.map(({ market, firesByWallMs }) =>
      why === 'may-have-fired' ? market : `${market} ${fires} by ${at(firesByWallMs)}`,
    );
    return ` ${before}: ${listed(names)}. ${after}`;
  });
  return `Stopped.${parts.join('')}`;
}

/** A moment as a person wants it: `14:03:22 UTC (in 52 s)`, or `(12 s ago)` where it has passed. */
export function momentText(wallMs: number, nowWallMs: number): string {
  const awayMs = wallMs - nowWallMs;
  const away = awayMs < 0 ? `${durationText(-awayMs)} ago` : `in ${durationText(awayMs)}`;
  return `${timeOfDay(wallMs)} UTC (${away})`;
}

/** Milliseconds as `12 ms`, `2.5 s`, `52 s`, `4 min 10 s` or `2 h 5 min`. */
function durationText(ms: number): string {
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9950) return `${Number((ms / 1000).toFixed(1))} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  const [big, small] =
    minutes < 120 ? [`${minutes} min`, seconds % 60] : [`${Math.floor(minutes / 60)} h`, minutes % 60];
  return small === 0 ? big : `${big} ${small} ${minutes < 120 ? 's' : 'min'}`;
}
