import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { NetworkError, NonceError, UnknownOutcomeError } from '../../src/exchange/errors.ts';
import { errorOf, openClient } from './open.ts';
import { ORDER, ORDER_REQUEST, SAMPLES } from './samples.ts';
import { serveBytes, serveHttp } from './servers.ts';

const MONEY = SAMPLES.filter(({ movesMoney }) => movesMoney);

/** A server that does the same for every request and counts them. */
async function respond(how: (socket: Socket) => void) {
  let requests = 0;
  const server = await serveBytes((socket) => {
    requests += 1;
    how(socket);
  });
  return { base: server.base, requests: () => requests };
}

const http = (status: string, body: string, length = body.length) =>
  `HTTP/1.1 ${status}\r\ncontent-length: ${length}\r\n\r\n${body}`;

describe.each(MONEY)('$name', ({ name, call }) => {
  test.each<[string, (socket: Socket) => void, string]>([
    ['no answer comes', () => undefined, 'TimeoutError'],
    ['the connection breaks', (socket) => socket.destroy(), 'NetworkError'],
    ['the exchange is out of order', (socket) => socket.end(http('503 Maintenance', '')), 'ServerError'],
    ['a gateway fails', (socket) => socket.end(http('502 Bad Gateway', '<html>')), 'ServerError'],
    ['the answer is no JSON', (socket) => socket.end(http('200 OK', 'fine')), 'ProtocolError'],
    ['the answer is empty', (socket) => socket.end(http('200 OK', '')), 'ProtocolError'],
    ['the answer is null', (socket) => socket.end(http('200 OK', 'null')), 'ProtocolError'],
    ['the answer is a text', (socket) => socket.end(http('201 OK', '"ok"')), 'ProtocolError'],
    ['the answer breaks off', (socket) => socket.end(http('200 OK', '{"order_id":1', 90)), 'ProtocolError'],
    ['the answer is not HTTP', (socket) => socket.end('hello\r\n\r\n'), 'ProtocolError'],
    [
      'the answer is larger than any',
      (socket) => socket.end(http('200 OK', `["${'x'.repeat(70_000)}"]`)),
      'ProtocolError',
    ],
    [
      'an answer with success holds an error',
      (socket) => socket.end(http('200 OK', '{"code":30,"message":"Validation failed","errors":{}}')),
      'ProtocolError',
    ],
    [
      'the request is sent elsewhere',
      (socket) => socket.end('HTTP/1.1 307 Elsewhere\r\nlocation: /\r\ncontent-length: 0\r\n\r\n'),
      'ProtocolError',
    ],
    ['a proxy knows no such page', (socket) => socket.end(http('404 Not Found', '')), 'NotFoundError'],
    ['a proxy wants no such body', (socket) => socket.end(http('413 Large', '<html>')), 'ProtocolError'],
  ])('is not repeated when %s, and the error says what to look for', async (_what, how, cause) => {
    const { base, requests } = await respond(how);
    const client = openClient(base);
    const error = await errorOf(call(client, { timeoutMs: cause === 'TimeoutError' ? 200 : 5_000 }));
    expect(error).toBeInstanceOf(UnknownOutcomeError);
    const isOrder = name === 'createStockMarketOrder';
    expect(error).toMatchObject({
      operation: name,
      maybeApplied: true,
      clientOrderId: isOrder ? 'bot-1.7_a' : null,
      uniqueId: isOrder ? null : 'w-2024/7',
      cause: { name: cause, maybeApplied: true },
    });
    const lookup = isOrder ? 'client_order_id "bot-1.7_a"' : 'unique_id "w-2024/7" in the withdrawals';
    expect((error as Error).message).toMatch(new RegExp(`^${name} may have been carried out: .+; look for `));
    expect((error as Error).message).toContain(lookup);
    expect(requests()).toBe(1);
  });

  test('that is withdrawn on its way has an unknown outcome, and one that is not yet on it has none', async () => {
    let arrived = 0;
    const server = await serveHttp(() => {
      arrived += 1;
    });
    const client = openClient(server.base);
    const stopping = new AbortController();
    const failed = errorOf(call(client, { signal: stopping.signal }));
    await expect.poll(() => arrived).toBe(1);
    stopping.abort(new Error('enough'));
    expect(await failed).toMatchObject({
      name: 'UnknownOutcomeError',
      cause: { name: 'NetworkError', reason: 'aborted', cause: { message: 'enough' } },
    });
    const early = await errorOf(call(client, { signal: stopping.signal }));
    expect(early).toBeInstanceOf(NetworkError);
    expect(early).toMatchObject({ reason: 'aborted', maybeApplied: false });
    expect(arrived).toBe(1);
  });

  test('that never left is certain not to have been carried out', async () => {
    const refused = await errorOf(call(openClient('http://127.0.0.1:1')));
    expect(refused).toBeInstanceOf(NetworkError);
    expect(refused).toMatchObject({ maybeApplied: false });
    const client = openClient('http://127.0.0.1:1');
    await client.close();
    expect(await errorOf(call(client))).toMatchObject({ reason: 'aborted', maybeApplied: false });
  });

  test('is repeated after a stale nonce, but not when the repetition is lost', async () => {
    const nonces: string[] = [];
    const server = await serveHttp((_request, response, body) => {
      nonces.push((JSON.parse(body) as { nonce: string }).nonce);
      if (nonces.length > 1) response.destroy();
      else response.writeHead(429).end('{"code":0,"message":"Too many requests.","errors":{}}');
    });
    expect(await errorOf(call(openClient(server.base)))).toBeInstanceOf(UnknownOutcomeError);
    expect(new Set(nonces).size).toBe(2);
    expect(nonces).toHaveLength(2);
  });

  test('has no unknown outcome where every nonce was stale', async () => {
    const stale = '{"code":0,"message":"Too many requests.","errors":{}}';
    const { base } = await respond((socket) => socket.write(http('429 Too Many', stale)));
    expect(await errorOf(call(openClient(base)))).toBeInstanceOf(NonceError);
  });
});

