import { expect, test } from 'vitest';
import type { Profile } from '../../src/simulator/answer.ts';
import { signed } from './raw-client.ts';
import { createTrader, keysOf, PATHS, refusal, rowsOf, START_MS } from './trader.ts';

const { stockMarket, withdrawPay, newAddress } = PATHS;
const buy = { market: 'BTC_USDT', side: 'buy', amount: '100' };

test('a buy spends as much of its amount as steps allow, and tells the rest', () => {
  const { ask } = createTrader();
  const { value } = ask(stockMarket, buy, { atMs: START_MS + 250 });
  const deal = { deal_money: '99.96', deal_stock: '0.001666', left: '0.04', deal_fee: '0.09996' };
  expect(value).toMatchObject({ ...deal, timestamp: START_MS / 1000 + 0.25, price: '60000' });
});

test.each([
  ['10', '50', '49', ['Given amount is less than min amount 50', 'Min amount step = 0.01']],
  ['10', '50', '100', { deal_stock: '10', deal_fee: '0' }],
  ['10000000', '5', '9.99', ['Given amount is less than min amount 10', 'Min amount step = 0.01']],
  ['10000000', '5', '10', { deal_stock: '0.000001' }],
])('at a price of %s and a least total of %s a buy of %s gets %j', (price, minTotal, amount, told) => {
  const trader = createTrader({ terms: { BTC_USDT: { price, minTotal, feeRate: '0' } } });
  const answer = Array.isArray(told)
    ? refusal(400, 32, 'Validation failed', { amount: told })
    : { status: 200, value: told };
  expect(trader.ask(stockMarket, { ...buy, amount })).toMatchObject(answer);
});

test('a market without terms has a price of 100, and terms that are no decimals are refused in words', () => {
  const trader = createTrader({ balances: { main: { FOO: '5' } } });
  const { value } = trader.ask(stockMarket, { market: 'FOO_USDT', side: 'sell', amount: '1' });
  expect(value).toMatchObject({ price: '100', deal_money: '100' });
  const start = (price: string) => () => createTrader({ terms: { BTC_USDT: { price } } });
  expect(start('dear')).toThrow('found "dear"; expected a decimal');
  expect(start('0')).toThrow('price of BTC_USDT: found "0"; expected more than 0');
  expect(() => createTrader({ balances: { main: { BTC: '1,5' } } })).toThrow('found "1,5"');
});

test('a client_order_id is used once by an account, and a refused order does not use it up', () => {
  const trader = createTrader({ keys: keysOf({ a: 'one', b: 'two' }) });
  const ask = (key: string, amount: string) =>
    trader.ask(stockMarket, { ...buy, amount, client_order_id: 'x' }, { key }).status;
  expect([ask('a', '1'), ask('a', '100'), ask('a', '100'), ask('b', '100')]).toEqual([400, 200, 400, 200]);
});

test('the live profile counts a buy in the base currency, and spells fields as the live exchange does', () => {
  const trader = createTrader({ profile: 'live' });
  const order = { ...buy, amount: '0.001', clientOrderId: 'x', stp: 'cancel_both' };
  const { value } = trader.ask(stockMarket, order);
  const terms = { takerFee: '0.001', feeAsset: 'USDT', price: '0', stp: 'cb' };
  const deal = { dealMoney: '60', dealStock: '0.001', amount: '0.001', left: '0' };
  expect(value).toMatchObject({ orderId: 1, clientOrderId: 'x', ...terms, ...deal });
  expect(value).not.toHaveProperty('positionSide');
  expect(trader.ask(stockMarket, order).status).toBe(200);
  const snake = trader.ask(stockMarket, { ...order, client_order_id: 'snake', clientOrderId: undefined });
  expect(snake).toMatchObject({ value: { clientOrderId: 'snake' } });
});

const withdrawal = { ticker: 'BTC', amount: '1', address: 'somewhere', unique_id: 'w-1' };

test('a refused withdrawal does not use its unique_id up, and one may take all that is there', () => {
  const trader = createTrader();
  expect(trader.ask(withdrawPay, { ...withdrawal, amount: '11' }).status).toBe(400);
  expect(trader.ask(withdrawPay, { ...withdrawal, amount: '9.9996' })).toEqual({ status: 200, value: [] });
  expect(trader.exchange.books().accounts['main']).not.toHaveProperty('BTC');
  const long = { ...withdrawal, unique_id: 'x'.repeat(256) };
  expect(trader.ask(withdrawPay, long)).toMatchObject({ status: 422, value: { code: 30 } });
});

