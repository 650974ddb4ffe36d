import { describe, expect, test } from 'vitest';
import { NetworkError, ServerError, UnknownOutcomeError } from '../../src/exchange/errors.ts';
import { errorOf, openClient } from './open.ts';
import { ORDER, ORDER_REQUEST, SAMPLES } from './samples.ts';
import { createHandClock, serveBytes, serveHttp, serveReply, serveSilence } from './servers.ts';

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
