import { createHash, timingSafeEqual } from 'node:crypto';
import { Ajv } from 'ajv';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ORDER_TYPES } from '../core/events.ts';
import type { Cancel, Clock } from '../ports.ts';
import { didYouMean } from '../util/nearest.ts';
import { isLoopback, isRecord } from '../util/text.ts';
import { decimalOfNumber, formatDecimal } from './decimal.ts';
import type { ExchangeEvent } from './event-log.ts';
import { type ActiveFault, FAULT_KINDS, FAULT_SCHEMA, type Fault } from './faults.ts';
import { EXTRAS, OPERATIONS, type Operation } from './operations.ts';
import { DEFAULT_ACCOUNT, type SimulatedExchange } from './simulated-exchange.ts';
import { type ApiKey, type OrderRequest, PERMISSIONS } from './state.ts';
import type { JournalledRequest } from './traffic.ts';

export interface ControlParts {
  readonly clock: Clock;
  /** The exchange's clock, Unix milliseconds. */
  readonly nowMs: () => number;
  readonly exchange: SimulatedExchange;
  readonly requests: (since?: number) => readonly JournalledRequest[];
  /** Other hosts must show it; null: they are refused. */
  readonly token: string | null;
  readonly activeFaults: () => readonly ActiveFault[];
  readonly addFaults: (faults: readonly Fault[]) => readonly ActiveFault[];
  readonly clearFaults: () => number;
  readonly advance: (ms: number) => void;
  readonly snapshot: () => number;
  readonly reset: (snapshot?: number) => boolean;
}

/** By which bodies are checked: every mistake is found, and nothing is changed. */
export const AJV_OPTIONS = {
  allErrors: true,
  coerceTypes: false,
  removeAdditional: false,
  discriminator: true,
  strict: false,
};

const MAX_WAIT_MS = 60_000;
const MAX_ADVANCE_MS = 31 * 86_400_000;
const MAX_ORDERS = 100_000;

/**
 * Adds the endpoints under `/simulator/`, for people and tests: this host needs no token for them, other hosts need the
 * one of the options, and scripts of web pages are refused with 403.
 */
export function registerControl(app: FastifyInstance, parts: ControlParts): void {
  app.addHook('onRequest', async (request, reply) => {
    if (request.url === '/' || mayControl(request, parts.token)) return undefined;
    const isOpen = parts.token !== null && request.headers.origin === undefined;
    return isOpen
      ? fail(reply.header('www-authenticate', 'Bearer'), 401, 'Other hosts need the bearer token.')
      : fail(reply, 403, 'The simulator is controlled from this host only, and not by web pages.');
  });
  app.setErrorHandler<Error & { statusCode?: number }>((error, _request, reply) =>
    fail(reply, error.statusCode ?? 400, error.message),
  );
  app.setNotFoundHandler((_request, reply) => fail(reply, 404, 'No such endpoint; GET / lists them.'));
  const parse = app.getDefaultJsonParser('error', 'error');
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) =>
    body === '' ? done(null, undefined) : parse(request, String(body), done),
  );
  app.get('/', (_request, reply) =>
    reply.type('text/plain; charset=utf-8').send(welcomePage(parts.exchange)),
  );
  registerReading(app, parts);
  registerOrders(app, parts);
  registerMoney(app, parts);
  registerTools(app, parts);
}

function mayControl({ raw, headers }: FastifyRequest, token: string | null): boolean {
  if (headers.origin !== undefined) return false;
  if (isLoopback(raw.socket.remoteAddress ?? '')) return true;
  const [, shown = ''] = /^bearer +(\S+)$/i.exec(headers.authorization ?? '') ?? [];
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return token !== null && timingSafeEqual(digest(shown), digest(token));
}

