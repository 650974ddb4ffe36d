import { constants, fstatSync, openSync, write as writeFd } from 'node:fs';
import { Socket } from 'node:net';
import type { Cancel, Clock } from '../ports.ts';

/** Waiting lines may take up this much; beyond it new ones are dropped. */
const LIMIT_CHARS = 1024 * 1024;
/** A full pipe is tried again after this long. */
const AGAIN_MS = 50;
/** An output that fails, as one on a full disk, is tried again after this long. */
const AGAIN_AFTER_ERROR_MS = 1000;
/** Nobody reads any more, and nobody ever will. */
const GONE: ReadonlySet<string | undefined> = new Set(['EPIPE', 'EBADF']);

/** Writes bytes somewhere and says how many were taken. `done` is called exactly once, never synchronously. */
export type Write = (
  bytes: Uint8Array,
  done: (error: NodeJS.ErrnoException | null, taken: number) => void,
) => void;

/**
 * Writes to standard output. What can wait for a reader is made non-blocking first: a write that blocks would hold a
 * thread, and four of them all threads that there are.
 */
export function openStdout(): Write {
  const status = fstatSync(1);
  if (!status.isFIFO() && !status.isSocket()) return openShared(1);
  // As libuv does with everything that it opens as a stream.
  new Socket({ fd: 1, readable: false, writable: true }).unref();
  return (bytes, done) => writeFd(1, bytes, done);
}

/**
 * Writes to standard output (1) or standard error (2) while others have it as well: a child, or the shell of a terminal.
 * Whether writes block is a flag that all would share, so that a pipe or a terminal is opened anew, with a flag of its
 * own. A socket, such as that of journald, cannot be opened anew: there a reader that does not read holds up one thread.
 */
export function openShared(descriptor: 1 | 2): Write {
  const opened = openNonBlocking(descriptor);
  return (bytes, done) => writeFd(opened, bytes, done);
}

/** A descriptor of the same pipe or terminal that does not block; the given one where that cannot be had. */
export function openNonBlocking(descriptor: 1 | 2): number {
  const { O_WRONLY, O_APPEND, O_NONBLOCK, O_NOCTTY } = constants;
  try {
    const status = fstatSync(descriptor);
    if (!status.isFIFO() && !status.isCharacterDevice()) return descriptor;
    return openSync(`/proc/self/fd/${descriptor}`, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY);
  } catch {
    return descriptor;
  }
}

export interface SinkOptions {
  readonly clock: Clock;
  readonly write: Write;
  /** Told of each line that is dropped. */
  readonly onDrop: () => void;
  /** Told how many were dropped, once there is room again. */
  readonly onRoom?: (dropped: number) => void;
  readonly limitChars?: number;
}

/** Writes all of it, however often that has to be tried. The returned function gives up waiting. */
function writeAll(
  { clock, write }: SinkOptions,
  bytes: Uint8Array,
  failed: (error: NodeJS.ErrnoException) => void,
  done: () => void,
): Cancel {
  let givenUp = false;
  let cancelWait: Cancel = () => {};
  const push = (rest: Uint8Array): void =>
    write(rest, (error, taken) => {
      if (error === null && taken >= rest.length) return done();
      if (givenUp) return;
      if (error === null) return push(rest.subarray(taken));
      const isFull = error.code === 'EAGAIN' || error.code === 'EINTR';
      if (!isFull) failed(error);
      if (!givenUp) cancelWait = clock.after(isFull ? AGAIN_MS : AGAIN_AFTER_ERROR_MS, () => push(rest));
    });
  push(bytes);
  return () => {
    givenUp = true;
    cancelWait();
  };
}

export type Sink = ReturnType<typeof createSink>;

/**
 * A bounded queue of lines in front of an output that may be slow, full or gone. One write is on its way at a time. Only
 * an output whose reader is gone is given up.
 */
export function createSink(options: SinkOptions) {
  const { clock, onDrop, onRoom = () => {}, limitChars = LIMIT_CHARS } = options;
  let waiting: string[] = [];
  let waitingChars = 0;
  let cancelWrite: Cancel | null = null;
  let isGone = false;
  let isFailing = false;
  let dropped = 0;
  let whenIdle: (() => void)[] = [];

  const takeWaiting = (): string[] => {
    const lines = waiting;
    waiting = [];
    waitingChars = 0;
    return lines;
  };
  const drop = (): void => {
    dropped += 1;
    onDrop();
  };
  const becomeIdle = (): void => {
    cancelWrite = null;
    for (const resolve of whenIdle.splice(0)) resolve();
  };
  const giveUp = (): void => {
    isGone = true;
    cancelWrite?.();
    for (const _line of takeWaiting()) drop();
    becomeIdle();
  };
  const onError = ({ code }: NodeJS.ErrnoException): void => {
    isFailing = true;
    if (GONE.has(code)) giveUp();
  };
  const next = (): void => {
    cancelWrite = writeAll(options, Buffer.from(takeWaiting().join('')), onError, () => {
      cancelWrite = null;
      isFailing = false;
      if (dropped > 0 && !isGone) {
        const lost = dropped;
        dropped = 0;
        onRoom(lost);
      }
      if (waiting.length === 0) becomeIdle();
      else if (cancelWrite === null) next();
    });
  };
  return {
    /** Takes a line with its newline. Never blocks and never throws: it is dropped where there is no room. */
    write(line: string): void {
      if (isGone || waitingChars + line.length > limitChars) return drop();
      waiting.push(line);
      waitingChars += line.length;
      if (cancelWrite === null) next();
    },
    /** Whether the last write failed, or lines were dropped that nobody was told of yet. */
    isFailing: () => isFailing || dropped > 0,
    /** Resolves once every line is written, or after `withinMs`: then the rest is dropped, and nothing more is written. */
    flush: (withinMs: number) =>
      new Promise<void>((resolve) => {
        if (cancelWrite === null) return resolve();
        const cancel = clock.after(withinMs, giveUp);
        whenIdle.push(() => {
          cancel();
          resolve();
        });
      }),
  };
}
