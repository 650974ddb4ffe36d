import { Client, type Dispatcher, errors } from 'undici';
import type { FailureReason } from '../core/events.ts';
import type { Cancel, Clock } from '../ports.ts';
import { ClosedError, createDialler, createNames, type DiallerOptions } from './dialler.ts';
import type { Transport, WireHeaders, WireRequest, WireResult } from './wire.ts';

export interface TransportOptions {
  readonly clock: Clock;
  /** Origins that requests may name, as `https://host[:port]`. */
  readonly bases: readonly string[];
  /** Most connections per origin that are kept while nothing is on its way over them; 64 where it is not given. */
  readonly connections?: number;
  /** Certificates in PEM form that are trusted instead of the well-known authorities. */
  readonly ca?: string | undefined;
  /** A request without an answer is given up this long after it was written; without it never. */
  readonly requestLifetimeMs?: number | undefined;
}

interface Connection {
  readonly client: Client;
  readonly dialler: ReturnType<typeof createDialler>;
  /** When a request over it ended well last, monotonic. */
  heardAtMs: number;
  /** It is open, or is not waited for any longer: the next one may be opened. */
  readonly dialled: () => void;
}

function createPool(dialling: DiallerOptions, options: TransportOptions) {
  const { clock, connections = CONNECTIONS, requestLifetimeMs } = options;
  return {
    dialling,
    clock,
    requestLifetimeMs,
    limit: connections,
    open: new Set<Connection>(),
    idle: new Array<Connection>(),
    inFlight: new Set<Attempt>(),
    /** Those of them that have no connection yet, the oldest first. */
    waiting: new Array<Attempt>(),
    /** Connections that are being opened, the most at a time, and how long the quickest took, milliseconds. */
    dials: 0,
    mostDials: LEAST_DIALS,
    quickestMs: Number.POSITIVE_INFINITY,
  };
}
type Pool = ReturnType<typeof createPool>;

interface Attempt {
  readonly pool: Pool;
  readonly request: WireRequest;
  /** Called exactly once, never synchronously, after the connection was given back. */
  readonly done: (result: WireResult) => void;
  /** Null while it waits for one. */
  connection: Connection | null;
  settled: boolean;
  /** When it was written, monotonic; null before its first byte. */
  writtenAtMs: number | null;
  /** Of the answer; null before its head has arrived. */
  status: number | null;
  cancelLifetime: Cancel;
}

export const CONNECTIONS = 64;
/** Most markets are renewed every 1 to 10 s; undici's own 4 s would open a connection for each renewal. */
const IDLE_MS = 60_000;
/**
 * A connection over which an answer came so shortly ago hangs no more than a new one: a request is called hung after 250
 * ms. Where thousands hang after an outage, opening one for each would take longer than their timers have.
 */
const PROVEN_MS = 200;
/**
 * So many connections are opened at a time, at least. A host that is short of CPU and shakes hands with 64 at once after
 * an outage finishes none in time: all are given up, and opened again.
 */
const LEAST_DIALS = 8;
/**
 * A connection that takes at most this many times as long to open as the quickest waits for the network and not for the
 * CPU: one more may be opened at a time, up to 64.
 */
const QUICK_FACTOR = 2;
/** What takes longer to open holds up no other. */
const DIAL_MS = 250;
/** The most of a body that is read. Answers without a list have a few hundred bytes. */
const MAX_BODY_BYTES = 65_536;

/**
 * The real wire: plain HTTP/1.1 keep-alive connections, each with one request at a time. Nothing is followed or repeated.
 *
 * A request that is given up takes its connection with it, by a reset: what is still in the kernel's queue would be sent
 * again and again for a minute after a close, and arrive long after everybody has forgotten it. A new connection is
 * opened first, and then the request is signed: while a nonce ages, those of other requests overtake it. A used
 * connection is checked once more for a pending close by undici. `mayWrite` is asked in the step of the write itself.
 * A request that may not open a connection yet takes the first one that answers. `forgetsNames`: a name that is gone loses
 * its addresses. Those of the exchange are kept, because an error of the servers of names must cost no renewal.
 */
export function createTransport(options: TransportOptions, forgetsNames = false): Transport {
  const { clock, ca, bases } = options;
  const names = createNames(clock, forgetsNames);
  const pools = new Map(bases.map((origin) => [origin, createPool({ origin, names, ca, tls: {} }, options)]));

  return {
    send(request, done) {
      const pool = pools.get(request.base);
      if (pool === undefined) {
        const detail = `no connection to ${request.base}: closed, or not a configured address`;
        queueMicrotask(() => done({ kind: 'failed', reason: 'aborted', detail, maybeApplied: false }));
        return () => undefined;
      }
      const attempt: Attempt = {
        pool,
        request,
        done,
        connection: null,
        settled: false,
        writtenAtMs: null,
        status: null,
        cancelLifetime: () => undefined,
      };
      pool.inFlight.add(attempt);
      pool.waiting.push(attempt);
      serve(pool, attempt);
      return () => giveUp(attempt, 'timeout');
    },
    async close() {
      const closing = [...pools.values()];
      pools.clear();
      names.close();
      for (const { inFlight } of closing) for (const attempt of inFlight) giveUp(attempt, 'aborted');
      const ends = closing.flatMap((pool) => [...pool.open].map((connection) => end(pool, connection)));
      await Promise.all(ends);
    },
  };
}

