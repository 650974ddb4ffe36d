import { expect } from 'vitest';
import { OPERATIONS, type OperationName } from '../../src/exchange/operations.ts';
import { encodePayload, signPayload } from '../../src/exchange/sign.ts';
import { OPERATIONS as SIMULATED } from '../../src/simulator/operations.ts';
import { ROWS, rowId } from './document.ts';
import { type RawSide, requestOf } from './sides.ts';
import { type AnySide, type Case, done, SAMPLES } from './steps.ts';

const NAMES = Object.keys(OPERATIONS) as OperationName[];
const SIGNED = NAMES.filter((name) => OPERATIONS[name].authentication === 'signed');
const OPTIONS = { newAddresses: true };

/** The values at a path of the document: `data[].amount`. */
function valuesAt(value: unknown, path: string): unknown[] {
  return path.split('.').reduce<unknown[]>(
    (found, step) => {
      const name = step.replace('[]', '');
      const inside = found.map((one) => (one as Record<string, unknown>)[name]);
      return step.endsWith('[]')
        ? inside.flatMap((list) => (Array.isArray(list) ? list : [undefined]))
        : inside;
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
    expect(await done(side, operation, SAMPLES[operation])).not.toBeUndefined();
    if (side.kind === 'client')
      expect(side.sent.map(({ method, path }) => `${method} ${path}`)).toEqual([name]);
  },
}));

/** A raw request that is refused; what the client sends in its place is judged by `sent`. */
function raw(
  title: string,
  rows: readonly string[],
  { send, sent }: { send: (side: RawSide) => void; sent: (side: AnySide) => Promise<void> },
): Case {
  return {
    title,
    rows: rows.map((name) => `all rule ${name}`),
    options: OPTIONS,
    check: async (side) => (side.kind === 'raw' ? send(side) : sent(side)),
  };
}

async function headersOf(side: AnySide, operation: OperationName) {
  await done(side, operation, SAMPLES[operation]);
  const request = side.kind === 'client' ? side.sent[0] : undefined;
  const headers = Object.entries(request?.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]);
  return { headers: Object.fromEntries(headers) as Record<string, string>, body: request?.body ?? '' };
}

const header = (name: string, expected: (body: string) => string): Case =>
  raw(`a private request has the header ${name}`, [name], {
    send(side) {
      for (const operation of SIGNED) {
        const sent = requestOf(operation, SAMPLES[operation]);
        const { [name.toLowerCase()]: _, ...headers } = sent.headers;
        const { status, value } = side.send({ ...sent, headers });
        expect(status, operation).toBe(400);
        expect(value).toMatchObject({ message: expect.stringMatching(/not provided/), errors: {} });
      }
    },
    async sent(side) {
      const { headers, body } = await headersOf(side, 'myCodes');
      expect(headers[name.toLowerCase()]).toBe(expected(String(body)));
    },
  });

const envelope: readonly Case[] = SIGNED.map((operation) => ({
  title: `the body of ${operation} has its path as request and a nonce that is used once`,
  rows: [
    'all rule request and nonce',
    ...['request', 'nonce']
      .map((field) => `${operation} request ${field}`)
      .filter((id) => ROWS.some((row) => rowId(row) === id)),
  ],
  options: OPTIONS,
  async check(side) {
    const fields = SAMPLES[operation];
    if (side.kind === 'client') {
      const body = JSON.parse(String((await headersOf(side, operation)).body)) as Record<string, unknown>;
      expect(body).toMatchObject({
        request: OPERATIONS[operation].path,
        nonce: expect.stringMatching(/^\d+$/),
      });
      return;
    }
    for (const flaw of [
      { request: undefined },
      { request: '/api/v4/other' },
      { nonce: undefined },
      { nonce: '' },
      { nonce: Date.now() },
    ]) {
      expect(side.send(requestOf(operation, { ...fields, ...flaw })).status, JSON.stringify(flaw)).toBe(400);
    }
    const sent = requestOf(operation, fields);
    expect([side.send(sent).status, side.send(sent).status]).toEqual([200, 429]);
  },
}));

