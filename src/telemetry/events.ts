import type { Notice } from '../core/notice.ts';
import type { Instant } from '../core/time.ts';
import { durationText, momentText } from './moment.ts';
import {
  describeFiring,
  describeHold,
  describeLapse,
  describeReload,
  describeRemoval,
  describeStop,
  describeSuspension,
  listed,
} from './sentences.ts';

export type EventLevel = 'error' | 'warn' | 'info' | 'debug';

/** What the sentences need besides the notice. */
export interface EventContext {
  /** Base addresses in the order that the notices number them. */
  readonly bases: readonly string[];
}

/** A notice as one line of the log, or one row of the recent events. */
export interface EventLine {
  readonly level: EventLevel;
  /** Stable code, kebab-case: what alerts and searches hold on to. */
  readonly event: string;
  readonly market: string | null;
  /** A plain sentence. */
  readonly msg: string;
  /** The numbers of the notice under its own names. */
  readonly fields: Readonly<Record<string, unknown>>;
}

type Kind = Notice['kind'];
type Of<K extends Kind> = Extract<Notice, { kind: K }>;

interface EventRule<N extends Notice> {
  readonly level: EventLevel | ((notice: N) => EventLevel);
  readonly event: string | ((notice: N) => string);
  readonly say: (notice: N, context: EventContext, now: Instant) => string;
}

const base = (context: EventContext, index: number): string =>
  context.bases[index] ?? `base address ${index}`;

const PURPOSE = { renew: 'renewal', trip: 'shortening', delete: 'deletion' } as const;
const STANDSTILL = {
  stall: 'This process stood still',
  suspend: 'This host was suspended',
  'clock-step': 'The clock of this host stepped',
} as const;
const BOT = {
  starting: 'has not given evidence yet; the grace of the start runs',
  alive: 'gives evidence that it lives',
  stale: 'gives no evidence any more: its timers are not renewed any more',
  goodbye: 'said goodbye: its timers are not renewed any more',
  failed: 'says that it failed: its timers are not renewed any more',
} as const;

