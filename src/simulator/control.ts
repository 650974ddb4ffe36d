import type { FastifyInstance } from 'fastify';
import type { Cancel, Clock } from '../ports.ts';
import { isLoopback } from '../util/loopback.ts';
import { registerMoney } from './control-money.ts';
import { fail } from './control-refusal.ts';
import type { ExchangeEvent } from './event-log.ts';
import { FAULT_KINDS, parseFaults } from './fault-input.ts';
import type { ActiveFault, Fault } from './faults.ts';
import { parseOrders } from './order-input.ts';
import type { SimulatedExchange } from './simulated-exchange.ts';
import { welcomePage } from './welcome.ts';

export interface ControlParts {
  readonly clock: Clock;
  /** The exchange's clock, Unix milliseconds. */
  readonly nowMs: () => number;
  readonly exchange: SimulatedExchange;
  readonly activeFaults: () => readonly ActiveFault[];
  readonly addFaults: (faults: readonly Fault[]) => readonly ActiveFault[];
  readonly clearFaults: () => number;
}

const MAX_WAIT_MS = 60_000;

/**
 * Adds the endpoints under `/simulator/`, for people and tests on this host: other hosts and scripts of web pages are
 * refused with 403.
 */
export function registerControl(app: FastifyInstance, parts: ControlParts): void {
  app.addHook('onRequest', async (request, reply) => {
    const isPage = request.url === '/';
    const isLocal = isLoopback(request.raw.socket.remoteAddress ?? '');
    const isAllowed = isPage || (isLocal && request.headers.origin === undefined);
    return isAllowed
      ? undefined
      : fail(reply, 403, 'The simulator is controlled from this host only, and not by web pages.');
  });
  app.setErrorHandler<Error & { statusCode?: number }>((error, _request, reply) =>
    fail(reply, error.statusCode ?? 400, error.message),
  );
  app.setNotFoundHandler((_request, reply) => fail(reply, 404, 'No such endpoint; GET / lists them.'));
  app.get('/', (_request, reply) =>
    reply.type('text/plain; charset=utf-8').send(welcomePage(parts.exchange, FAULT_KINDS)),
  );
  registerReading(app, parts);
  registerChanging(app, parts);
  registerMoney(app, parts.exchange, parts.nowMs);
}

function registerReading(app: FastifyInstance, parts: ControlParts): void {
  const { clock, nowMs, exchange } = parts;
  app.get<{ Querystring: Record<string, string> }>('/simulator/events', async (request, reply) => {
    const since = readWhole(request.query['since'] ?? '0', Number.MAX_SAFE_INTEGER);
    const waitMs = readWhole(request.query['wait'] ?? '0', MAX_WAIT_MS);
    if (since === null) return fail(reply, 400, 'since: expected the seq of an event, a whole number');
    if (waitMs === null) return fail(reply, 400, `wait: expected milliseconds from 0 to ${MAX_WAIT_MS}`);
    if (waitMs > 0 && exchange.log.lastSeq() <= since) await nextEvent(exchange, clock, since, waitMs);
    return reply.send(exchange.log.since(since));
  });
  app.get('/simulator/state', (_request, reply) => {
    const now = nowMs();
    const timers = exchange.timers().map(({ account, market, startTime, cancellationTime, types, dueMs }) => {
      const secondsLeft = Math.max(0, dueMs - now) / 1000;
      return { account, market, startTime, cancellationTime, types, secondsLeft };
    });
    return reply.send({
      nowMs: now,
      profile: exchange.profile,
      markets: exchange.markets,
      lastSeq: exchange.log.lastSeq(),
      timers,
      orders: exchange.orders(),
      faults: parts.activeFaults(),
    });
  });
}

function registerChanging(app: FastifyInstance, parts: ControlParts): void {
  const { nowMs, exchange } = parts;
  app.post('/simulator/orders', (request, reply) => {
    const parsed = parseOrders(request.body, exchange.hasMarket);
    if (!parsed.ok) return fail(reply, 400, parsed.problem);
    const placed = parsed.orders.map((order) => exchange.placeOrder(order, nowMs()));
    return reply.code(201).send(placed);
  });
  app.post('/simulator/faults', (request, reply) => {
    const parsed = parseFaults(request.body);
    if (!parsed.ok) return fail(reply, 400, parsed.problem);
    return reply.code(201).send(parts.addFaults(parsed.faults));
  });
  app.delete('/simulator/faults', (_request, reply) => reply.send({ cleared: parts.clearFaults() }));
}

function readWhole(text: string, max: number): number | null {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  return value <= max ? value : null;
}

/** Resolves when an event later than `since` has happened, or after `waitMs`. */
function nextEvent(exchange: SimulatedExchange, clock: Clock, since: number, waitMs: number): Promise<void> {
  return new Promise((resolve) => {
    const undo: Cancel[] = [];
    const finish = () => {
      for (const cancel of undo) cancel();
      resolve();
    };
    undo.push(clock.after(waitMs, finish));
    undo.push(
      exchange.log.subscribe((event: ExchangeEvent) => {
        if (event.seq > since) finish();
      }),
    );
  });
}