test('the live profile answers a withdrawal, a new address and codes with 201', () => {
  const trader = createTrader({ profile: 'live', newAddresses: true });
  const asked = [trader.ask(withdrawPay, withdrawal), trader.ask(newAddress, { ticker: 'BTC' })];
  expect([...asked, trader.ask(PATHS.codes, {})].map(({ status }) => status)).toEqual([201, 201, 201]);
});

test.each([
  ['documented', 10_000, 200],
  ['live', 9970, 201],
  ['live', 9971, 400],
] as const)('the %s profile answers codes from %i on with %i', (profile, offset, status) => {
  expect(createTrader({ profile }).ask(PATHS.codes, { offset }).status).toBe(status);
});

test('new addresses are disabled until the account is enabled for them', () => {
  const trader = createTrader({ keys: keysOf({ 'demo-key': 'main', b: 'other' }), newAddresses: ['other'] });
  const disabled = refusal(403, 4, "You don't have permission to use this endpoint.");
  expect(trader.ask(newAddress, { ticker: 'BTC' })).toEqual(disabled);
  expect(trader.ask(newAddress, { ticker: 'BTC' }, { key: 'b' }).status).toBe(200);
});

test.each([
  [{ ticker: 'LTC', type: 'p2sh-segwit' }, /^M.*simulated/],
  [{ ticker: 'USDT', network: 'OMNI' }, /^1.*simulated/],
  [{ ticker: 'SOL', network: 'SOL' }, /^simulated/],
])('an address of %j begins with %s, and no wallet would take it for a real one', (fields, form) => {
  const { value } = createTrader({ newAddresses: true }).ask(newAddress, fields);
  expect(value).toMatchObject({ account: { address: expect.stringMatching(form) } });
});

test.each([
  [stockMarket, { ...buy, client_order_id: 'x' }],
  [withdrawPay, withdrawal],
  [newAddress, { ticker: 'LTC' }],
  [PATHS.killSwitch, { market: 'BTC_USDT', timeout: '60' }],
  ['/api/v4/order/new', { ...buy, amount: '1', price: '10' }],
])('%s, pretended, is answered and leaves no trace', (path, fields) => {
  const trader = createTrader({ newAddresses: true });
  const before = trader.exchange.books();
  const pretended = trader.ask(path, fields, { pretend: 'pretend' });
  const { exchange } = trader;
  const made = [exchange.withdrawals(), exchange.addresses(), exchange.timers(), exchange.orders()];
  expect([exchange.books(), ...made, exchange.log.since(0)]).toEqual([before, [], [], [], [], []]);
  expect(trader.ask(path, fields)).toEqual(pretended);
});

test('an order that the test itself places is told with the moment of its creation', () => {
  const { exchange, ask } = createTrader();
  const order = { market: 'BTC_USDT', side: 'buy', amount: '1', price: '90' } as const;
  exchange.placeOrder({ ...order, type: 'spot' }, START_MS + 250);
  const told = { ...order, type: 'limit', left: '1', timestamp: START_MS / 1000 + 0.25 };
  expect(ask('/api/v4/orders', {}).value).toMatchObject([told]);
  expect(ask('/api/v4/order/cancel', { market: 'BTC_USDT', order_id: 1 }).value).toMatchObject(told);
});

const JSON_BODY = { 'content-type': 'application/json' };

/** Five orders, one a second: sells of ETH and, every other time, of BTC. */
function withOrders(profile: Profile = 'documented') {
  const trader = createTrader({ profile });
  for (let order = 1; order <= 5; order += 1) {
    const market = order % 2 === 0 ? 'BTC_USDT' : 'ETH_USDT';
    const fields = { market, side: 'sell', amount: '0.1', client_order_id: `id-${order}` };
    trader.ask(stockMarket, fields, { atMs: START_MS + order * 1000 });
  }
  return trader;
}

test.each([
  [{}, [5, 4, 3, 2, 1]],
  [{ limit: 2, offset: 1 }, [4, 3]],
  [{ offset: 5 }, []],
  [{ market: 'BTC_USDT' }, [4, 2]],
  [{ client_order_id: 'id-3' }, [3]],
  [{ order_id: 2 }, [2]],
  [{ market: 'SOL_USDT' }, []],
])('of the order history %j are the orders %j', (fields, ids) => {
  const { data } = withOrders().history(fields).value as { data: { order_id: number }[] };
  expect(data.map((order) => order.order_id)).toEqual(ids);
});

