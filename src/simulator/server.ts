import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import fastify, { type FastifyInstance } from 'fastify';
import type { Cancel, Clock } from '../ports.ts';
import { flawOfFaults, registerControl } from './control.ts';
import { createJournal } from './event-log.ts';
import { createExchangeClock, type ExchangeClock } from './exchange-clock.ts';
import { createFaultPlan, type Fault } from './faults.ts';
import type { OrderRequest } from './holdings.ts';
import { MAX_BODY_BYTES } from './operations.ts';
import { createSimulatedExchange, type SimulatedExchange } from './simulated-exchange.ts';
import type { ExchangeOptions } from './state.ts';
import { createTraffic, type RequestBody } from './traffic.ts';

export interface SimulatedServerOptions {
  readonly clock: Clock;
  /** `host` is an IP address; port 0 takes any free one. */
  readonly listen: { readonly host: string; readonly port: number };
  readonly exchange?: ExchangeOptions;
  /** Resting orders to begin with; default none. */
  readonly orders?: readonly OrderRequest[];
  /** Seed of everything random about faults, and of the exchange unless it has its own; default 1. */
  readonly seed?: number;
  /** How far the exchange's clock is ahead of this host's wall clock, milliseconds; default 0. */
  readonly clockOffsetMs?: number;
  /** `manual`: the exchange's clock stands still and only `advance` moves it. Default `running`. */
  readonly time?: 'running' | 'manual';
  /** Bodies for control endpoints that accept them before the exchange listens, such as `/simulator/keys`. */
  readonly setup?: readonly { readonly path: string; readonly body: unknown }[];
  /** With it other hosts reach `/simulator`; default: no other host does. */
  readonly token?: string;
}

/** What tests and people do with a simulated exchange, over HTTP and in process. */
export type Tools = ReturnType<typeof createParts>['tools'];

export interface SimulatedServer extends Tools {
  /** `http://host:port` without a path. */
  readonly url: string;
  /** Destroys every open connection at once and stops listening. */
  close(): Promise<void>;
}

/** Longer than any cadence of a client, so that the server is never the one that closes a connection in use. */
const KEEP_ALIVE_MS = 75_000;

const CONTROL_BODY_BYTES = 8 * 1024 * 1024;
const REQUESTS_KEPT = 10_000;

/** A control endpoint refused what the options give to it. */
export class SetupError extends Error {
  override readonly name = 'SetupError';
  readonly path: string;

  constructor(path: string, message: string) {
    super(message);
    this.path = path;
  }
}

/**
 * Runs a simulated exchange over HTTP and fires its timers by the clock. Rejects with a SetupError, or with Node's error
 * where the address cannot be listened on (`code` EADDRINUSE, EACCES, EADDRNOTAVAIL).
 */
export async function startSimulatedServer(options: SimulatedServerOptions): Promise<SimulatedServer> {
  const { tools, clock, serve, activeFaults } = createParts(options);
  const app = createApp(serve);
  registerControl(app, { ...tools, clock: options.clock, token: options.token ?? null, activeFaults });
  for (const { path, body } of options.setup ?? []) {
    const reply = await app.inject({ method: 'POST', url: path, payload: body as object });
    if (reply.statusCode >= 300) throw new SetupError(path, reply.json<{ error: string }>().error);
  }
  tools.snapshot();
  await app.listen({ ...options.listen });
  return {
    url: urlOf(app.server),
    ...tools,
    async close() {
      clock.stop();
      app.server.closeAllConnections();
      await app.close();
    },
  };
}