function registerReading(app: FastifyInstance, parts: ControlParts): void {
  const { clock, nowMs, exchange, requests } = parts;
  const seq = { type: 'string', pattern: '^\\d{1,15}$' };
  type Query = { Querystring: { since?: string; wait?: string } };
  const queries = { querystring: { type: 'object', properties: { since: seq, wait: seq } } };
  app.get<Query>('/simulator/events', { schema: queries, attachValidation: true }, async (request, reply) => {
    const { since = '0', wait = '0' } = request.query;
    const wrong = request.validationError?.validation?.[0]?.instancePath;
    if (wrong === '/since') return fail(reply, 400, 'since: expected the seq of an event, a whole number');
    if (wrong !== undefined || Number(wait) > MAX_WAIT_MS)
      return fail(reply, 400, `wait: expected milliseconds from 0 to ${MAX_WAIT_MS}`);
    const isWaiting = Number(wait) > 0 && exchange.log.lastSeq() <= Number(since);
    if (isWaiting) await nextEvent(exchange, clock, Number(since), Number(wait));
    return reply.send(exchange.log.since(Number(since)));
  });
  app.get<Query>('/simulator/requests', { schema: queries, attachValidation: true }, (request, reply) =>
    request.validationError === undefined
      ? reply.send(requests(Number(request.query.since ?? '0')))
      : fail(reply, 400, 'since: expected the seq of a request, a whole number'),
  );
  app.get('/simulator/state', (_request, reply) => {
    const now = nowMs();
    const timers = exchange.timers().map(({ account, market, startTime, cancellationTime, types, dueMs }) => {
      const secondsLeft = Math.max(0, dueMs - now) / 1000;
      return { account, market, startTime, cancellationTime, types, secondsLeft };
    });
    const { profile, markets } = exchange;
    const faults = parts.activeFaults();
    const lastSeq = exchange.log.lastSeq();
    return reply.send({ nowMs: now, profile, markets, lastSeq, timers, orders: exchange.orders(), faults });
  });
  app.get('/simulator/balances', (_request, reply) => reply.send(exchange.books()));
  app.get('/simulator/prices', (_request, reply) => reply.send(exchange.prices()));
  app.get('/simulator/orders', (_request, reply) =>
    reply.send({ resting: exchange.orders(), filled: exchange.marketOrders() }),
  );
  app.get('/simulator/withdrawals', (_request, reply) => reply.send(exchange.withdrawals()));
  app.get('/simulator/addresses', (_request, reply) => reply.send(exchange.addresses()));
}

const AMOUNT = {
  type: ['string', 'number'],
  pattern: '^\\d{1,40}(\\.\\d{1,20})?$',
  minimum: 0,
  description: 'a decimal of at least 0, such as "0.5"',
};
const MARKET = { type: 'string', description: 'an available market such as BTC_USDT' };
const NAME = { type: 'string', pattern: '^[!-~]{1,255}$', description: 'a text such as "second-key"' };

const ORDER = shapeOf(['market', 'type', 'side'], {
  market: MARKET,
  type: { enum: ORDER_TYPES, description: 'a type of order' },
  side: { enum: ['buy', 'sell'], description: 'a side' },
  amount: AMOUNT,
  price: AMOUNT,
  count: {
    type: 'integer',
    minimum: 1,
    maximum: MAX_ORDERS,
    description: `a whole number from 1 to ${MAX_ORDERS}`,
  },
});
const BALANCE = shapeOf(['currency', 'amount'], {
  account: NAME,
  currency: { type: 'string', pattern: '^[A-Z0-9]{1,20}$', description: 'a ticker such as BTC' },
  amount: AMOUNT,
});
const PRICE = shapeOf(['market', 'price'], { market: MARKET, price: AMOUNT });
const KEY = shapeOf(['key', 'secret'], {
  key: NAME,
  secret: { type: 'string', pattern: '^[!-~]{1,255}$', description: '1 to 255 plain letters' },
  account: NAME,
  permissions: {
    type: 'array',
    items: { enum: PERMISSIONS },
    uniqueItems: true,
    description: `an array of ${PERMISSIONS.join(', ')}`,
  },
});

function plain(amount: string | number): string {
  const value = typeof amount === 'number' ? decimalOfNumber(amount) : null;
  return value === null ? String(amount) : formatDecimal(value);
}

