import { chmodSync, linkSync, lstatSync, mkdtempSync, rmSync, type Stats, unlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { codeOf, ListenError } from './listen.ts';

/** Who may connect beside root: the user of this process, or every member of its group as well. */
export type SocketAccess = 'owner' | 'group';

const MODES: Readonly<Record<SocketAccess, number>> = { owner: 0o600, group: 0o660 };

/** A socket file that is in its place. */
export interface SocketFile {
  /** Who may connect beside root, by number. */
  readonly openTo: string;
  /** Removes the file, unless another one has taken its place. */
  remove(): void;
}

/**
 * Puts a Unix socket at `path` that nobody can connect to but root and those whom `access` names. `listen` binds it at
 * the path it is given.
 *
 * A socket gets its permissions from the umask of the process, and somebody could be faster than a change of them. So it
 * is bound in a directory that nobody else can enter and linked to its place when its permissions are right. A link
 * never replaces anything: what stands at `path` is removed only if it is a socket on which nobody listens any more.
 * Throws `ListenError`.
 */
export async function placeSocket(
  path: string,
  listen: (path: string) => Promise<unknown>,
  access: SocketAccess = 'owner',
): Promise<SocketFile> {
  const left = await findLeftover(path);
  let folder: string | null = null;
  try {
    folder = mkdtempSync(`${dirname(path)}/.`);
    const bound = join(folder, 's');
    await listen(bound);
    chmodSync(bound, MODES[access]);
    const now = look(path);
    // The number of a file that is gone is given to the next one, its time of change is not.
    if (left !== null && now !== null && isSame(left, now) && left.ctimeMs === now.ctimeMs) unlinkSync(path);
    linkSync(bound, path);
    const own = lstatSync(path);
    const openTo = access === 'group' ? `uid ${own.uid} and group ${own.gid}` : `uid ${own.uid}`;
    return { openTo, remove: () => removeOwn(path, own) };
  } catch (error) {
    throw socketError(path, error);
  } finally {
    if (folder !== null) rmSync(folder, { recursive: true, force: true });
  }
}

/** Rejects with what `placeSocket` would reject with now; leaves nothing behind. */
export async function checkSocketPlace(path: string): Promise<void> {
  await findLeftover(path);
  try {
    rmSync(mkdtempSync(`${dirname(path)}/.`), { recursive: true });
  } catch (error) {
    throw socketError(path, error);
  }
}

/** The socket that a daemon which was killed has left at the path, or null where there is nothing. */
async function findLeftover(path: string): Promise<Stats | null> {
  const found = look(path);
  if (found === null) return null;
  if (!found.isSocket()) {
    throw refuse(
      path,
      'EEXIST',
      'there is something at this path that is no socket; move it away, or set another path',
    );
  }
  const answer = await knock(path);
  if (answer === 'ECONNREFUSED' || answer === 'ENOENT') return found;
  if (answer === null || answer === 'EAGAIN') {
    throw refuse(path, 'EADDRINUSE', 'another process listens there, perhaps another killswitchd; stop it');
  }
  throw refuse(
    path,
    answer,
    `there is a socket of somebody else (${answer}); remove it, or set another path`,
  );
}

/** The error code of an attempt to connect; null where somebody answered. */
function knock(path: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve(null);
    });
    socket.on('error', (error) => resolve(codeOf(error)));
  });
}

function look(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw socketError(path, error);
  }
}

function isSame(one: Stats, other: Stats): boolean {
  return one.dev === other.dev && one.ino === other.ino;
}

/** While the socket is bound nothing else gets its number. */
function removeOwn(path: string, own: Stats): void {
  try {
    if (isSame(lstatSync(path), own)) unlinkSync(path);
  } catch {
    // Gone already, or the directory is closed to us: the next start sees that nobody listens there.
  }
}

function socketError(path: string, cause: unknown): ListenError {
  if (cause instanceof ListenError) return cause;
  const code = codeOf(cause);
  const problem = PROBLEMS[code]?.(dirname(path)) ?? `cannot be opened (${code})`;
  return refuse(path, code, problem, { cause });
}

function refuse(path: string, code: string, problem: string, options?: ErrorOptions): ListenError {
  return new ListenError('control', `unix:${path}`, code, problem, options);
}

const noRight = (folder: string) =>
  `this user may not make files in ${folder}; set another path, or its owner`;
const PROBLEMS: Readonly<Record<string, (folder: string) => string>> = {
  ENOENT: (folder) =>
    `the directory ${folder} does not exist; make it, or set control.listen to another path`,
  ENOTDIR: (folder) => `${folder} is no directory; set control.listen to another path`,
  EACCES: noRight,
  EPERM: noRight,
  EROFS: (folder) =>
    `${folder} is on a file system that cannot be written; set control.listen to another path`,
  EEXIST: () => 'something else has just taken this path; look what it is, and start again',
};
