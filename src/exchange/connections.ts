import type { Client } from 'undici';
import ClientOfUndici from 'undici/lib/dispatcher/client.js';
import type { Cancel } from '../ports.ts';
import { createDialler, type Dialler, type DiallerOptions } from './dialler.ts';

/** One HTTP/1.1 connection that carries one request at a time. */
export interface Connection {
  readonly client: Client;
  readonly dialler: Dialler;
  /** Counts the time-outs of this address before the connection was opened. */
  readonly generation: number;
  busy: boolean;
}

/** The connections to one address. */
export interface Connections {
  /**
   * Hands over a connection that is free, else a new one, both synchronously; at the limit it waits its turn. A fresh
   * one is always new, even beyond the limit: it must not wait behind the ones that hang.
   */
  take(fresh: boolean, taken: (connection: Connection) => void): Cancel;
  /** Takes a connection back whose request ended well. */
  release(connection: Connection): void;
  /**
   * Ends a connection. After a time-out (`timedOut`) every connection of its time is ended as well, at once or when
   * its request ends: what swallowed one request may swallow the next one on any of them.
   */
  discard(connection: Connection, timedOut: boolean): void;
  close(): Promise<void>;
}

/** Most markets are renewed every 1 to 10 s; undici's own 4 s would open a connection for each renewal. */
const IDLE_MS = 60_000;

interface PoolState {
  readonly origin: string;
  readonly limit: number;
  readonly dialling: DiallerOptions;
  readonly open: Set<Connection>;
  readonly idle: Connection[];
  readonly waiting: ((connection: Connection) => void)[];
  generation: number;
}

function remove<T>(list: T[], item: T): void {
  const place = list.indexOf(item);
  if (place !== -1) list.splice(place, 1);
}

function end({ open, idle }: PoolState, connection: Connection): Promise<void> {
  open.delete(connection);
  remove(idle, connection);
  connection.dialler.abandon();
  return connection.client.destroy();
}

function create(state: PoolState): Connection {
  const dialler = createDialler(state.dialling);
  const client = new ClientOfUndici(state.origin, {
    connect: dialler.connect,
    pipelining: 1,
    allowH2: false,
    // The core decides when a request has taken too long; undici's own timers fire half a second late.
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
    // Closes a connection this long before the server said that it would.
    keepAliveTimeoutThreshold: 1_000,
  });
  const connection: Connection = { client, dialler, generation: state.generation, busy: true };
  state.open.add(connection);
  client.on('disconnect', () => {
    if (!connection.busy) void end(state, connection);
  });
  return connection;
}

function serveWaiting(state: PoolState): void {
  while (state.waiting.length > 0 && state.open.size < state.limit) state.waiting.shift()?.(create(state));
}

function release(state: PoolState, connection: Connection): void {
  if (connection.generation < state.generation || state.open.size > state.limit) {
    void end(state, connection);
    serveWaiting(state);
    return;
  }
  const next = state.waiting.shift();
  if (next !== undefined) {
    next(connection);
    return;
  }
  connection.busy = false;
  state.idle.push(connection);
}

function discard(state: PoolState, connection: Connection, timedOut: boolean): void {
  void end(state, connection);
  if (timedOut && connection.generation === state.generation) {
    state.generation += 1;
    for (const old of state.idle.splice(0)) void end(state, old);
  }
  serveWaiting(state);
}

/** `limit` is the number of connections beyond which only fresh ones are opened. */
export function createConnections(origin: string, limit: number, ca: string | undefined): Connections {
  const state: PoolState = {
    origin,
    limit,
    dialling: { ca, sessions: { last: undefined } },
    open: new Set(),
    idle: [],
    waiting: [],
    generation: 0,
  };

  return {
    take(fresh, taken) {
      const connection = fresh ? undefined : state.idle.pop();
      if (connection !== undefined) connection.busy = true;
      if (connection !== undefined || fresh || state.open.size < limit) {
        taken(connection ?? create(state));
        return () => undefined;
      }
      state.waiting.push(taken);
      return () => remove(state.waiting, taken);
    },
    release: (connection) => release(state, connection),
    discard: (connection, timedOut) => discard(state, connection, timedOut),
    async close() {
      state.waiting.length = 0;
      await Promise.all([...state.open].map((connection) => end(state, connection)));
    },
  };
}
