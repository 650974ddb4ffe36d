import { expect, test } from 'vitest';
import { send, signedText } from './raw-client.ts';
import { PATHS, rowsOf, runServer } from './trader.ts';

/** A library for the live exchange, recorded from itself, or written down from its source where that is Go, PHP or C#. */
interface Sender {
  /** All that it sends but key, payload and signature. */
  readonly headers: string;
  /** Of the path, and of the fields after a comma. `NONCE` stands for digits. */
  readonly payload: (path: string, fields: string) => string;
  /** Where the body has other bytes than the payload. */
  readonly body?: (payload: string) => string;
}

const JSON_TYPE = 'content-type: application/json';

const SENDERS: Readonly<Record<string, Sender>> = {
  // ccxt 4.5.84 for JavaScript.
  CCXT: {
    headers: `user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) | ${JSON_TYPE} | accept-encoding: gzip, deflate, br`,
    payload: (path, fields) => `{"request":"${path}","nonce":"NONCE","nonceWindow":false${fields}}`,
  },
  // The exchange's own library for Python, which signs JSON without white space and sends it with some.
  PYTHON: {
    headers: `user-agent: python-sdk | accept-encoding: gzip, deflate | accept: */* | ${JSON_TYPE}`,
    payload: (path, fields) => `{${fields.slice(1)},"request":"${path}","nonce":NONCE,"nonceWindow":true}`,
    body: (payload) => payload.replaceAll('":', '": ').replaceAll(',"', ', "'),
  },
  // The exchange's own command line.
  CLI: {
    headers: `accept: application/json | user-agent: cli/1.0.0 | ${JSON_TYPE} | accept-language: * | sec-fetch-mode: cors | accept-encoding: gzip, deflate`,
    payload: (path, fields) => `{"request":"${path}","nonce":NONCE,"nonceWindow":true${fields}}`,
  },
  // An asynchronous library for Python, which leaves the window out and sends the nonce as text.
  AIOHTTP: {
    headers: `accept: */* | ${JSON_TYPE} | user-agent: Python/3.11 aiohttp/3.14`,
    payload: (path, fields) => `{"request":"${path}","nonce":"NONCE"${fields}}`,
  },
  // The exchange's own library for Go.
  GO: {
    headers: `user-agent: Go-http-client/1.1 | ${JSON_TYPE} | accept-encoding: gzip`,
    payload: (path, fields) => `{"request":"${path}","nonce":NONCE,"nonceWindow":true${fields}}`,
  },
  // The exchange's own library for PHP, whose body is the JSON that it has signed with the slashes escaped.
  PHP: {
    headers: `user-agent: GuzzleHttp/7 | ${JSON_TYPE}`,
    payload: (path, fields) => `{${fields.slice(1)},"request":"${path}","nonce":NONCE,"nonceWindow":true}`,
    body: (payload) => payload.replaceAll('/', '\\/'),
  },
  // A library for .NET.
  NET: {
    headers: `accept: application/json | ${JSON_TYPE}; charset=utf-8`,
    payload: (path, fields) => `{${fields.slice(1)},"request":"${path}","nonce":"NONCE","nonceWindow":false}`,
  },
};

/** What the words in the table stand for. */
const FIELDS: Readonly<Record<string, string>> = {
  BUY: ',"market":"BTC_USDT","side":"buy","amount":"0.01"',
  SELL_NUMBER: ',"market":"BTC_USDT","side":"sell","amount":0.01',
  TO: ',"ticker":"USDT","amount":"5","address":"Tx","network":"TRC20"',
  SYNC: ',"market":"BTC_USDT"',
};

const NUMBER: unknown = expect.any(Number);
const TEXT: unknown = expect.any(String);
const ANY_LIST: unknown = expect.any(Array);
const deal = { dealMoney: '600', dealStock: '0.01', amount: '0.01', left: '0', dealFee: '0.6' };
const rest = { orderId: NUMBER, timestamp: NUMBER, takerFee: TEXT, makerFee: TEXT, price: TEXT };
const armed = { market: 'BTC_USDT', startTime: NUMBER, cancellationTime: NUMBER };
const order = { market: 'BTC_USDT', type: 'stock market', status: 'FILLED', ...deal, ...rest };

/** What the library or its users read of a reply, by the word that stands for it in the table. */
const READS: Readonly<Record<string, (...words: string[]) => unknown>> = {
  order: (side, clientOrderId = '') => ({ ...order, side, clientOrderId }),
  flags: (side, clientOrderId = '') => ({ ...order, side, clientOrderId, postOnly: false, ioc: false }),
  timer: (types = '') => ({ ...armed, types: JSON.parse(types) as unknown }),
  codes: () => ({ total: NUMBER, data: ANY_LIST, limit: 2, offset: 0 }),
  hashrate: () => ({ data: { account: 'rig', hashrate: ANY_LIST } }),
  address: () => ({ account: { address: TEXT } }),
  empty: () => [],
};

