import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { Answer, Ask, ExchangeOptions, Fault } from './protocol.ts';
import { nowMs } from './protocol.ts';
import { createTimers } from './timers.ts';

/**
 * The exchange of the bench, as a process of its own: as much of HTTP as its subjects speak, timers, and nothing else,
 * so that the client is what is measured. It looks at one signature in 64.
 */
const CHECK_EACH = 64;
const SYNC = 'POST /api/v4/order/kill-switch ';
const PAGE = '<html><body>429 Too Many Requests</body></html>';
const HEAD_END = '\r\n\r\n';

const options = JSON.parse(process.argv[2] ?? '{}') as ExchangeOptions;
const timers = createTimers();
let { roundTripMs } = options;
let fault: Fault | null = null;
let lastNonce = 0;
let requests = 0;
let dateAt = 0;
let dateLine = '';

/** Answers that are held back: each for the same time, so that they leave in the order in which they came. */
const held: {
  readonly socket: Socket;
  readonly text: string;
  readonly cameMs: number;
  readonly dueMs: number;
}[] = [];
let heldHead = 0;
let releasing = false;

function release(): void {
  releasing = false;
  const now = performance.now();
  const { tally } = timers;
  for (let next = held[heldHead]; next !== undefined && next.dueMs <= now; next = held[heldHead]) {
    heldHead += 1;
    tally().held += 1;
    tally().heldMs += now - next.cameMs;
    if (!next.socket.destroyed) next.socket.write(next.text);
  }
  const next = held[heldHead];
  if (next === undefined) {
    held.length = 0;
    heldHead = 0;
  } else {
    releasing = true;
    setTimeout(release, Math.max(0, next.dueMs - now));
    if (heldHead > 4096) {
      held.splice(0, heldHead);
      heldHead = 0;
    }
  }
}

function date(): string {
  const now = Math.floor(Date.now() / 1000);
  if (now !== dateAt) {
    dateAt = now;
    dateLine = `Date: ${new Date(now * 1000).toUTCString()}\r\n`;
  }
  return dateLine;
}

function answer(socket: Socket, status: string, body: string, type = 'application/json'): void {
  const text = `HTTP/1.1 ${status}\r\n${date()}Content-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  const now = performance.now();
  if (roundTripMs <= 0) {
    timers.tally().held += 1;
    socket.write(text);
    return;
  }
  held.push({ socket, text, cameMs: now, dueMs: now + roundTripMs });
  if (releasing) return;
  releasing = true;
  setTimeout(release, roundTripMs);
}

function fail(socket: Socket, how: Fault): void {
  timers.tally().failed += 1;
  switch (how) {
    case 'hang':
      return;
    case 'reset':
      socket.destroy();
      return;
    case '500':
      answer(socket, '500 Internal Server Error', '{"message":"internal"}');
      return;
    case '429 stale nonce':
      answer(
        socket,
        '429 Too Many Requests',
        '{"code":0,"message":"Too many requests. Your nonce is stale."}',
      );
      return;
    case '429 page':
      answer(socket, '429 Too Many Requests', PAGE, 'text/html');
  }
}

function isSigned(head: string, body: string): boolean {
  const header = (name: string) => new RegExp(`\r\n${name}: ([^\r]*)`, 'i').exec(head)?.[1];
  const payload = header('x-txc-payload');
  if (payload !== Buffer.from(body).toString('base64')) return false;
  const expected = createHmac('sha512', options.secret).update(payload).digest('hex');
  return header('x-txc-signature') === expected;
}

function sync(socket: Socket, head: string, body: string): void {
  requests += 1;
  if (requests % CHECK_EACH === 1 && !isSigned(head, body)) {
    timers.tally().badSignatures += 1;
    answer(socket, '401 Unauthorized', '{"code":0,"message":"Unauthorized request."}');
    return;
  }
  const { market, timeout, nonce } = JSON.parse(body) as Record<string, string | null>;
  const number = Number(nonce);
  if (number <= lastNonce) timers.tally().staleNonces += 1;
  lastNonce = Math.max(lastNonce, number);
  // ccxt says it in its own way.
  if (timeout === null || timeout === 'null') {
    timers.remove(market ?? '');
    answer(socket, '200 OK', '[]');
    return;
  }
  const seconds = Number(timeout);
  timers.renew(market ?? '', seconds * 1000);
  const start = Math.floor(nowMs() / 1000);
  answer(
    socket,
    '200 OK',
    `{"market":"${market}","startTime":${start},"cancellationTime":${start + seconds},"types":["spot","margin","futures"]}`,
  );
}

/** One request; returns the rest of what was read, or null where it is not whole yet. */
function take(socket: Socket, text: string): string | null {
  const end = text.indexOf(HEAD_END);
  if (end < 0) return null;
  const head = text.slice(0, end);
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
  const bodyAt = end + HEAD_END.length;
  if (text.length < bodyAt + length) return null;
  const body = text.slice(bodyAt, bodyAt + length);
  const isPrivate = head.startsWith(SYNC);
  if (isPrivate) timers.request();
  if (fault !== null) fail(socket, fault);
  else if (isPrivate) sync(socket, head, body);
  else if (head.startsWith('GET /api/v4/public/ping')) answer(socket, '200 OK', '["pong"]');
  else answer(socket, '404 Not Found', '{"code":404,"message":"not found"}');
  return text.slice(bodyAt + length);
}

function serve(socket: Socket): void {
  timers.tally().connections += 1;
  socket.setNoDelay(true);
  socket.setEncoding('latin1');
  let rest = '';
  socket.on('data', (chunk: string) => {
    rest += chunk;
    for (let left = take(socket, rest); left !== null; left = take(socket, rest)) rest = left;
  });
  socket.on('error', () => socket.destroy());
}

function obey(ask: Ask): void {
  switch (ask.ask) {
    case 'count':
      timers.count();
      break;
    case 'forget':
      timers.forget();
      timers.count();
      break;
    case 'fail':
      fault = ask.fault ?? null;
      break;
    case 'work':
      fault = null;
      break;
    case 'read':
      break;
  }
  roundTripMs = ask.roundTripMs ?? roundTripMs;
  const seen = timers.read(ask.periodMs ?? 0);
  const reply: Answer = { id: ask.id, seen };
  process.send?.(reply);
}

const { tls } = options;
const server =
  tls === null
    ? createTcpServer(serve)
    : createTlsServer({ cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) }, serve);
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on('message', (ask: Ask) => obey(ask));
process.on('disconnect', () => process.exit(0));
