import { promises } from 'node:dns';
import { once } from 'node:events';
import { chmodSync, linkSync, lstatSync, mkdtempSync, rmSync, type Stats, unlinkSync } from 'node:fs';
import type { Server, ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { Ajv } from 'ajv';
import type { FastifyInstance, FastifyListenOptions, FastifyServerOptions } from 'fastify';
import type { Clock, ListenAddress } from '../ports.ts';
import { codeOf } from '../util/text.ts';

type ListenerName = 'web' | 'control';

export interface ListenOptions {
  readonly clock: Clock;
  readonly listen: readonly ListenAddress[];
  /** Connections that each of them may have, asked at each request and after a refusal; 256 where it is not given. */
  readonly mostConnections?: () => number;
  /** A connection was refused, or closed before it had sent a whole request. */
  readonly onCrowded?: () => void;
}

export const EVERY_HEADER = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const;

export class ListenError extends Error {
  override readonly name = 'ListenError';
  /** The code of the operating system, as `EADDRINUSE`. */
  readonly code: string;
  constructor(listener: ListenerName, address: string, code: string, problem: string, cause?: unknown) {
    super(`${listener} listener ${address}: ${problem}`, { cause });
    this.code = code;
  }
}

/** Why a listener cannot be opened at an address, and what helps. */
export function listenError(listener: ListenerName, address: ListenAddress, cause: unknown): ListenError {
  if (cause instanceof ListenError) return cause;
  const code = codeOf(cause) || 'unknown';
  const setting = `${listener}.listen or KILLSWITCHD_${listener.toUpperCase()}_LISTEN`;
  const problems = address.kind === 'unix' ? problemsIn(dirname(address.path)) : problemsOf(setting);
  return new ListenError(listener, address.text, code, problems[code] ?? `cannot be opened (${code})`, cause);
}

/** Why a port cannot be had, by the code of the system; `setting` says which. */
export const problemsOf = (setting: string): Readonly<Record<string, string>> => ({
  EADDRINUSE: `the address is in use by another process, perhaps another killswitchd; stop it, or set ${setting} to another port`,
  EADDRNOTAVAIL: `this host has no such address; set ${setting} to one it has`,
  EACCES: `ports below 1024 need privileges; set ${setting} to a higher port`,
  ENOTFOUND: 'the host name is not known; write an IP address',
});

function problemsIn(folder: string): Readonly<Record<string, string>> {
  const noRight = `this user may not make files in ${folder}; set another path, or its owner`;
  const other = 'set control.listen to another path';
  return {
    ENOENT: `the directory ${folder} does not exist; make it, or ${other}`,
    ENOTDIR: `${folder} is no directory; ${other}`,
    EACCES: noRight,
    EPERM: noRight,
    EROFS: `${folder} is on a file system that cannot be written; ${other}`,
    EEXIST: 'something else has just taken this path; look what it is, and start again',
  };
}

/** Who may connect beside root: the user of this process, or every member of its group as well. */
export type SocketAccess = keyof typeof MODES;
const MODES = { owner: 0o600, group: 0o660 } as const;

const NO_SUCH_ADDRESS = ['EADDRNOTAVAIL', 'EAFNOSUPPORT'];

/** Opens a listener at each address. Rejects with `ListenError` where one cannot be opened; then none stays open. */
export async function openAll(
  name: ListenerName,
  options: ListenOptions & { readonly access?: SocketAccess },
  create: (address: ListenAddress, openTo: string) => FastifyInstance,
) {
  await using opening = new AsyncDisposableStack();
  const addresses: string[] = [];
  const open = async (address: ListenAddress, place: FastifyListenOptions, openTo = ''): Promise<Server> => {
    const app = create(address, openTo);
    opening.defer(() => app.close());
    limitConnections(name, app.server, options);
    await app.listen({ ...place, backlog: BACKLOG });
    return app.server;
  };
  for (const address of options.listen) {
    try {
      if (address.kind === 'unix') {
        const bind = (path: string, openTo: string) => open(address, { path }, openTo);
        opening.defer(await placeSocket(address.path, bind, options.access));
        addresses.push(address.text);
      } else {
        // Fastify would open the second address of `localhost` itself, without limit and without error handlers.
        const found = address.host === 'localhost' ? await promises.lookup(address.host, { all: true }) : [];
        const [first = address.host, ...others] = found.map((one) => one.address);
        const server = await open(address, { host: first, port: address.port });
        const { port } = server.address() as AddressInfo;
        for (const host of others) {
          // Where this host has no such address, the first one is enough. Where another process listens there, it would
          // hear what is meant for this one.
          await open(address, { host, port }).catch((error: unknown) => {
            if (!NO_SUCH_ADDRESS.includes(codeOf(error))) throw error;
          });
        }
        addresses.push(`http://${address.text.replace(/\d+$/, String(port))}`);
      }
    } catch (error) {
      throw listenError(name, address, error);
    }
  }
  const opened = opening.move();
  return {
    /** Where they are to be found: `unix:/PATH`, or URLs with the ports that were really bound. */
    addresses,
    /** Stops listening, removes the socket files and ends every connection, without waiting for any reply. */
    close: () => opened.disposeAsync(),
  };
}

/**
 * Puts a Unix socket at `path` that nobody can connect to but root and those whom `access` names. `listen` binds it at
 * the path it is given, and hears who they are, by number. Resolves with what removes the socket.
 *
 * A socket gets its permissions from the umask of the process, and somebody could be faster than a change of them. So it
 * is bound in a directory that nobody else can enter and linked to its place when its permissions are right. A link
 * never replaces anything: what stands at `path` is removed only if it is a socket on which nobody listens any more.
 */
export async function placeSocket(
  path: string,
  listen: (path: string, openTo: string) => Promise<unknown>,
  access: SocketAccess = 'owner',
): Promise<() => void> {
  const left = await findLeftover(path);
  using folder = makeFolderBeside(path);
  // The socket belongs to whom its directory belongs.
  const { uid, gid } = lstatSync(folder.path);
  const bound = join(folder.path, 's');
  await listen(bound, access === 'group' ? `uid ${uid} and group ${gid}` : `uid ${uid}`);
  chmodSync(bound, MODES[access]);
  const now = lstatSync(path, { throwIfNoEntry: false });
  // The number of a file that is gone is given to the next one, its time of change is not.
  if (left !== null && now !== undefined && isSame(left, now) && left.ctimeMs === now.ctimeMs)
    unlinkSync(path);
  linkSync(bound, path);
  const own = lstatSync(path);
  return () => removeOwn(path, own);
}

/** As `mkdtempDisposableSync`, which wants the current directory to be there: a deployment may have removed it. */
function makeFolderBeside(file: string) {
  const path = mkdtempSync(`${dirname(file)}/.`);
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** Rejects with what `placeSocket` would reject with now; leaves nothing behind. */
export async function checkSocketPlace(path: string): Promise<void> {
  await findLeftover(path);
  using _folder = makeFolderBeside(path);
}

/** The socket that a daemon which was killed has left at the path, or null where there is nothing. */
async function findLeftover(path: string): Promise<Stats | null> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return null;
  const refuse = (code: string, problem: string) => new ListenError('control', `unix:${path}`, code, problem);
  const other = 'there is something at this path that is no socket; move it away, or set another path';
  if (!found.isSocket()) throw refuse('EEXIST', other);
  const answer = await knock(path);
  if (answer === 'ECONNREFUSED' || answer === 'ENOENT') return found;
  if (answer === null || answer === 'EAGAIN')
    throw refuse('EADDRINUSE', 'another process listens there, perhaps another killswitchd; stop it');
  throw refuse(answer, `there is a socket of somebody else (${answer}); remove it, or set another path`);
}

/** The error code of an attempt to connect; null where somebody answered. */
function knock(path: string): Promise<string | null> {
  const socket = connect({ path });
  return once(socket, 'connect')
    .then(() => null, codeOf)
    .finally(() => socket.destroy());
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

/** Connections that wait to be accepted, if the kernel allows as many. A thousand bots may come in one turn of the loop. */
const BACKLOG = 4096;
/** Connections of a listener where few bots beat. Not more: renewals need file descriptors, too. */
export const LEAST_CONNECTIONS = 256;
/** Room is made before the last place is taken, so that whoever comes and asks at once gets in. */
const FULL_SHARE = 7 / 8;
/** Above this share the oldest silent connection is ended also where it came a moment ago. */
const CROWDED_SHARE = 31 / 32;
/** A client sends its request right after it has connected. */
const SILENT_MS = 100;
/** A connection over which a bot beats is not ended for others. */
const IDLE_MS = 10_000;

/** Limits the connections of a listener. Near the limit a new connection ends the oldest silent one, else an idle one. */
function limitConnections(name: ListenerName, server: Server, options: ListenOptions): void {
  const { clock, mostConnections = () => LEAST_CONNECTIONS, onCrowded } = options;
  // The oldest are first.
  const silentMs = new Map<Socket, number>();
  const usedMs = new Map<Socket, number>();
  const forget = (socket: Socket): boolean => silentMs.delete(socket) || usedMs.delete(socket);
  const isOver = (ms: number, mostMs: number) => clock.now().monoMs - ms > mostMs;
  const isFull = () => silentMs.size + usedMs.size > server.maxConnections * FULL_SHARE;
  const makeRoom = (): void => {
    // A reload may have brought bots since the last request.
    server.maxConnections = mostConnections();
    if (!isFull()) return;
    const [oldest] = silentMs;
    const isCrowded =
      silentMs.size > 1 && silentMs.size + usedMs.size > server.maxConnections * CROWDED_SHARE;
    // A connection of a moment ago may be about to send its request.
    const isMute = oldest !== undefined && (isCrowded || isOver(oldest[1], SILENT_MS));
    // A client that waits for the answer to a command keeps its connection; an event stream always waits.
    const mayEnd = (socket: Socket) => name === 'web' || connectionOf(socket).unanswered === 0;
    const found = isMute ? oldest : [...usedMs].find(([one, ms]) => mayEnd(one) && isOver(ms, IDLE_MS));
    if (found === undefined) return;
    if (isMute) onCrowded?.();
    forget(found[0]);
    found[0].destroy();
  };
  server.maxConnections = mostConnections();
  // Without a listener for it, a lack of file descriptors would end the process.
  server.on('error', () => {});
  server.on('connection', (socket: Socket) => {
    silentMs.set(socket, clock.now().monoMs);
    socket.once('close', () => forget(socket));
    if (isFull()) makeRoom();
  });
  server.on('request', ({ socket }) => {
    if (forget(socket)) usedMs.set(socket, clock.now().monoMs);
    server.maxConnections = mostConnections();
  });
  server.on('drop', () => {
    onCrowded?.();
    makeRoom();
  });
}

/** Requests that one connection may send ahead without waiting for their replies. */
export const MAX_AHEAD = 16;

class Connection {
  /** Requests that wait for their replies; infinitely many where too many were sent ahead. */
  unanswered = 0;
  /** A request has begun to change something. */
  hasBegun = false;
  /** The last bytes could not be read: commands that have not begun are dropped. */
  broken = false;
}
const connections = new WeakMap<Socket, Connection>();

/** What is known of the requests of a connection. */
export function connectionOf(socket: Socket): Connection {
  const connection = connections.get(socket) ?? new Connection();
  connections.set(socket, connection);
  return connection;
}

/**
 * Counts a request until its reply is sent. `last`: it is one more than may be sent ahead; end the connection.
 * `ignored`: it comes behind such a one.
 */
export function countAhead(socket: Socket, reply: ServerResponse): 'goes' | 'last' | 'ignored' {
  const connection = connectionOf(socket);
  if (connection.unanswered === Number.POSITIVE_INFINITY) return 'ignored';
  connection.unanswered += 1;
  reply.once('close', () => {
    connection.unanswered -= 1;
  });
  if (connection.unanswered <= MAX_AHEAD) return 'goes';
  connection.unanswered = Number.POSITIVE_INFINITY;
  return 'last';
}

const ajv = new Ajv({ verbose: true, validateSchema: false });

/** Checks requests. Fastify's own compilers would compile all schemas before the first timer is armed. */
const compilersFactory = {
  buildValidator:
    () =>
    ({ schema }: { readonly schema: object }) =>
    (value: unknown) =>
      ajv.validate(schema, value) || { error: ajv.errors ?? [] },
  buildSerializer: () => () => JSON.stringify,
};

/** A request must be complete within this. */
export const RECEIVE_MS = 5000;

/** Fastify's options for both listeners. */
export const SERVER = {
  logger: false,
  schemaController: { compilersFactory } as unknown as FastifyServerOptions['schemaController'] & object,
  forceCloseConnections: true,
  requestTimeout: RECEIVE_MS,
  // A bot beats every few seconds over one connection: it must not be this side that ends it.
  keepAliveTimeout: 75_000,
  // Longer than the longest wait for a reply.
  connectionTimeout: 90_000,
  http: {
    requireHostHeader: false,
    headersTimeout: RECEIVE_MS,
    // A listener wakes the process whenever it looks for slow connections, also where there are none.
    connectionsCheckingInterval: 2000,
    maxHeaderSize: 8192,
  },
} as const;
