import { PATHS } from './trader.ts';

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

const headersOf = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(text.split(' | ').map((line) => line.split(': ')));

const CCXT: Sender = {
  library: 'ccxt 4.5.84 for JavaScript',
  headers: headersOf(
    'connection: keep-alive | user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) | content-type: application/json | accept-encoding: gzip, deflate, br',
  ),
  write: (path, fields) => ({
    payload: `{"request":"${path}","nonce":"NONCE","nonceWindow":false${fields}}`,
  }),
};

/** It signs JSON without white space and lets the library below it write the body, which has some. */
const PYTHON: Sender = {
  library: "the exchange's own library for Python",
  headers: headersOf(
    'user-agent: python-sdk | accept-encoding: gzip, deflate | accept: */* | connection: keep-alive | content-type: application/json',
  ),
  write(path, fields) {
    const payload = `{${fields.slice(1)},"request":"${path}","nonce":NONCE,"nonceWindow":true}`;
    return { payload, body: payload.replaceAll('":', '": ').replaceAll(',"', ', "') };
  },
};

const CLI: Sender = {
  library: "the exchange's own command line",
  headers: headersOf(
    'connection: keep-alive | accept: application/json | user-agent: cli/1.0.0 | content-type: application/json | accept-language: * | sec-fetch-mode: cors | accept-encoding: gzip, deflate',
  ),
  write: (path, fields) => ({ payload: `{"request":"${path}","nonce":NONCE,"nonceWindow":true${fields}}` }),
};

/** It leaves the window out and sends the nonce as text. */
const AIOHTTP: Sender = {
  library: 'an asynchronous library for Python',
  headers: headersOf('accept: */* | content-type: application/json | user-agent: Python/3.11 aiohttp/3.14'),
  write: (path, fields) => ({ payload: `{"request":"${path}","nonce":"NONCE"${fields}}` }),
};

const GO: Sender = {
  library: "the exchange's own library for Go",
  headers: headersOf(
    'user-agent: Go-http-client/1.1 | content-type: application/json | accept-encoding: gzip',
  ),
  write: (path, fields) => ({ payload: `{"request":"${path}","nonce":NONCE,"nonceWindow":true${fields}}` }),
};

/** Its body is the JSON that it has signed, with the slashes escaped. */
const PHP: Sender = {
  library: "the exchange's own library for PHP",
  headers: headersOf('user-agent: GuzzleHttp/7 | content-type: application/json'),
  write(path, fields) {
    const payload = `{${fields.slice(1)},"request":"${path}","nonce":NONCE,"nonceWindow":true}`;
    return { payload, body: payload.replaceAll('/', '\\/') };
  },
};

const NET: Sender = {
  library: 'a library for .NET',
  headers: headersOf('accept: application/json | content-type: application/json; charset=utf-8'),
  write: (path, fields) => ({
    payload: `{${fields.slice(1)},"request":"${path}","nonce":"NONCE","nonceWindow":false}`,
  }),
};

const ORDER = {
  orderId: Number,
  market: 'BTC_USDT',
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
};

/** What is read of a reply, by the word that stands for it in the table. */
function readsOf([what, ...words]: readonly string[]): unknown {
  const [side, clientOrderId = ''] = words;
  switch (what) {
    case 'order':
      return { ...ORDER, side, clientOrderId };
    case 'flags':
      return { ...ORDER, side, clientOrderId, postOnly: false, ioc: false };
    case 'timer':
      return {
        market: 'BTC_USDT',
        startTime: Number,
        cancellationTime: Number,
        types: JSON.parse(words.join('')) as unknown,
      };
    case 'codes':
      return { total: Number, data: Array, limit: 2, offset: 0 };
    case 'hashrate':
      return { data: { account: 'rig', hashrate: Array } };
    case 'address':
      return { account: { address: String } };
    default:
      return [];
  }
}

const SENDERS: Readonly<Record<string, Sender>> = { CCXT, PYTHON, CLI, AIOHTTP, GO, PHP, NET };

/** What the words in the table stand for. */
const FIELDS: Readonly<Record<string, string>> = {
  BUY: ',"market":"BTC_USDT","side":"buy","amount":"0.01"',
  SELL: ',"market":"BTC_USDT","side":"sell","amount":"0.01"',
  SELL_NUMBER: ',"market":"BTC_USDT","side":"sell","amount":0.01',
  TO: ',"ticker":"USDT","amount":"5","address":"Tx","network":"TRC20"',
  SYNC: ',"market":"BTC_USDT"',
};

