import { expect, test } from 'vitest';
import type { Client, ClientOptions } from '../../src/exchange/client.ts';
import { ArgumentError } from '../../src/exchange/errors.ts';
import type { Credentials } from '../../src/exchange/exchange.ts';
import { isRecord } from '../../src/util/text.ts';
import { rowsOf } from '../simulator/trader.ts';
import { errorOf, openClient } from './open.ts';
import { SAMPLES } from './samples.ts';
import { serveReply } from './servers.ts';

const NOWHERE = 'http://127.0.0.1:1';

/** Calls an operation as a program without types would, and expects an error about an argument, before anything is sent. */
async function refusal(operation: string, request: unknown): Promise<unknown> {
  const server = await serveReply([]);
  const method = openClient(server.base)[operation as keyof Client] as (request: unknown) => Promise<unknown>;
  const error = await errorOf(method(request));
  expect(server.connections()).toBe(0);
  expect(error).toBeInstanceOf(ArgumentError);
  return error;
}

/** An error of this message, for the argument that the message begins with or calls unknown. */
function told(message: string) {
  const [, unknown, known] = /^(?:\w+ has no argument "(\w+)"|(\w+))/.exec(message) ?? [];
  return { argument: unknown ?? known, message: expect.stringContaining(message) };
}

/** What the rows change; of the other operations nothing. */
const GOOD: Readonly<Record<string, object>> = {
  createStockMarketOrder: { market: 'BTC_USDT', side: 'buy', amount: '1', amountIn: 'quote' },
  withdrawPay: { ticker: 'BTC', amount: '1', address: 'bc1', uniqueId: 'u1' },
  syncKillSwitch: { market: 'BTC_USDT', timeoutSeconds: 60 },
};

/** Operation | argument and its value, or the whole request; `-` leaves it out | the message */
const REFUSED = String.raw`
createStockMarketOrder | market: "btc_usdt" | market is "btc_usdt"; allowed: BASE_QUOTE in capitals; did you mean BTC_USDT?
createStockMarketOrder | amount: "ten" | amount is "ten"; allowed: a decimal number above 0 as text, such as "0.001"
createStockMarketOrder | amount: "1\n" | amount is "1\n"
createStockMarketOrder | amount: 1e-7 | amount is 1e-7
createStockMarketOrder | clientOrderId: "a b" | clientOrderId is "a b"; allowed: letters, digits, dashes, dots and underscores
createStockMarketOrder | clientOrderId: "a\n" | clientOrderId is "a\n"
createStockMarketOrder | stp: "cancel" | stp is "cancel"; allowed: no, cancel_both, cancel_new, cancel_old; did you mean cancel_both?
createStockMarketOrder | client_order_id: "x" | createStockMarketOrder has no argument "client_order_id"; allowed: market, side, amount, amountIn, clientOrderId, stp; did you mean clientOrderId?
createStockMarketOrder | side: "sell" | amountIn is "quote"; allowed: base: a sell is counted in the base currency
withdrawPay | address: "" | address is an empty text; allowed: text that is not empty
withdrawPay | address: " " | address is " "
withdrawPay | unique_id: "u" | withdrawPay has no argument "unique_id"; allowed: ticker, amount, address, uniqueId, provider, fiat, network; did you mean uniqueId?
withdrawPay | fiat: "yes" | fiat is "yes"; allowed: true or false
withdrawPay | fiat: true | provider is missing; allowed: with fiat true a provider of the asset status
myCodes | limit: 0 | limit is 0; allowed: whole numbers 1 to 100
myCodes | offset: -1 | offset is -1; allowed: whole numbers 0 to 10000
myCodes | limt: 2 | myCodes has no argument "limt"; allowed: limit, offset; did you mean limit?
miningHashrate | to: 1700000000000 | to is 1700000000000
miningHashrate | {"from":2,"to":1} | from is 2; allowed: from not after to, which is 1
miningHashrate | interval: "hourly" | interval is "hourly"; allowed: a number and a letter
createNewAddress | {"ticker":"BTC","type":"segwit"} | type is "segwit"; allowed: p2sh-segwit, bech32; of BTC and LTC only; did you mean p2sh-segwit?
createNewAddress | {"ticker":"ETH","type":"bech32"} | type is "bech32"; allowed: left out for ETH; only BTC and LTC have address types
syncKillSwitch | market: "BTC/USDT" | market is "BTC/USDT"; allowed: BASE_QUOTE in capitals; did you mean BTC_USDT?
syncKillSwitch | timeoutSeconds: 4 | timeoutSeconds is 4; allowed: whole seconds 5 to 600, or null
syncKillSwitch | timeoutSeconds: 5.5 | timeoutSeconds is 5.5
syncKillSwitch | types: ["spto"] | types[0] is "spto"; allowed: spot, margin, futures in a list; or null for all; did you mean spot?
syncKillSwitch | types: [] | types is an empty list; allowed: spot, margin, futures in a list; or null
orderHistory | [] | request is an empty list; allowed: an object that can be written as JSON
orderHistory | null | request is null
`;

