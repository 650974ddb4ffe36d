import type { OperationName } from '../../src/exchange/operations.ts';

export type RowKind = 'operation' | 'request' | 'reply' | 'rule' | 'state' | 'status' | 'code' | 'limit';

/** One thing that the API document says. */
export interface Row {
  /** Heading of the document under which it stands. */
  readonly section: string;
  /** Null where it holds for more than one operation. */
  readonly operation: OperationName | null;
  readonly kind: RowKind;
  /** Of a reply the path of a field, `[]` for each element of a list. */
  readonly name: string;
  /** Type and rules, in short; of a reply its type. */
  readonly says: string;
}

/** Names a row in cases and tables. */
export const rowId = ({ operation, kind, name }: Row): string => `${operation ?? 'all'} ${kind} ${name}`;

/**
 * One row on a line: operation (or `all`), kind and name, and what it says. Fields of a reply stand several on a line.
 *
 * Under it examples, which are sample requests with other fields, or without those that are "-". `->` is a refusal: status,
 * code and field, what its message says, and `sent` where only the exchange can know. `=>` is what the reply says.
 */
const DOCUMENT = `
POST /api/v4/order/stock_market
  createStockMarketOrder operation POST /api/v4/order/stock_market | Creates a stock market order.
  createStockMarketOrder status 200 | order created
  createStockMarketOrder status 400 | inner validation failed
    {"amount":"1000001"} -> 400 32 amount /./ sent
  createStockMarketOrder status 422 | request validation failed
    {"side":7} -> 422 30 side
  createStockMarketOrder status 503 | temporarily unavailable
POST /api/v4/accounts/orders
  orderHistory operation POST /api/v4/accounts/orders | Returns the history of trading orders. A JSON object each way.
POST /api/v4/main-account/withdraw-pay
  withdrawPay operation POST /api/v4/main-account/withdraw-pay | Creates a withdrawal.
  withdrawPay request ticker | string; can_deposit must be true
    {"ticker":"XMR","amount":"1","network":"XMR"} -> 400 30 ticker /can_deposit/ sent
    without ticker -> 422 30 ticker
  withdrawPay request amount | string; what the receiver gets
    without amount -> 422 30 amount
  withdrawPay request address | string
    without address -> 422 30 address
  withdrawPay request unique_id | string; a new one for every withdrawal
    without unique_id -> 422 30 unique_id
  withdrawPay request request | string, endpoint path
  withdrawPay request nonce | string, unique
  withdrawPay request provider | string; required if the currency is fiat
    {"ticker":"EUR","network":"-"} -> 422 30 provider /./ sent
    {"ticker":"EUR","network":"-","provider":"NOBODY"} -> 400 30 provider /./ sent
  withdrawPay request network | string; default for USDT is ERC20
    {"network":"NOWHERE"} -> 400 30 network /./ sent
  withdrawPay rule fee on top | The fee is deducted in addition to the amount.
    {"amount":"999998"} -> 400 32 amount /./ sent
  withdrawPay rule not cached | Responses are not cached.
  withdrawPay status 200 | validation succeeded, the withdrawal has begun
POST /api/v4/order/kill-switch
  syncKillSwitch operation POST /api/v4/order/kill-switch | Sets, updates or deletes the timer.
  syncKillSwitch request market | string, required
    {"market":"-"} -> 422 30 market /required/
  syncKillSwitch request timeout | string or null, required; 5 to 600
  syncKillSwitch request types | array of spot, margin, futures, or null for all
    {"types":["spot","options"]} -> 422 30 types
    {"types":null} => /"types":\\["spot","margin","futures"\\]/
  syncKillSwitch request request | string, endpoint path
  syncKillSwitch request nonce | string, unique
POST /api/v4/main-account/codes/my
  myCodes operation POST /api/v4/main-account/codes/my | Lists the codes created by the account.
  myCodes request request | string, endpoint path
  myCodes request nonce | string, unique
  myCodes request limit | integer; 1 to 100
    {"limit":"10"} -> 422 30 limit
  myCodes request offset | integer; 0 to 10000
  myCodes reply | total integer, limit integer, offset integer
  myCodes rule not cached | Responses are not cached.
POST /api/v4/mining/hashrate
  miningHashrate operation POST /api/v4/mining/hashrate | Returns the hashrate of an account.
  miningHashrate request account | string, mining account name
  miningHashrate request from | integer, Unix time
  miningHashrate request to | integer, Unix time
  miningHashrate request interval | string such as 1h
    {"interval":"often"} -> 422 30 interval
  miningHashrate reply | data.account string
  miningHashrate rule not cached | Responses are not cached.
POST /api/v4/main-account/create-new-address
  createNewAddress operation POST /api/v4/main-account/create-new-address | Creates a new deposit address.
  createNewAddress request ticker | string
    without ticker -> 422 30 ticker
  createNewAddress request request | string, endpoint path
  createNewAddress request nonce | string, unique
  createNewAddress request network | string; default for USDT is ERC20
    {"ticker":"USDT","network":"-"} => /"address":"0x/
    {"ticker":"USDT","network":"TRC20"} => /"address":"T/
  createNewAddress request type | string; p2sh-segwit or bech32; BTC and LTC only; default bech32
    {"ticker":"BTC","network":"-"} => /"address":"bc1q/
    {"ticker":"LTC","network":"-"} => /"address":"ltc1q/
    {"ticker":"BTC","network":"-","type":"p2sh-segwit"} => /"address":"3/
    {"ticker":"ETH","network":"-","type":"bech32"} -> 400 30 type
    {"ticker":"BTC","network":"-","type":"legacy"} -> 400 30 type
  createNewAddress rule disabled by default | It must be enabled for the account.
  createNewAddress rule even when unused | A new one even when the last one has not been used.
  createNewAddress rule not cached | Responses are not cached.
GET /api/v4/public/mining-pool
  miningPool operation GET /api/v4/public/mining-pool | Returns the mining pool overview.
GET /api/v4/public/ping
  ping operation GET /api/v4/public/ping | Returns an array with one string, pong.
Market order request
  createStockMarketOrder request market | string, required; an available market BASE_QUOTE
    without market -> 422 30 market /required/
  createStockMarketOrder request side | string, required; buy or sell
    without side -> 422 30 side /required/
  createStockMarketOrder request amount | string, required; numeric string or number; buy in quote, sell in base
    {"amount":60} => /"amount":"60"/
    without amount -> 422 30 amount /required/
  createStockMarketOrder request client_order_id | string; unique; letters, dashes, digits, dots and underscores
    {"client_order_id":"aZ-09._"} => /"client_order_id":"aZ-09\\._"/
    without client_order_id => /"client_order_id":""/
  createStockMarketOrder request stp | string; no, cancel_both, cancel_new, cancel_old
    {"stp":"maybe"} -> 422 30 stp
    {"stp":"cancel_old"} => /"stp":"cancel_old"/
    {"stp":"cancel_new"} => /"stp":"cancel_new"/
    {"stp":"cancel_both"} => /"stp":"cancel_both"/
    {"stp":"no"} => /"stp":"no"/
  createStockMarketOrder request request | string, endpoint path
  createStockMarketOrder request nonce | string, unique
  createStockMarketOrder rule minimum total | A buy has a minimum total, in the quote currency.
    {"amount":"4.99"} -> 400 32 amount /less than min amount 5 Min amount step = 0\\.01/ sent
  createStockMarketOrder rule minimum amount | A sell has a minimum amount, in the base currency.
    {"side":"sell","amount":"0.00009"} -> 400 32 amount /min amount 0\\.0001 Min amount step = / sent
Order
  createStockMarketOrder reply | order_id integer, client_order_id string, market string, side string
  createStockMarketOrder reply | type string, timestamp number, deal_money string, deal_stock string
  createStockMarketOrder reply | amount string, left string, deal_fee string, price string
  createStockMarketOrder reply | postOnly boolean, ioc boolean, status string, stp string
  createStockMarketOrder reply | positionSide string, rpi boolean
Kill-switch timer
  syncKillSwitch reply | market string, startTime integer, cancellationTime integer, types[] string
Code record
  myCodes reply | data[].amount string, data[].code string, data[].date integer, data[].status string
  myCodes reply | data[].ticker string, data[].external_id string
Hashrate point
  miningHashrate reply | data.hashrate[].timestamp integer, data.hashrate[].hashrate string
Deposit address record
  createNewAddress reply | account.address string, account.memo string, required.fixedFee string
  createNewAddress reply | required.flexFee.maxFee string, required.flexFee.minFee string
  createNewAddress reply | required.flexFee.percent string, required.maxAmount string
  createNewAddress reply | required.minAmount string
Mining pool overview record
  miningPool reply | data.connection_links[] string, data.location string, data.assets[] string
  miningPool reply | data.reward_schemes[] string, data.workers integer, data.current_hash_rate string
  miningPool reply | data.last7days_hash_rate[].timestamp integer
  miningPool reply | data.last7days_hash_rate[].hashrate string, data.blocks[].block_found_at integer
  miningPool reply | data.blocks[].block_height integer
API overview
  all rule public by GET | Public endpoints use GET.
  all rule private by POST | Private endpoints use POST with a JSON body.
  all rule JSON answers | Every response is JSON, either an object or an array.
  all rule Unix time | Every time value is Unix time.
  all rule amounts as strings | Amounts and prices in responses are JSON strings.
Authentication
  all rule Content-type | application/json
  all rule X-TXC-APIKEY | the public API key
  all rule X-TXC-PAYLOAD | Base64 of the JSON body
  all rule X-TXC-SIGNATURE | HMAC-SHA512, hex
  all rule request and nonce | The body must contain the path, and the nonce as a string.
  all rule permissions | The key must carry permissions appropriate to the operation.
  all rule bearer token | Order history uses OAuth 2.0 instead.
  all rule public without authentication | Public endpoints need no authentication.
Errors
  all rule private error object | code, message, errors by parameter
  all rule public error object | success false, message, params
  all rule empty errors | errors may be empty
Versioning
  all rule path prefix | /api/v4
  all rule both base addresses | The same paths are served on both.
States and transitions
  syncKillSwitch state none to active | cancellationTime is startTime + timeout.
  syncKillSwitch state active to active | The timer is updated; same shape.
  syncKillSwitch state active to none | A null timeout deletes the timer of the market.
  syncKillSwitch state fires for all types | When types is null, orders of all types of the market are cancelled.
  syncKillSwitch state fires for its types | Else those of the given types.
  createStockMarketOrder state FILLED | the only status of an order that is named
  myCodes state Activated | the only status of a code that is known
Codes for order creation
  createStockMarketOrder code 30 required | A missing amount, market or side: a message per field.
    {"amount":"-"} -> 422 30 amount /required/
  createStockMarketOrder code 30 side | side may hold only buy or sell.
    {"side":"hold"} -> 422 30 side /buy or sell/
  createStockMarketOrder code 31 not available | market not available
    {"market":"NO_MARKET"} -> 400 31 market /not available/ sent
  createStockMarketOrder code 31 empty | market must not be an empty string
    {"market":""} -> 422 31 market /empty string/
  createStockMarketOrder code 32 not numeric | amount must be a numeric string or number
    {"amount":"much"} -> 422 32 amount /numeric string or number/
  createStockMarketOrder code 32 balance | not enough balance
    {"amount":"99999999"} -> 400 32 amount /[Nn]ot enough balance/ sent
  createStockMarketOrder code 32 minimum | less than the minimum amount, plus the minimum amount step
    {"side":"sell","amount":"0.0100001"} -> 400 32 amount /Min amount step = 0\\.000001/ sent
  createStockMarketOrder code 36 string | client_order_id must be a string
    {"client_order_id":7} -> 422 36 client_order_id /must be a string/
  createStockMarketOrder rule message | Validation failed
Codes for the kill-switch
  syncKillSwitch code 30 market | market required
    without market -> 422 30 market /required/
  syncKillSwitch code 30 timeout | timeout required
    without timeout -> 422 30 timeout /required/
  syncKillSwitch code 30 below 5 | should be at least 5
    {"timeout":"4"} -> 422 30 timeout /should be at least 5/
  syncKillSwitch code 31 not available | market not available
    {"market":"NO_MARKET"} -> 422 31 market /not available/ sent
  syncKillSwitch rule message | Validation failed
Mining hashrate
  miningHashrate code 422 timestamp | Incorrect timestamp
    {"from":1700007200,"to":1700000000} -> 422 422 from /^$/
    {"from":4000000000,"to":4000003600} -> 422 422 from /^$/ sent
Limits
  createStockMarketOrder limit 10000 in 10 s | POST /order/stock_market
  syncKillSwitch limit 10000 in 10 s | POST /order/kill-switch
  withdrawPay limit 1000 in 10 s | POST /main-account/withdraw-pay
  myCodes limit 1000 in 10 s | POST /main-account/codes/my
  miningHashrate limit 1000 in 10 s | POST /mining/hashrate
  createNewAddress limit 1000 in 10 s | POST /main-account/create-new-address
  miningPool limit 1000 in 10 s | GET /public/mining-pool
  ping limit 2000 in 10 s | public endpoints in general
Other limits
  syncKillSwitch limit timeout | 5 to 600, or null to delete
    {"timeout":"601"} -> 422 30 timeout
  myCodes limit limit | 1 to 100
    {"limit":0} -> 422 30 limit
    {"limit":101} -> 422 30 limit
  myCodes limit offset | 0 to 10000
    {"offset":-1} -> 422 30 offset
    {"offset":10001} -> 422 30 offset
  createStockMarketOrder limit client_order_id | unique; letters, dashes, digits, dots, underscores
    {"client_order_id":"a/b"} -> 422 36 client_order_id
  withdrawPay limit unique_id | new value per withdrawal
`;

