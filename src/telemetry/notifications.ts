import pRetry, { AbortError } from 'p-retry';
import type { Notice } from '../core/notice.ts';
import type { Instant } from '../core/time.ts';
import type { Cancel, Clock, RecentEvent } from '../ports.ts';
import { isoTime, listed } from '../util/text.ts';
import { describeNotice, type Kind, levelOf } from './events.ts';
import type { Log } from './log.ts';

export const NOTIFY_WHATS = ['message', 'ping'] as const;
type NotifyFormat = 'json' | 'slack' | 'telegram';

/** What one post says: one event, and all that happened of its kind since the last post. */
export interface Message extends Omit<RecentEvent, 'market'> {
  /** Those that are named; at most `MOST_MARKETS`. */
  readonly markets: readonly string[];
  readonly count: number;
}

/** What became of one post: an HTTP status, or why there is none. Never the address. */
export type Posted = { readonly status: number } | { readonly failed: string };

/** Events of one kind within this time are one message. */
const GATHER_MS = 500;
/** Telegram and Slack take one message a second. */
const PACE_MS = 1000;
const POST_MS = 10_000;
const MOST_MARKETS = 20;
/** Telegram refuses a text of more than 4096 characters. */
const MOST_CHARS = 4000;
/** A message is tried for about an hour: the way to the receiver may be away as long as that to the exchange. */
const BACKOFF = { retries: 65, minTimeout: 1000, maxTimeout: 60_000, randomize: true, unref: true } as const;

/** Events that begin or end a state. Of several the last one is told, in its own words, and behind those before it. */
const TURNS: ReadonlySet<string> = new Set<Kind>([
  ...(['refused', 'unauthorised', 'outage-began'] as const),
  ...(['accepted-again', 'authorised-again', 'outage-ended'] as const),
]);
const BAD_NEWS: Kind[] = ['overdue', 'lapsed', 'fired', 'tripped', 'bot', 'removed', 'deleted', 'stopped'];

function isWorthTelling(notice: Notice): boolean {
  return TURNS.has(notice.kind) || (BAD_NEWS.includes(notice.kind) && levelOf(notice) !== 'info');
}

/** The body of a post. `name`: what the daemon is called. */
export function formatMessage(message: Message, format: NotifyFormat, name: string): string {
  const { event, level, atWallMs, text, markets, count } = message;
  const time = isoTime(atWallMs);
  if (format === 'json') return JSON.stringify({ name, event, level, time, text, markets, count });
  const sentence = `${level === 'error' ? '🔴' : level === 'warn' ? '🟠' : '🟢'} ${name}: ${text} (${time})`;
  const short = sentence.slice(0, MOST_CHARS).toWellFormed();
  // Slack reads links and commands out of these three.
  const escaped = short.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return JSON.stringify({ text: format === 'slack' ? escaped : short });
}

interface Pending extends Omit<Message, 'markets'> {
  readonly what: 'bots' | 'markets';
  readonly names: Set<string>;
}

/** One message of two about the same event. */
function together(older: Pending, newer: Pending): Pending {
  const { names } = older;
  for (const name of newer.names) names.add(name);
  return { ...(TURNS.has(older.event) ? newer : older), count: older.count + newer.count, names };
}

function namesIn(notice: Notice, market: string | null): string[] {
  if (notice.kind === 'bot') return [notice.bot];
  if (notice.kind === 'stopped') return notice.left.map((one) => one.market);
  return market === null ? [] : [market];
}