test.each(rowsOf(REFUSED))('%s with %s is told before it is sent: %s', async (operation, given, message) => {
  const [, name, value = ''] = /^(\w+): (.*)/.exec(given) ?? [];
  const change: unknown =
    name === undefined ? JSON.parse(given) : { [name]: value === '-' ? undefined : JSON.parse(value) };
  // Lists and null are no request, and stay as they are.
  const request = isRecord(change) ? { ...GOOD[operation], ...change } : change;
  expect(await refusal(operation, request)).toMatchObject(told(message));
});

const ITSELF: { me?: unknown } = {};
ITSELF.me = ITSELF;

test.each<[string, unknown, string]>([
  ['createStockMarketOrder', { ...GOOD['createStockMarketOrder'], amount: 10n }, 'amount is a bigint'],
  ['orderHistory', ITSELF, 'request is an object'],
  ['orderHistory', new Date(0), 'request is an object'],
])('%s is told as well what JSON cannot write', async (operation, request, message) => {
  expect(await refusal(operation, request)).toMatchObject(told(message));
});

// Those of a page and of a timer are in test/contract.
test('the edges of what is allowed are sent', async () => {
  const server = await serveReply([]);
  const client = openClient(server.base);
  const sell = { market: 'A1_B2', side: 'sell' } as const;
  const calls = [
    client.createNewAddress({ ticker: 'LTC', type: 'bech32' }),
    client.miningHashrate({ from: 5, to: 5, interval: '24h' }),
    ...['0.00000001', '12345678901234567890.5', 0.1, 7].map((amount) =>
      client.createStockMarketOrder({ ...sell, amount }),
    ),
  ];
  for (const settled of await Promise.allSettled(calls))
    expect(settled.status === 'rejected' && settled.reason).not.toBeInstanceOf(ArgumentError);
  expect(server.paths).toHaveLength(6);
});

const OPTIONS: Readonly<Record<string, readonly unknown[]>> = {
  timeoutMs: [0, -1, Number.NaN, 3_000_000_000, '1000'],
  base: [-1, 0.5, 1, '0', 'length'],
  signal: [null, {}, new AbortController()],
};

test.each(SAMPLES)('$name refuses a time, a base address and a signal that are none', async ({ call }) => {
  const client = openClient(NOWHERE);
  for (const [argument, values] of Object.entries(OPTIONS))
    for (const value of values)
      expect(await errorOf(call(client, { [argument]: value }))).toMatchObject({
        name: 'ArgumentError',
        argument,
      });
});

const PART = 'allowed: requests from 2 on in windowMs, not more than 10000 in 10 s';
const budget = (requests: number, windowMs = 10_000) => ({ budget: { requests, windowMs } });
const PLAIN = 'plain http is allowed only to';
const from = (base: string) => ({ bases: [base] });

