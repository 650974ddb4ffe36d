import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ApiError } from '../../src/exchange/errors.ts';
import type { OperationName } from '../../src/exchange/operations.ts';
import { errorOf, openClient } from './open.ts';
import { ADDRESS, CODES, ORDER, POOL, SAMPLES, type Sample, sampleOf } from './samples.ts';
import { serveBytes, serveReply } from './servers.ts';

const answered = async (name: OperationName, reply: unknown) =>
  sampleOf(name).call(openClient((await serveReply(reply)).base));

test('an order or a new address may lack what only describes it', async () => {
  const described = ['price', 'postOnly', 'ioc', 'status', 'stp', 'positionSide', 'rpi'];
  const bare = Object.fromEntries(Object.entries(ORDER).filter(([name]) => !described.includes(name)));
  const nulls = { ...bare, price: null, postOnly: null, status: null, positionSide: null, rpi: null };
  for (const reply of [bare, nulls]) expect(await answered('createStockMarketOrder', reply)).toEqual(reply);
  for (const reply of [
    { account: { address: 'bc1' } },
    { account: { address: 'r1', memo: '12345', network: 'XRP' }, required: null },
    { ...ADDRESS, required: { ...ADDRESS.required, flexFee: null } },
  ])
    expect(await answered('createNewAddress', reply)).toEqual(reply);
});

test('an order that is spelt in camelCase is there under the names of the document as well', async () => {
  const { order_id, client_order_id, deal_money, deal_stock, deal_fee, ...rest } = ORDER;
  const deal = { dealMoney: deal_money, dealStock: deal_stock, dealFee: deal_fee };
  const camel = { orderId: order_id, clientOrderId: client_order_id, ...deal };
  expect(await answered('createStockMarketOrder', { ...rest, ...camel })).toEqual({ ...ORDER, ...camel });
});

const POINT = { timestamp: 1.7e12, hashrate: '1' };
test.each<[OperationName, unknown, string]>([
  ['myCodes', { ...CODES, data: [{ ...CODES.data[0], date: '1700000000' }] }, 'data.0.date must be integer'],
  ['myCodes', { ...CODES, total: '2' }, 'total must be integer'],
  ['miningHashrate', { data: { account: 'rig', hashrate: [POINT] } }, 'data.hashrate.0.timestamp must be <='],
  ['createNewAddress', { account: {} }, "account must have required property 'address'"],
  ['createNewAddress', { account: { address: '' } }, 'account.address must NOT have fewer than 1'],
  ['createNewAddress', [], 'expected a deposit address (it must be object)'],
  ['miningPool', { data: { ...POOL.data, workers: '12' } }, 'data.workers must be integer'],
  ['miningPool', { data: { ...POOL.data, blocks: [{}] } }, 'data.blocks.0 must have required'],
  ['orderHistory', [{ id: 1 }], 'expected an object'],
  ['ping', ['pong', 'pong'], 'expected ["pong"]'],
])('a reply of %s that is %j is a protocol error that names the place', async (name, reply, problem) => {
  const error = await errorOf(answered(name, reply));
  expect(error).toMatchObject({ name: 'ProtocolError', status: 200 });
  expect((error as Error).message).toContain(problem);
});

test('no code of the account is in the error about a list of them', async () => {
  const error = await errorOf(answered('myCodes', { ...CODES, total: null }));
  for (const { code } of CODES.data)
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain(code);
});

test('lists may be longer than any other answer, up to a mebibyte', async () => {
  const listOf = (length: number) => ({ ...CODES, data: Array.from({ length }, () => CODES.data[0]) });
  expect(await answered('myCodes', listOf(5_000))).toEqual(listOf(5_000));
  const tooLong = (bytes: number) => `ProtocolError: HTTP 200 with more than ${bytes} bytes`;
  expect(String(await errorOf(answered('myCodes', listOf(12_000))))).toBe(tooLong(1_048_576));
  expect(String(await errorOf(answered('createNewAddress', listOf(5_000))))).toBe(tooLong(65_536));
});

/** Parts of a good answer, which random ones hit too seldom. */
const goodJson = fc.constantFrom(...SAMPLES.map(({ reply }) => JSON.stringify(reply)));
const nearJson = fc.oneof(
  fc.json(),
  goodJson,
  fc
    .record({ code: fc.anything(), message: fc.anything(), errors: fc.anything(), success: fc.boolean() })
    .map((value) => JSON.stringify(value)),
  fc
    .tuple(goodJson, fc.nat(), fc.string())
    .map(([text, place, noise]) => text.slice(0, place % text.length) + noise),
  fc.constantFrom('['.repeat(60_000), `${'['.repeat(30_000)}${']'.repeat(30_000)}`),
);

async function holdsWhateverComes({ name, call, movesMoney }: Sample): Promise<void> {
  let bytes = Buffer.alloc(0);
  const server = await serveBytes((socket) => socket.end(bytes));
  const client = openClient(server.base);
  // Of the rest what only reads is asked again, after a wait.
  const status = fc.oneof(
    { weight: 9, arbitrary: fc.integer({ min: 200, max: 499 }) },
    { weight: 1, arbitrary: fc.integer({ min: 500, max: 599 }) },
  );
  const whole = fc.tuple(status, nearJson).map(([code, body]) => ({
    status: code,
    bytes: Buffer.from(`HTTP/1.1 ${code} X\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`),
  }));
  const head = fc.constantFrom('', 'HTTP/1.1 200 OK\r\n', 'HTTP/1.1 200 OK\r\n\r\n{');
  const noise = fc
    .tuple(head, fc.uint8Array({ maxLength: 200 }))
    .map(([start, rest]) => ({ status: 200, bytes: Buffer.concat([Buffer.from(start), rest]) }));
  await fc.assert(
    fc.asyncProperty(fc.oneof(whole, noise), async (answer) => {
      bytes = answer.bytes;
      const error = await call(client, { timeoutMs: 5_000 }).then(
        () => null,
        (failed: unknown) => failed as Error,
      );
      if (error === null) {
        expect(answer.status, name).toBeLessThan(300);
        return;
      }
      expect(error, name).toBeInstanceOf(ApiError);
      expect(error.name, name).not.toBe('TimeoutError');
      expect(error.message, name).toMatch(/^[^\p{Cc}]{1,600}$/u);
      if (movesMoney && answer.status < 300) expect(error.name, name).toBe('UnknownOutcomeError');
    }),
    { numRuns: 40 },
  );
}

test('whatever bytes an operation gets, it ends in time with a named error or with a reply that came with success', async () => {
  await Promise.all(SAMPLES.map(holdsWhateverComes));
}, 60_000);