test('a record has the fields of its creation, and a token opens its own account only', () => {
  const theirs = { token: 'theirs', account: 'other' };
  const trader = createTrader({ tokens: [theirs, { token: 'mine', account: 'main' }] });
  const created = trader.ask(stockMarket, buy);
  const ask = (token: string) => trader.history({}, { ...JSON_BODY, authorization: `Bearer ${token}` });
  expect(ask('mine').value).toEqual({ total: 1, data: [created.value], limit: 50, offset: 0 });
  expect(ask('theirs').value).toMatchObject({ total: 0, data: [] });
  expect(ask('demo-token').status).toBe(401);
});

test.each<[string, Record<string, string>, number]>([
  ['no header', {}, 401],
  ['another scheme', { authorization: 'Basic demo-token' }, 401],
  ['a token alone', { authorization: 'demo-token' }, 401],
  ['a token with more behind it', { authorization: 'Bearer demo-token x' }, 401],
  ['the headers of a signed request', { 'x-txc-apikey': 'demo-key' }, 401],
  ['a body of no type', { authorization: 'Bearer demo-token' }, 400],
  ['the scheme in any case', { ...JSON_BODY, authorization: 'bearer  demo-token' }, 200],
])('%s (%j) is answered with %i', (_name, headers, status) => {
  expect(createTrader().history({}, headers).status).toBe(status);
  const live = createTrader({ profile: 'live' }).history({}, headers);
  expect(live.status).toBe(status === 400 ? 200 : status);
});

test.each(['', '[]', 'null', '{'])('the body %j is no JSON object', (body) => {
  const headers = { ...JSON_BODY, authorization: 'Bearer demo-token' };
  const asked = { method: 'POST', path: PATHS.history, headers, body };
  expect(createTrader().handle(asked)).toEqual(refusal(400, 9, 'Invalid payload.'));
});

test('the live profile groups records by market', () => {
  const { value } = withOrders('live').history({ limit: 3 });
  expect(value).toMatchObject({
    ETH_USDT: [{ id: 5, clientOrderId: 'id-5', status: 'FILLED', ctime: START_MS / 1000 + 5 }, { id: 3 }],
    BTC_USDT: [{ id: 4, price: '0', feeAsset: 'USDT', dealStock: '0.1' }],
  });
});

test('codes come 30 at a time unless told otherwise, the newest first', () => {
  const { data, ...page } = createTrader().ask(PATHS.codes, {}).value as { data: { date: number }[] };
  expect([page, data.length]).toEqual([{ total: 42, limit: 30, offset: 0 }, 30]);
  expect(data).toEqual(data.toSorted((one, other) => other.date - one.date));
});

const NOW = START_MS / 1000;
const HOUR = 3600;
const from = NOW - (NOW % HOUR) - 3 * HOUR;
const askRate = (fields: object) => createTrader().ask(PATHS.hashrate, { account: 'rig', ...fields });
const pointsOf = (fields: object) =>
  (askRate(fields).value as { data: { hashrate: { timestamp: number }[] } }).data.hashrate;

test.each([
  [{ from, to: from + 2 * HOUR + 1, interval: '1h' }, 3],
  [{ from: NOW - 86_400 + 1, to: NOW, interval: '5m' }, 288],
  [{ from: NOW - 86_400 + 1, to: NOW, interval: '24h' }, 1],
  [{}, 24],
  [{ from: NOW - 62 * 86_400 + 1, to: NOW, interval: '5m' }, 62 * 288],
  [{ from: NOW - HOUR, to: NOW + 10 * HOUR }, 1],
])('the range %j has %i points', (fields, count) => {
  const points = pointsOf(fields);
  expect(points).toHaveLength(count);
  expect(points.every(({ timestamp }) => timestamp <= NOW)).toBe(true);
});

test.each([
  ['before 1970', { from: -1 }],
  ['that ends before the first moment', { to: Number.MIN_SAFE_INTEGER }],
  ['of more than 18000 points', { from: NOW - 18_001 * 60, to: NOW, interval: '1m' }],
  ['without end', { from: 0, to: Number.MAX_SAFE_INTEGER }],
])('a range %s has an incorrect timestamp', (_name, fields) => {
  expect(askRate(fields)).toEqual(refusal(422, 422, 'Incorrect timestamp'));
});

