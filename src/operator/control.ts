import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { ListenAddress } from '../ports.ts';
import { didYouMean } from '../util/nearest.ts';
import { codeOf, describeValue, isLoopback } from '../util/text.ts';
import { createRoutes, describeMistake, METHODS } from './control-routes.ts';
import { ControlRefusal, type ControlSources, errorBody } from './control-sources.ts';
import {
  connectionOf,
  countAhead,
  EVERY_HEADER,
  type ListenOptions,
  MAX_AHEAD,
  openAll,
  RECEIVE_MS,
  SERVER,
  type SocketAccess,
} from './listen.ts';

interface ControlOptions extends Omit<ListenOptions, 'clock' | 'onCrowded'> {
  /** Who may connect to the Unix sockets. */
  readonly access: SocketAccess;
  /** The bearer token that requests over TCP need, asked for at each; null where none is configured: then only loopback is served. */
  readonly token: () => string | null;
  readonly sources: ControlSources;
}

const BODY_BYTES = 64 * 1024;

const HEADERS = { ...EVERY_HEADER, 'content-type': 'application/json; charset=utf-8' } as const;

/** Opens the control listeners. Only root and those whom `access` names ever reach a Unix socket. */
export function startControl(options: ControlOptions) {
  const { sources } = options;
  const addRoutes = createRoutes(sources);
  const onCrowded = () => sources.onRefused('too_many_connections');
  return openAll('control', { ...options, clock: sources.clock, onCrowded }, (address, openTo) => {
    const app = createListener(options, address, openTo);
    addRoutes(app);
    return app;
  });
}

