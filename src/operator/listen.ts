import type { Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { dirname } from 'node:path';
import { Ajv } from 'ajv';
import type { FastifyServerOptions } from 'fastify';
import type { Clock, ListenAddress } from '../ports.ts';
import { codeOf } from '../util/text.ts';

export type ListenerName = 'web' | 'control';

export interface ListenOptions {
  readonly clock: Clock;
  readonly listen: readonly ListenAddress[];
  /** Connections that each of them may have; 256 where it is not given. */
  readonly mostConnections?: number | undefined;
  /** Whether a connection on which somebody waits for an answer is ended for others; an event stream always waits. */
  readonly endsWaiting: boolean;
  /** A connection was refused, or closed before it had sent a whole request. */
  readonly onCrowded?: () => void;
}

export const EVERY_HEADER = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
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

const problemsOf = (setting: string): Readonly<Record<string, string>> => ({
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

export function urlOf(host: string, server: Server): string {
  const { port } = server.address() as AddressInfo;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Renewals need file descriptors, too. */
export const MAX_CONNECTIONS = 256;
/** Room is made before the last place is taken, so that whoever comes and asks at once gets in. */
const FULL_SHARE = 7 / 8;
/** From here on also those make room that came a moment ago: among so many silent ones they are hardly readers. */
const CROWDED_SHARE = 31 / 32;
/** A client sends its request right after it has connected. */
const SILENT_MS = 100;
/** A connection over which a bot beats is not ended for others. */
const IDLE_MS = 10_000;

/**
 * Limits the connections of a listener. As soon as seven eighths of the places are taken, each that comes ends the oldest
 * one that has not sent a whole request for 100 ms, or else the one that has sent nothing for longest, and at least for
 * 10 s. Before the last places are taken, one that came later than 100 ms ago goes as well.
 */
export function limitConnections(server: Server, options: ListenOptions): void {
  const { clock, mostConnections: most = MAX_CONNECTIONS, endsWaiting, onCrowded } = options;
  // The oldest are first.
  const silentMs = new Map<Socket, number>();
  const usedMs = new Map<Socket, number>();
  const forget = (socket: Socket): boolean => silentMs.delete(socket) || usedMs.delete(socket);
  const isOver = (ms: number, mostMs: number) => clock.now().monoMs - ms > mostMs;
  const makeRoom = (): void => {
    const [oldest] = silentMs;
    const isCrowded = silentMs.size > 1 && silentMs.size + usedMs.size > most * CROWDED_SHARE;
    // Who came a moment ago may be about to send its request.
    const isMute = oldest !== undefined && (isCrowded || isOver(oldest[1], SILENT_MS));
    const mayEnd = (socket: Socket) => endsWaiting || talkOf(socket).unanswered === 0;
    const found = isMute ? oldest : [...usedMs].find(([one, ms]) => mayEnd(one) && isOver(ms, IDLE_MS));
    if (found === undefined) return;
    if (isMute) onCrowded?.();
    forget(found[0]);
    found[0].destroy();
  };
  server.maxConnections = most;
  // Without a listener for it, a lack of file descriptors would end the process.
  server.on('error', () => {});
  server.on('connection', (socket: Socket) => {
    silentMs.set(socket, clock.now().monoMs);
    socket.once('close', () => forget(socket));
    if (silentMs.size + usedMs.size > most * FULL_SHARE) makeRoom();
  });
  server.on('request', ({ socket }) => {
    if (forget(socket)) usedMs.set(socket, clock.now().monoMs);
  });
  server.on('drop', () => {
    onCrowded?.();
    makeRoom();
  });
}

/** Requests that one connection may send ahead without waiting for their replies. */
export const MAX_AHEAD = 16;

class Talk {
  /** Requests that wait for their replies; infinitely many where too many were sent ahead. */
  unanswered = 0;
  /** A request has begun to change something. */
  hasBegun = false;
  /** The last bytes could not be read: commands that have not begun are dropped. */
  broken = false;
}
const talks = new WeakMap<Socket, Talk>();

/** What is known of a connection. */
export function talkOf(socket: Socket): Talk {
  const talk = talks.get(socket) ?? new Talk();
  talks.set(socket, talk);
  return talk;
}

/**
 * Counts a request until its reply is sent. `last`: it is one more than may be sent ahead; end the connection.
 * `ignored`: it comes behind such a one.
 */
export function countAhead(socket: Socket, reply: ServerResponse): 'goes' | 'last' | 'ignored' {
  const talk = talkOf(socket);
  if (talk.unanswered === Number.POSITIVE_INFINITY) return 'ignored';
  talk.unanswered += 1;
  reply.once('close', () => {
    talk.unanswered -= 1;
  });
  if (talk.unanswered <= MAX_AHEAD) return 'goes';
  talk.unanswered = Number.POSITIVE_INFINITY;
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

/** What both listeners want of fastify. */
export const SERVER = {
  logger: false,
  schemaController: { compilersFactory } as unknown as FastifyServerOptions['schemaController'] & object,
  forceCloseConnections: true,
} as const;