/** Gives those that wait a connection each, as far as there are any. `newest` has not waited yet. */
function serve(pool: Pool, newest?: Attempt): void {
  for (const attempt of pool.waiting) {
    if (attempt.settled || attempt.connection !== null) continue;
    attempt.connection = idleFor(pool, attempt.request) ?? (pool.dials < pool.mostDials ? open(pool) : null);
    if (attempt.connection !== null) begin(attempt, attempt.connection, attempt !== newest);
  }
  pool.waiting = pool.waiting.filter(({ settled, connection }) => !settled && connection === null);
}

/** The connection that was used last. A fresh request takes it only where it may open none, and it has just answered. */
function idleFor({ idle, dials, mostDials, clock }: Pool, { fresh }: WireRequest): Connection | undefined {
  if (!fresh) return idle.pop();
  const heardAtMs = idle.at(-1)?.heardAtMs ?? Number.NEGATIVE_INFINITY;
  return dials >= mostDials && clock.now().monoMs - heardAtMs <= PROVEN_MS ? idle.pop() : undefined;
}

function open(pool: Pool): Connection {
  const dialler = createDialler(pool.dialling);
  const client = new Client(pool.dialling.origin, {
    connect: dialler.connect,
    pipelining: 1,
    allowH2: false,
    // The core decides when a request has taken too long; undici's own timers fire half a second late.
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
    // Closes a connection this long before the server said that it would.
    keepAliveTimeoutThreshold: 1000,
  });
  let isDialling = true;
  const dialled = () => {
    cancel();
    if (!isDialling) return;
    isDialling = false;
    pool.dials -= 1;
    serve(pool);
  };
  pool.dials += 1;
  const cancel = pool.clock.after(DIAL_MS, dialled);
  const connection: Connection = { client, dialler, heardAtMs: Number.NEGATIVE_INFINITY, dialled };
  pool.open.add(connection);
  client.on('disconnect', () => {
    if (pool.idle.includes(connection)) void end(pool, connection);
  });
  return connection;
}

function end(pool: Pool, connection: Connection): Promise<void> {
  pool.open.delete(connection);
  pool.idle = pool.idle.filter((other) => other !== connection);
  connection.dialler.reset();
  connection.dialled();
  return connection.client.destroy();
}

function release(pool: Pool, connection: Connection): void {
  connection.heardAtMs = pool.clock.now().monoMs;
  if (pool.idle.length < pool.limit) pool.idle.push(connection);
  else void end(pool, connection);
  serve(pool);
}

/**
 * Ends a connection. After a time-out it takes along every idle one over which nothing was heard since the request was
 * written: what swallowed this request may swallow the next one on any of them. One that has answered since is well,
 * however slow the exchange is.
 */
function discard(pool: Pool, connection: Connection, unheardSinceMs: number | null): void {
  void end(pool, connection);
  if (unheardSinceMs === null) return;
  for (const old of pool.idle) if (old.heardAtMs < unheardSinceMs) void end(pool, old);
}

const NOT_SENT: WireResult = {
  kind: 'failed',
  reason: 'aborted',
  detail: 'not sent: no longer allowed when the connection was ready',
  maybeApplied: false,
};

/** Hands the request over, signed, once its connection is open. */
function begin(attempt: Attempt, connection: Connection, didWait: boolean): void {
  const { request } = attempt;
  const { clock } = attempt.pool;
  const begunMs = clock.now().monoMs;
  let isNew = false;
  connection.dialler.open((error) => {
    if (isNew && error === null) learnDial(attempt.pool, clock.now().monoMs - begunMs);
    connection.dialled();
    if (attempt.settled) return;
    if (error !== null) return fail(attempt, error.reason, `cannot connect: ${error.message}`, error.cause);
    // A connection that opened too late for its request serves another one: opening it took time.
    if ((didWait || isNew) && !request.mayWrite()) return settle(attempt, NOT_SENT, true);
    const { method, path, content } = request;
    const { headers, body } = content();
    connection.client.dispatch({ method, path, headers: { ...headers }, body }, handlerOf(attempt));
  });
  isNew = true;
}

/**
 * A connection has opened. After a quick one another may be opened beside it; after a slow one half as many, because
 * handshakes that share a CPU slow each other down.
 */
function learnDial(pool: Pool, tookMs: number): void {
  const { quickestMs, mostDials } = pool;
  pool.quickestMs = Math.min(quickestMs, tookMs);
  pool.mostDials =
    tookMs <= QUICK_FACTOR * quickestMs
      ? Math.min(mostDials + 1, CONNECTIONS)
      : Math.max(Math.floor(mostDials / 2), LEAST_DIALS);
}

