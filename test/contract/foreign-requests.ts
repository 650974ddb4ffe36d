import { PATHS } from '../simulator/trader.ts';

/**
 * A private request as a library for the live exchange sends it: recorded from the library itself, or written down from
 * its source where that is in Go, PHP or C#.
 */
export interface Recorded {
  readonly library: string;
  /** What its user called, in words. */
  readonly does: string;
  readonly path: string;
  /** All that it sends but key, payload and signature. */
  readonly headers: Readonly<Record<string, string>>;
  /** `NONCE` stands for digits. */
  readonly payload: string;
  /** Only where the body has other bytes than the payload. */
  readonly body?: string;
  readonly status: number;
  /** What the library or its users read of the reply; a type stands for any value of it. */
  readonly reads: unknown;
}

interface Sender {
  readonly library: string;
  readonly headers: Readonly<Record<string, string>>;
  /** How `request`, nonce and the rest become a payload, and a body where that is another text. */
  readonly write: (path: string, fields: string) => Pick<Recorded, 'payload' | 'body'>;
}

const CCXT: Sender = {
  library: 'ccxt 4.5.84 for JavaScript',
  headers: {
    connection: 'keep-alive',
    'user-agent': 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)',
    'content-type': 'application/json',
    'accept-encoding': 'gzip, deflate, br',
  },
  write: (path, fields) => ({
    payload: `{"request":"${path}","nonce":"NONCE","nonceWindow":false${fields}}`,
  }),
};

/** It signs JSON without white space and lets the library below it write the body, which has some. */
const PYTHON: Sender = {
  library: "the exchange's own library for Python",
  headers: {
    'user-agent': 'python-sdk',
    'accept-encoding': 'gzip, deflate',
    accept: '*/*',
    connection: 'keep-alive',
    'content-type': 'application/json',
  },
  write(path, fields) {
    const payload = `{${fields.slice(1)},"request":"${path}","nonce":NONCE,"nonceWindow":true}`;
    return { payload, body: payload.replaceAll('":', '": ').replaceAll(',"', ', "') };
  },
};

const CLI: Sender = {
  library: "the exchange's own command line",
  headers: {
    connection: 'keep-alive',
    accept: 'application/json',
    'user-agent': 'cli/1.0.0',
    'content-type': 'application/json',
    'accept-language': '*',
    'sec-fetch-mode': 'cors',
    'accept-encoding': 'gzip, deflate',
  },
  write: (path, fields) => ({ payload: `{"request":"${path}","nonce":NONCE,"nonceWindow":true${fields}}` }),
};

/** It leaves the window out and sends the nonce as text. */
const AIOHTTP: Sender = {
  library: 'an asynchronous library for Python',
  headers: { accept: '*/*', 'content-type': 'application/json', 'user-agent': 'Python/3.11 aiohttp/3.14' },
  write: (path, fields) => ({ payload: `{"request":"${path}","nonce":"NONCE"${fields}}` }),
};

const GO: Sender = {
  library: "the exchange's own library for Go",
  headers: {
    'user-agent': 'Go-http-client/1.1',
    'content-type': 'application/json',
    'accept-encoding': 'gzip',
  },
  write: (path, fields) => ({ payload: `{"request":"${path}","nonce":NONCE,"nonceWindow":true${fields}}` }),
};

/** Its body is the JSON that it has signed, with the slashes escaped. */
const PHP: Sender = {
  library: "the exchange's own library for PHP",
  headers: { 'user-agent': 'GuzzleHttp/7', 'content-type': 'application/json' },
  write(path, fields) {
    const payload = `{${fields.slice(1)},"request":"${path}","nonce":NONCE,"nonceWindow":true}`;
    return { payload, body: payload.replaceAll('/', '\\/') };
  },
};

const NET: Sender = {
  library: 'a library for .NET',
  headers: { accept: 'application/json', 'content-type': 'application/json; charset=utf-8' },
  write: (path, fields) => ({
    payload: `{${fields.slice(1)},"request":"${path}","nonce":"NONCE","nonceWindow":false}`,
  }),
};

function recorded(
  { library, headers, write }: Sender,
  does: string,
  path: string,
  [fields, status, reads]: readonly [fields: string, status: number, reads: unknown],
): Recorded {
  return { library, does, path, headers, ...write(path, fields), status, reads };
}

const {
  stockMarket: ORDER,
  killSwitch: SWITCH,
  withdrawPay: WITHDRAW,
  codes: CODES,
  hashrate: HASHRATE,
  history: HISTORY,
  newAddress: ADDRESS,
} = PATHS;

const order = (side: string, clientOrderId: string) => ({
  orderId: Number,
  clientOrderId,
  market: 'BTC_USDT',
  side,
  type: 'stock market',
  timestamp: Number,
  dealMoney: '600',
  dealStock: '0.01',
  amount: '0.01',
  takerFee: String,
  makerFee: String,
  left: '0',
  dealFee: '0.6',
  price: String,
  status: 'FILLED',
});
const timer = (types: readonly string[] | null) => ({
  market: 'BTC_USDT',
  startTime: Number,
  cancellationTime: Number,
  types,
});
const codes = { total: Number, data: Array, limit: 2, offset: 0 };
const hashrate = { data: { account: 'rig', hashrate: Array } };

const buy = (rest: string) => `,"market":"BTC_USDT","side":"buy","amount":"0.01"${rest}`;
const sync = (rest: string) => `,"market":"BTC_USDT",${rest}`;
const withdrawal = (uniqueId: string) =>
  `,"ticker":"USDT","amount":"5","address":"Tx","uniqueId":"${uniqueId}","network":"TRC20"`;

