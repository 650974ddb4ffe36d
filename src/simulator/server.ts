import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import fastify, { type FastifyInstance } from 'fastify';
import type { Cancel, Clock } from '../ports.ts';
import { registerControl } from './control.ts';
import { createExchangeClock } from './exchange-clock.ts';
import { createFaultPlan } from './fault-plan.ts';
import type { ActiveFault, Fault } from './faults.ts';
import type { OrderRequest } from './resting-orders.ts';
import {
  createSimulatedExchange,
  type ExchangeOptions,
  type SimulatedExchange,
} from './simulated-exchange.ts';
import { createTraffic, type Traffic } from './traffic.ts';

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
}

export interface SimulatedServer {
  /** `http://host:port` without a path. */
  readonly url: string;
  readonly exchange: SimulatedExchange;
  /** The exchange's clock, Unix milliseconds. */
  readonly nowMs: () => number;
  addFaults(faults: readonly Fault[]): readonly ActiveFault[];
  /** Ends every fault, lets go of what they hold, and returns how many there were. */
  clearFaults(): number;
  /** Destroys every open connection at once and stops listening. */
  close(): Promise<void>;
}

/** Longer than any cadence of a client, so that the server is never the one that closes a connection in use. */
const KEEP_ALIVE_MS = 75_000;

const CONTROL_BODY_BYTES = 8 * 1024 * 1024;

/**
 * Runs a simulated exchange over HTTP and fires its timers by the clock. Rejects with Node's error where the address
 * cannot be listened on (`code` EADDRINUSE, EACCES, EADDRNOTAVAIL).
 */
export async function startSimulatedServer(options: SimulatedServerOptions): Promise<SimulatedServer> {
  const { clock } = options;
  const nowMs = createExchangeClock(clock, options.clockOffsetMs ?? 0);
  const seed = options.seed ?? 1;
  const exchange = createSimulatedExchange({ seed, ...options.exchange });
  for (const order of options.orders ?? []) exchange.placeOrder(order, nowMs());
  const plan = createFaultPlan(seed);
  const firing = createFiring(clock, exchange, nowMs);
  const traffic = createTraffic({ clock, nowMs, exchange, plan, onHandled: firing.plan });

  const addFaults = (faults: readonly Fault[]) =>
    faults.map((fault) => {
      const added = plan.add(fault, nowMs());
      exchange.log.append({ kind: 'fault-added', faultId: added.id, fault: fault.kind }, nowMs());
      return added;
    });
  const clearFaults = () => {
    const cleared = plan.clear();
    exchange.log.append({ kind: 'faults-cleared', faults: cleared }, nowMs());
    traffic.releaseHeld();
    return cleared;
  };

  const app = createApp(traffic);
  const activeFaults = () => plan.active(nowMs());
  registerControl(app, { clock, nowMs, exchange, activeFaults, addFaults, clearFaults });
  await app.listen({ ...options.listen });
  return {
    url: urlOf(app.server),
    exchange,
    nowMs,
    addFaults,
    clearFaults,
    async close() {
      traffic.stop();
      firing.stop();
      app.server.closeAllConnections();
      await app.close();
    },
  };
}

/** Keeps one timer of the clock on the next firing of the exchange. */
function createFiring(
  clock: Clock,
  exchange: SimulatedExchange,
  nowMs: () => number,
): { readonly plan: () => void; readonly stop: () => void } {
  let plannedMs: number | null = null;
  let cancel: Cancel = () => {};

  function plan(): void {
    const nextMs = exchange.nextFiringMs();
    if (nextMs === plannedMs) return;
    cancel();
    plannedMs = nextMs;
    if (nextMs !== null) cancel = clock.after(Math.max(0, nextMs - nowMs()), fire);
  }

  function fire(): void {
    exchange.advance(nowMs());
    plannedMs = null;
    plan();
  }

  return { plan, stop: () => cancel() };
}

/**
 * Fastify answers the control endpoints. What is the exchange's goes past it: its bytes must arrive as they were sent,
 * and no page of a framework may stand in for a documented error.
 */
function createApp(traffic: Traffic): FastifyInstance {
  return fastify({
    forceCloseConnections: true,
    bodyLimit: CONTROL_BODY_BYTES,
    clientErrorHandler: refuseMalformed,
    serverFactory(control) {
      const serve = (request: IncomingMessage, response: ServerResponse): void => {
        response.on('error', () => response.destroy());
        if (isControl(request)) control(request, response);
        else traffic.serve(request, response);
      };
      // What Node itself would refuse gets an answer of the exchange, too.
      const server = createServer({ requireHostHeader: false }, serve);
      server.on('checkExpectation', serve);
      server.on('connect', (_request, socket) => endWith(socket, '405 Method Not Allowed'));
      server.keepAliveTimeout = KEEP_ALIVE_MS;
      return server;
    },
  });
}

function isControl(request: IncomingMessage): boolean {
  const path = request.url ?? '';
  return path === '/' || path === '/simulator' || path.startsWith('/simulator/');
}

/** What is not HTTP at all gets the document's error shape, too. */
function refuseMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const isTooLarge = error.code === 'HPE_HEADER_OVERFLOW';
  endWith(socket, isTooLarge ? '431 Request Header Fields Too Large' : '400 Bad Request');
}

function endWith(socket: Duplex, status: string): void {
  socket.on('error', () => socket.destroy());
  const body = JSON.stringify({ code: 0, message: `${status.slice(4)}.`, errors: {} });
  const head = `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json\r\n`;
  socket.end(`${head}content-length: ${body.length}\r\n\r\n${body}`);
}

function urlOf(server: Server): string {
  const { address, family, port } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
