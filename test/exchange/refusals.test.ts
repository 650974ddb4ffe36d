import { describe, expect, test } from 'vitest';
import { NetworkError, ServerError, UnknownOutcomeError } from '../../src/exchange/errors.ts';
import type { NonceMode } from '../../src/exchange/sign.ts';
import { errorOf, KEY, openClient, openExchange, SECRET, TOKEN } from './open.ts';
import { ORDER, ORDER_REQUEST, SAMPLES, type Sample, sampleOf } from './samples.ts';
import { createHandClock, serveBytes, serveHttp, serveReply, serveSilence } from './servers.ts';

const SIGNED = SAMPLES.filter(({ authentication }) => authentication === 'signed');
const PUBLIC = SAMPLES.filter(({ authentication }) => authentication === 'none');
const PRIVATE = SAMPLES.filter((sample) => !PUBLIC.includes(sample));

/** At once: what only reads is asked again, and waits in between. */
async function each(samples: readonly Sample[], check: (sample: Sample) => Promise<unknown>): Promise<void> {
  await Promise.all(samples.map(check));
}

/** The error of a call that is answered so, and how many requests came. */
async function refused({ call }: Sample, status: number, body: unknown, nonce: NonceMode = 'increasing') {
  const { base, paths } = await serveReply(body, status);
  const error = await errorOf(call(openClient(base, { nonce }), { timeoutMs: 20_000 }));
  return { error: error as Error, requests: paths.length };
}

test.each<[number, number, Record<string, string[]>]>([
  [400, 30, { side: ['Side field should contain only "buy" or "sell" values.'] }],
  [422, 31, { market: ['Market is not available.'] }],
  [400, 32, { amount: ['Not enough balance.', 'Minimum amount step = 0.001'] }],
  [422, 36, { client_order_id: ['ClientOrderId field should be a string.'] }],
  [400, 0, {}],
  [422, 422, {}],
  [412, 2, {}],
])(
  'a private error with status %i and code %i is a refusal with both, and with its messages',
  (status, code, errors) =>
    each(PRIVATE, async (sample) => {
      const { error, requests } = await refused(sample, status, { code, message: 'Failed', errors });
      const message: unknown = expect.stringContaining(`HTTP ${status}: Failed`);
      const told = { name: 'RefusedError', code, status, fields: errors, message, maybeApplied: false };
      expect(error).toMatchObject(told);
      expect(requests).toBe(1);
    }),
);

test('an error object in place of the reply of what only reads is a refusal, whatever its status', async () => {
  const fields = { limit: ['Too large.'] };
  const message = 'HTTP 200: Incorrect timestamp (limit: Too large.)';
  for (const name of ['orderHistory', 'miningHashrate'] as const) {
    const body = { code: 422, message: 'Incorrect timestamp', errors: fields };
    const { error } = await refused(sampleOf(name), 200, body);
    expect(error).toMatchObject({ name: 'RefusedError', code: 422, status: 200, fields, message });
  }
});

test.each([200, 400, 422, 503])('the error object of a public endpoint keeps its params: %i', (status) =>
  each(PUBLIC, async (sample) => {
    const params = ['pool', { n: 1 }];
    const { error } = await refused(sample, status, { success: false, message: 'Request failed', params });
    const name = status === 503 ? 'ServerError' : 'PublicRefusedError';
    const told = { name, status, message: `HTTP ${status}: Request failed`, maybeApplied: false };
    expect(error).toMatchObject(status === 503 ? told : { ...told, params });
  }),
);

/** Status | error | whether the API's own error object, too, leaves open what became of the request. */
test.each<[number, string, boolean]>([
  [401, 'UnauthorisedError', false],
  [403, 'UnauthorisedError', false],
  [404, 'NotFoundError', true],
  [429, 'ThrottledError', false],
  [500, 'ServerError', true],
  [503, 'ServerError', true],
])('each operation tells a %i apart, and a page says nothing of what became of it', (status, name, isOpen) =>
  each(SAMPLES, async (sample) => {
    const tells = async (body: unknown) => {
      const { error, requests } = await refused(sample, status, body);
      const maybeApplied = (isOpen || typeof body === 'string') && !READS.includes(sample);
      const isUnknown = sample.movesMoney && maybeApplied;
      expect(error).toMatchObject({ name: isUnknown ? 'UnknownOutcomeError' : name, status, maybeApplied });
      if (isUnknown) expect(error.cause).toMatchObject({ name, maybeApplied });
      if (status < 500 || !READS.includes(sample)) expect(requests).toBe(1);
    };
    await Promise.all(['', '<html>', { code: 3, message: 'over the limit', errors: {} }].map(tells));
  }),
);

