import { type DestinationStream, type Logger, pino, symbols } from 'pino';
import type { Clock, Observer } from '../ports.ts';
import { hideSecrets, REDACTED } from '../util/redact.ts';
import { describeNotice, type EventContext, type EventLevel, levelOf } from './events.ts';
import { isoTime, localTime } from './moment.ts';
import { hideSecretFields, SECRET_BINDINGS } from './secret-fields.ts';
import { createSink, openShared, openStdout, type Sink, type Write } from './sink.ts';

export const LOG_FORMATS = ['json', 'journal', 'text'] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];
export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The priorities of syslog by pino's level numbers, as journald reads them off the start of a line. */
const JOURNAL_PRIORITY: Readonly<Record<number, string>> = { 60: '<2>', 50: '<3>', 40: '<4>', 30: '<6>' };
const TEXT_LEVEL: Readonly<Record<number, string>> = { 60: 'FATAL  ', 50: 'ERROR  ', 40: 'warning  ' };

/** pino's number. */
const ERROR_LEVEL = 50;

/** This many lines of one event in a window are written; further ones are counted. */
const BURST = 50;
const BURST_WINDOW_MS = 10_000;

export interface LogOptions {
  readonly level: LogLevel;
  readonly format: LogFormat;
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
}

/** A log that neither blocks nor throws, however slow or gone its reader is. */
export function createLog(options: LogOptions): Log {
  const { level, format, clock, write, onLine, onDrop = () => {}, secrets = () => [] } = options;
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
  const lineOf = (json: string, levelNumber: number, said: string | undefined): string => {
    if (format === 'json') return json;
    if (format === 'journal') return `${JOURNAL_PRIORITY[levelNumber] ?? '<7>'}${json}`;
    return `${localTime(clock.now().wallMs)}  ${TEXT_LEVEL[levelNumber] ?? ''}${oneLine(said ?? '')}\n`;
  };
  const stream: MetadataStream = {
    [symbols.needsMetadataGsym]: true,
    lastLevel: 30,
    write(json) {
      onLine?.(pino.levels.labels[stream.lastLevel] ?? 'info');
      const line = hideSecrets(lineOf(json, stream.lastLevel, stream.lastMsg), secrets());
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

/** Details come from outside: none of them may start a line of its own or move the cursor of a terminal. */
function oneLine(text: string): string {
  return text.replaceAll(/\p{Cc}+/gu, ' ');
}

/**
 * Turns notices into lines: the first failure and every change of state, not each renewal. A flood of one event (ten
 * thousand markets that fail together) is cut off after fifty lines in ten seconds and summed up; errors never are.
 */
export function logNotices(logger: Logger, context: EventContext): Observer {
  const floods = new Map<string, { sinceMs: number; lines: number }>();
  const sumUp = (nowMs: number): void => {
    for (const [event, flood] of floods) {
      if (nowMs - flood.sinceMs < BURST_WINDOW_MS) continue;
      floods.delete(event);
      const more = flood.lines - BURST;
      if (more > 0)
        logger.warn({ event: 'repeats', of: event, more }, `${more} more lines of ${event} were left out.`);
    }
  };
  const isFlooded = (event: string, nowMs: number): boolean => {
    const flood = floods.get(event) ?? { sinceMs: nowMs, lines: 0 };
    flood.lines += 1;
    floods.set(event, flood);
    return flood.lines > BURST;
  };
  return (notice, now) => {
    if (floods.size > 0) sumUp(now.monoMs);
    const level: EventLevel = levelOf(notice);
    if (!logger.isLevelEnabled(level)) return;
    const { event, msg, fields } = describeNotice(notice, context, now);
    if ((level === 'warn' || level === 'info') && isFlooded(event, now.monoMs)) {
      logger.debug({ event, ...fields }, msg);
      return;
    }
    logger[level]({ event, ...fields }, msg);
  };
}
