import { constants, fstatSync, openSync, write as writeFd } from 'node:fs';
import { Socket } from 'node:net';
import type { Cancel, Clock } from '../ports.ts';

/** Waiting lines may take up this much; beyond it new ones are dropped. */
const LIMIT_CHARS = 1024 * 1024;
/** A full pipe is tried again after this long. */
const AGAIN_MS = 50;

/** Writes bytes somewhere and says how many were taken. `done` is called exactly once, never synchronously. */
export interface Write {
  (bytes: Uint8Array, done: (error: NodeJS.ErrnoException | null, taken: number) => void): void;
  /** Ends a write that may hold a thread: with one of those the process could not exit. Nothing is written any more. */
  readonly release?: (released: () => void) => void;
}

/** A bounded queue of lines in front of an output that may be slow or gone. */
export interface Sink {
  /** Takes a line with its newline. Never blocks and never throws: it is dropped where there is no room. */
  write(line: string): void;
  /** Resolves once every line is written, or after `withinMs`: then the rest is dropped and nothing is written any more. */
  flush(withinMs: number): Promise<void>;
}

/**
 * Writes to standard output. A pipe or socket is made non-blocking first, as libuv does with everything it opens as a
 * stream: a write that blocks would hold a thread of the pool, and the process could not even exit.
 */
export function openStdout(): Write {
  const status = fstatSync(1);
  if (status.isFIFO() || status.isSocket()) new Socket({ fd: 1, readable: false, writable: true }).unref();
  return (bytes, done) => writeFd(1, bytes, done);
}

/**
 * Writes to standard error while a child has it as well. Whether writes block is a flag that both would share, and a
 * child is started with blocking ones: a pipe is therefore opened anew, with a flag of its own. A socket, such as that of
 * journald, cannot be opened anew and is shared: there a reader that does not read holds up one thread until the end.
 */
export function openSharedStderr(): Write {
  const status = fstatSync(2);
  const descriptor = status.isFIFO() ? openAnew(2) : 2;
  const write: Write = (bytes, done) => writeFd(descriptor, bytes, done);
  return status.isSocket() ? Object.assign(write, { release: shutDownStderr }) : write;
}

/** Wakes whoever waits for room in the socket. The bot, who shares it, has ended, or is told here that all is over. */
function shutDownStderr(released: () => void): void {
  const socket = new Socket({ fd: 2, readable: false, writable: true });
  socket.on('error', () => released());
  socket.end(released);
}

function openAnew(descriptor: number): number {
  const { O_WRONLY, O_APPEND, O_NONBLOCK } = constants;
  try {
    return openSync(`/proc/self/fd/${descriptor}`, O_WRONLY | O_APPEND | O_NONBLOCK);
  } catch {
    return descriptor;
  }
}

export interface SinkOptions {
  readonly clock: Clock;
  readonly write: Write;
  readonly onDrop: () => void;
  readonly limitChars?: number;
}

/** Writes all of it, waiting where a pipe is full. The returned function gives up waiting. */
function writeAll(
  { clock, write }: SinkOptions,
  bytes: Uint8Array,
  done: (error: NodeJS.ErrnoException | null) => void,
): Cancel {
  let givenUp = false;
  let cancelWait: Cancel = () => {};
  const push = (rest: Uint8Array): void =>
    write(rest, (error, taken) => {
      if (error === null && taken >= rest.length) done(null);
      else if (givenUp) return;
      else if (error === null) push(rest.subarray(taken));
      else if (error.code === 'EAGAIN' || error.code === 'EINTR') {
        cancelWait = clock.after(AGAIN_MS, () => push(rest));
      } else done(error);
    });
  push(bytes);
  return () => {
    givenUp = true;
    cancelWait();
  };
}

/** A sink with one write on its way at a time. After an error other than a full pipe it drops everything. */
export function createSink(options: SinkOptions): Sink {
  const { clock, onDrop, limitChars = LIMIT_CHARS } = options;
  let waiting: string[] = [];
  let waitingChars = 0;
  let cancelWrite: Cancel | null = null;
  let broken = false;
  let whenIdle: (() => void)[] = [];

  const takeWaiting = (): string[] => {
    const lines = waiting;
    waiting = [];
    waitingChars = 0;
    return lines;
  };
  const giveUp = (): void => {
    broken = true;
    cancelWrite?.();
    for (const _line of takeWaiting()) onDrop();
  };
  const next = (): void => {
    cancelWrite = writeAll(options, Buffer.from(takeWaiting().join('')), (error) => {
      cancelWrite = null;
      if (error !== null) giveUp();
      if (waiting.length > 0) {
        next();
        return;
      }
      for (const resolve of whenIdle) resolve();
      whenIdle = [];
    });
  };
  return {
    write(line) {
      if (broken || waitingChars + line.length > limitChars) {
        onDrop();
        return;
      }
      waiting.push(line);
      waitingChars += line.length;
      if (cancelWrite === null) next();
    },
    flush: (withinMs) =>
      new Promise((resolve) => {
        if (cancelWrite === null) {
          resolve();
          return;
        }
        const cancel = clock.after(withinMs, () => {
          giveUp();
          if (options.write.release === undefined) resolve();
          else options.write.release(resolve);
        });
        whenIdle.push(() => {
          cancel();
          resolve();
        });
      }),
  };
}
