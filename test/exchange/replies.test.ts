import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CallOptions } from '../../src/exchange/client.ts';
import { ApiError } from '../../src/exchange/errors.ts';
import { errorOf, openClient } from './open.ts';
import { ADDRESS, CODES, ORDER, ORDER_REQUEST, POOL, SAMPLES, sampleOf } from './samples.ts';
import { serveBytes, serveHttp, serveReply } from './servers.ts';

const answering = async (reply: unknown) => openClient((await serveReply(reply)).base);

test('an order may lack what only describes it', async () => {
  const { price, postOnly, ioc, status, stp, positionSide, rpi, ...bare } = ORDER;
  expect([price, postOnly, ioc, status, stp, positionSide, rpi]).not.toContain(undefined);
  expect(await (await answering(bare)).createStockMarketOrder(ORDER_REQUEST)).toEqual(bare);
  const nulls = { ...bare, price: null, postOnly: null, status: null, positionSide: null, rpi: null };
  expect(await (await answering(nulls)).createStockMarketOrder(ORDER_REQUEST)).toEqual(nulls);
});

test('an order that is spelt in camelCase is there under the names of the document as well', async () => {
  const { order_id, client_order_id, deal_money, deal_stock, deal_fee, price, positionSide, ...rest } = ORDER;
  const camel = {
    orderId: order_id,
    clientOrderId: client_order_id,
    dealMoney: deal_money,
    dealStock: deal_stock,
    dealFee: deal_fee,
  };
  const order = await (await answering({ ...rest, ...camel })).createStockMarketOrder(ORDER_REQUEST);
  expect({ ...order, price, positionSide }).toEqual({ ...ORDER, ...camel });
});

test('a new address may lack its conditions and its memo', async () => {
  for (const reply of [
    { account: { address: 'bc1' } },
    { account: { address: 'r1', memo: '12345', network: 'XRP' }, required: null },
    { ...ADDRESS, required: { ...ADDRESS.required, flexFee: null } },
  ])
    expect(await (await answering(reply)).createNewAddress({ ticker: 'BTC' })).toEqual(reply);
});

describe('a reply that the document does not know is a protocol error that names the place:', () => {
  test.each<[string, unknown, string]>([
    [
      'myCodes',
      { ...CODES, data: [{ ...CODES.data[0], date: '1700000000' }] },
      'data.0.date must be integer',
    ],
    ['myCodes', { ...CODES, total: '2' }, 'total must be integer'],
    [
      'miningHashrate',
      { data: { account: 'rig', hashrate: [{ timestamp: 1.7e12, hashrate: '1' }] } },
      'data.hashrate.0.timestamp must be <=',
    ],
    ['createNewAddress', { account: {} }, "account must have required property 'address'"],
    ['createNewAddress', { account: { address: '' } }, 'account.address must NOT have fewer than 1'],
    ['createNewAddress', [], 'expected a deposit address (it must be object)'],
    ['miningPool', { data: { ...POOL.data, workers: '12' } }, 'data.workers must be integer'],
    [
      'miningPool',
      { data: { ...POOL.data, blocks: [{ block_height: 1 }] } },
      'data.blocks.0 must have required',
    ],
    ['orderHistory', [{ id: 1 }], 'expected an object'],
    ['ping', ['pong', 'pong'], 'expected ["pong"]'],
  ])('%s with %j', async (name, reply, problem) => {
    const sample = SAMPLES.find((known) => known.name === name) ?? expect.fail(name);
    const error = await errorOf(sample.call(await answering(reply)));
    expect(error).toMatchObject({ name: 'ProtocolError', status: 200 });
    expect((error as Error).message).toContain(problem);
  });
});

test('no code of the account is in the error about a list of them', async () => {
  const error = await errorOf((await answering({ ...CODES, total: null })).myCodes());
  for (const { code } of CODES.data)
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain(code);
});