function createListener(options: ControlOptions, address: ListenAddress, openTo: string) {
  const { sources } = options;
  const viaOf = ({ remoteAddress, remotePort }: Socket): string => {
    if (address.kind === 'unix') return `${address.text}, open to ${openTo}`;
    const withToken = options.token() === null ? '' : ', with the token';
    return `http from ${remoteAddress}:${remotePort}${withToken}`;
  };
  const app = fastify({
    ...SERVER,
    bodyLimit: BODY_BYTES,
    schemaErrorFormatter: describeMistake,
    clientErrorHandler: (error, socket) => endConnection(socket as Socket, error, sources),
    frameworkErrors: (error, _request, reply) => void refuse(sources, reply as FastifyReply, error),
  });
  app.addHook('onRequest', async (request, reply) => {
    const { socket } = request.raw;
    request.arrival = { monoMs: sources.clock.now().monoMs, via: viaOf(socket) };
    const ahead = countAhead(socket, reply.raw);
    if (ahead === 'ignored') return reply.hijack();
    // A refused client keeps no connection: there are too few of them.
    void reply.header('connection', 'close');
    if (ahead === 'last') {
      const text = `more than ${MAX_AHEAD} requests were sent ahead; wait for their replies`;
      throw new ControlRefusal('too_many_requests', text);
    }
    checkSender(request.headers, address, options.token());
    void reply.removeHeader('connection');
    checkPath(request);
    void reply.headers(HEADERS);
    return undefined;
  });
  app.addHook('preValidation', async (request) => {
    if (request.body === undefined) request.body = {};
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, async (request: FastifyRequest, body: Buffer) =>
    readBody(body, request.headers['content-type']),
  );
  app.setErrorHandler((error, _request, reply) => refuse(sources, reply, error));
  return app;
}

function refuse({ onRefused, hide }: ControlSources, reply: FastifyReply, error: unknown): FastifyReply {
  const { code, status, headers, message } = asRefusal(error, FAULT, reply.request.headers['content-type']);
  // A client that left in the middle of its request was not refused, or was told before.
  if (!reply.request.raw.socket.destroyed) onRefused(code);
  void reply.code(status).headers({ ...HEADERS, ...headers });
  return reply.send(errorBody(code, hide(message)));
}

/** Answers what is no HTTP. A command before it never begins: without its body it would be meant for all markets. */
function endConnection(socket: Socket, error: Error, { onRefused }: ControlSources): void {
  const connection = connectionOf(socket);
  if (['ECONNRESET', 'EPIPE'].includes(codeOf(error)) || !socket.writable) return void socket.destroy();
  const { code, status, message } = asRefusal(error, NO_HTTP);
  if (!connection.broken) onRefused(code);
  const isFirst = !connection.broken && !connection.hasBegun;
  connection.broken = true;
  // An answer now would be taken for that of the request before it.
  if (!isFirst) return void socket.destroy();
  const body = errorBody(code, message);
  const headers = { ...HEADERS, 'content-length': Buffer.byteLength(body), connection: 'close' };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  socket.write([`HTTP/1.1 ${status} ${code.replaceAll('_', ' ')}`, ...lines, '', body].join('\r\n'));
  socket.destroySoon();
}

type Refused = ConstructorParameters<typeof ControlRefusal>;
/** The refusals of Node's parser and of fastify, by the codes of their errors. */
const REFUSED: Readonly<Record<string, Refused>> = {
  FST_ERR_BAD_URL: ['malformed_request', 'the path cannot be read', { connection: 'close' }],
  ERR_HTTP_REQUEST_TIMEOUT: ['too_slow', `the request was not complete after ${RECEIVE_MS / 1000} s`],
  HPE_HEADER_OVERFLOW: ['headers_too_large', 'the headers are longer than 8 KiB'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['too_large', 'the chunk extensions are longer than 16 KiB'],
  FST_ERR_CTP_BODY_TOO_LARGE: ['too_large', `the body is longer than ${BODY_BYTES} bytes`],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['malformed_request', 'the body is not as long as content-length says'],
};
const NO_HTTP: Refused = ['malformed_request', 'the request cannot be read as HTTP'];
const FAULT: Refused = ['internal_error', 'the daemon made a mistake; nothing more is known here'];

/** An unforeseen error is shown as `otherwise`, and nothing of its own. */
function asRefusal(error: unknown, otherwise: Refused, contentType?: string): ControlRefusal {
  if (error instanceof ControlRefusal) return error;
  const code = codeOf(error);
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return wrongContentType(contentType);
  return new ControlRefusal(...(REFUSED[code] ?? otherwise));
}

const LOCAL_NAMES = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Keeps out web pages in a browser of this host, which may send requests to loopback: one cannot hide its origin, nor a
 * name of its own for 127.0.0.1. An address that other hosts reach has names that nobody knows here: there the token
 * decides, and it is always asked for.
 */
function checkSender(headers: IncomingHttpHeaders, address: ListenAddress, token: string | null): void {
  const site = headers['sec-fetch-site'];
  if (headers.origin !== undefined || (site !== undefined && site !== 'none')) {
    const text = 'requests of web pages are refused: this one carries Origin or Sec-Fetch-Site';
    throw new ControlRefusal('foreign_origin', text);
  }
  // The permissions of the file decide who may use a Unix socket.
  if (address.kind === 'unix') return;
  const isLocal = isLoopback(address.host);
  const name = headers.host?.toLowerCase().replace(/:\d{0,5}$/, '') ?? '';
  if (isLocal && ![...LOCAL_NAMES, address.host.toLowerCase()].includes(name)) {
    const text = `the Host header names another host; allowed: ${LOCAL_NAMES.join(', ')}, with any port`;
    throw new ControlRefusal('wrong_host', text);
  }
  if (token !== null || !isLocal) checkToken(headers.authorization, token);
}

/** Without a token nothing fits. */
function checkToken(header: string | undefined, token: string | null): void {
  const given = /^bearer +(.*)$/is.exec(header ?? '')?.[1];
  const digest = (bytes: Uint8Array) => hash('sha256', bytes, 'buffer');
  // Node reads headers byte by byte, so that their text is UTF-8 only after going back to the bytes. Digests are compared:
  // the time that takes tells neither the length of the token nor how much of it was right.
  if (given !== undefined && token !== null) {
    if (timingSafeEqual(digest(Buffer.from(given, 'latin1')), digest(Buffer.from(token)))) return;
  }
  const [found, flaw] =
    header === undefined
      ? ['no Authorization header', '']
      : ['an Authorization header that does not fit', ', error="invalid_token"'];
  const text = `found ${found}; allowed: "Authorization: Bearer TOKEN" with the content of control.tokenFile`;
  throw new ControlRefusal('unauthorised', text, { 'www-authenticate': `Bearer realm="killswitchd"${flaw}` });
}

function checkPath({ is404, url, method: found }: FastifyRequest): void {
  if (!is404) return;
  const path = url.split('?', 1)[0] ?? '';
  const method = METHODS.get(path);
  if (method === undefined) {
    const paths = [...METHODS.keys()];
    const text = `there is no ${describeValue(path)} here; allowed: ${paths.join(', ')}${didYouMean(path, paths)}`;
    throw new ControlRefusal('unknown_path', text);
  }
  const allow = method === 'GET' ? 'GET, HEAD' : 'POST';
  throw new ControlRefusal('wrong_method', `${path}: found ${found}; allowed: ${allow}`, { allow });
}

/** The value of a body; undefined where it is empty. Throws `ControlRefusal`, which shows nothing of the body. */
function readBody(bytes: Uint8Array, contentType: string | undefined): unknown {
  if (bytes.length === 0) return undefined;
  if (!/^application\/json *(;|$)/i.test(contentType ?? '')) throw wrongContentType(contentType);
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    const place = /line \d+ column \d+/.exec(String(error))?.[0];
    const what = error instanceof SyntaxError ? (place ?? 'a part of it') : 'its bytes are not UTF-8, which';
    throw new ControlRefusal('malformed_json', `the body is not JSON: ${what} cannot be read`);
  }
}

function wrongContentType(found: string | undefined): ControlRefusal {
  const shown = found === undefined ? 'none' : describeValue(found);
  const hint = "with curl add -H 'content-type: application/json'";
  const text = `content-type: found ${shown}; allowed: application/json, or no body; ${hint}`;
  return new ControlRefusal('wrong_content_type', text);
}
