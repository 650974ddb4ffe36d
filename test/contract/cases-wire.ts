import { expect } from 'vitest';
import { type Limit, OPERATIONS, type Operation, type OperationName } from '../../src/exchange/operations.ts';
import { encodePayload, signPayload } from '../../src/exchange/sign.ts';
import { decoderOf } from '../../src/exchange/validate.ts';
import { OPERATIONS as SIMULATED } from '../../src/simulator/operations.ts';
import { fieldsOf } from '../exchange/samples.ts';
import { ROWS, rowId } from './document.ts';
import { but, type Case, done, type RawSide, requestOf } from './sides.ts';

const NAMES = Object.keys(OPERATIONS) as OperationName[];
const SIGNED = NAMES.filter((name) => OPERATIONS[name].authentication === 'signed');
const PUBLIC: readonly OperationName[] = ['miningPool', 'ping'];
const SIGNATURE = ['X-TXC-APIKEY', 'X-TXC-PAYLOAD', 'X-TXC-SIGNATURE'];
const METHODS = 'public by GET, private by POST, public error object';
const OPEN = 'public without authentication, both base addresses, path prefix';
const OPTIONS = { newAddresses: true };

/** The values at a path of the document: `data[].amount`. */
function valuesAt(value: unknown, path: string): unknown[] {
  let found = [value];
  for (const step of path.split('.'))
    found = found.flatMap((one) => (one as Record<string, unknown>)[step.replace('[]', '')]);
  return found;
}

const fits = (type: string, value: unknown) =>
  type === 'integer' ? Number.isInteger(value) : typeof value === type;
/** Unix seconds of this century. */
const isUnixTime = (value: unknown) => Number(value) > 946_684_800 && Number(value) < 4_102_444_800;
const OF_TIME = /(date|time|timestamp|Time|found_at)$/;
const OF_MONEY = /(amount|money|stock|left|fee|price|percent)$/i;

const replies: readonly Case[] = ROWS.filter(({ kind }) => kind === 'reply').map((row) => ({
  title: `a reply of ${row.operation} has ${row.name} as ${row.says}`,
  rows: [
    rowId(row),
    ...(OF_TIME.test(row.name) ? ['all rule Unix time'] : []),
    ...(OF_MONEY.test(row.name) ? ['all rule amounts as strings'] : []),
  ],
  options: OPTIONS,
  async check(side) {
    const { operation, name, says } = row;
    if (OF_MONEY.test(name)) expect(says).toBe('string');
    const values = valuesAt(await done(side, operation ?? expect.fail('of no operation')), name);
    expect(values.length).toBeGreaterThan(0);
    expect(values.filter((value) => !fits(says, value))).toEqual([]);
    if (OF_TIME.test(name)) expect(values.filter((value) => !isUnixTime(value))).toEqual([]);
  },
}));

const operations: readonly Case[] = NAMES.map((operation) => {
  const { method, path } = OPERATIONS[operation];
  return {
    title: `${operation} is ${method} ${path}`,
    rows: [`${operation} operation ${method} ${path}`, 'all rule JSON answers'],
    options: OPTIONS,
    async check(side) {
      const value = await done(side, operation);
      if (side.kind === 'raw') expect(decoderOf(operation)(value)).toEqual({ ok: true, value });
      else expect(side.sent).toMatchObject([{ method, path }]);
    },
  };
});

/** Raw requests that the exchange refuses. The client makes none of these mistakes: its own requests are carried out. */
function wire(
  title: string,
  rules: string,
  names: readonly OperationName[],
  check: (side: RawSide, name: OperationName) => void,
): Case {
  return {
    title,
    rows: rules.split(', ').map((rule) => (rule.includes(' request ') ? rule : `all rule ${rule}`)),
    options: OPTIONS,
    async check(side) {
      for (const name of names) {
        if (side.kind === 'raw') check(side, name);
        else await done(side, name);
      }
    },
  };
}

const headers: readonly Case[] = SIGNATURE.map((header) =>
  wire(`a private request has the header ${header}`, `${header}, empty errors`, SIGNED, (side, name) => {
    const request = requestOf(name);
    const { [header.toLowerCase()]: _, ...left } = request.headers;
    const { status, value } = side.send({ ...request, headers: left });
    expect(status, name).toBe(400);
    expect(value).toMatchObject({ message: expect.stringMatching(/not provided/), errors: {} });
  }),
);

const envelope: readonly Case[] = SIGNED.map((operation) => {
  const own = [`${operation} request request`, `${operation} request nonce`];
  const nonces = [undefined, '', Date.now()].map((nonce) => ({ nonce }));
  const flaws = [{ request: undefined }, { request: '/api/v4/other' }, ...nonces];
  const rows = `request and nonce, ${own.join(', ')}`;
  return wire(`the body of ${operation} has its path, and a nonce once`, rows, [operation], (side, name) => {
    for (const flaw of flaws) {
      const request = requestOf(name, { ...fieldsOf(name), ...flaw });
      expect(side.send(request).status, JSON.stringify(flaw)).toBe(400);
    }
    const request = requestOf(name);
    expect([side.send(request).status, side.send(request).status]).toEqual([200, 429]);
  });
});