const list = (name: string, options = {}) =>
  createTrader(options).get(`/api/v4/public/${name}`).value as Record<string, string>[];

test('markets are listed with the terms on which their orders are filled', () => {
  const terms = { BTC_USDT: { feeRate: '0.0025', minAmount: '0.5', stockPrecision: 3 } };
  const wanted = { stockPrec: '3', makerFee: '0.25', minAmount: '0.5', minTotal: '5', type: 'spot' };
  expect(list('markets', { markets: ['BTC_USDT'], terms })).toMatchObject([wanted]);
  const names = (options: object) => list('markets', options).map(({ name }) => name);
  expect(names({ markets: ['A_B', 'BTC_PERP', 'A_B'] })).toEqual(['A_B', 'BTC_PERP']);
  const all = names({ terms: { NEW_USDT: { price: '1' } } });
  expect(all).toEqual(expect.arrayContaining(['NEW_USDT', 'BTC_USDT', 'BTC_PERP']));
});

test('every listed spot market takes an order of its smallest amount', () => {
  const trader = createTrader();
  for (const { name: market, minAmount: amount } of list('markets').filter(({ type }) => type === 'spot'))
    expect(trader.ask(stockMarket, { market, side: 'sell', amount }), market).toMatchObject({ status: 200 });
});

test("currencies are listed with what a withdrawal needs to know of them, and the time is the exchange's", () => {
  expect(list('assets')).toMatchObject({
    XMR: { can_deposit: false, can_withdraw: false },
    USDT: { networks: { withdraws: ['ERC20', 'TRC20', 'OMNI'], default: 'ERC20' }, currency_precision: 6 },
    EUR: { providers: { withdraws: ['VISAMASTER', 'SEPA'] } },
    XRP: { is_memo: true },
  });
  expect(list('time')).toEqual({ time: START_MS / 1000 });
});

const BASES: Readonly<Record<string, readonly [path: string, fields: object]>> = {
  buy: [PATHS.stockMarket, { market: 'BTC_USDT', side: 'buy', amount: '100' }],
  withdraw: [PATHS.withdrawPay, { ticker: 'BTC', amount: '1', address: 'somewhere', unique_id: 'w-1' }],
  address: [PATHS.newAddress, {}],
  codes: [PATHS.codes, {}],
  hashrate: [PATHS.hashrate, { account: 'rig' }],
  history: [PATHS.history, {}],
  timer: [PATHS.killSwitch, { market: 'BTC_USDT', timeout: '60' }],
};

/** A good request | what is changed about it | status and code | field: message, and further ones after a / */
const DOCUMENTED = String.raw`
buy      | {"market":7}                                | 422 31 | market: Market must be a string.
buy      | {"market":"BTC_PERP"}                       | 400 31 | market: Market is not available.
buy      | {"amount":" 1"}                             | 422 32 | amount: The amount must be a numeric string or number.
buy      | {"amount":1e-7}                             | 400 32 | amount: Given amount is less than min amount 5, Min amount step = 0.01
buy      | {"market":"","amount":"x","client_order_id":1} | 422 31 | market: Market must not be an empty string. / amount: The amount must be a numeric string or number. / client_order_id: The client_order_id must be a string.
withdraw | {"address":7,"ticker":{}}                   | 422 30 | ticker: The ticker must be a string. / address: The address must be a string.
withdraw | {"amount":"1e3"}                            | 422 32 | amount: The amount must be a numeric string.
withdraw | {"network":""}                              | 422 30 | network: The network must not be an empty string.
withdraw | {"ticker":"NOPE"}                           | 400 30 | ticker: The selected ticker is invalid.
withdraw | {"ticker":"USDC"}                           | 400 30 | network: Cannot extract default network. USDC has: ERC20, SOL.
withdraw | {"amount":"0"}                              | 400 32 | amount: The amount must be greater than 0.
withdraw | {"amount":"0.000000001"}                    | 400 32 | amount: The amount may have at most 8 digits after the point.
address  | {"ticker":"XMR"}                            | 400 30 | ticker: Currency is not depositable
address  | {"ticker":"EUR"}                            | 400 30 | ticker: Fiat currencies are unavailable for this action
hashrate | {"from":"1","to":1.5}                       | 422 30 | from: The from must be an integer. / to: The to must be an integer.
hashrate | {"to":1e300}                                | 422 30 | to: The to must be an integer.
hashrate | {"interval":"99999m"}                       | 422 30 | interval: The interval must be minutes, hours or days, such as 5m, 1h or 1d.
history  | {"offset":-1,"limit":1.5}                   | 422 30 | limit: The limit must be an integer. / offset: The offset must be at least 0.
history  | {"market":7}                                | 422 30 | market: The market must be a string.
timer    | {"timeout":"5.5"}                           | 422 30 | timeout: The timeout should be a whole number of seconds.
timer    | {"timeout":"600.00000000000001"}            | 422 30 | timeout: The timeout should be a whole number of seconds.
timer    | {"timeout":"null"}                          | 422 30 | timeout: The timeout must be a numeric string or null: "null" in quotes is a string.
timer    | {"types":"spot"}                            | 422 30 | types: The types must be an array or null.
timer    | {"types":[]}                                | 422 30 | types: The types should have at least one item, or be null for all order types.
timer    | {"market":"nope","timeout":"4"}             | 422 30 | market: Market is not available. / timeout: The timeout should be at least 5.
`;

