import { beforeEach, expect, test } from 'vitest';
import type { Client, ClientOptions } from '../../src/exchange/client.ts';
import { ArgumentError } from '../../src/exchange/errors.ts';
import type { Credentials } from '../../src/exchange/exchange.ts';
import { isRecord } from '../../src/util/text.ts';
import { errorOf, openClient } from './open.ts';
import { SAMPLES } from './samples.ts';
import { serveReply } from './servers.ts';

let asked: readonly string[];
let client: Client;

beforeEach(async () => {
  const server = await serveReply([]);
  asked = server.paths;
  client = openClient(server.base);
});

type Given = Readonly<Record<string, unknown>>;
type Method = (request: unknown, options?: unknown) => Promise<unknown>;

/** Calls an operation as a program without types would, and expects that nothing is sent. */
async function refusal(operation: string, request: unknown): Promise<unknown> {
  const error = await errorOf((client[operation as keyof Client] as Method)(request));
  expect(asked).toEqual([]);
  expect(error).toBeInstanceOf(ArgumentError);
  return error;
}

/** An error of this message, for the argument that the message begins with or calls unknown. */
function told(message: string) {
  const [, unknown, known] = /^(?:\w+ has no argument "(\w+)"|(\w+))/.exec(message) ?? [];
  return { argument: unknown ?? known, message: expect.stringContaining(message) };
}

/** What the rows change; of the other operations nothing. */
const GOOD: Readonly<Record<string, Given>> = {
  createStockMarketOrder: { market: 'BTC_USDT', side: 'buy', amount: '1', amountIn: 'quote' },
  withdrawPay: { ticker: 'BTC', amount: '1', address: 'bc1', uniqueId: 'u1' },
  syncKillSwitch: { market: 'BTC_USDT', timeoutSeconds: 60 },
};

