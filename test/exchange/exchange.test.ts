import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import type { Outcome } from '../../src/core/outcome.ts';
import { createExchange, type ExchangeOptions } from '../../src/exchange/exchange.ts';
import { signPayload } from '../../src/exchange/sign.ts';
import type { Cancel, PingOutcome, SyncRequest } from '../../src/ports.ts';
import { bodyOf, serveBytes, serveHttp, type TestServer } from './servers.ts';

const KEY = 'key-0123456789';
const SECRET = 'secret-0123456789';

function open(server: TestServer, options: Partial<ExchangeOptions> = {}) {
  const exchange = createExchange({
    bases: [server.base],
    credentials: () => ({ key: KEY, secret: SECRET }),
    nonce: 'increasing',
    clock: createSystemClock(),
    ...options,
  });
  onTestFinished(() => exchange.close());
  const start = (given: Partial<SyncRequest> = {}): { outcome: Promise<Outcome>; cancel: Cancel } => {
    let cancel: Cancel = () => undefined;
    const outcome = new Promise<Outcome>((resolve) => {
      let returned = false;
      cancel = exchange.sync(
        {
          market: 'BTC_USDT',
          timeoutSeconds: 60,
          types: null,
          base: 0,
          fresh: false,
          mayWrite: () => true,
          ...given,
        },
        (settled) => {
          expect(returned).toBe(true);
          resolve(settled);
        },
      );
      returned = true;
    });
    return { outcome, cancel };
  };
  const ping = (timeoutMs: number, base = 0): Promise<PingOutcome> =>
    new Promise((resolve) => {
      exchange.ping(base, timeoutMs, resolve);
    });
  return { exchange, start, sync: (given?: Partial<SyncRequest>) => start(given).outcome, ping };
}

test('a timer is armed and deleted over real HTTP with a signature that the other side can check', async () => {
  const server = await serveHttp(async (request, response) => {
    const body = await bodyOf(request);
    const payload = String(request.headers['x-txc-payload']);
    expect(Buffer.from(payload, 'base64').toString()).toBe(body);
    expect(request.headers['x-txc-signature']).toBe(signPayload(payload, SECRET));
    expect(request.headers['x-txc-apikey']).toBe(KEY);
    expect(request.headers['content-type']).toBe('application/json');
    expect(request.headers['user-agent']).toBe('killswitchd');
    const { market, timeout, types } = JSON.parse(body) as {
      market: string;
      timeout: string | null;
      types: null;
    };
    if (timeout === null) return response.end('[]');
    const cancellationTime = 1_700_000_000 + Number(timeout);
    return response.end(JSON.stringify({ market, startTime: 1_700_000_000, cancellationTime, types }));
  });
  const { sync } = open(server);
  expect(await sync({ types: ['spot', 'margin'] })).toEqual({
    kind: 'applied',
    timer: {
      market: 'BTC_USDT',
      startTime: 1_700_000_000,
      cancellationTime: 1_700_000_060,
      types: ['spot', 'margin'],
    },
  });
  expect(await sync({ timeoutSeconds: null })).toEqual({ kind: 'deleted' });
});

test.each<
  [
    string,
    (server: { writeHead: (status: number) => unknown; end: (body: string) => unknown }) => void,
    Partial<Outcome>,
  ]
>([
  [
    'a 503 page',
    (reply) => {
      reply.writeHead(503);
      reply.end('<html>');
    },
    { kind: 'transient', reason: 'http_5xx', maybeApplied: true },
  ],
  [
    'a 429 page',
    (reply) => {
      reply.writeHead(429);
      reply.end('<html>');
    },
    { kind: 'throttled' },
  ],
  [
    'a JSON 429',
    (reply) => {
      reply.writeHead(429);
      reply.end('{"code":0,"message":"Too many requests.","errors":{}}');
    },
    { kind: 'nonce' },
  ],
  [
    'a 401',
    (reply) => {
      reply.writeHead(401);
      reply.end('{"code":10,"message":"Unauthorized request."}');
    },
    { kind: 'unauthorised', status: 401 },
  ],
  [
    'a 422',
    (reply) => {
      reply.writeHead(422);
      reply.end('{"code":31,"message":"Validation failed","errors":{"market":["Market is not available."]}}');
    },
    { kind: 'refused', code: 31 },
  ],
  [
    'a redirect',
    (reply) => {
      reply.writeHead(307);
      reply.end('');
    },
    { kind: 'protocol' },
  ],
  [
    'garbage',
    (reply) => {
      reply.end('\u0000\u0001');
    },
    { kind: 'protocol' },
  ],
  [
    'a body of 100 KiB',
    (reply) => {
      reply.end('x'.repeat(102_400));
    },
    { kind: 'protocol' },
  ],
])('%s over real HTTP is judged as the table of failures says', async (_what, reply, expected) => {
  const server = await serveHttp((_request, response) => reply(response));
  const { sync } = open(server);
  expect(await sync()).toMatchObject(expected);
});

test.each<[string, string, Partial<Outcome>]>([
  [
    'an answer that breaks off',
    'HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{"market":"BTC_USDT"',
    { kind: 'protocol' },
  ],
  [
    'a connection that closes without an answer',
    '',
    { kind: 'transient', reason: 'network', maybeApplied: true },
  ],
  ['an answer that is not HTTP', 'hello\r\n\r\n', { kind: 'protocol' }],
])('%s leaves the outcome unknown', async (_what, bytes, expected) => {
  const server = await serveBytes((socket) => socket.end(bytes));
  const { sync } = open(server);
  expect(await sync()).toMatchObject(expected);
});

