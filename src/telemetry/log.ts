import { write as writeFd } from 'node:fs';
import { type DestinationStream, type Logger, pino } from 'pino';
import type { Instant } from '../core/time.ts';
import type { Cancel, Clock, LogLevel, Observer, RecentEvent } from '../ports.ts';
import { within } from '../util/pace.ts';
import { hideSecrets, isoTime, listed, plain, REDACTED, timeOfDay } from '../util/text.ts';
import { describeLeft, describeNotice, type EventLine, levelOf } from './events.ts';
import { openNonBlocking, openStdout } from './output.ts';

/** The priorities of syslog, as journald reads them off the start of a line. */
const PRIORITY = { fatal: '<2>', error: '<3>', warn: '<4>', info: '<6>', debug: '<7>' } as const;
const TEXT_LEVEL = { fatal: 'FATAL  ', error: 'ERROR  ', warn: 'warning  ', info: '', debug: '' } as const;

/** A person reads no more of the recent events. */
const MOST_RECENT = 100;

/** So many lines of one event are written in a window; one more line sums up the others. */
const BURST = 10;
const BURST_WINDOW_MS = 10_000;
/** Lines summed up by one line of `repeats`, which names their markets. */
const COLLECTED = 500;

type Written = [error: NodeJS.ErrnoException | null, taken: number];
/** Writes bytes somewhere and says how many were taken. `done` is called exactly once, never synchronously. */
export type Write = (bytes: Uint8Array, done: (...written: Written) => void) => void;

export function writerTo(descriptor: number): Write {
  return (bytes, done) => writeFd(descriptor, bytes, done);
}

export interface LogOptions {
  readonly level: LogLevel;
  readonly format: 'auto' | 'json' | 'journal' | 'text';
  /** Whether a person reads it as it is written: then `auto` means text, else json. */
  readonly terminal?: boolean;
  readonly clock: Clock;
  /** Where the bytes go; standard output unless given. While that takes none, errors go to standard error. */
  readonly write?: Write;
  readonly onLine?: (level: LogLevel) => void;
  /** Told of each line that was dropped because the output is slow, full or gone. */
  readonly onDrop?: () => void;
  /** The secrets in use: should one turn up in a line after all, it is blotted out. */
  readonly secrets?: () => readonly string[];
}

export type Log = ReturnType<typeof createLog>;
/** Its `level` may be set: it decides what is written from then on. */
type LevelLogger = Logger & { level: LogLevel };

/** What is read of a line of pino, which is JSON. */
interface Line {
  readonly level: LogLevel;
  readonly event?: string;
  readonly msg?: string;
}

