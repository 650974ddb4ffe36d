import { once } from 'node:events';
import { chmodSync, linkSync, lstatSync, mkdtempSync, rmSync, type Stats, unlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import type { ListenAddress } from '../ports.ts';
import { codeOf } from '../util/text.ts';
import {
  ListenError,
  type ListenerName,
  type ListenOptions,
  limitConnections,
  listenError,
  urlOf,
} from './listen.ts';

/** Who may connect beside root: the user of this process, or every member of its group as well. */
export type SocketAccess = keyof typeof MODES;
const MODES = { owner: 0o600, group: 0o660 } as const;

type SocketFile = Awaited<ReturnType<typeof placeSocket>>;

/** Opens a listener at each address. Rejects with `ListenError` where one cannot be opened; then none stays open. */
export async function openAll(
  name: ListenerName,
  options: ListenOptions & { readonly access?: SocketAccess },
  create: (address: ListenAddress, openTo: () => string) => FastifyInstance,
) {
  const apps: FastifyInstance[] = [];
  const files: SocketFile[] = [];
  const addresses: string[] = [];
  const close = async (): Promise<void> => {
    for (const file of files.splice(0)) file.remove();
    await Promise.all(apps.map((app) => app.close()));
  };
  for (const address of options.listen) {
    let file: SocketFile | null = null;
    const app = create(address, () => file?.openTo ?? '');
    apps.push(app);
    limitConnections(app.server, options);
    try {
      if (address.kind === 'unix') {
        file = await placeSocket(address.path, (path) => app.listen({ path }), options.access);
        files.push(file);
      } else await app.listen({ host: address.host, port: address.port });
    } catch (error) {
      await close();
      throw listenError(name, address, error);
    }
    addresses.push(address.kind === 'unix' ? address.text : urlOf(address.host, app.server));
  }
  return {
    /** Where they are to be found: `unix:/PATH`, or URLs with the ports that were really bound. */
    addresses,
    /** Stops listening, removes the socket files and ends every connection, without waiting for any reply. */
    close,
  };
}

/**
 * Puts a Unix socket at `path` that nobody can connect to but root and those whom `access` names. `listen` binds it at
 * the path it is given.
 *
 * A socket gets its permissions from the umask of the process, and somebody could be faster than a change of them. So it
 * is bound in a directory that nobody else can enter and linked to its place when its permissions are right. A link
 * never replaces anything: what stands at `path` is removed only if it is a socket on which nobody listens any more.
 */
export async function placeSocket(
  path: string,
  listen: (path: string) => Promise<unknown>,
  access: SocketAccess = 'owner',
) {
  let folder: string | null = null;
  try {
    const left = await findLeftover(path);
    folder = mkdtempSync(`${dirname(path)}/.`);
    const bound = join(folder, 's');
    await listen(bound);
    chmodSync(bound, MODES[access]);
    const now = lstatSync(path, { throwIfNoEntry: false });
    // The number of a file that is gone is given to the next one, its time of change is not.
    if (left !== null && now !== undefined && isSame(left, now) && left.ctimeMs === now.ctimeMs)
      unlinkSync(path);
    linkSync(bound, path);
    const own = lstatSync(path);
    /** Who may connect beside root, by number. */
    const openTo = access === 'group' ? `uid ${own.uid} and group ${own.gid}` : `uid ${own.uid}`;
    return { openTo, remove: () => removeOwn(path, own) };
  } finally {
    if (folder !== null) rmSync(folder, { recursive: true, force: true });
  }
}

/** Rejects with what `placeSocket` would reject with now; leaves nothing behind. */
export async function checkSocketPlace(path: string): Promise<void> {
  await findLeftover(path);
  rmSync(mkdtempSync(`${dirname(path)}/.`), { recursive: true });
}

/** The socket that a daemon which was killed has left at the path, or null where there is nothing. */
async function findLeftover(path: string): Promise<Stats | null> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return null;
  const other = 'there is something at this path that is no socket; move it away, or set another path';
  if (!found.isSocket()) throw refuse(path, 'EEXIST', other);
  const answer = await knock(path);
  if (answer === 'ECONNREFUSED' || answer === 'ENOENT') return found;
  if (answer === null || answer === 'EAGAIN')
    throw refuse(path, 'EADDRINUSE', 'another process listens there, perhaps another killswitchd; stop it');
  const foreign = `there is a socket of somebody else (${answer}); remove it, or set another path`;
  throw refuse(path, answer, foreign);
}

/** The error code of an attempt to connect; null where somebody answered. */
async function knock(path: string): Promise<string | null> {
  const socket = connect({ path });
  try {
    await once(socket, 'connect');
    return null;
  } catch (error) {
    return codeOf(error);
  } finally {
    socket.destroy();
  }
}

const isSame = (one: Stats, other: Stats) => one.dev === other.dev && one.ino === other.ino;

/** Removes the socket unless another file has taken its place: while it is bound nothing else gets its number. */
function removeOwn(path: string, own: Stats): void {
  try {
    if (isSame(lstatSync(path), own)) unlinkSync(path);
  } catch {
    // Gone already, or the directory is closed to us: the next start sees that nobody listens there.
  }
}

function refuse(path: string, code: string, problem: string): ListenError {
  return new ListenError('control', `unix:${path}`, code, problem);
}
