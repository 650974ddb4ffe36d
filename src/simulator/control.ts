import { hash, timingSafeEqual } from 'node:crypto';
import { Ajv, type ErrorObject } from 'ajv';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import Type, { type Static, type TProperties, type TSchema } from 'typebox';
import { ORDER_TYPES } from '../core/events.ts';
import type { Clock } from '../ports.ts';
import { didYouMean } from '../util/nearest.ts';
import { within } from '../util/pace.ts';
import { isLoopback, isRecord } from '../util/text.ts';
import { formatDecimal, readDecimal } from './decimal.ts';
import type { EventLog } from './event-log.ts';
import { type ActiveFault, FAULT_KINDS, FAULT_SCHEMA, type Fault, whole } from './faults.ts';
import { EXTRAS, OPERATIONS, type Operation } from './operations.ts';
import type { Tools } from './server.ts';
import type { SimulatedExchange } from './simulated-exchange.ts';
import { DEFAULT_ACCOUNT, PERMISSIONS } from './state.ts';

interface ControlParts extends Tools {
  readonly clock: Clock;
  /** Other hosts must show it; null: they are refused. */
  readonly token: string | null;
  readonly activeFaults: () => readonly ActiveFault[];
}

const MAX_WAIT_MS = 60_000;
const MAX_ADVANCE_MS = 31 * 86_400_000;
const MAX_ORDERS = 100_000;