const rules: readonly Case[] = [
  wire('another method than that of an operation is refused', METHODS, NAMES, (side, name) => {
    const method = OPERATIONS[name].method === 'GET' ? 'POST' : 'GET';
    const { status, value } = side.send({ ...requestOf(name), method });
    expect(status, name).toBeGreaterThanOrEqual(400);
    if (method === 'POST') expect(value).toEqual({ success: false, message: expect.any(String), params: [] });
  }),
  wire(
    'a private request says that it is JSON',
    'Content-type',
    [...SIGNED, 'orderHistory'],
    (side, name) => {
      const request = requestOf(name);
      const { 'content-type': _, ...untyped } = request.headers;
      for (const typed of [untyped, { ...untyped, 'content-type': 'text/plain' }]) {
        const { status, value } = side.send({ ...request, headers: typed });
        expect(status, name).toBe(400);
        expect(value).toMatchObject({ message: 'Content-type must be application/json.', errors: {} });
      }
      expect(side.send(request).status, name).toBe(200);
    },
  ),
  wire('a wrong key, signature or payload is refused', SIGNATURE.join(', '), SIGNED, (side, name) => {
    const request = requestOf(name);
    const other = encodePayload(`${String(request.body).slice(0, -1)},"more":1}`);
    const signature = signPayload(other, 'demo-secret');
    const statuses = [
      { 'x-txc-apikey': 'another' },
      { 'x-txc-signature': signature },
      { 'x-txc-payload': other, 'x-txc-signature': signature },
      {},
    ].map((flaw) => side.send({ ...request, headers: { ...request.headers, ...flaw } }).status);
    expect(statuses, name).toEqual([401, 401, 400, 200]);
  }),
  wire('order history takes a token alone', 'bearer token', ['orderHistory'], (side, name) => {
    const request = requestOf(name);
    const statusOf = (authorization: object) =>
      side.send({ ...request, headers: { ...authorization } }).status;
    expect(statusOf({ authorization: 'Bearer another' })).toBe(401);
    expect([statusOf({}), statusOf(request.headers)]).toEqual([401, 200]);
  }),
  wire('public operations need no key, and all have one prefix', OPEN, PUBLIC, (side, name) => {
    expect(side.send({ ...requestOf(name), headers: {} }).status).toBe(200);
    expect(SIMULATED.filter(({ path }) => !path.startsWith('/api/v4/'))).toEqual([]);
  }),
  {
    title: 'a private error has code, message and errors by parameter',
    rows: ['all rule private error object'],
    async check(side) {
      const outcome = await side.ask('withdrawPay', but('withdrawPay', { ticker: 'XMR', network: 'XMR' }));
      const errors = { ticker: [expect.any(String)] };
      expect(outcome).toMatchObject({ kind: 'refused', status: 400, code: 30, errors });
    },
  },
  {
    title: 'a key is refused what it has no permission for',
    rows: ['all rule permissions'],
    options: { keys: [{ key: 'demo-key', secret: 'demo-secret', account: 'main', permissions: ['info'] }] },
    async check(side) {
      await done(side, 'myCodes');
      for (const name of SIGNED.filter((one) => OPERATIONS[one].effect !== 'reads'))
        expect(await side.ask(name, fieldsOf(name))).toMatchObject({ kind: 'refused', status: 403 });
    },
  },
  {
    title: 'ping is answered with an array of pong alone, and the client tells how long that took',
    rows: ['ping operation GET /api/v4/public/ping'],
    async check(side) {
      expect(await done(side, 'ping')).toEqual(side.kind === 'raw' ? ['pong'] : expect.any(Number));
    },
  },
];

const fresh: readonly Case[] = ROWS.filter(({ name }) => name === 'not cached').map((row) => ({
  title: `an answer of ${row.operation} may not be kept, and the next request is answered anew`,
  rows: [rowId(row)],
  options: OPTIONS,
  async check(side) {
    const operation = row.operation ?? expect.fail('a rule of an operation');
    if (side.kind === 'raw') {
      const answer = side.exchange.handle(requestOf(operation), Date.now());
      expect(answer.headers['cache-control']).toBe('no-store');
    } else await done(side, operation);
    // Once more with nothing changed but what must be new.
    const again = operation === 'withdrawPay' ? { unique_id: 'w-again' } : {};
    await done(side, operation, but(operation, again));
    if (side.kind === 'client') expect(side.sent).toHaveLength(2);
  },
}));

/** In process: all of the limit and one more. The client: its own limit is the same. */
const limits: readonly Case[] = NAMES.filter((name) => OPERATIONS[name].limit !== null).map((name) => {
  const operation: Operation = OPERATIONS[name];
  const { requests, windowMs } = operation.limit as Limit;
  return {
    title: `${name} is limited to ${requests} requests in ${windowMs / 1000} s`,
    rows: [`${name} limit ${requests} in ${windowMs / 1000} s`],
    options: { checkSignatures: false },
    async check(side) {
      const simulated = SIMULATED.find(({ path }) => path === operation.path);
      expect(simulated?.limit).toEqual({ requests, windowMs });
      if (side.kind === 'client') return;
      const nowMs = Date.now();
      const refused = { request: operation.path, market: '' };
      const ask = (atMs: number) => side.exchange.handle(requestOf(name, refused), atMs).status;
      for (let times = 1; times < requests; times += 1) ask(nowMs);
      expect(ask(nowMs)).not.toBe(429);
      expect(ask(nowMs + windowMs - 1)).toBe(429);
      expect(ask(nowMs + windowMs + 1)).not.toBe(429);
    },
  };
});

export const WIRE_CASES = [...operations, ...replies, ...headers, ...envelope, ...rules, ...fresh, ...limits];
