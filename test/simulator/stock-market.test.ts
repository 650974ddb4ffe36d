import { expect, test } from 'vitest';
import { createTrader, invalid, PATHS, START_MS } from './trader.ts';

const { stockMarket } = PATHS;
const buy = { market: 'BTC_USDT', side: 'buy', amount: '100' };
const sell = { market: 'BTC_USDT', side: 'sell', amount: '0.5' };

test('a buy spends money, and its reply has every field of an Order', () => {
  const trader = createTrader();
  const { status, value } = trader.ask(
    stockMarket,
    { ...buy, client_order_id: 'a-1.b_2' },
    { atMs: START_MS + 250 },
  );
  expect(status).toBe(200);
  expect(value).toEqual({
    order_id: 1,
    client_order_id: 'a-1.b_2',
    market: 'BTC_USDT',
    side: 'buy',
    type: 'stock market',
    timestamp: START_MS / 1000 + 0.25,
    deal_money: '99.96',
    deal_stock: '0.001666',
    amount: '100',
    left: '0.04',
    deal_fee: '0.09996',
    price: '60000',
    postOnly: false,
    ioc: false,
    status: 'FILLED',
    stp: 'no',
    positionSide: 'BOTH',
    rpi: false,
  });
  expect([trader.balance('BTC'), trader.balance('USDT')]).toEqual(['10.001666', '999899.94004']);
});

test('a sell gives the base currency and takes money less the fee', () => {
  const trader = createTrader();
  expect(trader.ask(stockMarket, sell)).toMatchObject({
    status: 200,
    value: {
      client_order_id: '',
      amount: '0.5',
      left: '0',
      deal_stock: '0.5',
      deal_money: '30000',
      deal_fee: '30',
    },
  });
  expect([trader.balance('BTC'), trader.balance('USDT')]).toEqual(['9.5', '1029970']);
});

test('no binary fraction ever shows: ten times a tenth is one', () => {
  const trader = createTrader({ balances: { main: { ETH: '1' } } });
  for (let sold = 0; sold < 10; sold += 1) {
    expect(trader.ask(stockMarket, { market: 'ETH_USDT', side: 'sell', amount: 0.1 }).status).toBe(200);
  }
  expect([trader.balance('ETH'), trader.balance('USDT')]).toEqual(['0', '2497.5']);
});

test('orders are filled at the price of the moment', () => {
  const trader = createTrader();
  trader.exchange.setPrice('BTC_USDT', '50000', START_MS);
  expect(trader.ask(stockMarket, sell)).toMatchObject({ value: { price: '50000', deal_money: '25000' } });
});

test('the terms of a market can be given, and a market without any has a price of 100', () => {
  const trader = createTrader({
    terms: { BTC_USDT: { price: '10', minTotal: '50', feeRate: '0' } },
    balances: { main: { USDT: '1000', FOO: '5' } },
  });
  expect(trader.ask(stockMarket, buy)).toMatchObject({ value: { deal_stock: '10', deal_fee: '0' } });
  expect(trader.ask(stockMarket, { ...buy, amount: '49' })).toEqual(
    invalid(400, 32, { amount: ['Given amount is less than min amount 50', 'Min amount step = 0.01'] }),
  );
  expect(trader.ask(stockMarket, { market: 'FOO_USDT', side: 'sell', amount: '1' })).toMatchObject({
    value: { price: '100', deal_money: '100' },
  });
});

test('a buy that would not pay for one step of the base currency is below the minimum', () => {
  const trader = createTrader({ terms: { BTC_USDT: { price: '10000000', minTotal: '5' } } });
  expect(trader.ask(stockMarket, { ...buy, amount: '9.99' })).toEqual(
    invalid(400, 32, { amount: ['Given amount is less than min amount 10', 'Min amount step = 0.01'] }),
  );
  expect(trader.ask(stockMarket, { ...buy, amount: '10' })).toMatchObject({
    value: { deal_stock: '0.000001' },
  });
});

test.each(['no', 'cancel_both', 'cancel_new', 'cancel_old'])('stp %s is taken and told', (stp) => {
  expect(createTrader().ask(stockMarket, { ...buy, stp })).toMatchObject({ status: 200, value: { stp } });
});