/** Sender, what its user called, operation, fields, status, and what is read of the reply. */
const TABLE = `
CCXT | buys at the market | stockMarket | BUY,"clientOrderId":"c-1" | 200 | order buy c-1
CCXT | sells at the market | stockMarket | SELL,"clientOrderId":"c-2" | 200 | order sell c-2
CCXT | sets the timer | killSwitch | SYNC,"timeout":"60" | 200 | timer null
CCXT | sets the timer of types | killSwitch | SYNC,"timeout":"60","types":["spot"] | 200 | timer ["spot"]
CCXT | deletes the timer with null of its user | killSwitch | SYNC,"timeout":null | 200 | empty
CCXT | deletes the timer with the text null | killSwitch | SYNC,"timeout":"null" | 200 | empty
CCXT | makes an address | newAddress | ,"ticker":"USDT","network":"TRC20" | 201 | address
CCXT | withdraws | withdrawPay | TO,"uniqueId":"u1" | 201 | empty
CCXT | lists codes | codes | ,"limit":2 | 201 | codes
CCXT | reads the hashrate | hashrate | ,"account":"rig","interval":"1h" | 200 | hashrate
PYTHON | buys at the market | stockMarket | BUY | 200 | order buy
PYTHON | sells a number | stockMarket | SELL_NUMBER,"clientOrderId":"py-1" | 200 | order sell py-1
PYTHON | sets the timer | killSwitch | SYNC,"timeout":"60","types":["spot"] | 200 | timer ["spot"]
PYTHON | deletes the timer | killSwitch | SYNC,"timeout":null | 200 | empty
PYTHON | lists codes | codes | ,"limit":2 | 201 | codes
CLI | buys at the market | stockMarket | BUY | 200 | order buy
CLI | sets the timer with a number | killSwitch | SYNC,"timeout":60 | 200 | timer null
CLI | makes an address | newAddress | ,"ticker":"USDT","network":"TRC20" | 201 | address
CLI | withdraws | withdrawPay | TO,"uniqueId":"cli-1" | 201 | empty
CLI | lists codes | codes | ,"limit":2 | 201 | codes
CLI | reads the hashrate | hashrate | ,"account":"rig" | 200 | hashrate
AIOHTTP | buys at the market | stockMarket | BUY,"clientOrderId":"aio-1" | 200 | order buy aio-1
GO | buys at the market | stockMarket | BUY | 200 | flags buy
GO | sets the timer | killSwitch | SYNC,"timeout":"120","types":["spot"] | 200 | timer ["spot"]
GO | lists codes | codes | ,"limit":2 | 201 | codes
PHP | buys at the market | stockMarket | BUY,"clientOrderId":"php-1" | 200 | flags buy php-1
PHP | sets the timer without types | killSwitch | SYNC,"timeout":"60","types":[] | 200 | timer null
PHP | makes an address | newAddress | ,"ticker":"BTC","type":"bech32" | 201 | address
PHP | lists codes | codes | ,"limit":2 | 201 | codes
PHP | withdraws | withdrawPay | TO,"uniqueId":"php-1" | 201 | empty
NET | buys at the market | stockMarket | BUY,"clientOrderId":"net-1" | 200 | order buy net-1
NET | sets the timer | killSwitch | SYNC,"timeout":"60","types":null | 200 | timer null
NET | deletes the timer | killSwitch | SYNC,"timeout":null,"types":null | 200 | empty
NET | makes an address | newAddress | ,"ticker":"USDT","network":"TRC20" | 201 | address
NET | withdraws | withdrawPay | TO,"uniqueId":"net-1" | 201 | empty
`;

/** It signs nothing: a token goes with the request. */
const WITH_TOKEN: Recorded = {
  library: "the exchange's own library for Python with a token",
  does: 'reads the order history',
  path: PATHS.history,
  headers: headersOf(
    'x-fern-language: Python | authorization: Bearer demo-token | content-type: application/json | user-agent: python-httpx/0.28.1',
  ),
  payload: '{"limit": 2}',
  status: 200,
  reads: {},
};

export const RECORDED: readonly Recorded[] = [WITH_TOKEN, ...TABLE.trim().split('\n').map(readLine)];

function readLine(line: string): Recorded {
  const [sender = '', does = '', name = '', given = '', status, reads = ''] = line.split(' | ');
  const { library, headers, write } = SENDERS[sender] ?? CCXT;
  const path = PATHS[name as keyof typeof PATHS];
  const fields = given.replace(/^[A-Z_]+/, (word) => FIELDS[word] ?? word);
  const reply = readsOf(reads.split(' '));
  return { library, does, path, headers, ...write(path, fields), status: Number(status), reads: reply };
}
