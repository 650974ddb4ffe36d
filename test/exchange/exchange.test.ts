import fc from 'fast-check';
import { expect, test } from 'vitest';
import { signPayload } from '../../src/exchange/sign.ts';
import { KEY, openExchange, SECRET } from './open.ts';
import { serveBytes, serveGate, serveHttp, serveTls } from './servers.ts';

test('a timer is armed and deleted over real HTTP with a signature that the other side can check', async () => {
  const server = await serveHttp((request, response, body) => {
    const payload = String(request.headers['x-txc-payload']);
    expect(Buffer.from(payload, 'base64').toString()).toBe(body);
    expect(request.headers['x-txc-signature']).toBe(signPayload(payload, SECRET));
    expect(request.headers['x-txc-apikey']).toBe(KEY);
    expect(request.headers['content-type']).toBe('application/json');
    expect(request.headers['user-agent']).toBe('killswitchd');
    // Who says nothing may be answered in any coding.
    expect(request.headers['accept-encoding']).toBe('identity');
    const { market, timeout, types } = JSON.parse(body) as {
      market: string;
      timeout: string | null;
      types: null;
    };
    if (timeout === null) return response.end('[]');
    const cancellationTime = 1_700_000_000 + Number(timeout);
    return response.end(JSON.stringify({ market, startTime: 1_700_000_000, cancellationTime, types }));
  });
  const { sync } = openExchange(server);
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

test('a request is signed, and asks whether it may leave, once its connection is open: none overtakes its nonce', async () => {
  const nonces: number[] = [];
  const server = await serveTls((_request, response, body) => {
    nonces.push(Number((JSON.parse(body) as { nonce: string }).nonce));
    response.end('[]');
  });
  const gate = await serveGate(server);
  const { sync } = openExchange({ base: `https://127.0.0.1:${gate.port}` }, { ca: server.ca });
  const remove = { timeoutSeconds: null };
  await sync(remove);
  gate.hold();
  let asked = 0;
  const opening = sync({
    ...remove,
    fresh: true,
    mayWrite: () => {
      asked += 1;
      return true;
    },
  });
  expect(await sync(remove)).toEqual({ kind: 'deleted' });
  expect([nonces.length, asked]).toEqual([2, 0]);
  gate.release();
  expect(await opening).toEqual({ kind: 'deleted' });
  expect([nonces.length, asked]).toEqual([3, 1]);
  expect(nonces).toEqual(nonces.toSorted((one, other) => one - other));
});

test('whatever bytes come back, the request settles with an outcome that is no success', async () => {
  let bytes = Buffer.alloc(0);
  const server = await serveBytes((socket) => socket.end(bytes));
  const { sync } = openExchange(server);
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
  const { start } = openExchange(server);
  const { outcome, cancel } = start();
  await expect.poll(() => arrived).toBe(1);
  cancel();
  expect(await outcome).toMatchObject({ kind: 'transient', reason: 'timeout', maybeApplied: true });
});

test('a base address that is not configured settles as not sent', async () => {
  const server = await serveHttp((_request, response) => response.end('[]'));
  const { sync, ping } = openExchange(server);
  expect(await sync({ base: 7 })).toMatchObject({ kind: 'transient', maybeApplied: false });
  expect(await ping(1_000, 7)).toMatchObject({ ok: false });
});

test('a server that repeats key, payload and signature does not get them into the outcome', async () => {
  const sent: string[] = [KEY, SECRET];
  const server = await serveHttp((request, response) => {
    const named = ['x-txc-apikey', 'x-txc-payload', 'x-txc-signature'];
    const [key = '', payload = '', signature = ''] = named.map((name) => String(request.headers[name]));
    sent.push(payload, signature);
    response.writeHead(400);
    const message = `rejected ${key} ${payload} ${signature}`;
    response.end(JSON.stringify({ code: 9, message, errors: { [key]: [payload] } }));
  });
  const { sync } = openExchange(server);
  const outcome = JSON.stringify(await sync());
  expect(outcome).toContain('rejected [redacted]');
  for (const secret of sent) expect(outcome).not.toContain(secret);
});