/** The codes of the log: one rule for each kind of notice. */
const EVENTS: { readonly [K in Kind]: EventRule<Of<K>> } = {
  attempt: {
    level: 'debug',
    event: 'attempt',
    say: (n) => `${n.market}: a ${PURPOSE[n.purpose]} is being sent.`,
  },
  renewed: {
    level: (n) => (n.first ? 'info' : 'debug'),
    event: (n) => (n.first ? 'armed' : 'renewed'),
    say: (n, _, now) =>
      `${n.market} is ${n.first ? 'armed' : 'renewed'} until ${momentText(n.expiryWallMs, now.wallMs)}; ` +
      `the exchange answered in ${durationText(n.durationMs)}.`,
  },
  'attempt-failed': {
    level: (n) => (n.streak === 1 ? 'warn' : 'debug'),
    event: 'attempt-failed',
    say: (n) =>
      `${n.market}: a ${PURPOSE[n.purpose]} failed after ${durationText(n.durationMs)} (${n.reason}: ${n.detail}). ` +
      `It is tried again; repeats are counted.`,
  },
  recovered: {
    level: 'info',
    event: 'recovered',
    say: (n) => `${n.market} is confirmed again after ${count(n.failures, 'failed attempt')}.`,
  },
  overdue: {
    level: 'error',
    event: 'overdue',
    say: (n, _, now) =>
      `${n.market} MAY BE UNARMED: no renewal was confirmed in time, and its timer is due at ${momentText(n.expiryWallMs, now.wallMs)}. ` +
      `Its orders may be cancelled at any moment; renewals are still tried.`,
  },
  lapsed: { level: 'error', event: 'lapsed', say: describeLapse },
  fired: { level: 'error', event: 'fired', say: describeFiring },
  refused: {
    level: 'error',
    event: 'refused',
    say: (n) =>
      `${n.market} is REFUSED by the exchange (code ${n.code}: ${n.detail}). No new timer protects its orders; ` +
      `one that still stands will fire. Other markets go on. Asked again in ${durationText(n.probeInMs)}.`,
  },
  'accepted-again': {
    level: 'info',
    event: 'accepted-again',
    say: (n) => `${n.market} is accepted by the exchange again.`,
  },
  unauthorised: {
    level: 'error',
    event: 'unauthorised',
    say: (n) =>
      `THE API KEY IS REFUSED (${n.detail}). No timer can be renewed: every armed timer fires when its ` +
      `time is up and its orders are cancelled. Check the key, its permissions and its IP list; ` +
      `the secret files are read every second. Asked again in time for every armed timer, ` +
      `then every ${durationText(n.probeInMs)}.`,
  },
  'authorised-again': {
    level: 'info',
    event: 'authorised-again',
    say: () => 'The API key is accepted again; every timer is being renewed.',
  },
  altered: {
    level: 'warn',
    event: 'altered',
    say: (n) => `${n.market}: the exchange set another timer than asked for (${n.detail}).`,
  },
  'outage-began': {
    level: 'error',
    event: 'outage-began',
    say: (n, context) =>
      `NO RENEWAL GETS THROUGH to ${base(context, n.base)} (${n.detail}). The timers run on at the exchange and fire if this ` +
      `lasts. One market is tried without pause; the first success renews the others, the most urgent first.`,
  },
  'outage-ended': {
    level: 'info',
    event: 'outage-ended',
    say: (n, context) =>
      `Renewals get through to ${base(context, n.base)} again, after ${durationText(n.lastedMs)} and ${count(n.attempts, 'attempt')}.`,
  },
  throttled: {
    level: 'warn',
    event: 'throttled',
    say: (n) =>
      `The exchange asks for fewer requests: renewals are now ${decimal(n.factor)} times as far apart as planned.`,
  },
  cadence: {
    level: 'info',
    event: 'cadence',
    say: (n) => `Cadence: ${n.detail} (room for ${decimal(n.capacityPerSecond)} renewals a second).`,
  },
  stall: {
    level: 'warn',
    event: (n) => n.what,
    say: (n) =>
      `${STANDSTILL[n.what]} ${n.what === 'clock-step' ? 'by' : 'for'} ${signedDuration(n.byMs)}; everything is judged and renewed anew.`,
  },
  suspended: {
    level: (n) => (n.why === 'bot_stale' || n.why === 'bot_failed' ? 'warn' : 'info'),
    event: 'suspended',
    say: describeSuspension,
  },
  resumed: {
    level: 'info',
    event: 'resumed',
    say: (n) => `${n.market} is not suspended any more: its bot gives evidence that it lives.`,
  },
  held: {
    level: (n) => (n.why === 'tripped' || n.why === 'lapsed' ? 'warn' : 'info'),
    event: 'held',
    say: describeHold,
  },
  released: {
    level: 'info',
    event: 'released',
    say: (n) =>
      `${n.market} is under guard again: ${n.why === 'operator' ? 'an operator asked for it' : 'its pause is over'}.`,
  },
  tripped: {
    level: 'warn',
    event: 'tripped',
    say: (n, _, now) =>
      `${n.market}: its timer is cut short, as the exchange confirmed; ` +
      `its orders are cancelled by ${momentText(n.firesByWallMs, now.wallMs)}.`,
  },
  reloaded: { level: 'info', event: 'reloaded', say: describeReload },
  'handed-over': {
    level: 'info',
    event: 'handed-over',
    say: (n) => `Another shard has taken over by now: ${listed(n.markets)}.`,
  },
  removed: {
    level: (n) => (n.how === 'fired' ? 'warn' : 'info'),
    event: 'removed',
    say: describeRemoval,
  },
  bot: {
    level: (n) => (n.state === 'stale' || n.state === 'failed' ? 'error' : 'info'),
    event: (n) => `bot-${n.state}`,
    say: (n) => `Bot ${n.bot} ${BOT[n.state]}.`,
  },
  'limiter-bypassed': {
    level: 'warn',
    event: 'limiter-bypassed',
    say: (n) =>
      `${count(n.permits, 'request')} did not wait for the rate limiter, which had not answered in time.`,
  },
  pinged: {
    level: (n) => (n.changed ? (n.ok ? 'info' : 'warn') : 'debug'),
    event: (n) => (n.ok ? 'ping-answered' : 'ping-failed'),
    say: (n, context) =>
      n.ok
        ? `${base(context, n.base)} answers pings (${durationText(n.latencyMs)}).`
        : `${base(context, n.base)} does not answer pings (${n.reason ?? 'unknown'}: ${n.detail}). Renewals are still tried.`,
  },
  'all-armed': {
    level: 'info',
    event: 'all-armed',
    say: (n) =>
      `${n.markets === 1 ? 'The market is' : `All ${n.markets} markets are`} armed, ${durationText(n.sinceStartMs)} after the start.`,
  },
  stopping: {
    level: 'info',
    event: 'stopping',
    say: (n) =>
      `Stopping (${n.why}), policy ${n.policy}: ${STOPPING[n.policy]}, within ${durationText(n.budgetMs)}.`,
  },
  deleted: {
    level: (n) => (n.mayHaveFired ? 'warn' : 'info'),
    event: 'deleted',
    say: (n) =>
      n.mayHaveFired
        ? `${n.market}: there is no timer any more, as the exchange confirmed. It may have fired before it was deleted: check which orders are left.`
        : `${n.market}: the timer is deleted, as the exchange confirmed; its orders stay.`,
  },
  stopped: {
    level: (n) =>
      n.left.some(({ why }) => why === 'unconfirmed') ? 'error' : n.left.length > 0 ? 'warn' : 'info',
    event: 'stopped',
    say: describeStop,
  },
};

const STOPPING = {
  delete: 'the timers are deleted and the orders stay',
  keep: 'the timers are left to fire',
  handoff: 'every timer is renewed once more for whoever takes over',
} as const;

/** `1 attempt`, `2 attempts`. */
function count(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? '' : 's'}`;
}

function decimal(value: number): string {
  return String(Number(value.toFixed(2)));
}

function signedDuration(ms: number): string {
  return ms < 0 ? `-${durationText(-ms)}` : durationText(ms);
}

/** The rule of a notice's own kind, which the type of the table cannot express. */
function ruleOf(notice: Notice): EventRule<Notice> {
  return EVENTS[notice.kind] as EventRule<Notice>;
}

/** How loud a notice is. Cheap: asked for every notice, before a sentence is made. */
export function levelOf(notice: Notice): EventLevel {
  const { level } = ruleOf(notice);
  return typeof level === 'function' ? level(notice) : level;
}

/** A notice as code, sentence and numbers. */
export function describeNotice(notice: Notice, context: EventContext, now: Instant): EventLine {
  const rule = ruleOf(notice);
  const { kind: _kind, ...fields } = notice;
  return {
    level: levelOf(notice),
    event: typeof rule.event === 'function' ? rule.event(notice) : rule.event,
    market: 'market' in notice ? notice.market : null,
    msg: rule.say(notice, context, now),
    fields: 'base' in notice ? { ...fields, base: base(context, notice.base) } : fields,
  };
}
