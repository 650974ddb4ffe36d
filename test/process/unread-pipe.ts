import { execFileSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'vitest';

/** Of every POSIX system; Node cannot make one. */
const MAKE_PIPE = 'mkfifo';

/** A pipe that is open at both ends and that nobody reads, as a descriptor. */
export function openUnread(directory: string, context: TestContext): number {
  const pipe = join(directory, 'unread');
  execFileSync(MAKE_PIPE, [pipe]);
  const descriptor = openSync(pipe, 'r+');
  context.onTestFinished(() => closeSync(descriptor));
  return descriptor;
}