test.each<[string, Record<string, unknown>, string]>([
  ['of another market', { market: 'ETH_USDT' }, 'expected an order of market BTC_USDT'],
  [
    'of another client order id',
    { client_order_id: 'x' },
    'expected an order with client_order_id bot-1.7_a',
  ],
  [
    'without an identifier',
    { order_id: undefined },
    'expected an order (it must have required properties order_id)',
  ],
  ['with an identifier that JSON has rounded', { order_id: 2 ** 60 }, 'order_id must be <= 9007199254740991'],
  ['with an amount as a number', { amount: 50 }, 'expected an order (amount must be string)'],
])('an order %s is not the one that was placed: its outcome is unknown', async (_what, change, problem) => {
  const server = await serveHttp((_request, response) =>
    response.end(JSON.stringify({ ...ORDER, ...change })),
  );
  const error = await errorOf(openClient(server.base).createStockMarketOrder(ORDER_REQUEST));
  expect(error).toBeInstanceOf(UnknownOutcomeError);
  expect((error as Error).message).toContain(problem);
});

test('an order without client order id says that there is nothing to look for', async () => {
  const server = await serveHttp((_request, response) => response.destroy());
  const { clientOrderId: _left, ...request } = ORDER_REQUEST;
  const error = await errorOf(openClient(server.base).createStockMarketOrder(request));
  expect(error).toMatchObject({ clientOrderId: null, uniqueId: null });
  expect((error as Error).message).toContain('it has no client_order_id to look for, compare the balance');
});

test.each(SAMPLES.filter(({ name }) => ['syncKillSwitch', 'createNewAddress'].includes(name)))(
  '$name that is lost is not repeated either, and its error leaves open what became of it',
  async ({ call }) => {
    const { base, requests } = await respond((socket) => socket.destroy());
    expect(await errorOf(call(openClient(base)))).toMatchObject({ name: 'NetworkError', maybeApplied: true });
    expect(requests()).toBe(1);
  },
);

test.each(
  SAMPLES.filter(({ name }) =>
    ['orderHistory', 'myCodes', 'miningHashrate', 'miningPool', 'ping'].includes(name),
  ),
)(
  '$name only reads: lost once it is asked again over a fresh connection, lost twice it fails',
  async (sample) => {
    let losses = 1;
    let requests = 0;
    const server = await serveHttp((_request, response) => {
      requests += 1;
      losses -= 1;
      if (losses < 0) response.end(JSON.stringify(sample.reply));
      else response.destroy();
    });
    const client = openClient(server.base);
    expect(await sample.call(client)).toEqual(sample.value ?? sample.reply);
    expect([requests, server.connections()]).toEqual([2, 2]);
    losses = 2;
    expect(await errorOf(sample.call(client))).toMatchObject({ name: 'NetworkError', maybeApplied: false });
    expect(requests).toBe(4);
  },
);