test('a client_order_id is used once by an account, and a refused order does not use it up', () => {
  const keys = [
    { key: 'a', secret: 'demo-secret', account: 'one' },
    { key: 'b', secret: 'demo-secret', account: 'two' },
  ];
  const trader = createTrader({ keys });
  const named = { ...buy, client_order_id: 'x' };
  expect(trader.ask(stockMarket, { ...named, amount: '1' }, { key: 'a' }).status).toBe(400);
  expect(trader.ask(stockMarket, named, { key: 'a' }).status).toBe(200);
  expect(trader.ask(stockMarket, named, { key: 'a' })).toEqual(
    invalid(400, 36, { client_order_id: ['This client_order_id is already used by the account.'] }),
  );
  expect(trader.ask(stockMarket, named, { key: 'b' }).status).toBe(200);
});

test('orders and resting orders are numbered together', () => {
  const trader = createTrader();
  const resting = { market: 'BTC_USDT', type: 'spot', side: 'buy', amount: '1', price: '1' } as const;
  trader.exchange.placeOrder(resting, START_MS);
  expect(trader.ask(stockMarket, buy)).toMatchObject({ value: { order_id: 2 } });
  expect(trader.exchange.placeOrder(resting, START_MS).id).toBe(3);
});

test('a pretended order is answered and leaves no trace', () => {
  const trader = createTrader();
  const before = trader.exchange.books();
  const pretended = trader.ask(stockMarket, { ...buy, client_order_id: 'x' }, { pretend: 'pretend' });
  expect(pretended).toMatchObject({ status: 200, value: { order_id: 1 } });
  expect(trader.exchange.books()).toEqual(before);
  expect(trader.ask(stockMarket, { ...buy, client_order_id: 'x' })).toEqual(pretended);
});

test('a filled order is in the event log', () => {
  const trader = createTrader();
  trader.ask(stockMarket, sell);
  expect(trader.exchange.log.since(0)).toMatchObject([
    {
      kind: 'order-filled',
      market: 'BTC_USDT',
      side: 'sell',
      dealStock: '0.5',
      dealMoney: '30000',
      dealFee: '30',
    },
  ]);
});

test('the live profile counts a buy in the base currency, and spells fields as the live exchange does', () => {
  const trader = createTrader({ profile: 'live' });
  const order = { market: 'BTC_USDT', side: 'buy', amount: '0.001', clientOrderId: 'x', stp: 'cancel_both' };
  expect(trader.ask(stockMarket, order)).toEqual({
    status: 200,
    value: {
      orderId: 1,
      clientOrderId: 'x',
      market: 'BTC_USDT',
      side: 'buy',
      type: 'stock market',
      timestamp: START_MS / 1000,
      dealMoney: '60',
      dealStock: '0.001',
      amount: '0.001',
      takerFee: '0.001',
      makerFee: '0.001',
      left: '0',
      dealFee: '0.06',
      feeAsset: 'USDT',
      price: '0',
      postOnly: false,
      ioc: false,
      status: 'FILLED',
      stp: 'cb',
      rpi: false,
    },
  });
  expect(trader.ask(stockMarket, order).status).toBe(200);
  expect(
    trader.ask(stockMarket, { ...order, client_order_id: 'snake', clientOrderId: undefined }),
  ).toMatchObject({
    value: { clientOrderId: 'snake' },
  });
});

test('the live profile words refusals as the live exchange does', () => {
  const trader = createTrader({ profile: 'live' });
  expect(trader.ask(stockMarket, {})).toEqual(
    invalid(422, 30, {
      market: ['Market field is required.'],
      side: ['Side field is required.'],
      amount: ['Amount field is required.'],
    }),
  );
  expect(trader.ask(stockMarket, { market: '', side: 'x', amount: 'x', clientOrderId: 1 })).toEqual(
    invalid(422, 30, {
      market: ['Market field should not be empty string.'],
      side: ["Side field should contain only 'buy' or 'sell' values."],
      amount: ['Amount field should be numeric string or number.'],
      clientOrderId: ['ClientOrderId field should be a string.'],
    }),
  );
  expect(trader.ask(stockMarket, { ...buy, amount: '0.00001' })).toEqual(
    invalid(400, 32, {
      amount: ['Given amount is less than min amount 0.0001', 'Min amount step = 0.000001'],
    }),
  );
});

test.each([
  [{ terms: { BTC_USDT: { price: 'dear' } } }, /found "dear"; expected a decimal/],
  [{ terms: { BTC_USDT: { price: '0' } } }, /price of BTC_USDT: found "0"; expected more than 0/],
  [{ balances: { main: { BTC: '1,5' } } }, /found "1,5"; expected a decimal/],
])('options that are no decimals are refused in words', (options, message) => {
  expect(() => createTrader(options)).toThrow(message);
});
