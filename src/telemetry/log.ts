import { type DestinationStream, type Logger, pino, symbols } from 'pino';
import type { Instant } from '../core/time.ts';
import type { Clock, EventLevel, LogLevel, Observer, RecentEvent } from '../ports.ts';
import { hideSecrets, isoTime, listed, oneLine, REDACTED, timeOfDay } from '../util/text.ts';
import { describeLeft, describeNotice, type EventContext, type EventLine, levelOf } from './events.ts';
import { createSink, openShared, openStdout, type Sink, type Write } from './sink.ts';

export const LOG_FORMATS = ['auto', 'json', 'journal', 'text'] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];
/** The priorities of syslog by pino's level numbers, as journald reads them off the start of a line. */
const JOURNAL_PRIORITY: Readonly<Record<number, string>> = { 60: '<2>', 50: '<3>', 40: '<4>', 30: '<6>' };
const TEXT_LEVEL: Readonly<Record<number, string>> = { 60: 'FATAL  ', 50: 'ERROR  ', 40: 'warning  ' };

/** pino's number. */
const ERROR_LEVEL = 50;

/** So many lines of one event are written in a window; one more line sums up the others. */
const BURST = 10;
const BURST_WINDOW_MS = 10_000;
/** Markets named in one line of `repeats`. */
const COLLECTED = 500;

export interface LogOptions {
  readonly level: LogLevel;
  readonly format: LogFormat;
  /** Whether a person reads it as it is written: then `auto` means text, else json. */
  readonly terminal?: boolean;
  readonly clock: Clock;
  /** Where the bytes go; standard output unless given. Without it errors go to standard error while they cannot. */
  readonly write?: Write;
  /** Told the level of each line, for the metrics. */
  readonly onLine?: (level: string) => void;
  /** Told of each line that was dropped because the output is slow, full or gone. */
  readonly onDrop?: () => void;
  /** The secrets in use: should one turn up in a line after all, it is blotted out. */
  readonly secrets?: () => readonly string[];
}

export interface Log {
  readonly logger: Logger;
  /** The quietest level that is written now. */
  level(): LogLevel;
  /** Changes what is written from now on. What is counted elsewhere, and what waits to be written, stays. */
  setLevel(level: LogLevel): void;
  /**
   * For the end: resolves once every line is written, at the latest after `withinMs`; what is not written by then is
   * dropped, so that a reader who does not read cannot keep the process alive. Never rejects.
   */
  flush(withinMs: number): Promise<void>;
}

/** Where pino leaves what a line was made of before it writes it. */
interface MetadataStream extends DestinationStream {
  readonly [symbols.needsMetadataGsym]: true;
  lastLevel: number;
  lastMsg?: string;
  lastObj?: unknown;
}

/** A log that neither blocks nor throws, however slow or gone its reader is. */
export function createLog(options: LogOptions): Log {
  const { level, clock, write, onLine, onDrop = () => {}, secrets = () => [] } = options;
  const format = options.format === 'auto' ? (options.terminal === true ? 'text' : 'json') : options.format;
  const sink = createSink({
    clock,
    write: write ?? openStdout(),
    onDrop,
    onRoom: (lines) =>
      logger.warn(
        { event: 'log-dropped', lines },
        `${lines} lines of the log were lost: its output was full or slow.`,
      ),
  });
  const errors = write === undefined ? createErrorSink(clock) : null;
  const lineOf = (json: string, { lastLevel, lastMsg, lastObj }: MetadataStream): string => {
    if (format === 'json') return json;
    const said = oneLine(lastMsg ?? '');
    if (format === 'text') return `${timeOfDay(clock.now().wallMs)}  ${TEXT_LEVEL[lastLevel] ?? ''}${said}\n`;
    // journald keeps the time itself; the code is for searches.
    const { event } = (lastObj ?? {}) as { readonly event?: unknown };
    const code = typeof event === 'string' ? `${event}: ` : '';
    return `${JOURNAL_PRIORITY[lastLevel] ?? '<7>'}${code}${said}\n`;
  };
  const stream: MetadataStream = {
    [symbols.needsMetadataGsym]: true,
    lastLevel: 30,
    write(json) {
      onLine?.(pino.levels.labels[stream.lastLevel] ?? 'info');
      const line = hideSecrets(lineOf(json, stream), secrets());
      sink.write(line);
      if (stream.lastLevel >= ERROR_LEVEL && sink.isFailing()) errors?.().write(line);
    },
  };
  const logger = pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${isoTime(clock.now().wallMs)}"`,
      formatters: { level: (label) => ({ level: label }), log: hideSecretFields },
      redact: { paths: [...SECRET_BINDINGS], censor: REDACTED },
      serializers: { err: (error: unknown) => error },
    },
    stream,
  );
  let current = level;
  return {
    logger,
    level: () => current,
    setLevel: (next) => {
      current = next;
      logger.level = next;
    },
    flush: (withinMs) => sink.flush(withinMs),
  };
}

/** Standard error, opened when it is needed for the first time. */
function createErrorSink(clock: Clock): () => Sink {
  let opened: Sink | null = null;
  return () => {
    opened ??= createSink({ clock, write: openShared(2), onDrop: () => {} });
    return opened;
  };
}