interface OrderInput extends Pick<OrderRequest, 'market' | 'type' | 'side'> {
  readonly amount?: string | number;
  readonly price?: string | number;
  readonly count?: number;
}
interface BalanceInput {
  readonly account?: string;
  readonly currency: string;
  readonly amount: string;
}

function registerOrders(app: FastifyInstance, { nowMs, exchange }: ControlParts): void {
  const knowsMarket = (market: string) =>
    exchange.hasMarket(market) ? null : `market is ${quote(market)}; expected ${MARKET.description}`;
  take<OrderInput>(app, {
    path: 'orders',
    name: 'order',
    schema: ORDER,
    problem: ({ market }) => knowsMarket(market),
    carryOut(orders, reply) {
      const total = orders.reduce((sum, { count = 1 }) => sum + count, 0);
      if (total > MAX_ORDERS) return fail(reply, 400, `more than ${MAX_ORDERS} orders at a time`);
      const placed = orders.flatMap(({ count = 1, amount = '1', price = '1', ...order }) =>
        Array.from({ length: count }, () =>
          exchange.placeOrder({ ...order, amount: plain(amount), price: plain(price) }, nowMs()),
        ),
      );
      return reply.code(201).send(placed);
    },
  });
}

function registerMoney(app: FastifyInstance, { nowMs, exchange }: ControlParts): void {
  take<BalanceInput>(app, {
    path: 'balances',
    name: 'balance',
    schema: BALANCE,
    problem: ({ account = DEFAULT_ACCOUNT }) =>
      exchange.accounts.includes(account)
        ? null
        : `account is ${quote(account)}; allowed: ${exchange.accounts.join(', ')}`,
    carryOut(balances, reply) {
      for (const { account = DEFAULT_ACCOUNT, currency, amount } of balances) {
        exchange.setBalance(account, currency, plain(amount), nowMs());
      }
      return reply.send(exchange.books());
    },
  });
  take<{ market: string; price: string }>(app, {
    path: 'prices',
    name: 'price',
    schema: PRICE,
    problem: ({ market, price }) =>
      !exchange.hasStockSide(market)
        ? `market is ${quote(market)}; expected an available spot market such as BTC_USDT`
        : Number(price) > 0
          ? null
          : `price is ${quote(price)}; expected a decimal above 0, such as "0.5"`,
    carryOut(prices, reply) {
      for (const { market, price } of prices) exchange.setPrice(market, plain(price), nowMs());
      return reply.send(exchange.prices());
    },
  });
  take<Partial<ApiKey> & Pick<ApiKey, 'key' | 'secret'>>(app, {
    path: 'keys',
    name: 'key',
    schema: KEY,
    problem: ({ key }, others) =>
      exchange.hasKey(key) || others.some((other) => other.key === key)
        ? `${quote(key)} is accepted already`
        : null,
    carryOut(keys, reply) {
      for (const key of keys) exchange.addKey({ account: DEFAULT_ACCOUNT, ...key });
      return reply.code(201).send({ added: keys.length });
    },
  });
}

function registerTools(app: FastifyInstance, parts: ControlParts): void {
  const { nowMs } = parts;
  take<Fault>(app, {
    path: 'faults',
    name: 'fault',
    schema: FAULT_SCHEMA,
    carryOut: (faults, reply) => reply.code(201).send(parts.addFaults(faults)),
  });
  app.delete('/simulator/faults', (_request, reply) => reply.send({ cleared: parts.clearFaults() }));
  const range = `a whole number from 1 to ${MAX_ADVANCE_MS}`;
  const ADVANCE = shapeOf(['ms'], {
    ms: { type: 'integer', minimum: 1, maximum: MAX_ADVANCE_MS, description: range },
  });
  take<{ ms: number }>(app, {
    path: 'advance',
    name: 'advance',
    schema: ADVANCE,
    carryOut(steps, reply) {
      for (const { ms } of steps) parts.advance(ms);
      return reply.send({ nowMs: nowMs() });
    },
  });
  app.post('/simulator/snapshots', (_request, reply) => reply.code(201).send({ snapshot: parts.snapshot() }));
  const RESET = shapeOf([], {
    snapshot: { type: 'integer', minimum: 0, description: 'the number of a snapshot, or 0 for the start' },
  });
  take<{ snapshot?: number }>(app, {
    path: 'reset',
    name: 'reset',
    schema: RESET,
    carryOut([{ snapshot = 0 } = {}], reply) {
      if (parts.reset(snapshot)) return reply.send({ snapshot });
      return fail(reply, 400, `reset: snapshot is ${snapshot}; no such snapshot was taken`);
    },
  });
}

