import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../ports.ts';
import { ControlRefusal, errorBody, type Refusal } from './control-refusal.ts';
import { codeOf } from './listen-address.ts';

/** Connections that are served. */
const MAX_CONNECTIONS = 256;
/** Connections that are open, with those that are told so; beyond, they are closed without a word. */
const MAX_OPEN_CONNECTIONS = 2 * MAX_CONNECTIONS;
/** Requests that one connection may send ahead without waiting for their replies. */
const MAX_PIPELINED = 16;
/** Of the headers, and of the whole request. */
const RECEIVE_MS = 5000;
/** A bot beats every few seconds over one connection: it must not be this side that ends it. */
const KEEP_ALIVE_MS = 75_000;
/** Where others find no place, a connection that is idle makes room, but not while a bot beats over it. */
const SPARED_MS = 10_000;
/** Whoever connects asks at once: where others find no place, one that has said nothing for this long makes room. */
const SILENT_MS = 20;
/** Longer than any request is waited for: reached by readers that take nothing in. */
const IDLE_MS = 90_000;

export const CONTROL_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'content-type': 'application/json; charset=utf-8',
  'cross-origin-resource-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
} as const;

/** What is known of a connection. */
interface Talk {
  /** Came when enough others were there. */
  readonly surplus: boolean;
  /** The requests on their way, and whether each has begun to change something. */
  readonly unanswered: Map<ServerResponse, 'waits' | 'begun'>;
  /** Was told that it ends: what it still sends is not looked at. */
  over: boolean;
  requests: number;
  /** When it was opened, or last asked for something. */
  usedMs: number;
}

export interface ControlServer {
  readonly server: Server;
  /**
   * Asked right before a request is carried out. False where something unreadable followed it over the same connection:
   * then its body may have been meant by that, a command without a body is for all markets, and it was refused already.
   */
  readonly begin: (response: ServerResponse) => boolean;
}

type OnRefused = (reason: Refusal) => void;

/**
 * A server of HTTP that nobody can keep busy for long: connections, requests that are sent ahead and their time are
 * limited. `onRefused` hears of what never reaches `serve`.
 */
export function createControlServer(
  clock: Clock,
  serve: RequestListener,
  onRefused: OnRefused,
  mostOpen = MAX_OPEN_CONNECTIONS,
): ControlServer {
  const mostServed = Math.min(MAX_CONNECTIONS, Math.ceil(mostOpen / 2));
  const talks = new Map<Socket, Talk>();
  /** Of them, those that have asked for something: silent ones take no place but their own. */
  let speaking = 0;
  /** What came last over these cannot be read: what has not begun never will, even when they are closed. */
  const broken = new WeakSet<Socket>();
  const refuse = (talk: Talk, response: ServerResponse, refusal: ControlRefusal): void => {
    talk.over = true;
    response.req.socket.pause();
    onRefused(refusal.code);
    response.writeHead(refusal.status, { ...CONTROL_HEADERS, ...refusal.headers, connection: 'close' });
    response.end(errorBody(refusal.code, refusal.message));
  };
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const talk = talks.get(request.socket);
    if (talk === undefined || talk.over) return;
    if (talk.requests === 0) speaking += 1;
    talk.requests += 1;
    talk.usedMs = clock.now().monoMs;
    talk.unanswered.set(response, 'waits');
    response.once('close', () => talk.unanswered.delete(response));
    if (talk.unanswered.size > MAX_PIPELINED) {
      const text = `more than ${MAX_PIPELINED} requests were sent ahead; wait for their replies`;
      refuse(talk, response, new ControlRefusal('too_many_requests', text));
    } else if (talk.surplus && speaking > mostServed) {
      const text = `more than ${mostServed} connections are open; close some, and try again`;
      refuse(talk, response, new ControlRefusal('too_many_connections', text));
    } else {
      serve(request, response);
    }
  };
  const server = createLimitedServer(answer, Math.min(MAX_OPEN_CONNECTIONS, mostOpen));
  server.on('drop', () => {
    onRefused('too_many_connections');
    endIdle(talks, clock.now().monoMs);
  });
  server.on('connection', (socket: Socket) => {
    if (talks.size >= mostServed) endIdle(talks, clock.now().monoMs);
    const surplus = talks.size >= mostServed;
    const usedMs = clock.now().monoMs;
    talks.set(socket, { surplus, unanswered: new Map(), over: false, requests: 0, usedMs });
    socket.once('close', () => {
      if ((talks.get(socket)?.requests ?? 0) > 0) speaking -= 1;
      talks.delete(socket);
    });
  });
  server.on('clientError', (error, socket) => {
    const talk = talks.get(socket as Socket);
    if (!GONE.has(codeOf(error))) broken.add(socket as Socket);
    if (talk === undefined || !socket.writable || GONE.has(codeOf(error))) socket.destroy();
    else if (talk.over) (socket as Socket).destroySoon();
    else endTalk(talk, socket as Socket, describeClientError(error), onRefused);
  });
  const begin = (response: ServerResponse): boolean => {
    if (broken.has(response.req.socket)) return false;
    talks.get(response.req.socket)?.unanswered.set(response, 'begun');
    return true;
  };
  return { server, begin };
}

function createLimitedServer(answer: RequestListener, mostOpen: number): Server {
  const server = createServer(
    {
      requireHostHeader: false,
      headersTimeout: RECEIVE_MS,
      requestTimeout: RECEIVE_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: 500,
      maxHeaderSize: 8192,
    },
    answer,
  );
  server.setTimeout(IDLE_MS);
  server.maxConnections = mostOpen;
  // A connection that cannot be accepted, for want of file descriptors, is no reason to end.
  server.on('error', () => {});
  return server;
}

/** Ends the connections of those who asked once, who have said nothing, and who have not asked for long. */
function endIdle(talks: ReadonlyMap<Socket, Talk>, nowMs: number): void {
  for (const [socket, { unanswered, requests, usedMs }] of talks) {
    const sparedMs = requests === 0 ? SILENT_MS : requests === 1 ? 0 : SPARED_MS;
    if (unanswered.size === 0 && nowMs - usedMs > sparedMs) socket.destroy();
  }
}

const GONE = new Set(['ECONNRESET', 'EPIPE']);

/** What Node's parser has against a request. */
function describeClientError(error: Error): ControlRefusal {
  switch (codeOf(error)) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ControlRefusal('too_slow', `the request was not complete after ${RECEIVE_MS / 1000} s`);
    case 'HPE_HEADER_OVERFLOW':
      return new ControlRefusal('headers_too_large', 'the headers are longer than 8 KiB');
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new ControlRefusal('too_large', 'the chunk extensions are longer than 16 KiB');
    default:
      return new ControlRefusal('malformed_request', 'the request cannot be read as HTTP');
  }
}

/** Answers what cannot be read, unless the client would take the answer for that of a request that was carried out. */
function endTalk(talk: Talk, socket: Socket, refusal: ControlRefusal, onRefused: OnRefused): void {
  talk.over = true;
  onRefused(refusal.code);
  if ([...talk.unanswered].some(([response, state]) => state === 'begun' || response.headersSent)) {
    socket.destroy();
    return;
  }
  const body = errorBody(refusal.code, refusal.message);
  const headers = Object.entries({
    ...CONTROL_HEADERS,
    ...refusal.headers,
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  }).map(([name, value]) => `${name}: ${value}`);
  const head = [`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`, ...headers].join('\r\n');
  socket.write(`${head}\r\n\r\n${body}`);
  socket.destroySoon();
}
