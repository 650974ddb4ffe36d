import { expect, test } from 'vitest';
import { createTrader, START_MS } from './trader.ts';

const MARKETS = '/api/v4/public/markets';
const ASSETS = '/api/v4/public/assets';
const TIME = '/api/v4/public/time';

type Listed = Readonly<Record<string, unknown>>;
const marketsOf = (options = {}) => createTrader(options).get(MARKETS).value as readonly Listed[];
const assetsOf = (options = {}) =>
  createTrader(options).get(ASSETS).value as Readonly<Record<string, Listed>>;

test('markets are listed with the terms on which their orders are filled', () => {
  const terms = { BTC_USDT: { feeRate: '0.0025', minAmount: '0.5', stockPrecision: 3 } };
  const [market] = marketsOf({ markets: ['BTC_USDT'], terms });
  expect(market).toEqual({
    name: 'BTC_USDT',
    stock: 'BTC',
    money: 'USDT',
    stockPrec: '3',
    moneyPrec: '2',
    feePrec: '4',
    makerFee: '0.25',
    takerFee: '0.25',
    minAmount: '0.5',
    minTotal: '5',
    maxTotal: '1000000000',
    tradesEnabled: true,
    isCollateral: true,
    type: 'spot',
  });
});

test('the listed markets are those that there are, or where any is, those that somebody named', () => {
  const names = (options: object) => marketsOf(options).map(({ name }) => name);
  expect(names({ markets: ['A_B', 'BTC_PERP'] })).toEqual(['A_B', 'BTC_PERP']);
  expect(names({ terms: { NEW_USDT: { price: '1' } } })).toContain('NEW_USDT');
  expect(names({})).toEqual(expect.arrayContaining(['BTC_USDT', 'BTC_PERP']));
});

test('every listed spot market takes an order of its smallest amount, in steps of its precision', () => {
  const trader = createTrader();
  const markets = trader.get(MARKETS).value as readonly Listed[];
  for (const { name, minAmount, type } of markets) {
    if (type !== 'spot') continue;
    const order = { market: name, side: 'sell', amount: minAmount };
    expect(trader.ask('/api/v4/order/stock_market', order), String(name)).toMatchObject({ status: 200 });
  }
});

test('currencies are listed with what a withdrawal needs to know of them', () => {
  const assets = assetsOf();
  expect(assets['XMR']).toMatchObject({ can_deposit: false, can_withdraw: false });
  expect(assets['USDT']).toMatchObject({
    can_deposit: true,
    networks: {
      deposits: ['ERC20', 'TRC20', 'OMNI'],
      withdraws: ['ERC20', 'TRC20', 'OMNI'],
      default: 'ERC20',
    },
    currency_precision: 6,
  });
  expect(assets['USDC']?.['networks']).not.toHaveProperty('default');
  expect(assets['EUR']?.['providers']).toMatchObject({ withdraws: ['VISAMASTER', 'SEPA'] });
  expect(assets['BTC']).not.toHaveProperty('providers');
  expect(assets['XRP']).toMatchObject({ is_memo: true });
});

test('the time is that of the exchange', () => {
  expect(createTrader().get(TIME, { atMs: START_MS + 1999 })).toEqual({
    status: 200,
    value: { time: START_MS / 1000 + 1 },
  });
});

test.each([MARKETS, ASSETS, TIME])(
  '%s is public, only read, and has the limit of public operations',
  (path) => {
    const trader = createTrader();
    expect(trader.get(path, { method: 'POST' })).toMatchObject({ status: 405, value: { success: false } });
    const statuses = Array.from({ length: 2001 }, () => trader.get(path).status);
    expect(statuses.indexOf(429)).toBe(2000);
  },
);
