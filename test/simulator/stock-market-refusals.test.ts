import { expect, test } from 'vitest';
import { createTrader, invalid, PATHS } from './trader.ts';

const { stockMarket } = PATHS;
const buy = { market: 'BTC_USDT', side: 'buy', amount: '100' };
const sell = { market: 'BTC_USDT', side: 'sell', amount: '0.5' };

const available = ['Market is not available.'];
test.each<[string, object, number, number, object]>([
  [
    'missing fields are named each',
    {},
    422,
    30,
    {
      market: ['The market field is required.'],
      side: ['The side field is required.'],
      amount: ['The amount field is required.'],
    },
  ],
  [
    'null counts as missing',
    { ...buy, amount: null },
    422,
    30,
    { amount: ['The amount field is required.'] },
  ],
  ...['BUY', '', 'both', 1, {}].map((side): [string, object, number, number, object] => [
    `side ${JSON.stringify(side)}`,
    { ...buy, side },
    422,
    30,
    { side: ['The side may hold only buy or sell.'] },
  ]),
  ['an empty market', { ...buy, market: '' }, 422, 31, { market: ['Market must not be an empty string.'] }],
  ['a market that is no text', { ...buy, market: 7 }, 422, 31, { market: ['Market must be a string.'] }],
  ['an unknown market', { ...buy, market: 'btc_usdt' }, 400, 31, { market: available }],
  ['futures have no stock side', { ...buy, market: 'BTC_PERP' }, 400, 31, { market: available }],
  ...['', 'abc', '1e3', '0x10', ' 1', true, {}, ['1']].map(
    (amount): [string, object, number, number, object] => [
      `amount ${JSON.stringify(amount)}`,
      { ...buy, amount },
      422,
      32,
      { amount: ['The amount must be a numeric string or number.'] },
    ],
  ),
  ...['4.99', '0', '-10', -10, 1e-7].map((amount): [string, object, number, number, object] => [
    `a buy of ${amount}`,
    { ...buy, amount },
    400,
    32,
    { amount: ['Given amount is less than min amount 5', 'Min amount step = 0.01'] },
  ]),
  [
    'a sell below the minimum',
    { ...sell, amount: '0.00009' },
    400,
    32,
    { amount: ['Given amount is less than min amount 0.0001', 'Min amount step = 0.000001'] },
  ],
  ['a buy between steps', { ...buy, amount: '100.001' }, 400, 32, { amount: ['Min amount step = 0.01'] }],
  [
    'a sell between steps',
    { ...sell, amount: '0.5000001' },
    400,
    32,
    { amount: ['Min amount step = 0.000001'] },
  ],
  ['more money than there is', { ...buy, amount: '1000001' }, 400, 32, { amount: ['Not enough balance.'] }],
  ['more coins than there are', { ...sell, amount: 10.1 }, 400, 32, { amount: ['Not enough balance.'] }],
  ['no money left for the fee', { ...buy, amount: '1000000' }, 400, 32, { amount: ['Not enough balance.'] }],
  ...[7, null, {}].map((id): [string, object, number, number, object] => [
    `client_order_id ${JSON.stringify(id)}`,
    { ...buy, client_order_id: id },
    422,
    36,
    { client_order_id: ['The client_order_id must be a string.'] },
  ]),
  ...['a b', 'ä', 'a/b', 'a\n', '#'].map((id): [string, object, number, number, object] => [
    `client_order_id ${JSON.stringify(id)}`,
    { ...buy, client_order_id: id },
    422,
    36,
    {
      client_order_id: [
        'The client_order_id may contain only letters, dashes, digits, dots and underscores.',
      ],
    },
  ]),
  [
    'an unknown mode of self trade prevention',
    { ...buy, stp: 'cb' },
    422,
    30,
    { stp: ['The stp may hold only no, cancel_both, cancel_new, cancel_old.'] },
  ],
  [
    'everything at once has the code that the document lists first',
    { market: '', amount: 'x', client_order_id: 1, side: 'buy' },
    422,
    31,
    {
      market: ['Market must not be an empty string.'],
      amount: ['The amount must be a numeric string or number.'],
      client_order_id: ['The client_order_id must be a string.'],
    },
  ],
])('%s: refused, and no balance changes', (_name, fields, status, code, errors) => {
  const trader = createTrader();
  const before = trader.exchange.books();
  expect(trader.ask(stockMarket, fields)).toEqual(invalid(status, code, errors));
  expect(trader.exchange.books()).toEqual(before);
  expect(trader.exchange.marketOrders()).toEqual([]);
});