/** A log that neither blocks nor throws, however slow or gone its reader is. */
export function createLog(options: LogOptions) {
  const { level, clock, write, onLine, onDrop = () => {}, secrets = () => [] } = options;
  const format = options.format === 'auto' ? (options.terminal === true ? 'text' : 'json') : options.format;
  const sink = createSink({
    clock,
    write: write ?? writerTo(openStdout()),
    onDrop,
    onRoom: (lines) => {
      const text = `${lines} lines of the log were lost: its output was full or slow.`;
      logger.warn({ event: 'log-dropped', lines }, text);
    },
  });
  /** Standard error, opened when it is needed for the first time. */
  let errors: Sink | null = null;
  const lineOf = (json: string, { level, event, msg = '' }: Line): string => {
    if (format === 'json') return json;
    if (format === 'text') return `${timeOfDay(clock.now().wallMs)}Z  ${TEXT_LEVEL[level]}${plain(msg)}\n`;
    // journald keeps the time itself; the code is for searches.
    return `${PRIORITY[level]}${event === undefined ? '' : `${event}: `}${plain(msg)}\n`;
  };
  const stream: DestinationStream = {
    write(json) {
      const made = JSON.parse(json) as Line;
      onLine?.(made.level);
      const shown = lineOf(json, made).replaceAll(SECRET_FIELDS, `$1"${REDACTED}"`);
      const line = hideSecrets(shown, secrets());
      sink.write(line);
      const isError = made.level === 'error' || made.level === 'fatal';
      if (write !== undefined || !isError || !sink.isFailing()) return;
      errors ??= createSink({ clock, write: writerTo(openNonBlocking(2)), onDrop: () => {} });
      errors.write(line);
    },
  };
  const timestamp = () => `,"time":"${isoTime(clock.now().wallMs)}"`;
  const formatters = { level: (label: string) => ({ level: label }) };
  const logger: LevelLogger = pino({ level, base: null, timestamp, formatters }, stream) as LevelLogger;
  const events: RecentEvent[] = [];
  /** Writes a line, and keeps it for the page where a person would want to read it (level info and above). */
  const tell = ({ level, event, market, msg, fields }: EventLine): void => {
    logger[level]({ event, ...fields }, msg);
    if (level === 'debug') return;
    events.unshift({ atWallMs: clock.now().wallMs, level, event, market, text: msg });
    if (events.length > MOST_RECENT) events.pop();
  };
  return {
    logger,
    flush: sink.flush,
    tell,
    floods: createFloods(tell),
    /** The last events, the newest first. */
    recent: (): readonly RecentEvent[] => [...events],
  };
}

/** Waiting lines may take up this much; beyond it new ones are dropped. */
const LIMIT_CHARS = 1024 * 1024;
/** A full pipe is tried again after this long. */
const AGAIN_MS = 50;
/** An output that fails, as one on a full disk, is tried again after this long. */
const AGAIN_AFTER_ERROR_MS = 1000;
/** How long the end waits for a slow reader. */
const FLUSH_MS = 500;
/** Nobody reads any more, and nobody ever will. */
const GONE: ReadonlySet<string | undefined> = new Set(['EPIPE', 'EBADF']);

interface SinkOptions {
  readonly clock: Clock;
  readonly write: Write;
  readonly onDrop: () => void;
  /** Told how many were dropped, once there is room again. */
  readonly onRoom?: (dropped: number) => void;
}

type Sink = ReturnType<typeof createSink>;

/** A bounded queue of lines before an output that may be slow, full or gone. One write is on its way at a time. */
export function createSink({ clock, write, onDrop, onRoom }: SinkOptions) {
  let waiting = '';
  let writing: Promise<void> | null = null;
  let cancelPause: Cancel = () => {};
  let isGone = false;
  let isFailing = false;
  let dropped = 0;

  const drop = (): void => {
    dropped += 1;
    onDrop();
  };
  const giveUp = (): void => {
    isGone = true;
    writing = null;
    cancelPause();
    for (const _lineEnd of waiting.matchAll(/\n/g)) drop();
    waiting = '';
  };
  const writeOnce = (bytes: Uint8Array) =>
    new Promise<Written>((resolve) => write(bytes, (...written) => resolve(written)));
  const writeWaiting = async (): Promise<void> => {
    while (waiting.length > 0) {
      let bytes = Buffer.from(waiting);
      waiting = '';
      while (bytes.length > 0) {
        const [error, taken] = await writeOnce(bytes);
        if (isGone) return;
        bytes = bytes.subarray(taken);
        if (error === null) continue;
        if (GONE.has(error.code)) return giveUp();
        const isFull = error.code === 'EAGAIN' || error.code === 'EINTR';
        isFailing ||= !isFull;
        await new Promise<void>((resolve) => {
          cancelPause = clock.after(isFull ? AGAIN_MS : AGAIN_AFTER_ERROR_MS, resolve);
        });
      }
      isFailing = false;
      const lost = dropped;
      dropped = 0;
      if (lost > 0) onRoom?.(lost);
    }
    writing = null;
  };
  return {
    /** Takes a line with its newline. Never blocks and never throws: it is dropped where there is no room. */
    write(line: string): void {
      if (isGone || waiting.length + line.length > LIMIT_CHARS) return drop();
      waiting += line;
      writing ??= writeWaiting();
    },
    /** Whether the last write failed, or lines were dropped that nobody was told of yet. */
    isFailing: () => isFailing || dropped > 0,
    /**
     * For the end: resolves once every line is written, at the latest after `withinMs`; what is not written by then is
     * dropped, so that a reader who does not read cannot keep the process alive. Never rejects.
     */
    flush: async (withinMs = FLUSH_MS): Promise<void> => {
      const written = writing?.then(() => true) ?? Promise.resolve(true);
      if ((await within(clock, withinMs, written)) === null) giveUp();
    },
  };
}