test.each<[number, string, NonceMode, readonly Sample[]]>([
  [429, 'Too many requests.', 'increasing', SIGNED],
  [429, 'Too many requests.', 'window', SIGNED],
  [429, 'Rate limit exceeded: 1000 requests per 10 seconds.', 'increasing', []],
  [400, 'Your nonce is too far.', 'window', SIGNED],
])(
  '%i with "%s" in an error object is a stale nonce where there is one, else too much: in mode %s',
  (status, message, nonce, stale) =>
    each(status === 429 ? SAMPLES : SIGNED, async (sample) => {
      const { error, requests } = await refused(sample, status, { code: 0, message, errors: {} }, nonce);
      const isStale = stale.includes(sample);
      const name = isStale ? 'NonceError' : 'ThrottledError';
      expect(error).toMatchObject({ name, status, maybeApplied: false });
      expect(requests).toBe(isStale && !sample.movesMoney ? 4 : 1);
    }),
);

test('an operation has what it asked for when a stale nonce was the only trouble', () =>
  each(SIGNED, async ({ call, reply, value, movesMoney }) => {
    if (movesMoney) return;
    const server = await serveHttp((_request, response) => {
      if (server.paths.length > 3) response.end(JSON.stringify(reply));
      else response.writeHead(429).end('{"code":0,"message":"Too many requests.","errors":{}}');
    });
    expect(await call(openClient(server.base))).toEqual(value);
  }));

test('an operation ends in time, whether no answer comes or one that never ends', () =>
  each(SAMPLES, async ({ call, movesMoney }) => {
    const dripping = await serveBytes((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n');
      const drip = setInterval(() => socket.write(' '), 10);
      socket.on('close', () => clearInterval(drip));
    });
    const ends = async ({ base }: { readonly base: string }) => {
      const begunMs = performance.now();
      const error = await errorOf(call(openClient(base), { timeoutMs: 1_000 }));
      expect(performance.now() - begunMs).toBeLessThan(2_000);
      expect(movesMoney ? (error as Error).cause : error).toMatchObject({ name: 'TimeoutError' });
    };
    await Promise.all([await serveSilence(), dripping].map(ends));
  }));

test.each([200, 302, 400, 401, 404, 422, 429, 503])(
  'neither an error about a %i nor an outcome for the daemon repeats a key, secret, token or signature that a server repeats',
  (status) =>
    each(SAMPLES, async ({ name, call }) => {
      const secrets: string[] = [KEY, SECRET, TOKEN];
      const server = await serveHttp(({ headers }, response, body) => {
        for (const shown of ['x-txc-payload', 'x-txc-signature'])
          if (headers[shown] !== undefined) secrets.push(String(headers[shown]));
        // It has the key of earlier requests, also where this one does not show it.
        const echo = JSON.stringify([headers, body, KEY, SECRET]);
        const error = { code: 30, message: echo, errors: { [echo]: [echo] }, success: false, params: [] };
        const head = { location: `/${encodeURIComponent(echo)}`, 'content-type': encodeURIComponent(echo) };
        // The daemon is answered with a page and with an error object.
        response.writeHead(status, head).end(server.paths.length === 3 ? echo : JSON.stringify(error));
      });
      const error = await errorOf(call(openClient(server.base)));
      const causes = [error, (error as Error).cause].filter((one) => one instanceof Error);
      const texts = causes.map((one) => JSON.stringify(one, Object.getOwnPropertyNames(one)));
      if (name === 'syncKillSwitch') {
        const { sync } = openExchange(server);
        texts.push(JSON.stringify([await sync(), await sync()]));
        expect(texts.at(-1)).toContain('[redacted]');
      }
      for (const secret of secrets) expect(texts.join()).not.toContain(secret);
    }),
);