/** One request that a row is about. */
export interface Example {
  readonly row: Row;
  /** As it is written. */
  readonly text: string;
  /** Other fields than those of the sample; undefined for none. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly expected: { readonly says: RegExp } & (
    | { readonly kind: 'reply' }
    | { readonly kind: 'refusal'; status: number; code: number; field: string; sent: boolean }
  );
}

/** What the API document says: its operations, fields, rules, states, codes and limits. */
export const ROWS: Row[] = [];
export const EXAMPLES: Example[] = [];

let section = '';
for (const line of DOCUMENT.trim().split('\n')) {
  const text = line.trim();
  const last = ROWS.at(-1);
  if (line === text) section = text;
  else if (line.startsWith('    ') && last !== undefined) EXAMPLES.push(readExample(last, text));
  else ROWS.push(...readRows(text));
}

function readRows(text: string): Row[] {
  const [id = '', says = ''] = text.split(' | ');
  const [first, kind, ...words] = id.split(' ');
  const operation = first === 'all' ? null : (first as OperationName);
  const row: Row = { section, operation, kind: kind as RowKind, name: words.join(' '), says };
  if (row.kind !== 'reply') return [row];
  return says.split(', ').map((field) => {
    const [name = '', type = ''] = field.split(' ');
    return { ...row, name, says: type };
  });
}

function readExample(row: Row, text: string): Example {
  const [, given = '', arrow, rest = ''] = /^(.+) ([-=]>) (.+)$/.exec(text) ?? [];
  const json = given.replace(/^without (\w+)$/, '{"$1":"-"}');
  const fields = JSON.parse(json, (_name, value: unknown) => (value === '-' ? undefined : value)) as object;
  const removed = [...json.matchAll(/"(\w+)":"-"/g)].map(([, name]) => [name, undefined]);
  const says = new RegExp(/\/(.+)\//.exec(rest)?.[1] ?? '');
  const [status, code, field = ''] = rest.split(' ');
  const refusal = { kind: 'refusal', status: Number(status), code: Number(code), field } as const;
  const expected =
    arrow === '=>' ? ({ kind: 'reply' } as const) : { ...refusal, sent: rest.endsWith(' sent') };
  return {
    row,
    text,
    fields: { ...fields, ...Object.fromEntries(removed) },
    expected: { says, ...expected },
  };
}
