import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'vitest';

/** Of every POSIX system; Node cannot make one. */
const MAKE_PIPE = 'mkfifo';
const PIPE = 'unread';

/** A pipe that is open at both ends and that nobody reads, as a descriptor. */
export function openUnread(directory: string, context: TestContext): number {
  const pipe = join(directory, PIPE);
  execFileSync(MAKE_PIPE, [pipe]);
  const descriptor = openSync(pipe, 'r+');
  context.onTestFinished(() => closeSync(descriptor));
  return descriptor;
}

/** What POSIX promises to write as a whole or not at all. */
const PIPE_BUF = Buffer.alloc(4096);

/** Whether nothing more goes into the pipe of `openUnread`. */
export function isFull(directory: string): boolean {
  const descriptor = openSync(join(directory, PIPE), constants.O_WRONLY | constants.O_NONBLOCK);
  try {
    writeSync(descriptor, PIPE_BUF);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EAGAIN';
  } finally {
    closeSync(descriptor);
  }
}
