import { beforeEach, describe, expect, test } from 'vitest';
import type { Client } from '../../src/exchange/client.ts';
import { ArgumentError } from '../../src/exchange/errors.ts';
import { OPERATIONS } from '../../src/exchange/operations.ts';
import { ARGUMENTS, REPLIES } from '../../src/exchange/schemas.ts';
import { errorOf, openClient } from './open.ts';
import { SAMPLES } from './samples.ts';
import { serveHttp } from './servers.ts';

let requests = 0;
let client: Client;

beforeEach(async () => {
  requests = 0;
  const server = await serveHttp((_request, response) => {
    requests += 1;
    response.end('[]');
  });
  client = openClient(server.base);
});

type Given = Readonly<Record<string, unknown>>;
type Method = (request: unknown, options?: unknown) => Promise<unknown>;

/** Calls an operation as a program without types would, and expects that nothing is sent. */
async function refusal(operation: keyof Client, request: unknown): Promise<unknown> {
  const error = await errorOf((client[operation] as Method)(request));
  expect(requests).toBe(0);
  expect(error).toBeInstanceOf(ArgumentError);
  return error;
}

const told = (argument: string, message: string) => ({ argument, message: expect.stringContaining(message) });

const ORDER: Given = { market: 'BTC_USDT', side: 'buy', amount: '1', amountIn: 'quote' };
const WITHDRAWAL: Given = { ticker: 'BTC', amount: '1', address: 'bc1', uniqueId: 'u1' };

describe('a market order', () => {
  test.each<[Given, string, string]>([
    [{ market: 'btc_usdt' }, 'market', 'market is "btc_usdt"; allowed: BASE_QUOTE in capitals'],
    [{ market: 'BTC-USDT' }, 'market', 'market is "BTC-USDT"'],
    [{ market: undefined }, 'market', 'market is missing; allowed: BASE_QUOTE in capitals'],
    [{ market: '' }, 'market', 'market is ""'],
    [{ side: 'BUY' }, 'side', 'side is "BUY"; allowed: buy, sell'],
    [{ side: undefined }, 'side', 'side is missing'],
    [{ side: ['buy'] }, 'side', 'side is ["buy"]'],
    [{ amount: 'ten' }, 'amount', 'amount is "ten"; allowed: a decimal number as text, such as "0.001"'],
    [{ amount: '' }, 'amount', 'amount is ""'],
    [{ amount: '1,5' }, 'amount', 'amount is "1,5"'],
    [{ amount: '-1' }, 'amount', 'amount is "-1"'],
    [{ amount: '0x10' }, 'amount', 'amount is "0x10"'],
    [{ amount: '1\n' }, 'amount', 'amount is "1\\n"'],
    [{ amount: 1e-7 }, 'amount', 'amount is 1e-7'],
    [{ amount: 1e21 }, 'amount', 'amount is 1e+21'],
    [{ amount: Number.NaN }, 'amount', 'amount is NaN'],
    [{ amount: Number.POSITIVE_INFINITY }, 'amount', 'amount is Infinity'],
    [{ amount: null }, 'amount', 'amount is null'],
    [{ amount: undefined }, 'amount', 'amount is missing'],
    [
      { clientOrderId: 'a b' },
      'clientOrderId',
      'clientOrderId is "a b"; allowed: letters, digits, dashes, dots and underscores',
    ],
    [{ clientOrderId: 'ä' }, 'clientOrderId', 'clientOrderId is "ä"'],
    [{ clientOrderId: '' }, 'clientOrderId', 'clientOrderId is ""'],
    [{ clientOrderId: 7 }, 'clientOrderId', 'clientOrderId is 7'],
    [{ clientOrderId: 'a\n' }, 'clientOrderId', 'clientOrderId is "a\\n"'],
    [{ stp: 'cancel' }, 'stp', 'stp is "cancel"; allowed: no, cancel_both, cancel_new, cancel_old'],
    [{ stp: null }, 'stp', 'stp is null'],
    [
      { client_order_id: 'x' },
      'client_order_id',
      'createStockMarketOrder has no argument "client_order_id"; allowed: market, side, amount, amountIn, clientOrderId, stp; did you mean clientOrderId?',
    ],
    [
      { amountIn: undefined },
      'amountIn',
      'amountIn is missing; allowed: quote, base: what the exchange counts',
    ],
    [{ amountIn: 'USDT' }, 'amountIn', 'amountIn is "USDT"; allowed: quote, base'],
    [
      { side: 'sell' },
      'amountIn',
      'amountIn is "quote"; allowed: base: a sell is counted in the base currency',
    ],
    [{ price: '1' }, 'price', 'createStockMarketOrder has no argument "price"; allowed: market, side'],
  ])('with %j is told before anything is sent', async (wrong, argument, message) => {
    expect(await refusal('createStockMarketOrder', { ...ORDER, ...wrong })).toMatchObject(
      told(argument, message),
    );
  });
});