/** JSON Schema of a field; `description` says in a message what is allowed. */
type Described = Readonly<Record<string, unknown>> & { readonly description?: string };

/** JSON Schema of an object, and what a message says that its fields may hold. */
interface ObjectShape {
  readonly description: string;
  readonly properties: Readonly<Record<string, Described>>;
  readonly oneOf?: readonly Pick<ObjectShape, 'properties'>[];
}

function shapeOf(required: readonly string[], properties: ObjectShape['properties']): ObjectShape {
  const description = `an object with ${Object.keys(properties).join(', ')}`;
  const shape = { type: 'object', required, properties, additionalProperties: false, description };
  return shape;
}

interface Taking<T> {
  /** Below `/simulator/`. */
  readonly path: string;
  /** What a message calls one item. */
  readonly name: string;
  readonly schema: ObjectShape;
  /** What the schema cannot say of one item, given those before it; null: nothing is wrong. */
  readonly problem?: (item: T, before: readonly T[]) => string | null;
  readonly carryOut: (items: readonly T[], reply: FastifyReply) => FastifyReply;
}

/**
 * Adds an endpoint, which takes one object or an array of them. Either all are right and carried out, or
 * none is, and 400 says what is wrong with the first that is not.
 */
function take<T extends object>(
  app: FastifyInstance,
  { path, name, schema, problem = () => null, carryOut }: Taking<T>,
): void {
  const options = {
    schema: { body: { type: 'array', items: schema } },
    attachValidation: true,
    preValidation: async (request: FastifyRequest) => {
      const { body = {} } = request;
      Object.assign(request, { isList: Array.isArray(body) });
      request.body = Array.isArray(body) ? body : [body];
    },
  };
  app.post(`/simulator/${path}`, options, (request, reply) => {
    const items = request.body as readonly T[];
    const placeOf = (index: number) =>
      'isList' in request && request.isList === true ? `${name} ${index + 1}` : name;
    const flaw = firstFlaw(request.validationError?.validation ?? [], items, schema);
    if (flaw !== null) return fail(reply, 400, `${placeOf(flaw.index)}: ${flaw.sentence}`);
    for (const [index, item] of items.entries()) {
      const wrong = problem(item, items.slice(0, index));
      if (wrong !== null) return fail(reply, 400, `${placeOf(index)}: ${wrong}`);
    }
    return carryOut(items, reply);
  });
}

type AjvError = NonNullable<NonNullable<FastifyRequest['validationError']>['validation']>[number];

/** What is wrong with the first item that is; null where nothing is. */
function firstFlaw(errors: readonly AjvError[], items: readonly unknown[], schema: ObjectShape) {
  if (errors.length === 0) return null;
  const indexOf = ({ instancePath }: AjvError) => Number(instancePath.split('/')[1] ?? 0);
  const index = Math.min(...errors.map(indexOf));
  const own = errors.filter((error) => indexOf(error) === index);
  return { index, sentence: sentenceFor(own, items[index], schema) };
}

/** What the endpoint for faults would say of them; null where it would take them. */
export function flawOfFaults(faults: readonly Fault[]): string | null {
  const check = new Ajv(AJV_OPTIONS).compile({ type: 'array', items: FAULT_SCHEMA });
  check(faults);
  const flaw = firstFlaw((check.errors ?? []) as AjvError[], faults, FAULT_SCHEMA);
  return flaw === null ? null : `fault ${flaw.index + 1}: ${flaw.sentence}`;
}

