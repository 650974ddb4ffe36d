import { Client, type Dispatcher, errors } from 'undici';
import type { Cancel, Clock } from '../ports.ts';
import { ClosedError, ConnectError, createDialler, createNames, type DiallerOptions } from './dialler.ts';
import type { Transport, WireHeaders, WireRequest, WireResult } from './wire.ts';

export interface TransportOptions {
  readonly clock: Clock;
  /** Origins that requests may name, as `https://host[:port]`. */
  readonly bases: readonly string[];
  /** Connections per origin; 64 where it is not given. More requests at a time wait, but those asked for as fresh go beyond. */
  readonly connections?: number;
  /** Certificates in PEM form that are trusted instead of the well-known authorities. */
  readonly ca?: string | undefined;
  /** A request without an answer is given up this long after it was written; without it never. */
  readonly requestLifetimeMs?: number | undefined;
}

/** One HTTP/1.1 connection that carries one request at a time. */
interface Connection {
  readonly client: Client;
  readonly dialler: ReturnType<typeof createDialler>;
  /** How many requests had been written to this origin when something was last heard over this connection. */
  heardAt: number;
  busy: boolean;
}

/** The connections to one origin. */
function createPool(dialling: DiallerOptions, limit: number) {
  return {
    dialling,
    limit,
    open: new Set<Connection>(),
    idle: new Array<Connection>(),
    waiting: new Array<(connection: Connection) => void>(),
    /** Requests written so far: the order of writes and answers. */
    written: 0,
  };
}
type Pool = ReturnType<typeof createPool>;

/** One request on its way. */
interface Attempt {
  readonly pool: Pool;
  readonly request: WireRequest;
  readonly onWrite: () => void;
  /** Called exactly once, never synchronously, after the connection was given back. */
  readonly done: (result: WireResult) => void;
  connection: Connection | null;
  settled: boolean;
  /** Its number among the writes of the pool; null before its first byte. */
  writtenAs: number | null;
  /** Of the answer, once its head has arrived. */
  status: number | null;
  headers: WireHeaders;
  size: number;
  readonly chunks: Buffer[];
  cancelLifetime: Cancel;
}

export const CONNECTIONS = 64;
/** Most markets are renewed every 1 to 10 s; undici's own 4 s would open a connection for each renewal. */
const IDLE_MS = 60_000;
/** The most of a body that is read. Answers without a list have a few hundred bytes. */
const MAX_BODY_BYTES = 65_536;

/**
 * The real wire: plain HTTP/1.1 keep-alive connections, each with one request at a time. Nothing is followed or repeated.
 *
 * A request that is given up takes its connection with it, by a reset: what is still in the kernel's queue would be sent
 * again and again for a minute after a close, and arrive long after everybody has forgotten it. A new connection is
 * opened first, and then the request is signed: while a nonce ages, those of other requests overtake it. At one that was
 * used before undici looks once more for a pending close. `mayWrite` is asked in the step of the write itself.
 */
export function createTransport(options: TransportOptions): Transport {
  const { clock, ca, connections: limit = CONNECTIONS, requestLifetimeMs } = options;
  const names = createNames(clock);
  const poolOf = (origin: string) => createPool({ origin, names, ca, sessions: { last: undefined } }, limit);
  const pools = new Map(options.bases.map((origin) => [origin, poolOf(origin)]));
  // No Set, for the reason that the core keeps its attempts in a list.
  const inFlight: Attempt[] = [];

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
        connection: null,
        settled: false,
        writtenAs: null,
        status: null,
        headers: {},
        size: 0,
        chunks: [],
        cancelLifetime: () => undefined,
        onWrite() {
          if (requestLifetimeMs !== undefined)
            attempt.cancelLifetime = clock.after(requestLifetimeMs, () => giveUp(attempt, 'timeout'));
        },
        done(result) {
          inFlight.splice(inFlight.indexOf(attempt), 1);
          done(result);
        },
      };
      inFlight.push(attempt);
      const leaveQueue = take(pool, request.fresh, (connection) => begin(attempt, connection));
      return () => {
        leaveQueue();
        giveUp(attempt, 'timeout');
      };
    },
    async close() {
      const closing = [...pools.values()];
      pools.clear();
      names.close();
      for (const attempt of inFlight) giveUp(attempt, 'aborted');
      for (const { waiting } of closing) waiting.length = 0;
      const open = closing.flatMap((pool) => [...pool.open].map((connection) => ({ pool, connection })));
      await Promise.all(open.map(({ pool, connection }) => end(pool, connection)));
    },
  };
}