describe('a withdrawal', () => {
  test.each<[Given, string, string]>([
    [{ ticker: 'btc' }, 'ticker', 'ticker is "btc"; allowed: a currency ticker in capitals, such as BTC'],
    [{ ticker: undefined }, 'ticker', 'ticker is missing'],
    [{ amount: '1e3' }, 'amount', 'amount is "1e3"'],
    [{ address: '' }, 'address', 'address is ""; allowed: text that is not empty'],
    [{ address: ' ' }, 'address', 'address is " "'],
    [{ address: undefined }, 'address', 'address is missing'],
    [{ uniqueId: '' }, 'uniqueId', 'uniqueId is ""'],
    [{ uniqueId: 5 }, 'uniqueId', 'uniqueId is 5'],
    [{ uniqueId: undefined }, 'uniqueId', 'uniqueId is missing'],
    [{ unique_id: 'u' }, 'unique_id', 'did you mean uniqueId?'],
    [{ network: 20 }, 'network', 'network is 20'],
    [{ provider: null }, 'provider', 'provider is null'],
    [{ fiat: 'yes' }, 'fiat', 'fiat is "yes"; allowed: true or false'],
    [
      { fiat: true },
      'provider',
      'provider is missing; allowed: with fiat true a provider of the asset status',
    ],
  ])('with %j is told before anything is sent', async (wrong, argument, message) => {
    expect(await refusal('withdrawPay', { ...WITHDRAWAL, ...wrong })).toMatchObject(told(argument, message));
  });
});

