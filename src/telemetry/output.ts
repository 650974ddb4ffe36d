import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { codeOf } from '../util/text.ts';

/** Standard output as a descriptor. Where it can wait for a reader, a write that blocks would hold a thread. */
export function openStdout(): number {
  const status = fstatSync(1);
  if (!status.isFIFO() && !status.isSocket()) return openNonBlocking(1);
  // As libuv does with everything that it opens as a stream.
  new Socket({ fd: 1, readable: false, writable: true }).unref();
  return 1;
}

/**
 * Standard output (1) or standard error (2) while others have it as well: a child, or the shell of a terminal. Whether
 * writes block is a flag that all would share, so that a pipe or a terminal is opened anew, with a flag of its own. The
 * given descriptor where that cannot be had. A socket, such as that of journald, cannot be opened anew: there a reader
 * that does not read holds up one thread.
 */
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

const WAIT_MS = 10;

/**
 * Writes texts without ever throwing: a reader that went away must not take the process with it. A slow one is waited
 * for `patience` times 10 ms, in all or, with `anew`, since the last text that it took as a whole.
 */
export function createWriter(descriptor: number, patience: number, anew: boolean) {
  let left = patience;
  let isGone = false;
  function write(text: string): void {
    let rest = Buffer.from(text, 'utf8');
    while (rest.length > 0) {
      try {
        rest = rest.subarray(writeSync(descriptor, rest));
      } catch (error) {
        // Nobody reads any more, and there is nobody to tell.
        isGone ||= codeOf(error) !== 'EAGAIN';
        if (isGone || left <= 0) return;
        left -= 1;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WAIT_MS);
      }
    }
    if (anew) left = patience;
  }
  return { write, isGone: () => isGone };
}
