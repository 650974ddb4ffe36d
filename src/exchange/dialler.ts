import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { buildConnector } from 'undici';
import type { FailureReason } from '../core/outcome.ts';

/** A connection that could not be opened; nothing was sent over it. */
export class ConnectError extends Error {
  readonly reason: FailureReason;
  constructor(reason: FailureReason, cause: NodeJS.ErrnoException) {
    super(cause.message || (cause.code ?? 'unknown error'), { cause });
    this.name = 'ConnectError';
    this.reason = reason;
  }
}

/** Opens the socket of one connection. */
export interface Dialler {
  readonly connect: buildConnector.connector;
  /** Gives up a socket that is still being opened. */
  abandon(): void;
}

/** What the connections to one address share. */
export interface DiallerOptions {
  /** Certificates in PEM form that are trusted instead of the well-known authorities. */
  readonly ca?: string | undefined;
  /** The last TLS session, so that a further connection needs one round trip less. */
  readonly sessions: { last: Buffer | undefined };
}

/** How long a connection rests before the operating system checks that the other side still exists. */
const TCP_KEEPALIVE_MS = 15_000;

function openTls(host: string, port: number, { ca, sessions }: DiallerOptions): TLSSocket {
  const socket = connectTls({
    host,
    port,
    // The name extension of TLS carries names only; an address is checked against the certificate all the same.
    servername: isIP(host) === 0 ? host : '',
    ALPNProtocols: ['http/1.1'],
    // Said explicitly so that NODE_TLS_REJECT_UNAUTHORIZED cannot switch it off.
    rejectUnauthorized: true,
    ...(ca === undefined ? {} : { ca }),
    ...(sessions.last === undefined ? {} : { session: sessions.last }),
  });
  socket.on('session', (session) => {
    sessions.last = session;
  });
  return socket;
}

/**
 * Opens sockets for undici in its place: this way an attempt that hangs can be given up at once (undici would leave it
 * to its own timer), and a failure says whether name resolution, the network or TLS was the cause.
 */
export function createDialler(options: DiallerOptions): Dialler {
  let opening: Socket | null = null;

  return {
    connect({ protocol, hostname, port }, callback) {
      const secure = protocol === 'https:';
      const number = Number(port) || (secure ? 443 : 80);
      const socket = secure
        ? openTls(hostname, number, options)
        : connectTcp({ host: hostname, port: number });
      opening = socket;
      let reached = false;
      socket.setNoDelay(true);
      socket.setKeepAlive(true, TCP_KEEPALIVE_MS);
      socket.once('connect', () => {
        reached = true;
      });
      socket.once(secure ? 'secureConnect' : 'connect', () => {
        if (opening !== socket) return;
        opening = null;
        callback(null, socket);
      });
      // Stays for the life of the socket: an error after the connection is undici's to handle, not to crash on.
      socket.on('error', (error: NodeJS.ErrnoException) => {
        if (opening !== socket) return;
        opening = null;
        const reason = error.syscall === 'getaddrinfo' ? 'dns' : reached ? 'tls' : 'network';
        callback(new ConnectError(reason, error), null);
      });
    },
    abandon() {
      opening?.destroy();
      opening = null;
    },
  };
}