/** Fields that never come out, at any depth of a line, and the headers of a signed request: up to the value. */
const SECRET_FIELDS =
  /("(?:(?:x-txc-|api[-_]?)?(?:apikey|key|secret|payload|signature)|authorization)":)"(?:[^"\\]|\\.)*"/gi;

/** How many lines of one event there were, and those that one line sums up later. */
interface Flood {
  readonly sinceMs: number;
  lines: number;
  more: EventLine[];
}

/** Writes ten lines of one event in ten seconds, and then one line that names up to 500 markets of the others. */
function createFloods(tell: (line: EventLine) => void) {
  const floods = new Map<string, Flood>();
  const sumUp = (flood: Flood): void => {
    if (flood.more.length > 0) tell(repeatsOf(flood.more));
    flood.more = [];
  };
  return {
    /** Sums up those that began by then, on the monotonic clock. */
    endBegunBy(untilMs: number): void {
      for (const [event, flood] of floods) {
        if (flood.sinceMs > untilMs) continue;
        sumUp(flood);
        floods.delete(event);
      }
    },
    /** Whether the line is one too many, and was collected. */
    isCollected(line: EventLine, now: Instant): boolean {
      const flood = floods.get(line.event) ?? { sinceMs: now.monoMs, lines: 0, more: [] };
      floods.set(line.event, flood);
      flood.lines += 1;
      if (flood.lines <= BURST) return false;
      flood.more.push(line);
      if (flood.more.length >= COLLECTED) sumUp(flood);
      return true;
    },
  };
}

/** Turns notices into lines of the log and recent events: the first failure and every change of state, not each renewal. */
export function tellNotices({ logger, tell, floods }: Log, bases: readonly string[]): Observer {
  return (notice, now) => {
    floods.endBegunBy(now.monoMs - BURST_WINDOW_MS);
    const level = levelOf(notice);
    // Most notices are renewals: no sentence is made for them.
    if (level === 'debug' && !logger.isLevelEnabled(level)) return;
    if (notice.kind === 'stopped') {
      floods.endBegunBy(Number.POSITIVE_INFINITY);
      // Not for the page: they would push everything else out.
      for (const left of describeLeft(notice))
        logger[left.level]({ event: left.event, ...left.fields }, left.msg);
    }
    const line = describeNotice(notice, bases, now);
    tell(level !== 'debug' && floods.isCollected(line, now) ? { ...line, level: 'debug' } : line);
  };
}

function repeatsOf(more: readonly EventLine[]): EventLine {
  const [of, { length }] = [more[0]?.event ?? '', more];
  const markets = more.flatMap(({ market }) => market ?? []);
  const bots = more.flatMap(({ market, fields: { bot } }) =>
    market === null && typeof bot === 'string' ? bot : [],
  );
  const names = [...markets, ...bots];
  const named = names.length > 0 ? `: ${listed(names)}` : '';
  return {
    level: (['error', 'warn'] as const).find((level) => more.some((line) => line.level === level)) ?? 'info',
    event: 'repeats',
    market: null,
    msg: `${of}: ${length} more lines of it within ${BURST_WINDOW_MS / 1000} s${named}.`,
    fields: { of, more: length, markets, bots },
  };
}