const MONEY = SAMPLES.filter(({ movesMoney }) => movesMoney);
const CHANGES = SAMPLES.filter(({ name }) => ['syncKillSwitch', 'createNewAddress'].includes(name));
const READS = SAMPLES.filter((sample) => !MONEY.includes(sample) && !CHANGES.includes(sample));

/** A server that answers every request with the same bytes: null for none ever, an empty text breaks the connection. */
async function respond(bytes: string | null) {
  let requests = 0;
  const server = await serveBytes((socket) => {
    requests += 1;
    if (bytes === '') socket.destroy();
    else if (bytes !== null) socket.end(bytes);
  });
  return { base: server.base, requests: () => requests };
}

const http = (status: string, body = '', length = body.length) =>
  `HTTP/1.1 ${status}\r\ncontent-length: ${length}\r\n\r\n${body}`;
const REFUSAL = '{"code":30,"message":"Validation failed","errors":{}}';

describe.each(MONEY)('$name', ({ name, call }) => {
  test.each<[string, string | null, string]>([
    ['no answer comes', null, 'TimeoutError'],
    ['the connection breaks', '', 'NetworkError'],
    ['the exchange is out of order', http('503 Maintenance'), 'ServerError'],
    ['the answer is no JSON', http('200 OK', 'fine'), 'ProtocolError'],
    ['the answer is a text', http('201 OK', '"ok"'), 'ProtocolError'],
    ['the answer breaks off', http('200 OK', '{"order_id":1', 90), 'ProtocolError'],
    ['the answer ends in its head', 'HTTP/1.1 200 OK\r\ncontent-', 'NetworkError'],
    ['a 503 breaks off', 'HTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\n\r\n20\r\nabc', 'ServerError'],
    ['the answer has 100 KiB of headers', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(102_400)}`, 'ProtocolError'],
    ['the answer is not HTTP', 'hello\r\n\r\n', 'ProtocolError'],
    ['the answer is larger than any', http('200 OK', `["${'x'.repeat(70_000)}"]`), 'ProtocolError'],
    ['an answer with success holds an error', http('200 OK', REFUSAL), 'ProtocolError'],
    ['the request is sent elsewhere', http('307 Elsewhere\r\nlocation: /'), 'ProtocolError'],
    ['a proxy knows no such page', http('404 Not Found'), 'NotFoundError'],
    ['a proxy wants no such body', http('413 Large', '<html>'), 'ProtocolError'],
    ['a gateway blocks the answer', http('403 Forbidden', '<html>'), 'UnauthorisedError'],
    ['a gateway has had enough', http('429 Too Many', '{"code":"limit"}'), 'NonceError'],
  ])('is not repeated when %s, and the error says what to look for', async (_what, bytes, cause) => {
    const { base, requests } = await respond(bytes);
    const clock = createHandClock(Date.now());
    const failed = errorOf(call(openClient(base, { clock }), { timeoutMs: 5_000 }));
    if (bytes === null) {
      await expect.poll(requests, { timeout: 15_000 }).toBe(1);
      clock.advance(5_000);
    }
    const error = await failed;
    expect(error).toBeInstanceOf(UnknownOutcomeError);
    const isOrder = name === 'createStockMarketOrder';
    const lookup = isOrder ? 'client_order_id "bot-1.7_a"' : 'unique_id "w-1" in the withdrawals';
    expect(error).toMatchObject({
      operation: name,
      maybeApplied: true,
      clientOrderId: isOrder ? 'bot-1.7_a' : null,
      uniqueId: isOrder ? null : 'w-1',
      cause: { name: cause, maybeApplied: true },
      message: expect.stringMatching(`^${name} may have been carried out: .+; look for .*${lookup}`),
    });
    expect(requests()).toBe(1);
  });

  test('that never left is certain not to have been carried out', async () => {
    const client = openClient('http://127.0.0.1:1');
    const refused = await errorOf(call(client));
    expect(refused).toBeInstanceOf(NetworkError);
    expect(refused).toMatchObject({ maybeApplied: false, cause: { code: 'ECONNREFUSED' } });
    await client.close();
    expect(await errorOf(call(client))).toMatchObject({ reason: 'aborted', maybeApplied: false });
  });
});

test.each([...MONEY, ...CHANGES])(
  '$name that is withdrawn on its way has an unknown outcome, and one that is not yet on it has none',
  async ({ call, movesMoney }) => {
    const server = await serveSilence();
    const client = openClient(server.base);
    const stopping = new AbortController();
    const failed = errorOf(call(client, { signal: stopping.signal }));
    await expect.poll(() => server.paths.length).toBe(1);
    stopping.abort(new Error('enough'));
    const withdrawn = { name: 'NetworkError', reason: 'aborted', cause: { message: 'enough' } };
    const unknown = { maybeApplied: true, ...(movesMoney ? { cause: withdrawn } : withdrawn) };
    expect(await failed).toMatchObject(unknown);
    const early = await errorOf(call(client, { signal: stopping.signal }));
    expect(early).toMatchObject({ ...withdrawn, maybeApplied: false });
    expect(server.paths).toHaveLength(1);
  },
);

test.each<[string, object, string]>([
  ['of another market', { market: 'ETH_USDT' }, 'an order of market BTC_USDT'],
  ['of another client order id', { client_order_id: 'x' }, 'an order with client_order_id bot-1.7_a'],
  ['without an identifier', { order_id: undefined }, "it must have required property 'order_id'"],
  ['with an identifier that JSON has rounded', { order_id: 2 ** 60 }, 'order_id must be <= 9007199254740991'],
  ['with an amount as a number', { amount: 60 }, 'amount must be string'],
])('an order %s is not the one that was placed: its outcome is unknown', async (_what, change, problem) => {
  const server = await serveReply({ ...ORDER, ...change });
  const error = await errorOf(openClient(server.base).createStockMarketOrder(ORDER_REQUEST));
  expect(error).toBeInstanceOf(UnknownOutcomeError);
  expect((error as Error).message).toContain(problem);
});

test('an order without client order id says that there is nothing to look for', async () => {
  const { base } = await respond('');
  const request = { ...ORDER_REQUEST, clientOrderId: undefined };
  const error = await errorOf(openClient(base).createStockMarketOrder(request));
  expect(error).toMatchObject({ clientOrderId: null, uniqueId: null });
  expect((error as Error).message).toContain('it has no client_order_id to look for, compare the balance');
});

test.each(CHANGES)(
  '$name that is lost is not repeated either, and its error leaves open what became of it',
  async ({ call }) => {
    const { base, requests } = await respond('');
    expect(await errorOf(call(openClient(base)))).toMatchObject({ name: 'NetworkError', maybeApplied: true });
    expect(requests()).toBe(1);
  },
);

test('what only reads is repeated over fresh connections with growing waits, three times at most', async () => {
  expect(READS).toHaveLength(5);
  await Promise.all(
    READS.map(async ({ call, reply, value }) => {
      let losses = 2;
      const atMs: number[] = [];
      const server = await serveHttp((_request, response) => {
        atMs.push(performance.now());
        losses -= 1;
        if (losses < 0) response.end(JSON.stringify(reply));
        else if (losses === 0) response.writeHead(503).end();
        else response.destroy();
      });
      const client = openClient(server.base);
      expect(await call(client)).toEqual(value);
      expect([atMs.length, server.connections()]).toEqual([3, 3]);
      const [first = 0, second = 0, third = 0] = atMs;
      expect(second - first).toBeGreaterThan(95);
      expect(third - second).toBeGreaterThan(190);
      losses = 9;
      expect(await errorOf(call(client))).toMatchObject({ maybeApplied: false });
      expect(atMs.length).toBe(7);
    }),
  );
});

test('a wait between two attempts ends with the signal, and with the time of the call', async () => {
  const clock = createHandClock(Date.now());
  const server = await serveHttp((_request, response) => {
    clock.advance(4_950);
    response.writeHead(503).end();
  });
  const client = openClient(server.base, { clock });
  const stopping = new AbortController();
  setTimeout(() => stopping.abort(new Error('enough')), 50);
  const ended = await errorOf(client.myCodes({}, { signal: stopping.signal, timeoutMs: 60_000 }));
  expect(ended).toMatchObject({ name: 'NetworkError', reason: 'aborted', cause: { message: 'enough' } });
  const before = server.paths.length;
  // What is left is shorter than the shortest wait.
  expect(await errorOf(client.myCodes({}, { timeoutMs: 5_000 }))).toBeInstanceOf(ServerError);
  expect(server.paths.length - before).toBe(1);
});