test('lists may be longer than any other answer, up to a mebibyte', async () => {
  const [code = expect.fail('no code')] = CODES.data;
  const long = { ...CODES, data: Array.from({ length: 6_000 }, () => code) };
  expect(JSON.stringify(long).length).toBeGreaterThan(600_000);
  expect(await (await answering(long)).myCodes()).toEqual(long);
  const longer = { ...CODES, data: Array.from({ length: 12_000 }, () => code) };
  expect(await errorOf((await answering(longer)).myCodes())).toMatchObject({
    name: 'ProtocolError',
    message: 'HTTP 200 with more than 1048576 bytes',
  });
  expect(await errorOf((await answering(long)).createNewAddress({ ticker: 'BTC' }))).toMatchObject({
    name: 'ProtocolError',
    message: 'HTTP 200 with more than 65536 bytes',
  });
});

/** Parts of a good answer, which random ones hit too seldom. */
const nearJson = fc.oneof(
  fc.json(),
  fc.constantFrom(...SAMPLES.map(({ reply }) => JSON.stringify(reply))),
  fc
    .record({ code: fc.anything(), message: fc.anything(), errors: fc.anything(), success: fc.boolean() })
    .map((value) => JSON.stringify(value)),
  fc
    .tuple(fc.constantFrom(...SAMPLES.map(({ reply }) => JSON.stringify(reply))), fc.nat(), fc.string())
    .map(([text, place, noise]) => text.slice(0, place % text.length) + noise),
  fc.constant('['.repeat(60_000)),
  fc.constant(`${'['.repeat(30_000)}${']'.repeat(30_000)}`),
);

async function holdsWhateverComes(sample: (typeof SAMPLES)[number]): Promise<void> {
  let bytes = Buffer.alloc(0);
  const server = await serveBytes((socket) => socket.end(bytes));
  const client = openClient(server.base);
  const options: CallOptions = { timeoutMs: 5_000 };
  // Of the rest what only reads is asked again, after a wait.
  const status = fc.oneof(
    { weight: 9, arbitrary: fc.integer({ min: 200, max: 499 }) },
    { weight: 1, arbitrary: fc.integer({ min: 500, max: 599 }) },
  );
  const whole = fc.tuple(status, nearJson).map(([code, body]) => ({
    status: code,
    bytes: Buffer.from(`HTTP/1.1 ${code} X\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`),
  }));
  const noise = fc
    .tuple(
      fc.constantFrom('', 'HTTP/1.1 200 OK\r\n', 'HTTP/1.1 200 OK\r\n\r\n{'),
      fc.uint8Array({ maxLength: 200 }),
    )
    .map(([head, rest]) => ({ status: 200, bytes: Buffer.concat([Buffer.from(head), rest]) }));
  await fc.assert(
    fc.asyncProperty(fc.oneof(whole, noise), async (answer) => {
      bytes = answer.bytes;
      const outcome = await sample.call(client, options).then(
        () => null,
        (error: unknown) => error,
      );
      if (outcome === null) {
        expect(answer.status, sample.name).toBeLessThan(300);
        return;
      }
      expect(outcome, sample.name).toBeInstanceOf(ApiError);
      expect(outcome, sample.name).not.toMatchObject({ name: 'TimeoutError' });
      expect((outcome as Error).message, sample.name).toMatch(/^[^\p{Cc}]{1,600}$/u);
      if (sample.movesMoney && answer.status < 300)
        expect(outcome, sample.name).toMatchObject({ name: 'UnknownOutcomeError' });
    }),
    { numRuns: 40 },
  );
}

// All operations at once: those that read are asked again, and mostly wait.
test('whatever bytes an operation gets, it ends in time with a named error or with a reply that came with success', {
  timeout: 60_000,
}, async () => {
  await Promise.all(SAMPLES.map(holdsWhateverComes));
});

test('a ping that hangs is asked once more over a fresh connection within its time', async () => {
  const server = await serveHttp((_request, response) => {
    if (server.paths.length > 1) response.end('["pong"]');
  });
  expect(await sampleOf('ping').call(openClient(server.base), { timeoutMs: 2_000 })).toBeLessThan(1_000);
  expect([server.paths.length, server.connections()]).toEqual([2, 2]);
});