/** Names of fields that never come out, in lower case and without separators. */
const SECRET_FIELDS: ReadonlySet<string> = new Set([
  'key',
  'apikey',
  'secret',
  'apisecret',
  'payload',
  'signature',
  'authorization',
  'xtxcapikey',
  'xtxcpayload',
  'xtxcsignature',
]);
/** The same for the bindings of a child logger, which pass by `hideSecretFields`. */
const SECRET_BINDINGS = ['key', 'apiKey', 'secret', 'apiSecret', 'payload', 'signature', 'authorization'];
/** Deeper than this an object is not written at all. */
const MAX_DEPTH = 5;

/**
 * A line's object without its secrets, at every depth and however the names are spelt. The `redact` option of pino does
 * the same with wildcard paths, but takes 0.2 ms a line for these names and three levels.
 */
function hideSecretFields(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const clean: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) clean[name] = hideField(name, value, 0);
  return clean;
}

function hideField(name: string, value: unknown, depth: number): unknown {
  if (SECRET_FIELDS.has(name.toLowerCase().replaceAll(/[-_]/g, ''))) return REDACTED;
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= MAX_DEPTH) return '[deep]';
  if (value instanceof Error) return errorFields(value, depth);
  if (Array.isArray(value)) return value.map((item) => hideField('', item, depth + 1));
  const clean: Record<string, unknown> = {};
  for (const [inner, innerValue] of Object.entries(value)) {
    clean[inner] = hideField(inner, innerValue, depth + 1);
  }
  return clean;
}

/** Only what describes an error: its other properties may hold the request with its headers. */
function errorFields(error: Error, depth: number): Record<string, unknown> {
  const { name, message, stack, cause } = error;
  const code = 'code' in error && typeof error.code === 'string' ? { code: error.code } : {};
  const under = cause === undefined ? {} : { cause: hideField('', cause, depth + 1) };
  return { name, message, stack, ...code, ...under };
}

export interface RecentEvents {
  readonly add: (line: EventLine, now: Instant) => void;
  /** The newest first. */
  readonly list: () => readonly RecentEvent[];
}

/** Keeps the last events that a person would want to read (level info and above). */
export function createRecentEvents(capacity = 100): RecentEvents {
  const events: RecentEvent[] = [];
  return {
    add({ level, event, market, msg }, now) {
      if (level === 'debug') return;
      events.unshift({ atWallMs: now.wallMs, level, event, market, text: msg });
      if (events.length > capacity) events.pop();
    },
    list: () => [...events],
  };
}

/** Lines of one event, and those that one line sums up later. */
interface Flood {
  readonly sinceMs: number;
  lines: number;
  more: number;
  level: EventLevel;
  markets: string[];
}

const LOUDNESS: readonly EventLevel[] = ['debug', 'info', 'warn', 'error'];

/**
 * Turns notices into lines of the log and recent events: the first failure and every change of state, not each renewal.
 * Of a flood of one event (a thousand markets that lapse together) ten lines in ten seconds are written, and then one
 * that names the markets of the others, so that an outage takes tens of lines and no lapsed market goes unnamed.
 */
export function tellNotices(logger: Logger, recent: RecentEvents, context: EventContext): Observer {
  const floods = new Map<string, Flood>();
  const write = ({ level, event, msg, fields }: EventLine): void => logger[level]({ event, ...fields }, msg);
  const tell = (line: EventLine, now: Instant): void => {
    write(line);
    recent.add(line, now);
  };
  const sumUp = (event: string, flood: Flood, now: Instant): void => {
    const { more, markets, level } = flood;
    if (more > 0) tell(repeatsOf(event, level, more, markets), now);
    Object.assign(flood, { more: 0, markets: [], level: 'debug' });
  };
  const sumUpAll = (now: Instant, isOver: (flood: Flood) => boolean): void => {
    for (const [event, flood] of floods) {
      if (!isOver(flood)) continue;
      sumUp(event, flood, now);
      floods.delete(event);
    }
  };
  /** Whether the line is one too many, and was collected. */
  const isCollected = ({ event, level, market }: EventLine, now: Instant): boolean => {
    const flood = floods.get(event) ?? {
      sinceMs: now.monoMs,
      lines: 0,
      more: 0,
      level: 'debug',
      markets: [],
    };
    floods.set(event, flood);
    flood.lines += 1;
    if (flood.lines <= BURST) return false;
    flood.more += 1;
    if (LOUDNESS.indexOf(level) > LOUDNESS.indexOf(flood.level)) flood.level = level;
    if (market !== null) flood.markets.push(market);
    if (flood.markets.length >= COLLECTED) sumUp(event, flood, now);
    return true;
  };
  return (notice, now) => {
    if (floods.size > 0) sumUpAll(now, ({ sinceMs }) => now.monoMs - sinceMs >= BURST_WINDOW_MS);
    const level = levelOf(notice);
    // Most notices are renewals: no sentence is made for them.
    if (level === 'debug' && !logger.isLevelEnabled(level)) return;
    if (notice.kind === 'stopped') {
      sumUpAll(now, () => true);
      for (const line of describeLeft(notice, now)) write(line);
    }
    const line = describeNotice(notice, context, now);
    if (level === 'debug') write(line);
    else if (isCollected(line, now)) write({ ...line, level: 'debug' });
    else tell(line, now);
  };
}

function repeatsOf(event: string, level: EventLevel, more: number, markets: readonly string[]): EventLine {
  const named = markets.length > 0 ? `: ${listed(markets)}` : '';
  return {
    level,
    event: 'repeats',
    market: null,
    msg: `${event}: ${more} more lines of it within ${BURST_WINDOW_MS / 1000} s${named}.`,
    fields: { of: event, more, markets },
  };
}