test.each<[Partial<ClientOptions>, string]>([
  [budget(1), `budget is an object; ${PART}`],
  [budget(Number.NaN), PART],
  [budget(10, 0), PART],
  [budget(10, -10_000), PART],
  [budget(10_001), PART],
  // Half of it would go at once.
  [budget(60_000, 60_000), PART],
  [{ budget: null as never }, `budget is null; ${PART}`],
  [{ credentials: 'hunter22' as never }, 'credentials is of type string; allowed: a function'],
  [
    { credentials: (async () => ({})) as never },
    'credentials is an async function; allowed: a function that',
  ],
  [{ accessToken: 'hunter22' as never }, 'accessToken is of type string; allowed: a function'],
  [{ ca: [] as never }, 'ca is of type object; allowed: certificates in PEM form as a text'],
  [{ connections: 0 }, 'connections is 0; allowed: whole numbers from 1 on'],
  [{ connections: 1.5 }, 'connections is 1.5'],
  [{ nonce: 'Window' as 'window' }, 'nonce is "Window"; allowed: increasing, window'],
  [{ timeoutMs: 0 }, 'timeoutMs is 0; allowed: milliseconds greater than 0, at most 2147483647'],
  [{ bases: [] }, 'bases is an empty list; allowed: a list of one base address or more'],
  [{ bases: 'http://127.0.0.1:1' as never }, 'bases is "http://127.0.0.1:1"; allowed: a list of one base'],
  [{ userAgent: 'a\nb' }, 'userAgent is "a\\nb"; allowed: a text of ASCII characters on one line'],
  [from('http://exchange.example'), `${PLAIN} 127.0.0.1, [::1] or localhost; write https://exchange.example`],
  [from('ftp://exchange.example'), 'allowed: https: (http: only to loopback)'],
  [from('exchange.example'), 'is not a URL; write https://HOST[:PORT]'],
  [from('https://exchange.example/api/v4'), 'goes on after the host; write https://exchange.example'],
  [from('https://exchange.example?a=1'), 'goes on after the host'],
  [
    from('https://user:hunter22@exchange.example'),
    'of exchange.example names a user or password; write https://e',
  ],
  [from('http://127.0.0.1:0'), 'has port 0, where nobody listens; write http://HOST[:PORT]'],
])('no client is made with %j', (options, message) => {
  expect(() => openClient(NOWHERE, options)).toThrow(message);
  expect(() => openClient(NOWHERE, options)).not.toThrow('hunter22');
});

test('an option that a call does not know is refused with the nearest name, and nothing is sent', async () => {
  const server = await serveReply(['pong']);
  const options = { timeout: 5 } as never;
  const error = await errorOf(openClient(server.base).ping(options));
  const message =
    'a call has no argument "timeout"; allowed: signal, timeoutMs, base, accessToken; did you mean timeoutMs?';
  expect(error).toMatchObject({ name: 'ArgumentError', argument: 'timeout', message });
  expect(server.connections()).toBe(0);
});

test('https, plain http to the loopback and a slash at the end are an address for requests', async () => {
  for (const base of ['https://exchange.example:8443', 'http://[::1]:8080', 'http://localhost'])
    expect(() => openClient(base)).not.toThrow();
  const { base } = await serveReply(['pong']);
  expect(await openClient(`${base}/`).ping()).toBeGreaterThan(0);
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
  expect(error).toMatchObject({ name: 'ArgumentError', ...told(message) });
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
  const server = await serveReply({}, 404);
  const client = openClient(server.base, { credentials: () => given as Credentials });
  const message: unknown = expect.stringContaining(`the API key could not be read: ${problem}`);
  const error = await errorOf(client.myCodes());
  expect(error).toMatchObject({ name: 'CredentialError', message, maybeApplied: false });
  expect(server.connections()).toBe(0);
  expect(await errorOf(client.ping())).toMatchObject({ name: 'NotFoundError' });
});

test('an access token that cannot be read is an error of its own, with its cause', async () => {
  const cause = new Error('no such file');
  const accessToken = () => {
    throw cause;
  };
  const error = await errorOf(openClient(NOWHERE, { accessToken }).orderHistory());
  const message = 'the access token could not be read: no such file';
  expect(error).toMatchObject({ name: 'CredentialError', message, maybeApplied: false, cause });
});

test('a value of any length makes one short line', async () => {
  const error = await refusal('createNewAddress', { ticker: `${'x'.repeat(10_000)}\n\u2028` });
  expect((error as Error).message).toMatch(/^ticker is a text of 10002 characters; allowed: .{20,60}$/u);
  const market = `x_${'x'.repeat(10_000)}`;
  const other = await refusal('syncKillSwitch', { market, timeoutSeconds: 60 });
  expect((other as Error).message).toMatch(
    /^market is a text of 10002 characters; allowed: BASE_QUOTE in capitals$/u,
  );
});
