import { constants, fstatSync, openSync } from 'node:fs';
import { Socket } from 'node:net';

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