/** Sender, what its user called, operation, fields, status, and what is read of the reply. */
const TABLE = `
CCXT | buys at the market | stockMarket | BUY,"clientOrderId":"c-1" | 200 | order buy c-1
CCXT | sets the timer of types | killSwitch | SYNC,"timeout":"60","types":["spot"] | 200 | timer ["spot"]
CCXT | deletes the timer with the text null | killSwitch | SYNC,"timeout":"null" | 200 | empty
CCXT | makes an address | newAddress | ,"ticker":"USDT","network":"TRC20" | 201 | address
CCXT | withdraws | withdrawPay | TO,"uniqueId":"u1" | 201 | empty
CCXT | lists codes | codes | ,"limit":2 | 201 | codes
PYTHON | buys at the market | stockMarket | BUY | 200 | order buy
PYTHON | sells a number | stockMarket | SELL_NUMBER,"clientOrderId":"py-1" | 200 | order sell py-1
PYTHON | sets the timer | killSwitch | SYNC,"timeout":"60","types":["spot"] | 200 | timer ["spot"]
PYTHON | deletes the timer | killSwitch | SYNC,"timeout":null | 200 | empty
CLI | buys at the market | stockMarket | BUY | 200 | order buy
CLI | sets the timer with a number | killSwitch | SYNC,"timeout":60 | 200 | timer null
CLI | makes an address | newAddress | ,"ticker":"USDT","network":"TRC20" | 201 | address
CLI | reads the hashrate | hashrate | ,"account":"rig" | 200 | hashrate
AIOHTTP | buys at the market | stockMarket | BUY,"clientOrderId":"aio-1" | 200 | order buy aio-1
GO | buys at the market | stockMarket | BUY | 200 | flags buy
GO | sets the timer | killSwitch | SYNC,"timeout":"120","types":["spot"] | 200 | timer ["spot"]
PHP | buys at the market | stockMarket | BUY,"clientOrderId":"php-1" | 200 | flags buy php-1
PHP | sets the timer without types | killSwitch | SYNC,"timeout":"60","types":[] | 200 | timer null
PHP | withdraws | withdrawPay | TO,"uniqueId":"php-1" | 201 | empty
NET | buys at the market | stockMarket | BUY,"clientOrderId":"net-1" | 200 | order buy net-1
NET | sets the timer | killSwitch | SYNC,"timeout":"60","types":null | 200 | timer null
NET | deletes the timer | killSwitch | SYNC,"timeout":null,"types":null | 200 | empty
`;

const server = runServer({ exchange: { profile: 'live', newAddresses: true } });
const headersOf = (text: string) =>
  Object.fromEntries(text.split(' | ').map((line) => line.split(': '))) as Record<string, string>;

let lastNonce = 0;
/** Some come with a window, so that it may not run ahead of the clock as the nonces of other tests do. */
function nonceOfNow(): string {
  lastNonce = Math.max(lastNonce + 1, Date.now());
  return String(lastNonce);
}

// Each with a nonce and a signature of now, and in a connection of its own.
test.each(rowsOf(TABLE))('%s %s', async (sender, _does, name, given, status, reads) => {
  const { headers, payload, body = (text) => text } = SENDERS[sender] ?? expect.fail(sender);
  const fields = given.replace(/^[A-Z_]+/, (word) => FIELDS[word] ?? word);
  const path = PATHS[name as keyof typeof PATHS];
  const text = payload(path, fields).replace('NONCE', nonceOfNow());
  const sent = signedText(text, { path });
  const shown = { ...sent.headers, ...headersOf(headers) };
  const received = await send(server().url, { ...sent, headers: shown, body: body(text) });
  const [word = '', ...words] = reads.split(' ');
  expect(received.status).toBe(Number(status));
  expect(JSON.parse(received.body)).toMatchObject(READS[word]?.(...words) as object);
});

test("the exchange's own library for Python with a token reads the order history", async () => {
  const headers = `x-fern-language: Python | authorization: Bearer demo-token | ${JSON_TYPE} | user-agent: python-httpx/0.28.1`;
  const sent = { method: 'POST', path: PATHS.history, headers: headersOf(headers), body: '{"limit": 2}' };
  const { status, body } = await send(server().url, sent);
  expect([status, JSON.parse(body)]).toEqual([200, expect.any(Object)]);
});