/** Its connection was used before, and closed in this very moment: it takes a new one, and is signed anew. */
function beginAnew(attempt: Attempt): void {
  queueMicrotask(() => {
    if (attempt.settled) return;
    const { pool, connection } = attempt;
    if (connection !== null) void end(pool, connection);
    attempt.connection = null;
    pool.waiting.unshift(attempt);
    serve(pool);
  });
}

function settle(attempt: Attempt, result: WireResult, isReusable = false): void {
  if (attempt.settled) return;
  attempt.settled = true;
  attempt.cancelLifetime();
  // In a turn of its own: undici would swallow what `done` throws, and the caller may not be called back at once.
  queueMicrotask(() => {
    const { pool, request, connection, writtenAtMs, done } = attempt;
    const isAnswer = result.kind === 'response' && request.isAnswer?.(result) !== false;
    const hasCome = result.kind === 'response' || result.reason === 'parse';
    if (hasCome) connection?.dialler.answered(isAnswer);
    const timedOut = result.kind === 'failed' && result.reason === 'timeout';
    const isKept = isReusable && (isAnswer || result === NOT_SENT);
    if (connection !== null && isKept) release(pool, connection);
    else if (connection !== null) discard(pool, connection, timedOut ? writtenAtMs : null);
    pool.inFlight.delete(attempt);
    done(result);
  });
}

/** The request may have been applied exactly where its first byte was written. */
function fail(attempt: Attempt, reason: FailureReason, detail: string, cause?: unknown): void {
  const { writtenAtMs, status } = attempt;
  const head = reason === 'parse' && status !== null ? { status } : {};
  settle(attempt, { kind: 'failed', reason, detail, maybeApplied: writtenAtMs !== null, ...head, cause });
}

function giveUp(attempt: Attempt, reason: 'timeout' | 'aborted'): void {
  const { writtenAtMs, status } = attempt;
  const answer = status === null ? 'an answer' : 'the end of the answer';
  fail(
    attempt,
    reason,
    `given up while waiting for ${writtenAtMs === null ? 'the connection to open' : answer}`,
  );
}

function handlerOf(attempt: Attempt): Dispatcher.DispatchHandler {
  const { pool, request } = attempt;
  const { maxBodyBytes = MAX_BODY_BYTES, dropsBody = false, mayWrite } = request;
  let headers: WireHeaders = {};
  let size = 0;
  const chunks: Buffer[] = [];
  return {
    // undici writes the request right after this call returns, in the same synchronous step.
    onRequestStart(controller) {
      if (!attempt.settled && mayWrite()) {
        const { clock, requestLifetimeMs } = pool;
        attempt.writtenAtMs = clock.now().monoMs;
        attempt.connection?.dialler.expectAnswer();
        if (requestLifetimeMs !== undefined)
          attempt.cancelLifetime = clock.after(requestLifetimeMs, () => giveUp(attempt, 'timeout'));
        return;
      }
      settle(attempt, NOT_SENT);
      controller.abort(new Error('not sent'));
    },
    onResponseStart(_controller, status, received) {
      if (status < 200) return;
      attempt.status = status;
      headers = received;
    },
    onResponseData(controller, chunk) {
      const { status } = attempt;
      size += chunk.length;
      if (size <= maxBodyBytes) {
        if (!dropsBody) chunks.push(chunk);
        return;
      }
      if (dropsBody && status !== null)
        settle(attempt, { kind: 'response', status, headers, body: Buffer.alloc(0) });
      else fail(attempt, 'parse', `HTTP ${status} with more than ${maxBodyBytes} bytes`);
      controller.abort(new Error('body too large'));
    },
    onResponseEnd() {
      const { status } = attempt;
      if (status === null) return;
      settle(attempt, { kind: 'response', status, headers, body: Buffer.concat(chunks) }, true);
    },
    onResponseError(_controller, error) {
      if (error instanceof ClosedError) beginAnew(attempt);
      else failBy(attempt, error);
    },
  };
}

function failBy(attempt: Attempt, error: NodeJS.ErrnoException): void {
  const { code, message } = error;
  const detail = code === undefined || message.includes(code) ? message : `${code}: ${message}`;
  if (attempt.writtenAtMs === null) fail(attempt, 'aborted', detail, error);
  // Without its cause: there undici keeps what it could not parse, which may repeat the request.
  else if (attempt.status !== null || BROKEN.some((kind) => error instanceof kind))
    fail(attempt, 'parse', `the answer broke off or is not HTTP: ${detail}`);
  else fail(attempt, 'network', detail, error);
}

const { HTTPParserError, ResponseContentLengthMismatchError, HeadersOverflowError } = errors;
/** What undici says of an answer that breaks the rules of HTTP. */
const BROKEN = [HTTPParserError, ResponseContentLengthMismatchError, HeadersOverflowError];
