import { expect, test } from 'vitest';
import { createTrader, invalid, PATHS, START_MS, type Trader } from './trader.ts';

const unauthorised = { status: 401, value: { code: 10, message: 'Unauthorized request.', errors: {} } };
const invalidPayload = { status: 400, value: { code: 9, message: 'Invalid payload.', errors: {} } };

/** Five orders, one a second: sells of ETH and, every other time, of BTC. */
function withOrders(options: Parameters<typeof createTrader>[0] = {}): Trader {
  const trader = createTrader(options);
  for (let order = 1; order <= 5; order += 1) {
    const market = order % 2 === 0 ? 'BTC_USDT' : 'ETH_USDT';
    const fields = { market, side: 'sell', amount: '0.1', client_order_id: `id-${order}` };
    trader.ask(PATHS.stockMarket, fields, { atMs: START_MS + order * 1000 });
  }
  return trader;
}

const idsIn = (answer: unknown) =>
  (answer as { value: { data: { order_id: number }[] } }).value.data.map((order) => order.order_id);

test('the history has every order with the fields of its creation, newest first', () => {
  const trader = createTrader();
  const created = trader.ask(PATHS.stockMarket, { market: 'BTC_USDT', side: 'buy', amount: '100' });
  expect(trader.history()).toEqual({
    status: 200,
    value: { total: 1, data: [created.value], limit: 50, offset: 0 },
  });
  expect(idsIn(withOrders().history())).toEqual([5, 4, 3, 2, 1]);
});

test('it is read in pages, and narrowed by market and identifiers', () => {
  const trader = withOrders();
  expect(trader.history({ limit: 2, offset: 1 })).toMatchObject({ value: { total: 5, limit: 2, offset: 1 } });
  expect(idsIn(trader.history({ limit: 2, offset: 1 }))).toEqual([4, 3]);
  expect(idsIn(trader.history({ offset: 5 }))).toEqual([]);
  expect(idsIn(trader.history({ market: 'BTC_USDT' }))).toEqual([4, 2]);
  expect(idsIn(trader.history({ client_order_id: 'id-3' }))).toEqual([3]);
  expect(idsIn(trader.history({ order_id: 2 }))).toEqual([2]);
  expect(idsIn(trader.history({ market: 'SOL_USDT' }))).toEqual([]);
});

const JSON_BODY = { 'content-type': 'application/json' };

test('the document asks for a body that says that it is JSON, and the live exchange does not', () => {
  const headers = { authorization: 'Bearer demo-token' };
  expect(createTrader().history({}, headers)).toEqual({
    status: 400,
    value: { code: 9, message: 'Content-type must be application/json.', errors: {} },
  });
  expect(createTrader({ profile: 'live' }).history({}, headers).status).toBe(200);
});

test('a token opens the orders of its own account only', () => {
  const trader = withOrders({ tokens: [{ token: 'theirs', account: 'other' }] });
  expect(idsIn(trader.history({}, { ...JSON_BODY, authorization: 'Bearer theirs' }))).toEqual([]);
  expect(trader.history({}, { authorization: 'Bearer demo-token' })).toEqual(unauthorised);
});

test.each<[string, Record<string, string>]>([
  ['no header', {}],
  ['an unknown token', { authorization: 'Bearer other' }],
  ['another scheme', { authorization: 'Basic demo-token' }],
  ['a token alone', { authorization: 'demo-token' }],
  ['a token with more behind it', { authorization: 'Bearer demo-token x' }],
  ['the headers of a signed request', { 'x-txc-apikey': 'demo-key' }],
])('%s is unauthorised', (_name, headers) => {
  expect(createTrader().history({}, headers)).toEqual(unauthorised);
});

test('the scheme is read in any case, and the body may have white space in it', () => {
  const { exchange } = createTrader();
  const headers = { ...JSON_BODY, authorization: 'bearer  demo-token' };
  const asked = { method: 'POST', path: PATHS.history, headers, body: '{ "limit": 1 }\n' };
  expect(exchange.handle(asked, START_MS).status).toBe(200);
});

test.each(['', '[]', '"x"', 'null', '{', 'hello'])('the body %j is no JSON object', (body) => {
  const { exchange } = createTrader();
  const headers = { ...JSON_BODY, authorization: 'Bearer demo-token' };
  const { status, body: text } = exchange.handle(
    { method: 'POST', path: PATHS.history, headers, body },
    START_MS,
  );
  expect({ status, value: JSON.parse(text) as unknown }).toEqual(invalidPayload);
});

test.each<[object, object]>([
  [{ limit: 0 }, { limit: ['The limit must be at least 1.'] }],
  [{ limit: 101 }, { limit: ['The limit may not be greater than 100.'] }],
  [{ limit: '5' }, { limit: ['The limit must be an integer.'] }],
  [
    { offset: -1, limit: 1.5 },
    { limit: ['The limit must be an integer.'], offset: ['The offset must be at least 0.'] },
  ],
  [{ market: 7 }, { market: ['The market must be a string.'] }],
])('the fields %j are refused', (fields, errors) => {
  expect(createTrader().history(fields)).toEqual(invalid(422, 30, errors));
});

test('the live profile groups records by market', () => {
  const { value } = withOrders({ profile: 'live' }).history({ limit: 3 });
  expect(Object.keys(value as object)).toEqual(['ETH_USDT', 'BTC_USDT']);
  expect(value).toMatchObject({
    ETH_USDT: [
      { id: 5, clientOrderId: 'id-5', status: 'FILLED', ctime: START_MS / 1000 + 5, dealStock: '0.1' },
      { id: 3 },
    ],
    BTC_USDT: [{ id: 4, price: '0', feeAsset: 'USDT' }],
  });
});