function createParts(options: SimulatedServerOptions) {
  const { seed = 1, clockOffsetMs = 0, time } = options;
  const clock = createExchangeClock(options.clock, clockOffsetMs, time === 'manual');
  const { nowMs } = clock;
  const exchange: SimulatedExchange = createSimulatedExchange({ seed, ...options.exchange });
  const { log } = exchange;
  for (const order of options.orders ?? []) exchange.placeOrder(order, nowMs());
  const plan = createFaultPlan(seed);
  const requests = createJournal<RequestBody>(REQUESTS_KEPT);
  const planFiring = createFiring(clock, exchange);
  const traffic = createTraffic(clock, exchange, plan, requests, planFiring);
  const snapshots: (() => void)[] = [];

  const tools = {
    exchange,
    /** The exchange's clock, Unix milliseconds. */
    nowMs,
    /**
     * Moves the exchange's clock ahead by `ms`: timers fire, and what faults delay or hold goes on, each at its moment.
     * Throws a RangeError where `ms` is no number of at least 0.
     */
    advance(ms: number): void {
      if (!(ms >= 0 && ms < Number.POSITIVE_INFINITY))
        throw new RangeError(`advance: ms is ${ms}; expected a number of at least 0`);
      log.append({ kind: 'time-advanced', ms }, nowMs());
      clock.advance(ms);
    },
    /** All of them or, with a RangeError that says what is wrong, none. */
    addFaults(faults: readonly Fault[]) {
      const flaw = flawOfFaults(faults);
      if (flaw !== null) throw new RangeError(flaw);
      return faults.map((fault) => {
        const added = plan.add(fault, nowMs());
        log.append({ kind: 'fault-added', faultId: added.id, fault: fault.kind }, nowMs());
        return added;
      });
    },
    /** Ends every fault, lets go of what they hold, and returns how many there were. */
    clearFaults(): number {
      const faults = plan.clear();
      log.append({ kind: 'faults-cleared', faults }, nowMs());
      traffic.releaseHeld();
      return faults;
    },
    /** The last 10,000 requests to the exchange, oldest first, each when it was answered; later than `since` if given. */
    requests: (since = 0) => requests.since(since),
    /** Remembers everything but the clock, the events and the requests. Returns the number of what `reset` goes back to. */
    snapshot: () => snapshots.push(exchange.save()) - 1,
    /** Everything is as it was at the start, or at a snapshot; false where there is no such snapshot. Ends every fault. */
    reset(snapshot = 0): boolean {
      const bringBack = snapshots[snapshot];
      if (bringBack === undefined) return false;
      tools.clearFaults();
      bringBack();
      log.append({ kind: 'reset', snapshot }, nowMs());
      planFiring();
      return true;
    },
  };
  return { tools, clock, serve: traffic.serve, activeFaults: () => plan.active(nowMs()) };
}

/** Keeps one timer of the clock on the next firing of the exchange. */
function createFiring(clock: ExchangeClock, exchange: SimulatedExchange): () => void {
  let plannedMs: number | null = null;
  let cancel: Cancel = () => {};

  return function plan() {
    const nextMs = exchange.nextFiringMs();
    if (nextMs === plannedMs) return;
    cancel();
    plannedMs = nextMs;
    if (nextMs === null) return;
    cancel = clock.after(Math.max(0, nextMs - clock.nowMs()), () => {
      exchange.advance(clock.nowMs());
      plannedMs = null;
      plan();
    });
  };
}

/**
 * Fastify answers the control endpoints. The exchange's own requests go past it: their bytes must arrive as they were
 * sent, and no page of a framework may stand in for a documented error.
 */
function createApp(serveExchange: RequestListener): FastifyInstance {
  return fastify({
    forceCloseConnections: true,
    bodyLimit: CONTROL_BODY_BYTES,
    clientErrorHandler: refuseMalformed,
    serverFactory(control) {
      const serve: RequestListener = (request, response) => {
        response.on('error', () => response.destroy());
        if (isControl(request)) control(request, response);
        else serveExchange(request, response);
      };
      // What Node itself would refuse gets an answer, too. The payload is a header, a third longer than the body.
      const accepting = { requireHostHeader: false, maxHeaderSize: 2 * MAX_BODY_BYTES };
      const server = createServer(accepting, serve);
      server.on('checkExpectation', serve);
      server.on('connect', (_request, socket) =>
        endWith(socket, '405 Method Not Allowed', 'allow: GET, POST\r\n'),
      );
      server.keepAliveTimeout = KEEP_ALIVE_MS;
      return server;
    },
  });
}

const isControl = ({ url = '' }: IncomingMessage) => url === '/' || /^\/simulator(\/|$)/.test(url);

/** What is not HTTP at all gets the document's error shape, too. */
function refuseMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const isTooLarge = error.code === 'HPE_HEADER_OVERFLOW';
  endWith(socket, isTooLarge ? '431 Request Header Fields Too Large' : '400 Bad Request');
}

function endWith(socket: Duplex, status: string, header = ''): void {
  socket.on('error', () => socket.destroy());
  const body = JSON.stringify({ code: 0, message: `${status.slice(4)}.`, errors: {} });
  const head = `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json\r\n`;
  socket.end(`${head}${header}content-length: ${body.length}\r\n\r\n${body}`);
}

function urlOf(server: Server): string {
  const { address, family, port } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