test('whatever bytes come back, the request settles with an outcome that is no success', async () => {
  let bytes = Buffer.alloc(0);
  const server = await serveBytes((socket) => socket.end(bytes));
  const { sync } = open(server);
  const head = fc.constantFrom(
    '',
    'HTTP/1.1 200 OK\r\n',
    'HTTP/1.1 429 \r\ncontent-length: 3\r\n',
    'HTTP/1.0 100 C\r\n\r\n',
  );
  const rest = fc.uint8Array({ maxLength: 200 });
  const separator = fc.constantFrom('', '\r\n', 'transfer-encoding: chunked\r\n\r\n', '\r\n{"code":');
  await fc.assert(
    fc.asyncProperty(head, separator, rest, async (first, second, third) => {
      bytes = Buffer.concat([Buffer.from(first + second), third]);
      const outcome = await sync();
      expect(['protocol', 'transient', 'throttled']).toContain(outcome.kind);
    }),
    { numRuns: 150 },
  );
});

test('a hung exchange ends when the core gives up: a time-out with unknown outcome', async () => {
  let arrived = 0;
  const server = await serveHttp(() => {
    arrived += 1;
  });
  const { start } = open(server);
  const { outcome, cancel } = start();
  await expect.poll(() => arrived).toBe(1);
  cancel();
  expect(await outcome).toMatchObject({ kind: 'transient', reason: 'timeout', maybeApplied: true });
});

test('a base address that is not configured settles as not sent', async () => {
  const server = await serveHttp((_request, response) => response.end('[]'));
  const { sync, ping } = open(server);
  expect(await sync({ base: 7 })).toMatchObject({ kind: 'transient', maybeApplied: false });
  expect(await ping(1_000, 7)).toMatchObject({ ok: false });
});

test('a server that repeats key, payload and signature does not get them into the outcome', async () => {
  const sent: string[] = [KEY, SECRET];
  const server = await serveHttp(async (request, response) => {
    const { 'x-txc-payload': payload, 'x-txc-signature': signature, 'x-txc-apikey': key } = request.headers;
    sent.push(String(payload), String(signature));
    response.writeHead(400);
    const message = `rejected ${key} ${payload} ${signature}`;
    response.end(JSON.stringify({ code: 9, message, errors: { [String(key)]: [payload] } }));
  });
  const { sync } = open(server);
  const outcome = JSON.stringify(await sync());
  expect(outcome).toContain('rejected [redacted]');
  for (const secret of sent) expect(outcome).not.toContain(secret);
});

test('a ping that is answered tells how long it took', async () => {
  const server = await serveHttp((request, response) => {
    expect([request.method, request.url]).toEqual(['GET', '/api/v4/public/ping']);
    expect(request.headers).not.toHaveProperty('x-txc-apikey');
    setTimeout(() => response.end('["pong"]'), 30);
  });
  const { ping } = open(server);
  const outcome = await ping(2_000);
  expect(outcome.ok).toBe(true);
  expect(outcome.latencyMs).toBeGreaterThanOrEqual(25);
});

test('a ping that hangs is tried once more on a fresh connection within its time', async () => {
  let requests = 0;
  const server = await serveHttp((_request, response) => {
    requests += 1;
    if (requests === 2) response.end('["pong"]');
  });
  const { ping } = open(server);
  expect(await ping(600)).toMatchObject({ ok: true });
  expect([requests, server.connections()]).toEqual([2, 2]);
});

test('a ping of an exchange that never answers fails when its time is over', async () => {
  const server = await serveHttp(() => undefined);
  const { ping } = open(server);
  const outcome = await ping(200);
  expect(outcome).toMatchObject({ ok: false, reason: 'timeout', detail: 'no answer within 200 ms' });
  expect(outcome.latencyMs).toBeGreaterThanOrEqual(195);
});

test('a ping that is out of order is asked twice, one that is rate limited only once', async () => {
  let status = 503;
  let requests = 0;
  const server = await serveHttp((_request, response) => {
    requests += 1;
    response.writeHead(status).end('<html>');
  });
  const { ping } = open(server);
  expect(await ping(2_000)).toMatchObject({ ok: false, reason: 'http_5xx' });
  expect(requests).toBe(2);
  status = 429;
  expect(await ping(2_000)).toMatchObject({ ok: false, reason: 'rate_limited' });
  expect(requests).toBe(3);
});

test('a ping that is withdrawn settles once, later', async () => {
  const server = await serveHttp(() => undefined);
  const { exchange } = open(server);
  const outcomes: PingOutcome[] = [];
  const cancel = exchange.ping(0, 5_000, (outcome) => outcomes.push(outcome));
  cancel();
  cancel();
  expect(outcomes).toEqual([]);
  await expect.poll(() => outcomes.length).toBe(1);
  expect(outcomes[0]).toMatchObject({ ok: false, reason: 'aborted' });
});

test('a hung ping does not hold up a renewal', async () => {
  const server = await serveHttp((request, response) => {
    if (request.method === 'POST') response.end('[]');
  });
  const { sync, ping } = open(server);
  const pinging = ping(1_000);
  expect(await sync({ timeoutSeconds: null })).toEqual({ kind: 'deleted' });
  expect((await pinging).ok).toBe(false);
});

test('permits of the budget are granted in turn, and past it in time', async () => {
  const server = await serveHttp((_request, response) => response.end('[]'));
  const { exchange } = open(server, { budget: { requests: 2, windowMs: 60_000 } });
  const acquire = (withinMs: number) => new Promise((resolve) => exchange.acquire(1, withinMs, resolve));
  expect([await acquire(2_000), await acquire(2_000), await acquire(50)]).toEqual([
    'in-turn',
    'in-turn',
    'overdue',
  ]);
});
