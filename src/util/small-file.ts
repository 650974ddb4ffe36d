import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

export type SmallFile =
  | { readonly kind: 'ok'; readonly bytes: Buffer; readonly mode: number }
  /** `why` ends a sentence about the file: `does not exist`. */
  | { readonly kind: 'failed'; readonly why: string };

const WHY: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ENOTDIR: 'does not exist',
  EACCES: 'may not be read by this user',
  EPERM: 'may not be read by this user',
  EISDIR: 'is a directory',
  ELOOP: 'is a symbolic link that leads in a circle',
  ENAMETOOLONG: 'has a name that is too long',
};

/** Reads a regular file of at most `mostBytes`. Never waits: a pipe without a writer would hold the process for ever. */
export function readSmallFile(path: string, mostBytes: number): SmallFile {
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    return { kind: 'failed', why: explain(error) };
  }
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) {
      return { kind: 'failed', why: stat.isDirectory() ? 'is a directory' : 'is not a regular file' };
    }
    const buffer = Buffer.alloc(mostBytes + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < buffer.length; length += read) {
      read = readSync(descriptor, buffer, length, buffer.length - length, null);
    }
    if (length > mostBytes) {
      return { kind: 'failed', why: `is bigger than ${mostBytes / 1024} KiB` };
    }
    return { kind: 'ok', bytes: buffer.subarray(0, length), mode: stat.mode & 0o777 };
  } catch (error) {
    return { kind: 'failed', why: explain(error) };
  } finally {
    closeSync(descriptor);
  }
}

function explain(error: unknown): string {
  const code = (error as { code?: unknown }).code;
  return WHY[String(code)] ?? `cannot be read (${typeof code === 'string' ? code : 'invalid path'})`;
}