/** Adds the endpoints under `/simulator/`. Other hosts need the token; scripts of web pages are refused with 403. */
export function registerControl(app: FastifyInstance, parts: ControlParts): void {
  app.addHook('onRequest', async (request, reply) => {
    if (request.url === '/' || mayControl(request, parts.token)) return undefined;
    const isOpen = parts.token !== null && request.headers.origin === undefined;
    return isOpen
      ? fail(reply.header('www-authenticate', 'Bearer'), 401, 'Other hosts need the bearer token.')
      : fail(reply, 403, 'The simulator is controlled from this host only, and not by web pages.');
  });
  app.setErrorHandler<Error & { statusCode?: number }>(({ statusCode = 400, message }, _request, reply) =>
    fail(reply, statusCode, statusCode === 415 ? 'expected content-type: application/json' : message),
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
  registerChanging(app, parts);
}

function mayControl({ raw, headers }: FastifyRequest, token: string | null): boolean {
  if (headers.origin !== undefined) return false;
  if (isLoopback(raw.socket.remoteAddress ?? '')) return true;
  const [, shown = ''] = /^bearer +(\S+)$/i.exec(headers.authorization ?? '') ?? [];
  const digest = (text: string) => hash('sha256', text, 'buffer');
  return token !== null && timingSafeEqual(digest(shown), digest(token));
}

function registerReading(app: FastifyInstance, parts: ControlParts): void {
  const { clock, nowMs, exchange } = parts;
  const { log, profile, markets } = exchange;
  type Query = { Querystring: Readonly<Record<string, string>> };
  /** The numbers of a query; what it leaves out is 0. */
  const numbersOf = ({ query }: FastifyRequest<Query>, ...names: readonly string[]) => {
    const isFit = (name: string) => names.includes(name) && /^\d{1,15}$/.test(query[name] ?? '');
    const odd = Object.keys(query).find((name) => !isFit(name));
    if (odd === undefined) return names.map((name) => Number(query[name] ?? 0));
    throw new RangeError(
      names.includes(odd)
        ? `${odd} is ${quote(query[odd])}; expected a whole number`
        : unknownField(odd, names),
    );
  };
  app.get<Query>('/simulator/events', async (request, reply) => {
    const [since = 0, waitMs = 0] = numbersOf(request, 'since', 'wait');
    if (waitMs > MAX_WAIT_MS) throw new RangeError(`wait: expected milliseconds from 0 to ${MAX_WAIT_MS}`);
    if (waitMs > 0 && log.lastSeq() <= since) await nextEvent(log, clock, since, waitMs);
    return reply.send(log.since(since));
  });
  app.get<Query>('/simulator/requests', (request, reply) =>
    reply.send(parts.requests(numbersOf(request, 'since')[0])),
  );
  const readings = {
    state() {
      const now = nowMs();
      const timers = exchange
        .timers()
        .map(({ dueMs, ...timer }) => ({ ...timer, secondsLeft: Math.max(0, dueMs - now) / 1000 }));
      const [orders, faults, lastSeq] = [exchange.orders(), parts.activeFaults(), log.lastSeq()];
      return { nowMs: now, profile, markets, lastSeq, timers, orders, faults };
    },
    balances: exchange.books,
    prices: exchange.prices,
    orders: () => ({ resting: exchange.orders(), filled: exchange.marketOrders() }),
    withdrawals: exchange.withdrawals,
    addresses: exchange.addresses,
  };
  for (const [path, read] of Object.entries(readings))
    app.get(`/simulator/${path}`, (_request, reply) => reply.send(read()));
}

const AMOUNT = Type.Unsafe<string | number>({
  type: ['string', 'number'],
  pattern: '^\\d{1,40}(\\.\\d{1,20})?$',
  minimum: 0,
  description: 'a decimal of at least 0, such as "0.5"',
});
const AVAILABLE = 'an available market such as BTC_USDT';
const MARKET = Type.String({ description: AVAILABLE });
const VISIBLE = '^[!-~]{1,255}$';
const NAME = Type.String({ pattern: VISIBLE, description: 'a text such as "second-key"' });
const KEY_PERMISSIONS = `an array of ${PERMISSIONS.join(', ')}`;

const ORDER = shapeOf({
  market: MARKET,
  type: Type.Enum(ORDER_TYPES, { description: 'a type of order' }),
  side: Type.Enum(['buy', 'sell'], { description: 'a side' }),
  amount: Type.Optional(AMOUNT),
  price: Type.Optional(AMOUNT),
  count: Type.Optional(whole(1, MAX_ORDERS)),
});
const BALANCE = shapeOf({
  account: Type.Optional(NAME),
  currency: Type.String({ pattern: '^[A-Z0-9]{1,20}$', description: 'a ticker such as BTC' }),
  amount: AMOUNT,
});
const PRICE = shapeOf({ market: MARKET, price: AMOUNT });
const KEY = shapeOf({
  key: NAME,
  secret: Type.String({ pattern: VISIBLE, description: '1 to 255 printable characters without a space' }),
  account: Type.Optional(NAME),
  permissions: Type.Optional(
    Type.Array(Type.Enum(PERMISSIONS), { uniqueItems: true, description: KEY_PERMISSIONS }),
  ),
});
const ADVANCE = shapeOf({ ms: whole(1, MAX_ADVANCE_MS) });
const SNAPSHOT = Type.Integer({ minimum: 0, description: 'the number of a snapshot, or 0 for the start' });
const RESET = shapeOf({ snapshot: Type.Optional(SNAPSHOT) });

/** A text stays as it was written. */
const plain = (amount: string | number) =>
  typeof amount === 'number' ? formatDecimal(readDecimal(amount) ?? 0n) : amount;

function registerChanging(app: FastifyInstance, parts: ControlParts): void {
  const { nowMs, exchange } = parts;
  const unavailable = ({ market }: Static<typeof ORDER>) =>
    exchange.hasMarket(market) ? null : `market is ${quote(market)}; expected ${AVAILABLE}`;
  take(app, 'orders', ORDER, unavailable, (orders, reply) => {
    const total = orders.reduce((sum, { count = 1 }) => sum + count, 0);
    if (total > MAX_ORDERS) return fail(reply, 400, `more than ${MAX_ORDERS} orders at a time`);
    const placed = orders.flatMap(({ count = 1, amount = '1', price = '1', ...order }) =>
      Array.from({ length: count }, () =>
        exchange.placeOrder({ ...order, amount: plain(amount), price: plain(price) }, nowMs()),
      ),
    );
    return reply.code(201).send(placed);
  });
  const strange = ({ account = DEFAULT_ACCOUNT }: Static<typeof BALANCE>) =>
    exchange.accounts.includes(account)
      ? null
      : `account is ${quote(account)}; allowed: ${exchange.accounts.join(', ')}`;
  take(app, 'balances', BALANCE, strange, (balances, reply) => {
    for (const { account = DEFAULT_ACCOUNT, currency, amount } of balances)
      exchange.setBalance(account, currency, plain(amount), nowMs());
    return reply.send(exchange.books());
  });
  const unpriced = ({ market, price }: Static<typeof PRICE>) => {
    if (!exchange.hasStockSide(market))
      return `market is ${quote(market)}; expected an available spot market such as BTC_USDT`;
    return Number(price) > 0 ? null : `price is ${quote(price)}; expected a decimal above 0, such as "0.5"`;
  };
  take(app, 'prices', PRICE, unpriced, (prices, reply) => {
    for (const { market, price } of prices) exchange.setPrice(market, plain(price), nowMs());
    return reply.send(exchange.prices());
  });
  const taken = ({ key }: Static<typeof KEY>, before: readonly Static<typeof KEY>[]) => {
    const isTaken = exchange.hasKey(key) || before.some((other) => other.key === key);
    return isTaken ? `${quote(key)} is accepted already` : null;
  };
  take(app, 'keys', KEY, taken, (keys, reply) => {
    for (const key of keys) exchange.addKey({ account: DEFAULT_ACCOUNT, ...key });
    return reply.code(201).send({ added: keys.length });
  });
  take(app, 'faults', FAULT_SCHEMA, null, (faults, reply) => reply.code(201).send(parts.addFaults(faults)));
  app.delete('/simulator/faults', (_request, reply) => reply.send({ cleared: parts.clearFaults() }));
  take(app, 'advance', ADVANCE, null, (steps, reply) => {
    for (const { ms } of steps) parts.advance(ms);
    return reply.send({ nowMs: parts.nowMs() });
  });
  app.post('/simulator/snapshots', (_request, reply) => reply.code(201).send({ snapshot: parts.snapshot() }));
  take(app, 'reset', RESET, null, (items, reply) => {
    const [{ snapshot = 0 } = {}] = items;
    if (items.length !== 1) return fail(reply, 400, `reset: expected one object, found ${items.length}`);
    if (parts.reset(snapshot)) return reply.send({ snapshot });
    return fail(reply, 400, `reset: snapshot is ${snapshot}; no such snapshot was taken`);
  });
}

/** What is used of the JSON Schema of a field; `description` says in a message what is allowed. */
interface Described {
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly const?: unknown;
  readonly items?: Pick<Described, 'enum'>;
}

interface ObjectShape extends TSchema {
  readonly description: string;
  readonly properties: Readonly<Record<string, object>>;
  readonly oneOf?: readonly Pick<ObjectShape, 'properties'>[];
}

function shapeOf<Fields extends TProperties>(fields: Fields) {
  const description = `an object with ${Object.keys(fields).join(', ')}`;
  return { ...Type.Object(fields, { additionalProperties: false }), description };
}

/** Adds an endpoint that takes one object or an array: all or, with a 400, none. `problem`: what no schema can say. */
function take<Shape extends ObjectShape>(
  app: FastifyInstance,
  path: string,
  schema: Shape,
  problem: null | ((item: Static<Shape>, before: readonly Static<Shape>[]) => string | null),
  carryOut: (items: readonly Static<Shape>[], reply: FastifyReply) => FastifyReply,
): void {
  const name = path.replace(/s$/, '');
  app.post(`/simulator/${path}`, ({ body = {} }, reply) => {
    const items = (Array.isArray(body) ? body : [body]) as readonly Static<Shape>[];
    const placeOf = (index: number) => (Array.isArray(body) ? `${name} ${index + 1}` : name);
    const flaw = flawIn(items, schema);
    if (flaw !== null) return fail(reply, 400, `${placeOf(flaw.index)}: ${flaw.sentence}`);
    for (const [index, item] of items.entries()) {
      const wrong = problem?.(item, items.slice(0, index));
      if (wrong) return fail(reply, 400, `${placeOf(index)}: ${wrong}`);
    }
    return carryOut(items, reply);
  });
}

/** It keeps what it compiled, for all servers of a process. */
const ajv = new Ajv({ allErrors: true, discriminator: true, strict: false, strictNumbers: true });

/** What is wrong with the first item that is; null where nothing is. */
function flawIn(items: readonly unknown[], schema: ObjectShape) {
  const check = ajv.compile(schema);
  const index = items.findIndex((item) => !check(item));
  return index === -1 ? null : { index, sentence: sentenceFor(check.errors ?? [], items[index], schema) };
}

/** What the endpoint for faults would say of them; null where it would take them. */
export function flawOfFaults(faults: readonly Fault[]): string | null {
  const flaw = flawIn(faults, FAULT_SCHEMA);
  return flaw === null ? null : `fault ${flaw.index + 1}: ${flaw.sentence}`;
}

/** What is wrong, what was found, what is allowed. A secret is not repeated. */
function sentenceFor(errors: readonly ErrorObject[], given: unknown, schema: ObjectShape): string {
  if (!isRecord(given)) return `expected ${schema.description}`;
  const own = schema.oneOf?.find((shape) => (shape.properties['kind'] as Described).const === given['kind']);
  const isKnownKind = schema.oneOf === undefined || own !== undefined;
  const properties = (own ?? schema).properties as Readonly<Record<string, Described>>;
  const names = Object.keys(properties);
  const unknown = errors.find((one) => one.instancePath === '' && 'additionalProperty' in one.params);
  if (unknown !== undefined && isKnownKind) {
    const place = own === undefined ? '' : ` for ${quote(given['kind'])}`;
    return unknownField(String(unknown.params['additionalProperty']), names, place);
  }
  const wrong = errors.map(
    ({ instancePath, params }) => instancePath.split('/')[1] ?? params['missingProperty'],
  );
  const field = isKnownKind ? (names.find((name) => wrong.includes(name)) ?? '') : 'kind';
  const { description = 'something else', enum: values, items } = properties[field] ?? {};
  const value = given[field];
  const found = field === 'secret' && value !== undefined ? 'not of its form' : quote(value);
  const known = values ?? items?.enum ?? [];
  const odd = [value].flat().find((one) => typeof one === 'string' && !known.includes(one));
  const allowed = values === undefined ? `expected ${description}` : `allowed: ${values.join(', ')}`;
  return `${field} is ${found}; ${allowed}${typeof odd === 'string' ? didYouMean(odd, known) : ''}`;
}

const unknownField = (name: string, names: readonly string[], place = '') =>
  `unknown field ${quote(name)}; allowed${place}: ${names.join(', ')}${didYouMean(name, names)}`;

const quote = (value: unknown) => (value === undefined ? 'missing' : JSON.stringify(value).slice(0, 200));

const fail = (reply: FastifyReply, status: number, error: string): FastifyReply =>
  reply.code(status).send({ error });

/** Resolves when an event later than `since` has happened, or after `waitMs`. */
async function nextEvent(log: EventLog, clock: Clock, since: number, waitMs: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const unsubscribe = log.subscribe(({ seq }) => {
    if (seq > since) resolve();
  });
  await within(clock, waitMs, promise);
  unsubscribe();
}

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