/** Operation | argument and its value, or the whole request; `-` leaves it out | the message */
const REFUSED = String.raw`
createStockMarketOrder | market: "btc_usdt" | market is "btc_usdt"; allowed: BASE_QUOTE in capitals; did you mean BTC_USDT?
createStockMarketOrder | market: - | market is missing; allowed: BASE_QUOTE in capitals
createStockMarketOrder | side: "BUY" | side is "BUY"; allowed: buy, sell; did you mean buy?
createStockMarketOrder | amount: "ten" | amount is "ten"; allowed: a decimal number above 0 as text, such as "0.001"
createStockMarketOrder | amount: "0.00" | amount is "0.00"; allowed: a decimal number above 0
createStockMarketOrder | amount: 0 | amount is 0; allowed: a decimal number above 0
createStockMarketOrder | amount: "-1" | amount is "-1"
createStockMarketOrder | amount: "1\n" | amount is "1\n"
createStockMarketOrder | amount: 1e-7 | amount is 1e-7
createStockMarketOrder | amount: 1e21 | amount is 1e+21
createStockMarketOrder | amount: 1e999 | amount is Infinity
createStockMarketOrder | amount: null | amount is null
createStockMarketOrder | clientOrderId: "a b" | clientOrderId is "a b"; allowed: letters, digits, dashes, dots and underscores
createStockMarketOrder | clientOrderId: 7 | clientOrderId is 7
createStockMarketOrder | clientOrderId: "a\n" | clientOrderId is "a\n"
createStockMarketOrder | stp: "cancel" | stp is "cancel"; allowed: no, cancel_both, cancel_new, cancel_old; did you mean cancel_both?
createStockMarketOrder | client_order_id: "x" | createStockMarketOrder has no argument "client_order_id"; allowed: market, side, amount, amountIn, clientOrderId, stp; did you mean clientOrderId?
createStockMarketOrder | amountIn: - | amountIn is missing; allowed: quote, base: what the exchange counts
createStockMarketOrder | side: "sell" | amountIn is "quote"; allowed: base: a sell is counted in the base currency
withdrawPay | ticker: "btc" | ticker is "btc"; allowed: a currency ticker in capitals, such as BTC
withdrawPay | address: "" | address is ""; allowed: text that is not empty
withdrawPay | address: " " | address is " "
withdrawPay | uniqueId: "" | uniqueId is ""
withdrawPay | uniqueId: - | uniqueId is missing
withdrawPay | unique_id: "u" | withdrawPay has no argument "unique_id"; allowed: ticker, amount, address, uniqueId, provider, fiat, network; did you mean uniqueId?
withdrawPay | network: 20 | network is 20
withdrawPay | provider: null | provider is null
withdrawPay | fiat: "yes" | fiat is "yes"; allowed: true or false
withdrawPay | fiat: true | provider is missing; allowed: with fiat true a provider of the asset status
myCodes | limit: 0 | limit is 0; allowed: whole numbers 1 to 100
myCodes | limit: 101 | limit is 101
myCodes | limit: "10" | limit is "10"
myCodes | offset: -1 | offset is -1; allowed: whole numbers 0 to 10000
myCodes | offset: 10001 | offset is 10001
myCodes | limt: 2 | myCodes has no argument "limt"; allowed: limit, offset; did you mean limit?
myCodes | [] | request is []; allowed: an object with limit, offset
miningHashrate | account: "" | account is ""
miningHashrate | from: 1.5 | from is 1.5; allowed: Unix seconds, as whole numbers
miningHashrate | to: 1700000000000 | to is 1700000000000
miningHashrate | from: -1 | from is -1
miningHashrate | {"from":2,"to":1} | from is 2; allowed: from not after to, which is 1
miningHashrate | interval: "hourly" | interval is "hourly"; allowed: a number and a letter
miningHashrate | interval: "0h" | interval is "0h"
createNewAddress | {} | ticker is missing
createNewAddress | {"ticker":"USDT","network":""} | network is ""
createNewAddress | {"ticker":"BTC","type":"segwit"} | type is "segwit"; allowed: p2sh-segwit, bech32; of BTC and LTC only; did you mean p2sh-segwit?
createNewAddress | {"ticker":"ETH","type":"bech32"} | type is "bech32"; allowed: left out for ETH; only BTC and LTC have address types
syncKillSwitch | timeoutSeconds: - | timeoutSeconds is missing
syncKillSwitch | market: "BTC/USDT" | market is "BTC/USDT"; allowed: BASE_QUOTE in capitals; did you mean BTC_USDT?
syncKillSwitch | market: "?" | market is "?"; allowed: BASE_QUOTE in capitals
syncKillSwitch | timeoutSeconds: 4 | timeoutSeconds is 4; allowed: whole seconds 5 to 600, or null
syncKillSwitch | timeoutSeconds: 601 | timeoutSeconds is 601
syncKillSwitch | timeoutSeconds: 5.5 | timeoutSeconds is 5.5
syncKillSwitch | types: ["spto"] | types[0] is "spto"; allowed: spot, margin, futures in a list; or null for all; did you mean spot?
syncKillSwitch | types: [] | types is []; allowed: spot, margin, futures in a list; or null
syncKillSwitch | types: "spot" | types is "spot"; allowed: spot, margin, futures in a list; or null
syncKillSwitch | type: ["spot"] | syncKillSwitch has no argument "type"; allowed: market, timeoutSeconds, types
orderHistory | [] | request is []; allowed: an object that can be written as JSON
orderHistory | null | request is null
`
  .trim()
  .split('\n')
  .map((line) => line.split(' | '));

/** The good request of an operation with what a row changes. Lists and null are no request, and stay as they are. */
function requestOf(operation: string, given: string): unknown {
  const [, name, value = ''] = /^(\w+): (.*)/.exec(given) ?? [];
  const change: unknown =
    name === undefined ? JSON.parse(given) : { [name]: value === '-' ? undefined : JSON.parse(value) };
  return isRecord(change) ? { ...GOOD[operation], ...change } : change;
}

test.each(REFUSED)(
  '%s with %s is told before anything is sent: %s',
  async (operation = '', given = '', message = '') => {
    expect(await refusal(operation, requestOf(operation, given))).toMatchObject(told(message));
  },
);