/** The same of profile live, with its words, spelling, statuses and codes. */
const LIVE = String.raw`
buy      | {"market":null,"side":null,"amount":null}   | 422 30 | market: Market field is required. / side: Side field is required. / amount: Amount field is required.
buy      | {"market":"","side":"x","amount":"x","clientOrderId":1} | 422 30 | market: Market field should not be empty string. / side: Side field should contain only 'buy' or 'sell' values. / amount: Amount field should be numeric string or number. / clientOrderId: ClientOrderId field should be a string.
buy      | {"amount":"0.00001"}                        | 400 32 | amount: Given amount is less than min amount 0.0001, Min amount step = 0.000001
withdraw | {"unique_id":null}                          | 400 0  | uniqueId: The unique id field is required.
withdraw | {"amount":"10"}                             | 422 5  | amount: Not enough money, BTC balance = 10, fee = 0.0004
withdraw | {"ticker":"XMR"}                            | 422 1  | ticker: The currency has can_deposit false and cannot be withdrawn.
withdraw | {"amount":"0"}                              | 422 3  | amount: The amount must be greater than 0.
withdraw | {"amount":"0.000000001"}                    | 422 7  | amount: The amount may have at most 8 digits after the point.
address  | {}                                          | 400 0  | ticker: The ticker field is required.
address  | {"ticker":"EUR"}                            | 422 0  | ticker: Fiat currencies are unavailable for this action
codes    | {"limit":0}                                 | 400 0  | limit: The limit must be at least 1.
hashrate | {"interval":"30m"}                          | 400 0  | interval: The interval must be one of 5m, 1h, 24h.
timer    | {"market":null,"timeout":"4"}               | 422 30 | market: Market field is required. / timeout: Timeout should be at least 5.
timer    | {"timeout":5.5}                             | 422 30 | timeout: Timeout should be a whole number of seconds.
`;

for (const [profile, table] of [['documented', DOCUMENTED] as const, ['live', LIVE] as const]) {
  const { exchange, handle } = createTrader({ newAddresses: true, profile });

  test.each(rowsOf(table))(
    `${profile} %s with %s is refused with %s, and changes nothing`,
    (base, changes, codes, errors) => {
      const [path, fields] = BASES[base] ?? expect.fail(base);
      const sent = signed({ ...fields, ...(JSON.parse(changes) as object) }, { path });
      const headers = { ...sent.headers, authorization: 'Bearer demo-token' };
      const named = errors.split(' / ').map((error) => {
        const [field = '', message = ''] = error.split(/: (.*)/s);
        return [field, message.split(/, (?=Min )/)];
      });
      const [status, code] = codes.split(/ +/).map(Number);
      const value = { code, errors: Object.fromEntries(named) as unknown };
      expect(handle({ ...sent, headers })).toEqual({ status, value: expect.objectContaining(value) });
      expect(exchange.books().market).toEqual({});
      expect([exchange.timers(), exchange.withdrawals(), exchange.addresses()]).toEqual([[], [], []]);
    },
  );
}
