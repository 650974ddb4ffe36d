import type { OperationName } from '../../src/exchange/operations.ts';

export type RowKind = 'operation' | 'request' | 'reply' | 'rule' | 'state' | 'status' | 'code' | 'limit';

/** One thing that the API document says. */
export interface Row {
  /** Heading of the document under which it stands. */
  readonly section: string;
  /** Null where it holds for more than one operation. */
  readonly operation: OperationName | null;
  readonly kind: RowKind;
  readonly name: string;
  /** Type and rules, in short. */
  readonly says: string;
}

/** Names a row in cases and tables. */
export const rowId = ({ operation, kind, name }: Row): string => `${operation ?? 'all'} ${kind} ${name}`;

type Named = Readonly<Record<string, string>>;

const rows = (section: string, operation: OperationName | null, kind: RowKind, named: Named): Row[] =>
  Object.entries(named).map(([name, says]) => ({ section, operation, kind, name, says }));

const ENVELOPE = { request: 'string, endpoint path', nonce: 'string, unique' } as const;
const ORDERS = 'POST /api/v4/order/stock_market';
const WITHDRAW = 'POST /api/v4/main-account/withdraw-pay';
const SWITCH = 'POST /api/v4/order/kill-switch';
const CODES = 'POST /api/v4/main-account/codes/my';
const HASHRATE = 'POST /api/v4/mining/hashrate';
const ADDRESS = 'POST /api/v4/main-account/create-new-address';

const OPERATION_ROWS: readonly Row[] = [
  ...rows(ORDERS, 'createStockMarketOrder', 'operation', { [ORDERS]: 'Creates a stock market order.' }),
  ...rows('POST /api/v4/accounts/orders', 'orderHistory', 'operation', {
    'POST /api/v4/accounts/orders': 'Returns the history of trading orders. A JSON object each way.',
  }),
  ...rows(WITHDRAW, 'withdrawPay', 'operation', { [WITHDRAW]: 'Creates a withdrawal.' }),
  ...rows(SWITCH, 'syncKillSwitch', 'operation', { [SWITCH]: 'Sets, updates or deletes the timer.' }),
  ...rows(CODES, 'myCodes', 'operation', { [CODES]: 'Lists the codes created by the account.' }),
  ...rows(HASHRATE, 'miningHashrate', 'operation', { [HASHRATE]: 'Returns the hashrate of an account.' }),
  ...rows(ADDRESS, 'createNewAddress', 'operation', { [ADDRESS]: 'Creates a new deposit address.' }),
  ...rows('GET /api/v4/public/mining-pool', 'miningPool', 'operation', {
    'GET /api/v4/public/mining-pool': 'Returns the mining pool overview.',
  }),
  ...rows('GET /api/v4/public/ping', 'ping', 'operation', {
    'GET /api/v4/public/ping': 'Returns an array with one string, pong.',
  }),
];

const REQUEST_ROWS: readonly Row[] = [
  ...rows('Market order request', 'createStockMarketOrder', 'request', {
    market: 'string, required; an available market BASE_QUOTE',
    side: 'string, required; buy or sell',
    amount: 'string, required; numeric string or number; buy in quote, sell in base',
    client_order_id: 'string; unique; letters, dashes, digits, dots and underscores',
    stp: 'string; no, cancel_both, cancel_new, cancel_old',
    ...ENVELOPE,
  }),
  ...rows(WITHDRAW, 'withdrawPay', 'request', {
    ticker: 'string; can_deposit must be true',
    amount: 'string; what the receiver gets',
    address: 'string',
    unique_id: 'string; a new one for every withdrawal',
    ...ENVELOPE,
    provider: 'string; required if the currency is fiat',
    network: 'string; default for USDT is ERC20',
  }),
  ...rows(SWITCH, 'syncKillSwitch', 'request', {
    market: 'string, required',
    timeout: 'string or null, required; 5 to 600',
    types: 'array of spot, margin, futures, or null for all',
    ...ENVELOPE,
  }),
  ...rows(CODES, 'myCodes', 'request', {
    ...ENVELOPE,
    limit: 'integer; 1 to 100',
    offset: 'integer; 0 to 10000',
  }),
  ...rows(HASHRATE, 'miningHashrate', 'request', {
    account: 'string, mining account name',
    from: 'integer, Unix time',
    to: 'integer, Unix time',
    interval: 'string such as 1h',
  }),
  ...rows(ADDRESS, 'createNewAddress', 'request', {
    ticker: 'string',
    ...ENVELOPE,
    network: 'string; default for USDT is ERC20',
    type: 'string; p2sh-segwit or bech32; BTC and LTC only; default bech32',
  }),
];