const rules: readonly Case[] = [
  raw(
    'a request has the method of its operation',
    ['public by GET', 'private by POST', 'public error object'],
    {
      send(side) {
        for (const name of NAMES) {
          const method = OPERATIONS[name].method === 'GET' ? 'POST' : 'GET';
          const { status, value } = side.send({ ...requestOf(name, SAMPLES[name]), method });
          const isPublic = OPERATIONS[name].authentication === 'none';
          expect({ status, value }).toEqual({
            status: 405,
            value: isPublic
              ? { success: false, message: expect.any(String), params: [] }
              : { code: 0, message: expect.any(String), errors: {} },
          });
        }
      },
      async sent(side) {
        for (const name of NAMES) await done(side, name, SAMPLES[name]);
        const sent = side.kind === 'client' ? side.sent.map(({ method }) => method) : [];
        expect(sent).toEqual(NAMES.map((name) => OPERATIONS[name].method));
      },
    },
  ),
  raw('a private request says that its body is JSON', ['Content-type'], {
    send(side) {
      for (const operation of [...SIGNED, 'orderHistory'] as const) {
        const sent = requestOf(operation, SAMPLES[operation]);
        const { 'content-type': _, ...headers } = sent.headers;
        for (const typed of [headers, { ...headers, 'content-type': 'text/plain' }]) {
          const { status, value } = side.send({ ...sent, headers: typed });
          expect(status, operation).toBe(400);
          expect(value).toMatchObject({ message: 'Content-type must be application/json.', errors: {} });
        }
        expect(side.send(sent).status, operation).toBe(200);
      }
    },
    sent: async (side) => {
      expect((await headersOf(side, 'orderHistory')).headers['content-type']).toBe('application/json');
      if (side.kind === 'client') await side.client.myCodes();
      const second = side.kind === 'client' ? side.sent[1] : undefined;
      expect(Object.values(second?.headers ?? {})).toContain('application/json');
    },
  }),
  {
    title: 'a key or a signature that is not right is refused, and so is a payload that is not the body',
    rows: ['X-TXC-APIKEY', 'X-TXC-PAYLOAD', 'X-TXC-SIGNATURE'].map((name) => `all rule ${name}`),
    options: OPTIONS,
    async check(side) {
      if (side.kind === 'client') {
        expect(await side.ask('myCodes', {}, 'another')).toMatchObject({ kind: 'refused', status: 401 });
        return;
      }
      for (const operation of SIGNED) {
        const sent = requestOf(operation, SAMPLES[operation]);
        const other = encodePayload(`${String(sent.body).slice(0, -1)},"more":1}`);
        const with401 = { 'x-txc-apikey': 'another', 'x-txc-signature': signPayload(other, 'demo-secret') };
        for (const [name, value] of Object.entries(with401)) {
          expect(side.send({ ...sent, headers: { ...sent.headers, [name]: value } }).status, name).toBe(401);
        }
        const signature = signPayload(other, 'demo-secret');
        const headers = { ...sent.headers, 'x-txc-payload': other, 'x-txc-signature': signature };
        expect(side.send({ ...sent, headers }).status, operation).toBe(400);
        expect(side.send(sent).status, operation).toBe(200);
      }
    },
  },
  header('X-TXC-APIKEY', () => 'demo-key'),
  header('X-TXC-PAYLOAD', encodePayload),
  header('X-TXC-SIGNATURE', (body) => signPayload(encodePayload(body), 'demo-secret')),
  {
    title: 'a private error has code, message and errors by parameter',
    rows: ['all rule private error object'],
    async check(side) {
      const outcome = await side.ask('withdrawPay', {
        ...SAMPLES.withdrawPay,
        ticker: 'XMR',
        network: 'XMR',
      });
      const errors = { ticker: [expect.any(String)] };
      expect(outcome).toMatchObject({ kind: 'refused', status: 400, code: 30, errors });
    },
  },
  {
    title: 'a key is refused what it has no permission for',
    rows: ['all rule permissions'],
    options: {
      keys: [{ key: 'demo-key', secret: 'demo-secret', account: 'main', permissions: ['info'] }],
    },
    async check(side) {
      expect(await side.ask('myCodes', SAMPLES.myCodes)).toMatchObject({ kind: 'done' });
      for (const name of [
        'createStockMarketOrder',
        'withdrawPay',
        'syncKillSwitch',
        'createNewAddress',
      ] as const) {
        expect(await side.ask(name, SAMPLES[name])).toMatchObject({ kind: 'refused', status: 403 });
      }
    },
  },
  raw('order history takes a bearer token and no signature', ['bearer token'], {
    send(side) {
      const sent = requestOf('orderHistory', {});
      expect(side.send({ ...sent, headers: { authorization: 'Bearer another' } }).status).toBe(401);
      expect(side.send({ ...sent, headers: {} }).status).toBe(401);
      expect(side.send(sent).status).toBe(200);
    },
    async sent(side) {
      const { headers } = await headersOf(side, 'orderHistory');
      expect(headers['authorization']).toBe('Bearer demo-token');
      expect(Object.keys(headers).filter((name) => name.startsWith('x-txc'))).toEqual([]);
    },
  }),
  {
    title: 'ping is answered with an array of pong alone, and the client tells how long that took',
    rows: ['ping operation GET /api/v4/public/ping'],
    async check(side) {
      const value = await done(side, 'ping', {});
      expect(value).toEqual(side.kind === 'raw' ? ['pong'] : expect.any(Number));
    },
  },
  raw('public operations need no key, and the client shows none', ['public without authentication'], {
    send: (side) =>
      expect(side.send({ method: 'GET', path: OPERATIONS.ping.path, headers: {}, body: '' }).status).toBe(
        200,
      ),
    async sent(side) {
      const { headers } = await headersOf(side, 'miningPool');
      expect(Object.keys(headers).filter((name) => /^(x-txc|authorization)/.test(name))).toEqual([]);
    },
  }),
  raw('the same paths are served on both base addresses', ['both base addresses', 'path prefix'], {
    send: () => expect(SIMULATED.filter(({ path }) => !path.startsWith('/api/v4/'))).toEqual([]),
    async sent(side) {
      if (side.kind !== 'client') return;
      const { twoBases } = await import('./two-bases.ts');
      expect(await twoBases(side.url)).toEqual(['global', 'eu']);
    },
  }),
];

export const GENERAL_CASES: readonly Case[] = [...operations, ...replies, ...rules, ...envelope];
