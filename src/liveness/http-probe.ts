import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { buildConnector, Client, Dispatcher } from 'undici';
import ClientOfUndici from 'undici/lib/dispatcher/client.js';
import type { Clock } from '../ports.ts';
import type { ProbeAnswer, Prober } from './http.ts';

/** The most of an answer's body that is read; it is dropped unread. */
const MAX_BODY_BYTES = 65_536;
/** Probes come every few seconds; undici's own 4 s would open a connection for each. */
const IDLE_MS = 60_000;

/** Opens the sockets of one prober. undici would leave one that does not open to its own timer. */
function createOpener(): { readonly connect: buildConnector.connector; abandon(): void } {
  let opening: Socket | null = null;
  return {
    connect({ protocol, hostname, port }, callback) {
      const secure = protocol === 'https:';
      const host = hostname.replace(/^\[|\]$/g, '');
      const target = { host, port: Number(port) || (secure ? 443 : 80) };
      const servername = isIP(host) === 0 ? host : '';
      const socket = secure
        ? connectTls({ ...target, servername, ALPNProtocols: ['http/1.1'], rejectUnauthorized: true })
        : connectTcp(target);
      opening = socket;
      socket.once(secure ? 'secureConnect' : 'connect', () => {
        if (opening !== socket) return;
        opening = null;
        callback(null, socket);
      });
      // Stays for the life of the socket: an error after the connection is undici's to handle, not to crash on.
      socket.on('error', (error) => {
        if (opening !== socket) return;
        opening = null;
        callback(error, null);
      });
    },
    abandon() {
      opening?.destroy();
      opening = null;
    },
  };
}

interface Connection {
  readonly client: Client;
  end(): void;
}

function createConnection(origin: string): Connection {
  const opener = createOpener();
  const client = new ClientOfUndici(origin, {
    connect: opener.connect,
    pipelining: 1,
    allowH2: false,
    // The prober's own deadline ends a probe; undici's timers fire half a second late.
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
  });
  return {
    client,
    end() {
      opener.abandon();
      void client.destroy();
    },
  };
}

/** `end` is told the answer, and whether the connection can carry another probe after it. */
function handlerOf(end: (answer: ProbeAnswer, reusable: boolean) => void): Dispatcher.DispatchHandler {
  let status = 0;
  let size = 0;
  return {
    // undici takes no handler without it.
    onRequestStart: () => undefined,
    onResponseStart(_controller, code) {
      status = code;
    },
    onResponseData(_controller, chunk) {
      size += chunk.length;
      if (size > MAX_BODY_BYTES) end({ kind: 'answered', status }, false);
    },
    onResponseEnd() {
      end({ kind: 'answered', status }, true);
    },
    onResponseError(_controller, error) {
      end({ kind: 'failed', detail: describe(error) }, false);
    },
  };
}

function describe({ code, message }: NodeJS.ErrnoException): string {
  if (message === '') return code ?? 'unknown error';
  return code === undefined || message.includes(code) ? message : `${code}: ${message}`;
}

/**
 * Probes a real URL over one connection, which is opened anew after anything but a whole answer. Redirects are answers
 * like any other and are not followed. The answer must have ended within the time given, or have brought 64 KiB.
 */
export function openHttpProber(clock: Clock, url: string): Prober {
  const { origin, pathname, search } = new URL(url);
  const headers = { accept: '*/*', 'user-agent': 'killswitchd' };
  let connection: Connection | null = null;
  let cancelProbe = (): void => undefined;

  function drop(): void {
    connection?.end();
    connection = null;
  }
  return {
    probe(timeoutMs, done) {
      let over = false;
      function end(answer: ProbeAnswer, reusable: boolean): void {
        if (over) return;
        over = true;
        cancelDeadline();
        // In a turn of its own: undici would swallow what `done` throws, and may not be ended from inside its calls.
        queueMicrotask(() => {
          if (!reusable) drop();
          done(answer);
        });
      }
      const cancelDeadline = clock.after(timeoutMs, () =>
        end({ kind: 'failed', detail: `no whole answer within ${timeoutMs} ms` }, false),
      );
      cancelProbe = () => {
        over = true;
        cancelDeadline();
      };
      connection ??= createConnection(origin);
      connection.client.dispatch({ method: 'GET', path: pathname + search, headers }, handlerOf(end));
    },
    close() {
      cancelProbe();
      drop();
    },
  };
}