test('what JSON cannot write is told as well', async () => {
  const order = { ...GOOD['createStockMarketOrder'], amount: 10n };
  expect(await refusal('createStockMarketOrder', order)).toMatchObject(told('amount is 10n'));
  const itself: { me?: unknown } = {};
  itself.me = itself;
  const message = 'request is an object that cannot be written as JSON';
  for (const body of [{ amount: 1n }, itself])
    expect(await refusal('orderHistory', body)).toMatchObject(told(message));
  expect(await refusal('orderHistory', new Date(0))).toMatchObject(
    told('request is "1970-01-01T00:00:00.000Z"'),
  );
  expect(await refusal('myCodes', { limit: Symbol('x') })).toMatchObject(told('limit is a symbol'));
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
  expect(asked).toHaveLength(10);
});

test.each(SAMPLES)('$name refuses a time to wait that is none', async ({ call }) => {
  for (const timeoutMs of [0, -1, Number.NaN, 3_000_000_000])
    expect(await errorOf(call(client, { timeoutMs }))).toMatchObject({
      name: 'ArgumentError',
      argument: 'timeoutMs',
    });
  expect(asked).toEqual([]);
});

const PART = 'allowed: requests from 2 on in windowMs, not more than 10000 in 10 s';
test.each<[Partial<ClientOptions>, string]>([
  [{ budget: { requests: 1, windowMs: 10_000 } }, `budget is {"requests":1,"windowMs":10000}; ${PART}`],
  [{ budget: { requests: Number.NaN, windowMs: 10_000 } }, PART],
  [{ budget: { requests: 10, windowMs: 0 } }, PART],
  [{ budget: { requests: 10, windowMs: -10_000 } }, PART],
  [{ budget: { requests: 10_001, windowMs: 10_000 } }, PART],
  // Half of it would go at once.
  [{ budget: { requests: 60_000, windowMs: 60_000 } }, PART],
  [{ connections: 0 }, 'connections is 0; allowed: whole numbers from 1 on'],
  [{ connections: 1.5 }, 'connections is 1.5'],
  [{ timeoutMs: 0 }, 'timeoutMs is 0; allowed: milliseconds greater than 0, at most 2147483647'],
])('no client is made with %j', (options, message) => {
  expect(() => openClient('http://127.0.0.1:1', options)).toThrow(message);
});

test.each<[string | undefined, string]>([
  [undefined, 'accessToken is missing; allowed: an OAuth 2.0 access token'],
  ['', 'accessToken is text of 0 characters'],
  ['two words', 'accessToken is text of 9 characters'],
  ['line\r\nbreak', 'accessToken is text of 11 characters'],
])('an access token of %j is told without being repeated', async (accessToken, message) => {
  const server = await serveReply({});
  const tokenless = openClient(server.base, { accessToken: undefined });
  const error = await errorOf(tokenless.orderHistory({}, { accessToken }));
  expect(error).toMatchObject({ name: 'ArgumentError', argument: 'accessToken' });
  expect((error as Error).message).toContain(message);
  expect((error as Error).message).not.toContain('two words');
  expect(server.connections()).toBe(0);
});

test.each<[unknown, string]>([
  [{ key: undefined, secret: undefined }, 'key is missing; allowed: text of visible ASCII characters'],
  [{ key: 'demo-key' }, 'secret is missing'],
  [{ key: '', secret: 'demo-secret' }, 'key is text of 0 characters'],
  [{ key: 'two words', secret: 'demo-secret' }, 'key is text of 9 characters'],
  [{ key: 'demo-key', secret: 7 }, 'secret is a number'],
  [Promise.resolve({ key: 'demo-key', secret: 'demo-secret' }), 'key is missing'],
])('credentials of %j end a call with an error of their own, and no program', async (given, problem) => {
  const credentials = () => given as Credentials;
  const server = await serveReply({}, 404);
  const client = openClient(server.base, { credentials });
  expect(await errorOf(client.myCodes())).toMatchObject({
    name: 'CredentialError',
    message: expect.stringContaining(`the API key could not be read: ${problem}`),
    maybeApplied: false,
  });
  expect(server.connections()).toBe(0);
  expect(await errorOf(client.ping())).toMatchObject({ name: 'NotFoundError' });
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
  const market = `x_${'x'.repeat(10_000)}`;
  const other = await errorOf(client.syncKillSwitch({ market, timeoutSeconds: 60 }));
  expect((other as Error).message).toMatch(/^market is "x_x{200,290}…; allowed: BASE_QUOTE in capitals$/u);
});