/** What was not told so far: at most one message of each event, in the order in which they are told. */
function createWaiting(bases: readonly string[]) {
  let byEvent = new Map<string, Pending>();
  return {
    add(notice: Notice, now: Instant): void {
      const { event, level, market, msg: text } = describeNotice(notice, bases, now);
      const what = notice.kind === 'bot' ? 'bots' : 'markets';
      const names = new Set(namesIn(notice, market));
      const newer: Pending = { event, level, atWallMs: now.wallMs, text, count: 1, what, names };
      const older = byEvent.get(event);
      if (TURNS.has(event)) byEvent.delete(event);
      byEvent.set(event, older === undefined ? newer : together(older, newer));
    },
    /** A message that was not posted after all: it comes before those that came later. */
    restore(older: Pending): void {
      const newer = byEvent.get(older.event);
      if (newer === undefined) byEvent = new Map([[older.event, older], ...byEvent]);
      else byEvent.set(older.event, together(older, newer));
    },
    /** What there is about `event`, else what has waited for longest; null where nothing does. */
    take(event?: string): Pending | null {
      const found = byEvent.get(event ?? '') ?? byEvent.values().next().value;
      if (found === undefined) return null;
      byEvent.delete(found.event);
      return found;
    },
    isEmpty: () => byEvent.size === 0,
  };
}

function messageOf({ what, names, ...rest }: Pending): Message {
  const more = rest.count > 1 && names.size > 1;
  const text = more ? `${rest.text} In all ${names.size} ${what}: ${listed([...names])}.` : rest.text;
  return { ...rest, text, markets: what === 'markets' ? [...names].slice(0, MOST_MARKETS) : [] };
}

export function wasTaken(posted: Posted): boolean {
  return 'status' in posted && posted.status >= 200 && posted.status < 300;
}

export function sayPosted(posted: Posted): string {
  return 'status' in posted ? `HTTP ${posted.status}` : posted.failed;
}

/** The section `notify` of the configuration in force. */
export interface NotifySettings {
  readonly format: NotifyFormat;
  readonly name: string;
  readonly url: SecretUrl | null;
  readonly pingUrl: SecretUrl | null;
  readonly pingEverySeconds: number;
}

interface SecretUrl {
  readonly reveal: () => string;
}

export interface Poster {
  /** Posts a body as JSON, or asks for the address where there is none. Never rejects. */
  post(url: SecretUrl, body: string | null, withinMs: number, signal?: AbortSignal): Promise<Posted>;
  close(): Promise<void>;
}

interface NotifyingOptions {
  readonly clock: Clock;
  readonly bases: readonly string[];
  readonly notify: NotifySettings;
  readonly log: Pick<Log, 'logger'>;
  /** A way to post for messages, and another one for pings: no slow receiver holds the other up. */
  readonly messages: Poster;
  readonly pings: Poster;
  readonly onFailure: (what: (typeof NOTIFY_WHATS)[number]) => void;
}

const PING_MS = 10_000;
const FIRST_PING_MS = 5000;
const CLOSE_MS = 2000;

/** Tells people over HTTP what happens, and a dead man's switch that all is well. */
export function createNotifying(options: NotifyingOptions) {
  const { clock, log, pings, onFailure } = options;
  const current = { notify: options.notify };
  const problems = { notification: '', ping: '' };
  /** Says a problem once, and that it is over. */
  const tell = (what: keyof typeof problems, problem: string | null): void => {
    const before = problems[what];
    problems[what] = problem ?? '';
    if (problem !== null && problem !== before)
      log.logger.warn({ event: `${what}-failed` }, `A ${what} was not delivered: ${problem}.`);
    if (problem === null && before !== '')
      log.logger.info({ event: `${what}-delivered` }, `A ${what} was delivered again.`);
  };
  const messages = createMessages(options, current, (problem) => tell('notification', problem));
  let isWell: (() => boolean) | null = null;
  let cancelPing: Cancel = () => {};
  /** Only where somebody is to be pinged: a timer wakes the process. */
  const pingAfter = (delayMs: number): void => {
    cancelPing = clock.after(delayMs, () => {
      const { pingUrl, pingEverySeconds } = current.notify;
      if (pingUrl === null) return;
      pingAfter(pingEverySeconds * 1000);
      if (isWell?.() !== true) return;
      void pings.post(pingUrl, null, PING_MS).then((posted) => {
        if (isWell === null) return;
        if (!wasTaken(posted)) onFailure('ping');
        tell('ping', wasTaken(posted) ? null : sayPosted(posted));
      });
    });
  };
  const follow = (next: NotifySettings): void => {
    current.notify = next;
    // A reload may change pace and address: the wait of before counts no longer.
    cancelPing();
    if (next.pingUrl !== null && isWell !== null) pingAfter(FIRST_PING_MS);
  };
  return {
    observe: messages.observe,
    follow,
    /** Pings while `well` says so. */
    start(well: () => boolean): void {
      isWell = well;
      follow(current.notify);
    },
    /** Posts what waits, and ends; within 2 s. */
    async close(): Promise<void> {
      isWell = null;
      cancelPing();
      await messages.close(CLOSE_MS);
      await Promise.all([options.messages.close(), pings.close()]);
    },
  };
}