/**
 * Hands over a connection that is free, else a new one, both synchronously; at the limit it waits its turn. A fresh
 * one is always new, even beyond the limit: it must not wait behind the ones that hang.
 */
function take(pool: Pool, fresh: boolean, taken: (connection: Connection) => void): Cancel {
  const free = fresh ? undefined : pool.idle.pop();
  if (free !== undefined) free.busy = true;
  if (free !== undefined || fresh || pool.open.size < pool.limit) {
    taken(free ?? open(pool));
    return () => undefined;
  }
  pool.waiting.push(taken);
  return () => remove(pool.waiting, taken);
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
  const connection: Connection = { client, dialler, heardAt: pool.written, busy: true };
  pool.open.add(connection);
  client.on('disconnect', () => {
    if (!connection.busy) void end(pool, connection);
  });
  return connection;
}

function end({ open, idle }: Pool, connection: Connection): Promise<void> {
  open.delete(connection);
  remove(idle, connection);
  connection.dialler.reset();
  return connection.client.destroy();
}

function serveWaiting(pool: Pool): void {
  while (pool.waiting.length > 0 && pool.open.size < pool.limit) pool.waiting.shift()?.(open(pool));
}

/** Takes a connection back whose request ended well. */
function release(pool: Pool, connection: Connection): void {
  connection.heardAt = pool.written;
  if (pool.open.size > pool.limit) {
    void end(pool, connection);
    serveWaiting(pool);
    return;
  }
  const next = pool.waiting.shift();
  if (next !== undefined) return next(connection);
  connection.busy = false;
  pool.idle.push(connection);
}

/**
 * Ends a connection. After a time-out it takes along every idle one over which nothing was heard since the request was
 * written (`unheardSince`): what swallowed this request may swallow the next one on any of them. One that has answered
 * since is well, however slow the exchange is.
 */
function discard(pool: Pool, connection: Connection, unheardSince: number | null): void {
  void end(pool, connection);
  const unheard = pool.idle.filter(({ heardAt }) => heardAt < (unheardSince ?? 0));
  for (const old of unheard) void end(pool, old);
  serveWaiting(pool);
}

function remove<T>(list: T[], item: T): void {
  const place = list.indexOf(item);
  if (place !== -1) list.splice(place, 1);
}

/** Hands the request over, signed, once its connection is open. */
function begin(attempt: Attempt, connection: Connection): void {
  attempt.connection = connection;
  connection.dialler.open((error) => {
    if (attempt.settled) return;
    if (error !== null) return settle(attempt, failure(error, attempt));
    const { method, path, content } = attempt.request;
    const { headers, body } = content();
    connection.client.dispatch({ method, path, headers: { ...headers }, body }, handlerOf(attempt));
  });
}

/** Its connection was used before, and closed in this very moment: it takes a new one, and is signed anew. */
function beginAnew(attempt: Attempt, old: Connection): void {
  queueMicrotask(() => {
    if (attempt.settled) return;
    const { pool } = attempt;
    void end(pool, old);
    begin(attempt, open(pool));
  });
}

function settle(attempt: Attempt, result: WireResult, isReusable = false): void {
  if (attempt.settled) return;
  attempt.settled = true;
  attempt.cancelLifetime();
  // In a turn of its own: undici would swallow what `done` throws, and the caller may not be called back at once.
  queueMicrotask(() => {
    const { pool, request, connection, writtenAs, done } = attempt;
    if (connection !== null) {
      const isAnswer = result.kind === 'response' && request.isAnswer?.(result) !== false;
      const hasCome = result.kind === 'response' || result.reason === 'parse';
      if (hasCome) connection.dialler.answered(isAnswer);
      const timedOut = result.kind === 'failed' && result.reason === 'timeout';
      if (isReusable && isAnswer) release(pool, connection);
      else discard(pool, connection, timedOut ? writtenAs : null);
    }
    done(result);
  });
}