test.each<[keyof Client, unknown, string, string]>([
  ['myCodes', { limit: 0 }, 'limit', 'limit is 0; allowed: whole numbers 1 to 100'],
  ['myCodes', { limit: 101 }, 'limit', 'limit is 101'],
  ['myCodes', { limit: 1.5 }, 'limit', 'limit is 1.5'],
  ['myCodes', { limit: '10' }, 'limit', 'limit is "10"'],
  ['myCodes', { offset: -1 }, 'offset', 'offset is -1; allowed: whole numbers 0 to 10000'],
  ['myCodes', { offset: 10_001 }, 'offset', 'offset is 10001'],
  ['myCodes', { page: 2 }, 'page', 'myCodes has no argument "page"; allowed: limit, offset'],
  [
    'myCodes',
    { limt: 2 },
    'limt',
    'myCodes has no argument "limt"; allowed: limit, offset; did you mean limit?',
  ],
  ['myCodes', [], 'request', 'request is []; allowed: an object with limit, offset'],
  ['myCodes', null, 'request', 'request is null'],
  ['miningHashrate', { account: '' }, 'account', 'account is ""'],
  ['miningHashrate', { from: 1.5 }, 'from', 'from is 1.5; allowed: Unix seconds, as whole numbers'],
  ['miningHashrate', { to: '1700000000' }, 'to', 'to is "1700000000"'],
  ['miningHashrate', { to: 1_700_000_000_000 }, 'to', 'to is 1700000000000'],
  ['miningHashrate', { from: -1 }, 'from', 'from is -1'],
  ['miningHashrate', { from: 2, to: 1 }, 'from', 'from is 2; allowed: from not after to, which is 1'],
  [
    'miningHashrate',
    { interval: 'hourly' },
    'interval',
    'interval is "hourly"; allowed: a number and a letter',
  ],
  ['miningHashrate', { interval: '0h' }, 'interval', 'interval is "0h"'],
  ['miningHashrate', { interval: 60 }, 'interval', 'interval is 60'],
  ['createNewAddress', { ticker: '' }, 'ticker', 'ticker is ""'],
  ['createNewAddress', {}, 'ticker', 'ticker is missing'],
  ['createNewAddress', { ticker: 'USDT', network: '' }, 'network', 'network is ""'],
  [
    'createNewAddress',
    { ticker: 'BTC', type: 'segwit' },
    'type',
    'type is "segwit"; allowed: p2sh-segwit, bech32; of BTC and LTC only',
  ],
  [
    'createNewAddress',
    { ticker: 'ETH', type: 'bech32' },
    'type',
    'type is "bech32"; allowed: left out for ETH; only BTC and LTC have address types',
  ],
  ['syncKillSwitch', { market: 'BTC_USDT' }, 'timeoutSeconds', 'timeoutSeconds is missing'],
  [
    'syncKillSwitch',
    { market: 'btc_usdt', timeoutSeconds: 60 },
    'market',
    'market is "btc_usdt"; allowed: BASE_QUOTE in capitals',
  ],
  ['syncKillSwitch', { market: 'BTCUSDT', timeoutSeconds: 60 }, 'market', 'market is "BTCUSDT"'],
  ['syncKillSwitch', { market: 7, timeoutSeconds: 60 }, 'market', 'market is 7'],
  [
    'syncKillSwitch',
    { market: 'BTC_USDT', timeoutSeconds: 4 },
    'timeoutSeconds',
    'timeoutSeconds is 4; allowed: whole seconds 5 to 600, or null',
  ],
  ['syncKillSwitch', { market: 'BTC_USDT', timeoutSeconds: 601 }, 'timeoutSeconds', 'timeoutSeconds is 601'],
  ['syncKillSwitch', { market: 'BTC_USDT', timeoutSeconds: 5.5 }, 'timeoutSeconds', 'timeoutSeconds is 5.5'],
  [
    'syncKillSwitch',
    { market: 'BTC_USDT', timeoutSeconds: '60' },
    'timeoutSeconds',
    'timeoutSeconds is "60"',
  ],
  [
    'syncKillSwitch',
    { market: 'BTC_USDT', timeoutSeconds: 60, types: ['spto'] },
    'types',
    'types[0] is "spto"; allowed: spot, margin, futures; null for all',
  ],
  [
    'syncKillSwitch',
    { market: 'BTC_USDT', timeoutSeconds: 60, types: [] },
    'types',
    'types is []; allowed: spot',
  ],
  ['syncKillSwitch', { market: 'BTC_USDT', timeoutSeconds: 60, types: 'spot' }, 'types', 'types is "spot"'],
  [
    'syncKillSwitch',
    { market: 'BTC_USDT', timeoutSeconds: 60, type: ['spot'] },
    'type',
    'syncKillSwitch has no argument "type"; allowed: market, timeoutSeconds, types',
  ],
  ['orderHistory', [], 'request', 'request is []; allowed: an object that can be written as JSON'],
  ['orderHistory', null, 'request', 'request is null'],
  ['orderHistory', new Date(0), 'request', 'request is "1970-01-01T00:00:00.000Z"'],
])('%s with %s is told before anything is sent', async (operation, request, argument, message) => {
  expect(await refusal(operation, request)).toMatchObject(told(argument, message));
});