export const RECORDED: readonly Recorded[] = [
  recorded(CCXT, 'buys at the market', ORDER, [
    buy(',"clientOrderId":"ccxt0a7a35b6c4cb8725"'),
    200,
    order('buy', 'ccxt0a7a35b6c4cb8725'),
  ]),
  recorded(CCXT, 'sells at the market', ORDER, [
    ',"market":"BTC_USDT","side":"sell","amount":"0.01","clientOrderId":"mine-1"',
    200,
    order('sell', 'mine-1'),
  ]),
  recorded(CCXT, 'sets the timer', SWITCH, [sync('"timeout":"60"'), 200, timer(null)]),
  recorded(CCXT, 'sets the timer of some types', SWITCH, [
    sync('"timeout":"60","types":["spot"]'),
    200,
    timer(['spot']),
  ]),
  recorded(CCXT, 'deletes the timer with null of its user', SWITCH, [sync('"timeout":null'), 200, []]),
  recorded(CCXT, 'deletes the timer with the text null', SWITCH, [sync('"timeout":"null"'), 200, []]),
  recorded(CCXT, 'makes a deposit address', ADDRESS, [
    ',"ticker":"USDT","network":"TRC20"',
    201,
    { account: { address: String } },
  ]),
  recorded(CCXT, 'withdraws', WITHDRAW, [withdrawal('u1'), 201, []]),
  recorded(CCXT, 'lists codes', CODES, [',"limit":2', 201, codes]),
  recorded(CCXT, 'reads the hashrate', HASHRATE, [',"account":"rig","interval":"1h"', 200, hashrate]),
  recorded(PYTHON, 'buys at the market', ORDER, [buy(''), 200, order('buy', '')]),
  recorded(PYTHON, 'sells a number', ORDER, [
    ',"market":"BTC_USDT","side":"sell","amount":0.01,"clientOrderId":"py-1"',
    200,
    order('sell', 'py-1'),
  ]),
  recorded(PYTHON, 'sets the timer', SWITCH, [sync('"timeout":"60","types":["spot"]'), 200, timer(['spot'])]),
  recorded(PYTHON, 'deletes the timer', SWITCH, [sync('"timeout":null'), 200, []]),
  recorded(PYTHON, 'lists codes', CODES, [',"limit":2', 201, codes]),
  {
    library: "the exchange's own library for Python with a token",
    does: 'reads the order history',
    path: HISTORY,
    headers: {
      'x-fern-language': 'Python',
      authorization: 'Bearer demo-token',
      'content-type': 'application/json',
      'user-agent': 'python-httpx/0.28.1',
    },
    payload: '{"limit": 2}',
    status: 200,
    reads: {},
  },
  recorded(CLI, 'buys at the market', ORDER, [buy(''), 200, order('buy', '')]),
  recorded(CLI, 'sets the timer with a number', SWITCH, [sync('"timeout":60'), 200, timer(null)]),
  recorded(CLI, 'makes a deposit address', ADDRESS, [
    ',"ticker":"USDT","network":"TRC20"',
    201,
    { account: { address: String } },
  ]),
  recorded(CLI, 'withdraws', WITHDRAW, [withdrawal('cli-1'), 201, []]),
  recorded(CLI, 'lists codes', CODES, [',"limit":2', 201, codes]),
  recorded(CLI, 'reads the hashrate', HASHRATE, [',"account":"rig"', 200, hashrate]),
  recorded(AIOHTTP, 'buys at the market', ORDER, [
    buy(',"clientOrderId":"aio-1"'),
    200,
    order('buy', 'aio-1'),
  ]),
  recorded(GO, 'buys at the market', ORDER, [
    ',"market":"BTC_USDT","amount":"0.01","side":"buy"',
    200,
    { ...order('buy', ''), postOnly: false, ioc: false },
  ]),
  recorded(GO, 'sets the timer', SWITCH, [sync('"timeout":"120","types":["spot"]'), 200, timer(['spot'])]),
  recorded(GO, 'lists codes', CODES, [',"limit":2', 201, codes]),
  recorded(PHP, 'buys at the market', ORDER, [
    ',"market":"BTC_USDT","side":"buy","clientOrderId":"php-1","amount":"0.01"',
    200,
    { ...order('buy', 'php-1'), postOnly: false, ioc: false },
  ]),
  recorded(PHP, 'sets the timer without naming types', SWITCH, [
    sync('"timeout":"60","types":[]'),
    200,
    timer(null),
  ]),
  recorded(PHP, 'makes a deposit address', ADDRESS, [
    ',"ticker":"BTC","type":"bech32"',
    201,
    { account: { address: String } },
  ]),
  recorded(PHP, 'lists codes', CODES, [',"limit":2', 201, codes]),
  recorded(PHP, 'withdraws', WITHDRAW, [withdrawal('php-1'), 201, []]),
  recorded(NET, 'buys at the market', ORDER, [buy(',"clientOrderId":"net-1"'), 200, order('buy', 'net-1')]),
  recorded(NET, 'sets the timer', SWITCH, [sync('"timeout":"60","types":null'), 200, timer(null)]),
  recorded(NET, 'deletes the timer', SWITCH, [sync('"timeout":null,"types":null'), 200, []]),
  recorded(NET, 'makes a deposit address', ADDRESS, [
    ',"ticker":"USDT","network":"TRC20"',
    201,
    { account: { address: String } },
  ]),
  recorded(NET, 'withdraws', WITHDRAW, [withdrawal('net-1'), 201, []]),
];