function giveUp(attempt: Attempt, reason: 'timeout' | 'aborted'): void {
  const detail = `given up while waiting for ${waitingFor(attempt)}`;
  settle(attempt, { kind: 'failed', reason, detail, maybeApplied: attempt.writtenAs !== null });
}

function waitingFor({ connection, writtenAs, status }: Attempt): string {
  if (connection === null) return 'a free connection';
  if (writtenAs === null) return 'the connection to open';
  return status === null ? 'an answer' : 'the end of the answer';
}

function handlerOf(attempt: Attempt): Dispatcher.DispatchHandler {
  const { pool, request } = attempt;
  const { maxBodyBytes = MAX_BODY_BYTES, dropsBody = false, mayWrite } = request;
  return {
    // undici writes the request right after this call returns, in the same synchronous step.
    onRequestStart(controller) {
      if (!attempt.settled && mayWrite()) {
        pool.written += 1;
        attempt.writtenAs = pool.written;
        attempt.connection?.dialler.expectAnswer();
        attempt.onWrite();
        return;
      }
      const detail = 'not sent: no longer allowed when the connection was ready';
      settle(attempt, { kind: 'failed', reason: 'aborted', detail, maybeApplied: false });
      controller.abort(new Error('not sent'));
    },
    onResponseStart(_controller, status, headers) {
      if (status < 200) return;
      attempt.status = status;
      attempt.headers = headers;
    },
    onResponseData(controller, chunk) {
      const { status, headers } = attempt;
      attempt.size += chunk.length;
      if (attempt.size <= maxBodyBytes) {
        if (!dropsBody) attempt.chunks.push(chunk);
        return;
      }
      if (dropsBody && status !== null)
        settle(attempt, { kind: 'response', status, headers, body: Buffer.alloc(0) });
      else settle(attempt, broken(`HTTP ${status} with more than ${maxBodyBytes} bytes`, status));
      controller.abort(new Error('body too large'));
    },
    onResponseEnd() {
      const { status, headers, chunks } = attempt;
      if (status === null) return;
      settle(attempt, { kind: 'response', status, headers, body: Buffer.concat(chunks) }, true);
    },
    onResponseError(_controller, error) {
      if (error instanceof ClosedError && attempt.connection !== null) beginAnew(attempt, attempt.connection);
      else settle(attempt, failure(error, attempt));
    },
  };
}

function failure(error: NodeJS.ErrnoException, { writtenAs, status }: Attempt): WireResult {
  if (error instanceof ConnectError) {
    const { reason, cause } = error;
    return { kind: 'failed', reason, detail: `cannot connect: ${error.message}`, maybeApplied: false, cause };
  }
  const detail = describe(error);
  if (writtenAs === null)
    return { kind: 'failed', reason: 'aborted', detail, maybeApplied: false, cause: error };
  // Without its cause: there undici keeps what it could not parse, which may repeat the request.
  if (status !== null || BROKEN.some((kind) => error instanceof kind))
    return broken(`the answer broke off or is not HTTP: ${detail}`, status);
  return { kind: 'failed', reason: 'network', detail, maybeApplied: true, cause: error };
}

const { HTTPParserError, ResponseContentLengthMismatchError, HeadersOverflowError } = errors;
/** What undici says of an answer that breaks the rules of HTTP. */
const BROKEN = [HTTPParserError, ResponseContentLengthMismatchError, HeadersOverflowError];

function describe({ code, message }: NodeJS.ErrnoException): string {
  return code === undefined || message.includes(code) ? message : `${code}: ${message}`;
}

function broken(detail: string, status: number | null): WireResult {
  const result = { kind: 'failed', reason: 'parse', detail, maybeApplied: true } as const;
  return status === null ? result : { ...result, status };
}