/** What is wrong, what was found, what is allowed. A secret is not repeated. */
function sentenceFor(errors: readonly AjvError[], given: unknown, schema: ObjectShape): string {
  if (!isRecord(given)) return `expected ${schema.description}`;
  const own = schema.oneOf?.find(({ properties }) => properties['kind']?.['const'] === given['kind']);
  const isKnownKind = schema.oneOf === undefined || own !== undefined;
  const properties = isKnownKind ? (own ?? schema).properties : schema.properties;
  const names = Object.keys(properties);
  const unknown = errors.find(
    ({ instancePath, params }) => isOfItem(instancePath) && 'additionalProperty' in params,
  );
  if (unknown !== undefined && isKnownKind) {
    const name = String(unknown.params['additionalProperty']);
    const allowed = own === undefined ? 'allowed' : `allowed for ${quote(given['kind'])}`;
    return `unknown field ${quote(name)}; ${allowed}: ${names.join(', ')}${didYouMean(name, names)}`;
  }
  const wrong = errors.map(
    ({ instancePath, params }) => instancePath.split('/')[2] ?? params['missingProperty'],
  );
  const field = isKnownKind ? (names.find((name) => wrong.includes(name)) ?? '') : 'kind';
  const { description = 'something else', enum: values = null } =
    properties[field] ?? ({} as Partial<Described>);
  const value = given[field];
  const found = field === 'secret' && value !== undefined ? 'not of its form' : quote(value);
  if (!Array.isArray(values)) return `${field} is ${found}; expected ${description}`;
  const hint = typeof value === 'string' ? didYouMean(value, values) : '';
  return `${field} is ${found}; allowed: ${values.join(', ')}${hint}`;
}

function isOfItem(instancePath: string): boolean {
  return instancePath.split('/').length === 2;
}

function quote(value: unknown): string {
  return value === undefined ? 'missing' : JSON.stringify(value).slice(0, 200);
}

/** Refuses a request to a control endpoint with one sentence. */
function fail(reply: FastifyReply, status: number, error: string): FastifyReply {
  return reply.code(status).send({ error });
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

/** The plain-text page at `/`: what this is and what can be asked of it. */
function welcomePage({ profile, markets }: SimulatedExchange): string {
  const lineOf = ({ method, path }: Operation) => `  ${method.padEnd(6)} ${path}`;
  return `killswitchd: a simulated exchange. No real market, no real money.
Profile: ${profile}. Markets: ${markets === 'any' ? 'any name of the form BASE_QUOTE' : markets.join(', ')}.

Operations of the API:
${OPERATIONS.map(lineOf).join('\n')}

Beyond the API document, because bots and their libraries need it:
${EXTRAS.map(lineOf).join('\n')}

To watch it (from this host, or with the token):
  GET    /simulator/state                 timers with secondsLeft, resting orders, faults
  GET    /simulator/balances              every balance, fees, withdrawals and deposits by currency
  GET    /simulator/orders                resting orders and filled ones
  GET    /simulator/prices                the prices at which market orders are filled
  GET    /simulator/withdrawals           withdrawals, and /simulator/addresses: deposit addresses
  GET    /simulator/events?since=SEQ      what happened after the event SEQ; &wait=MS waits for the next one
  GET    /simulator/requests?since=SEQ    every request, and what its client was told

To change it (any of them takes an array of its objects, too):
  POST   /simulator/orders                {"market","type","side","amount","price","count"}
  POST   /simulator/balances              {"currency","amount","account"}
  POST   /simulator/prices                {"market","price"}
  POST   /simulator/keys                  {"key","secret","account","permissions"}
  POST   /simulator/advance               {"ms"}: moves the clock ahead
  POST   /simulator/snapshots             remembers everything and gives it a number
  POST   /simulator/reset                 {"snapshot"}: back to it, or to the start; ends every fault
  POST   /simulator/faults                {"kind",...}; any kind takes match, skip, probability, count, forMs
  DELETE /simulator/faults                ends every fault

Kinds of fault: ${FAULT_KINDS.join(', ')}
`;
}