/** `says` of a reply row is its type; the name is its path, `[]` for each element of a list. */
const REPLY_ROWS: readonly Row[] = [
  ...rows('Order', 'createStockMarketOrder', 'reply', {
    order_id: 'integer',
    client_order_id: 'string',
    market: 'string',
    side: 'string',
    type: 'string',
    timestamp: 'number',
    deal_money: 'string',
    deal_stock: 'string',
    amount: 'string',
    left: 'string',
    deal_fee: 'string',
    price: 'string',
    postOnly: 'boolean',
    ioc: 'boolean',
    status: 'string',
    stp: 'string',
    positionSide: 'string',
    rpi: 'boolean',
  }),
  ...rows('Kill-switch timer', 'syncKillSwitch', 'reply', {
    market: 'string',
    startTime: 'integer',
    cancellationTime: 'integer',
    'types[]': 'string',
  }),
  ...rows(CODES, 'myCodes', 'reply', { total: 'integer', limit: 'integer', offset: 'integer' }),
  ...rows('Code record', 'myCodes', 'reply', {
    'data[].amount': 'string',
    'data[].code': 'string',
    'data[].date': 'integer',
    'data[].status': 'string',
    'data[].ticker': 'string',
    'data[].external_id': 'string',
  }),
  ...rows(HASHRATE, 'miningHashrate', 'reply', { 'data.account': 'string' }),
  ...rows('Hashrate point', 'miningHashrate', 'reply', {
    'data.hashrate[].timestamp': 'integer',
    'data.hashrate[].hashrate': 'string',
  }),
  ...rows('Deposit address record', 'createNewAddress', 'reply', {
    'account.address': 'string',
    'account.memo': 'string',
    'required.fixedFee': 'string',
    'required.flexFee.maxFee': 'string',
    'required.flexFee.minFee': 'string',
    'required.flexFee.percent': 'string',
    'required.maxAmount': 'string',
    'required.minAmount': 'string',
  }),
  ...rows('Mining pool overview record', 'miningPool', 'reply', {
    'data.connection_links[]': 'string',
    'data.location': 'string',
    'data.assets[]': 'string',
    'data.reward_schemes[]': 'string',
    'data.workers': 'integer',
    'data.current_hash_rate': 'string',
    'data.last7days_hash_rate[].timestamp': 'integer',
    'data.last7days_hash_rate[].hashrate': 'string',
    'data.blocks[].block_found_at': 'integer',
    'data.blocks[].block_height': 'integer',
  }),
];

const RULE_ROWS: readonly Row[] = [
  ...rows('API overview', null, 'rule', {
    'public by GET': 'Public endpoints use GET.',
    'private by POST': 'Private endpoints use POST with a JSON body.',
    'JSON answers': 'Every response is JSON, either an object or an array.',
    'Unix time': 'Every time value is Unix time.',
    'amounts as strings': 'Amounts and prices in responses are JSON strings.',
  }),
  ...rows('Authentication', null, 'rule', {
    'Content-type': 'application/json',
    'X-TXC-APIKEY': 'the public API key',
    'X-TXC-PAYLOAD': 'Base64 of the JSON body',
    'X-TXC-SIGNATURE': 'HMAC-SHA512, hex',
    'request and nonce': 'The body must contain the path, and the nonce as a string.',
    permissions: 'The key must carry permissions appropriate to the operation.',
    'bearer token': 'Order history uses OAuth 2.0 instead.',
    'public without authentication': 'Public endpoints need no authentication.',
  }),
  ...rows('Market order request', 'createStockMarketOrder', 'rule', {
    'minimum total': 'A buy has a minimum total, in the quote currency.',
    'minimum amount': 'A sell has a minimum amount, in the base currency.',
  }),
  ...rows(WITHDRAW, 'withdrawPay', 'rule', {
    'fee on top': 'The fee is deducted in addition to the amount.',
    'not cached': 'Responses are not cached.',
  }),
  ...rows(CODES, 'myCodes', 'rule', { 'not cached': 'Responses are not cached.' }),
  ...rows(HASHRATE, 'miningHashrate', 'rule', { 'not cached': 'Responses are not cached.' }),
  ...rows(ADDRESS, 'createNewAddress', 'rule', {
    'disabled by default': 'It must be enabled for the account.',
    'even when unused': 'A new one even when the last one has not been used.',
    'not cached': 'Responses are not cached.',
  }),
  ...rows('Errors', null, 'rule', {
    'private error object': 'code, message, errors by parameter',
    'public error object': 'success false, message, params',
  }),
  ...rows('Versioning', null, 'rule', {
    'path prefix': '/api/v4',
    'both base addresses': 'The same paths are served on both.',
  }),
  ...rows('States and transitions', 'syncKillSwitch', 'state', {
    'none to active': 'cancellationTime is startTime + timeout.',
    'active to active': 'The timer is updated; same shape.',
    'active to none': 'A null timeout deletes the timer of the market.',
    'fires for all types': 'When types is null, orders of all types of the market are cancelled.',
    'fires for its types': 'Else those of the given types.',
  }),
];

