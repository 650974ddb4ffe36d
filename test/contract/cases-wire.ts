import { expect } from 'vitest';
import { type Limit, OPERATIONS, type Operation, type OperationName } from '../../src/exchange/operations.ts';
import { encodePayload, signPayload } from '../../src/exchange/sign.ts';
import { decoderOf } from '../../src/exchange/validate.ts';
import { OPERATIONS as SIMULATED } from '../../src/simulator/operations.ts';
import { ROWS, rowId } from './document.ts';
import { type AnySide, but, type Case, done, type RawSide, requestOf, SAMPLES, twoBases } from './sides.ts';

const NAMES = Object.keys(OPERATIONS) as OperationName[];
const SIGNED = NAMES.filter((name) => OPERATIONS[name].authentication === 'signed');
const OPTIONS = { newAddresses: true };

/** The values at a path of the document: `data[].amount`. */
function valuesAt(value: unknown, path: string): unknown[] {
  return path.split('.').reduce<unknown[]>(
    (found, step) => {
      const inside = found.map((one) => (one as Record<string, unknown>)[step.replace('[]', '')]);
      if (!step.endsWith('[]')) return inside;
      return inside.flatMap((list) => (Array.isArray(list) ? list : [undefined]));
    },
    [value],
  );
}

const FITS: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  integer: Number.isInteger,
  boolean: (value) => typeof value === 'boolean',
};

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
    if (operation === null) return expect.fail('a reply is that of an operation');
    const values = valuesAt(await done(side, operation, SAMPLES[operation]), name);
    expect(values.length).toBeGreaterThan(0);
    expect(values.filter((value) => FITS[says]?.(value) !== true)).toEqual([]);
    if (OF_TIME.test(name)) expect(values.filter((value) => !isUnixTime(value))).toEqual([]);
  },
}));

const operations: readonly Case[] = ROWS.filter(({ kind }) => kind === 'operation').map((row) => ({
  title: `${row.operation} is ${row.name}`,
  rows: [rowId(row), 'all rule JSON answers', 'all rule path prefix'],
  options: OPTIONS,
  async check(side) {
    const { operation, name } = row;
    if (operation === null) return expect.fail('an operation has a name');
    expect(`${OPERATIONS[operation].method} ${OPERATIONS[operation].path}`).toBe(name);
    const value = await done(side, operation, SAMPLES[operation]);
    if (side.kind === 'raw') return expect(decoderOf(operation)(value)).toEqual({ ok: true, value });
    expect(side.sent.map(({ method, path }) => `${method} ${path}`)).toEqual([name]);
  },
}));

/** A raw request of which the exchange thinks something, and what the client sends in its place. */
function wire(title: string, rules: string, send: (side: RawSide) => void, sent: Case['check']): Case {
  return {
    title,
    rows: rules.split(', ').map((name) => `all rule ${name}`),
    options: OPTIONS,
    check: async (side) => (side.kind === 'raw' ? send(side) : sent(side)),
  };
}

/** What the client has sent for the sample of an operation. Header names in lower case. */
async function sentFor(side: AnySide, operation: OperationName) {
  await done(side, operation, SAMPLES[operation]);
  const request = side.kind === 'client' ? side.sent.at(-1) : undefined;
  const headers = Object.entries(request?.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]);
  const { method, body } = request ?? {};
  return { method, body: String(body), headers: Object.fromEntries(headers) as Record<string, string> };
}

const header = (name: string, expected: (body: string) => string): Case =>
  wire(
    `a private request has the header ${name}, and without it an error that names no parameter`,
    `${name}, empty errors`,
    (side) => {
      for (const operation of SIGNED) {
        const request = requestOf(operation, SAMPLES[operation]);
        const { [name.toLowerCase()]: _, ...headers } = request.headers;
        const { status, value } = side.send({ ...request, headers });
        expect(status, operation).toBe(400);
        expect(value).toMatchObject({ message: expect.stringMatching(/not provided/), errors: {} });
      }
    },
    async (side) => {
      const { headers, body } = await sentFor(side, 'myCodes');
      expect(headers[name.toLowerCase()]).toBe(expected(body));
    },
  );

const envelope: readonly Case[] = SIGNED.map((operation) => {
  const own = [`${operation} request request`, `${operation} request nonce`];
  const known = ROWS.map(rowId).filter((id) => own.includes(id));
  const sample = SAMPLES[operation];
  const flaws = [
    { request: undefined },
    { request: '/api/v4/other' },
    { nonce: undefined },
    { nonce: '' },
    { nonce: Date.now() },
  ];
  const { rows, ...checked } = wire(
    `the body of ${operation} has its path as request and a nonce that is used once`,
    'request and nonce',
    (side) => {
      for (const flaw of flaws) {
        const request = requestOf(operation, { ...sample, ...flaw });
        expect(side.send(request).status, JSON.stringify(flaw)).toBe(400);
      }
      const request = requestOf(operation, sample);
      expect([side.send(request).status, side.send(request).status]).toEqual([200, 429]);
    },
    async (side) => {
      const nonce: unknown = expect.stringMatching(/^\d+$/);
      const { body } = await sentFor(side, operation);
      expect(JSON.parse(body)).toMatchObject({ request: OPERATIONS[operation].path, nonce });
    },
  );
  return { ...checked, rows: [...rows, ...known] };
});

