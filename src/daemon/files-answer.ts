import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Clock } from '../ports.ts';

const ANSWER_WITHIN_MS = 5000;

/**
 * Whether the file systems of `paths` answer within 5 s; a file that is missing is an answer. A thread of libuv opens
 * them one after the other: a file system that hangs holds up that one, and not the loop. Name the file last that is read
 * right after the answer. A look that hangs is the look of later questions too.
 */
export function createFilesAnswer(clock: Clock): (paths: readonly string[]) => Promise<boolean> {
  let looks: Promise<true> | null = null;
  return async (paths) => {
    looks ??= lookAt(paths).then(() => {
      looks = null;
      return true;
    });
    const timeout = Promise.withResolvers<false>();
    const cancel = clock.after(ANSWER_WITHIN_MS, () => timeout.resolve(false));
    return Promise.race([looks, timeout.promise]).finally(cancel);
  };
}

async function lookAt(paths: readonly string[]): Promise<void> {
  for (const path of paths) await look(path);
}

async function look(path: string): Promise<void> {
  try {
    // Without a wait for the writer of a pipe.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if ((await file.stat()).isFile()) await file.read(Buffer.alloc(1), 0, 1, 0);
  } catch {
    // Whoever reads the file says why it cannot be read.
  }
}