/** Why a post was not taken: an `AbortError` where trying again is of no use. */
function flawOf(event: string, posted: Posted): Error {
  const isFinal = 'status' in posted && posted.status < 500 && ![408, 429].includes(posted.status);
  return new (isFinal ? AbortError : Error)(`${event}: ${sayPosted(posted)}`);
}

/**
 * Tells a receiver what happened to the orders. There is at most one message of each event waiting and one on its way,
 * whatever the receiver does: nothing grows, and no renewal waits for it. `tell` hears why a message was given up, or
 * that posts get through again (null); nothing where a reload took the address away meanwhile.
 */
function createMessages(
  options: NotifyingOptions,
  current: { readonly notify: NotifySettings },
  tell: (problem: string | null) => void,
) {
  const { clock, messages, onFailure } = options;
  const waiting = createWaiting(options.bases);
  const closing = new AbortController();
  const { signal } = closing;
  let cancelNext: Cancel | null = null;
  let sending: Promise<void> | null = null;
  /** Not before then, on the monotonic clock, does the next message leave. */
  let nextFromMs = 0;

  /** Rejects where it was not taken. */
  async function post(pending: Pending, withinMs: number, ends?: AbortSignal): Promise<void> {
    const { url, format, name } = current.notify;
    if (url === null) return;
    const body = formatMessage(messageOf(pending), format, name);
    const posted = await messages.post(url, body, withinMs, ends);
    if (wasTaken(posted)) return;
    if (ends?.aborted !== true) onFailure('message');
    throw flawOf(pending.event, posted);
  }
  const onFailedAttempt = ({ error }: { error: Error }) => tell(`${error.message}; it is tried again`);
  async function sendNext(): Promise<void> {
    const next = waiting.take();
    if (next === null) return;
    try {
      await pRetry(() => post(next, POST_MS, signal), { ...BACKOFF, signal, onFailedAttempt });
      if (current.notify.url !== null) tell(null);
    } catch (error) {
      // `close` posts it once more.
      if (signal.aborted) return waiting.restore(next);
      tell(error instanceof Error ? error.message : String(error));
    }
  }
  function plan(): void {
    if (sending !== null || signal.aborted) return;
    const pauseMs = nextFromMs - clock.now().monoMs;
    cancelNext ??= clock.after(Math.max(GATHER_MS, pauseMs), () => {
      cancelNext = null;
      sending = sendNext().then(() => {
        sending = null;
        nextFromMs = clock.now().monoMs + PACE_MS;
        if (!waiting.isEmpty()) plan();
      });
    });
  }
  return {
    observe: (notice: Notice, now: Instant): void => {
      if (current.notify.url === null || !isWorthTelling(notice)) return;
      waiting.add(notice, now);
      plan();
    },
    /** Posts what waits, without repeating anything, and ends; resolves within `withinMs`. */
    async close(withinMs: number): Promise<void> {
      const untilMs = clock.now().monoMs + withinMs;
      cancelNext?.();
      closing.abort();
      await sending;
      // What a stop left comes first.
      for (let one = waiting.take('stopped'); one !== null; one = waiting.take()) {
        const leftMs = untilMs - clock.now().monoMs;
        if (leftMs <= 0) return;
        await post(one, leftMs).catch((error: Error) => tell(error.message));
      }
    },
  };
}