test('what JSON cannot write is told as well', async () => {
  expect(await refusal('createStockMarketOrder', { ...ORDER, amount: 10n })).toMatchObject(
    told('amount', 'amount is 10n'),
  );
  const itself: { me?: unknown } = {};
  itself.me = itself;
  for (const body of [{ amount: 1n }, itself])
    expect(await refusal('orderHistory', body)).toMatchObject(
      told('request', 'request is an object that cannot be written as JSON'),
    );
  expect(await refusal('myCodes', { limit: Symbol('x') })).toMatchObject(told('limit', 'limit is a symbol'));
});

test('the edges of every range are allowed', async () => {
  await expect(client.createNewAddress({ ticker: 'LTC', type: 'bech32' })).rejects.not.toThrow(ArgumentError);
  await expect(client.myCodes({ limit: 1, offset: 0 })).rejects.not.toThrow(ArgumentError);
  await expect(client.myCodes({ limit: 100, offset: 10_000 })).rejects.not.toThrow(ArgumentError);
  await expect(client.miningHashrate({ from: 5, to: 5, interval: '24h' })).rejects.not.toThrow(ArgumentError);
  for (const timeoutSeconds of [5, 600])
    await expect(client.syncKillSwitch({ market: 'A1_B2', timeoutSeconds })).rejects.not.toThrow(
      ArgumentError,
    );
  for (const amount of ['0.00000001', '12345678901234567890.5', 0.1, 7])
    await expect(
      client.createStockMarketOrder({ market: 'A1_B2', side: 'sell', amount }),
    ).rejects.not.toThrow(ArgumentError);
  expect(requests).toBe(10);
});

test.each(SAMPLES)('$name refuses a time to wait that is none', async ({ call }) => {
  for (const timeoutMs of [0, -1, Number.NaN, 3_000_000_000])
    expect(await errorOf(call(client, { timeoutMs }))).toMatchObject({
      name: 'ArgumentError',
      argument: 'timeoutMs',
    });
  expect(requests).toBe(0);
});

test.each<[string | undefined, string]>([
  [undefined, 'accessToken is missing; allowed: an OAuth 2.0 access token'],
  ['', 'accessToken is text of 0 characters'],
  ['two words', 'accessToken is text of 9 characters'],
  ['line\r\nbreak', 'accessToken is text of 11 characters'],
])('an access token of %j is told without being repeated', async (accessToken, message) => {
  const server = await serveHttp((_request, response) => response.end('{}'));
  const tokenless = openClient(server.base, { accessToken: undefined });
  const error = await errorOf(tokenless.orderHistory({}, { accessToken }));
  expect(error).toMatchObject({ name: 'ArgumentError', argument: 'accessToken' });
  expect((error as Error).message).toContain(message);
  expect((error as Error).message).not.toContain('two words');
  expect(server.connections()).toBe(0);
});

test('an access token that cannot be read is an error of its own, with its cause', async () => {
  const accessToken = () => {
    throw new Error('no such file');
  };
  const error = await errorOf(openClient('http://127.0.0.1:1', { accessToken }).orderHistory());
  expect(error).toMatchObject({
    name: 'CredentialError',
    message: 'the access token could not be read: no such file',
    maybeApplied: false,
    cause: { message: 'no such file' },
  });
});

test('a value of any length makes one short line', async () => {
  const error = await errorOf(client.createNewAddress({ ticker: `${'x'.repeat(10_000)}\n\u2028` as string }));
  expect((error as Error).message).toMatch(/^ticker is "x{200,290}…; allowed: .{20,60}$/u);
});

test('every operation has a schema for its arguments and one for its reply', () => {
  expect(Object.keys(ARGUMENTS)).toEqual(Object.keys(OPERATIONS));
  expect(Object.keys(REPLIES)).toEqual(Object.keys(OPERATIONS));
});