const ERROR_ROWS: readonly Row[] = [
  ...rows(ORDERS, 'createStockMarketOrder', 'status', {
    '200': 'order created',
    '400': 'inner validation failed',
    '422': 'request validation failed',
    '503': 'temporarily unavailable',
  }),
  ...rows('Codes for order creation', 'createStockMarketOrder', 'code', {
    '30 required': 'A missing amount, market or side: a message per field.',
    '30 side': 'side may hold only buy or sell.',
    '31 not available': 'market not available',
    '31 empty': 'market must not be an empty string',
    '32 not numeric': 'amount must be a numeric string or number',
    '32 balance': 'not enough balance',
    '32 minimum': 'less than the minimum amount, plus the minimum amount step',
    '36 string': 'client_order_id must be a string',
  }),
  ...rows('Codes for the kill-switch', 'syncKillSwitch', 'code', {
    '30 market': 'market required',
    '30 timeout': 'timeout required',
    '30 below 5': 'should be at least 5',
    '31 not available': 'market not available',
  }),
  ...rows('Mining hashrate', 'miningHashrate', 'code', { '422 timestamp': 'Incorrect timestamp' }),
];

const LIMIT_ROWS: readonly Row[] = [
  ...rows('Limits', 'createStockMarketOrder', 'limit', { '10000 in 10 s': 'POST /order/stock_market' }),
  ...rows('Limits', 'syncKillSwitch', 'limit', { '10000 in 10 s': 'POST /order/kill-switch' }),
  ...rows('Limits', 'withdrawPay', 'limit', { '1000 in 10 s': 'POST /main-account/withdraw-pay' }),
  ...rows('Limits', 'myCodes', 'limit', { '1000 in 10 s': 'POST /main-account/codes/my' }),
  ...rows('Limits', 'miningHashrate', 'limit', { '1000 in 10 s': 'POST /mining/hashrate' }),
  ...rows('Limits', 'createNewAddress', 'limit', { '1000 in 10 s': 'POST /main-account/create-new-address' }),
  ...rows('Limits', 'miningPool', 'limit', { '1000 in 10 s': 'GET /public/mining-pool' }),
  ...rows('Limits', 'ping', 'limit', { '2000 in 10 s': 'public endpoints in general' }),
  ...rows('Other limits', 'syncKillSwitch', 'limit', { timeout: '5 to 600, or null to delete' }),
  ...rows('Other limits', 'myCodes', 'limit', { limit: '1 to 100', offset: '0 to 10000' }),
  ...rows('Other limits', 'createStockMarketOrder', 'limit', {
    client_order_id: 'unique; letters, dashes, digits, dots, underscores',
  }),
  ...rows('Other limits', 'withdrawPay', 'limit', { unique_id: 'new value per withdrawal' }),
];

/** What the API document says, in tables: its operations, fields, rules, states, codes and limits. */
export const ROWS: readonly Row[] = [
  ...OPERATION_ROWS,
  ...REQUEST_ROWS,
  ...REPLY_ROWS,
  ...RULE_ROWS,
  ...ERROR_ROWS,
  ...LIMIT_ROWS,
];