const rules: readonly Case[] = [
  wire(
    'a request has the method of its operation, and another one is refused',
    'public by GET, private by POST, public error object',
    (side) => {
      for (const name of NAMES) {
        const method = OPERATIONS[name].method === 'GET' ? 'POST' : 'GET';
        const { status, value } = side.send({ ...requestOf(name, SAMPLES[name]), method });
        expect(status, name).toBeGreaterThanOrEqual(400);
        if (method === 'POST')
          expect(value).toEqual({ success: false, message: expect.any(String), params: [] });
      }
    },
    async (side) => {
      for (const name of NAMES) expect((await sentFor(side, name)).method).toBe(OPERATIONS[name].method);
    },
  ),
  wire(
    'a private request says that its body is JSON',
    'Content-type',
    (side) => {
      for (const operation of [...SIGNED, 'orderHistory'] as const) {
        const request = requestOf(operation, SAMPLES[operation]);
        const { 'content-type': _, ...headers } = request.headers;
        for (const typed of [headers, { ...headers, 'content-type': 'text/plain' }]) {
          const { status, value } = side.send({ ...request, headers: typed });
          expect(status, operation).toBe(400);
          expect(value).toMatchObject({ message: 'Content-type must be application/json.', errors: {} });
        }
        expect(side.send(request).status, operation).toBe(200);
      }
    },
    async (side) => {
      for (const operation of ['orderHistory', 'myCodes'] as const)
        expect((await sentFor(side, operation)).headers['content-type']).toBe('application/json');
    },
  ),
  wire(
    'a key or a signature that is not right is refused, and so is a payload that is not the body',
    'X-TXC-APIKEY, X-TXC-PAYLOAD, X-TXC-SIGNATURE',
    (side) => {
      for (const operation of SIGNED) {
        const request = requestOf(operation, SAMPLES[operation]);
        const other = encodePayload(`${String(request.body).slice(0, -1)},"more":1}`);
        const signature = signPayload(other, 'demo-secret');
        const flaws: [object, number][] = [
          [{ 'x-txc-apikey': 'another' }, 401],
          [{ 'x-txc-signature': signature }, 401],
          [{ 'x-txc-payload': other, 'x-txc-signature': signature }, 400],
        ];
        for (const [flaw, status] of flaws)
          expect(side.send({ ...request, headers: { ...request.headers, ...flaw } }).status).toBe(status);
        expect(side.send(request).status, operation).toBe(200);
      }
    },
    async (side) =>
      expect(await side.ask('myCodes', {}, 'another')).toMatchObject({ kind: 'refused', status: 401 }),
  ),
  header('X-TXC-APIKEY', () => 'demo-key'),
  header('X-TXC-PAYLOAD', encodePayload),
  header('X-TXC-SIGNATURE', (body) => signPayload(encodePayload(body), 'demo-secret')),
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
      expect(await side.ask('myCodes', SAMPLES.myCodes)).toMatchObject({ kind: 'done' });
      for (const name of SIGNED.filter((one) => OPERATIONS[one].effect !== 'reads'))
        expect(await side.ask(name, SAMPLES[name])).toMatchObject({ kind: 'refused', status: 403 });
    },
  },
  wire(
    'order history takes a bearer token and no signature',
    'bearer token',
    (side) => {
      const request = requestOf('orderHistory', {});
      const statusOf = (headers: Record<string, string>) => side.send({ ...request, headers }).status;
      expect(statusOf({ authorization: 'Bearer another' })).toBe(401);
      expect([statusOf({}), statusOf(request.headers)]).toEqual([401, 200]);
    },
    async (side) => {
      const { headers } = await sentFor(side, 'orderHistory');
      expect(headers['authorization']).toBe('Bearer demo-token');
      expect(Object.keys(headers).filter((name) => name.startsWith('x-txc'))).toEqual([]);
    },
  ),
  {
    title: 'ping is answered with an array of pong alone, and the client tells how long that took',
    rows: ['ping operation GET /api/v4/public/ping'],
    async check(side) {
      expect(await done(side, 'ping')).toEqual(side.kind === 'raw' ? ['pong'] : expect.any(Number));
    },
  },
  wire(
    'public operations need no key, and the client shows none',
    'public without authentication',
    (side) => {
      const request = { method: 'GET', path: OPERATIONS.ping.path, headers: {}, body: '' };
      expect(side.send(request).status).toBe(200);
    },
    async (side) => {
      const { headers } = await sentFor(side, 'miningPool');
      expect(Object.keys(headers).filter((name) => /^(x-txc|authorization)/.test(name))).toEqual([]);
    },
  ),
  wire(
    'the same paths are served on both base addresses',
    'both base addresses, path prefix',
    () => expect(SIMULATED.filter(({ path }) => !path.startsWith('/api/v4/'))).toEqual([]),
    async (side) => (side.kind === 'client' ? twoBases(side.url) : undefined),
  ),
];

/** Once more with nothing changed but what must be new. */
const AGAIN: Partial<Record<OperationName, object>> = { withdrawPay: { unique_id: 'w-again' } };

const uncached: readonly Case[] = ROWS.filter(({ name }) => name === 'not cached').map((row) => ({
  title: `an answer of ${row.operation} may not be kept, and the next request is answered anew`,
  rows: [rowId(row)],
  options: OPTIONS,
  async check(side) {
    const operation = row.operation ?? expect.fail('a rule of an operation');
    if (side.kind === 'raw') {
      const { headers } = side.exchange.handle(requestOf(operation, SAMPLES[operation]), Date.now());
      expect(headers['cache-control']).toBe('no-store');
    } else await done(side, operation, SAMPLES[operation]);
    await done(side, operation, { ...SAMPLES[operation], ...AGAIN[operation] });
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

export const WIRE_CASES: readonly Case[] = [
  ...operations,
  ...replies,
  ...rules,
  ...envelope,
  ...uncached,
  ...limits,
];
