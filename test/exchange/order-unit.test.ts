import { expect, test } from 'vitest';
import { OrderMismatchError } from '../../src/exchange/errors.ts';
import type { StockMarketOrderRequest } from '../../src/exchange/schemas.ts';
import type { ExchangeOptions } from '../../src/simulator/state.ts';
import { openServer } from '../simulator/both-profiles.ts';
import { errorOf, KEY, openClient, SECRET } from './open.ts';
import { ORDER } from './samples.ts';
import { serveReply } from './servers.ts';

async function exchangeOf(exchange: ExchangeOptions) {
  const balances = { main: { USDT: '1000000', BTC: '10', EUR: '1000' } };
  const server = await openServer({ exchange: { balances, ...exchange } });
  const credentials = () => ({ key: 'demo-key', secret: 'demo-secret' });
  return { client: openClient(server.url, { credentials }), exchange: server.exchange };
}

const BUY = { market: 'BTC_USDT', side: 'buy', clientOrderId: 'u-1' } as const;

test.each([
  ['documented', 'quote', '60', '0.001', '60'],
  ['live', 'base', '0.001', '0.001', '60'],
] as const)(
  'an exchange of profile %s counts a buy in %s',
  async (profile, amountIn, amount, stock, money) => {
    const { client } = await exchangeOf({ profile });
    const order = await client.createStockMarketOrder({ ...BUY, amount, amountIn });
    expect(order).toMatchObject({ deal_stock: stock, deal_money: money });
    const sold = await client.createStockMarketOrder({ market: 'BTC_USDT', side: 'sell', amount: '0.01' });
    expect(sold).toMatchObject({ deal_stock: '0.01', deal_money: '600' });
  },
);

test.each([
  [
    'live',
    'quote',
    '6',
    'the exchange bought 6 BTC for 360000 USDT, asked was to buy for 6 USDT; the exchange seems to count this amount in BTC',
  ],
  [
    'documented',
    'base',
    '60',
    'the exchange bought 0.001 BTC for 60 USDT, asked was to buy for 60 BTC; the exchange seems to count this amount in USDT',
  ],
] as const)(
  'an exchange of profile %s that is said to count in %s has bought something else, which the error tells',
  async (profile, amountIn, amount, message) => {
    const { client, exchange } = await exchangeOf({ profile });
    const error = await errorOf(client.createStockMarketOrder({ ...BUY, amount, amountIn }));
    expect(error).toBeInstanceOf(OrderMismatchError);
    expect(error).toMatchObject({ message, maybeApplied: true, order: { client_order_id: 'u-1' } });
    expect(exchange.marketOrders()).toHaveLength(1);
  },
);

const asked = {
  quote: { amount: '60', amountIn: 'quote' },
  base: { amount: '60', amountIn: 'base' },
} as const;

/** What was filled | the unit that was asked for | side, deal_money, deal_stock, left | whether that is what was asked for */
test.each<[string, keyof typeof asked, string, boolean]>([
  ['the whole amount', 'quote', 'buy 60 0.001 0', true],
  ['all but a part of a step', 'quote', 'buy 59.2 0.00098 0.8', true],
  ['a half, with the rest left', 'quote', 'buy 30 0.0005 30', true],
  ['nothing', 'quote', 'buy 0 0 60', true],
  ['in the base currency', 'quote', 'buy 3600000 60 0', false],
  ['a cheap coin in the base currency', 'quote', 'buy 0.0012 60 0', false],
  ['a coin of 1.08 in the base currency', 'quote', 'buy 64.8 60 0', false],
  ['the whole amount', 'base', 'buy 3600000 60 0', true],
  ['a half, with the rest left', 'base', 'buy 1800000 30 30', true],
  ['in the quote currency', 'base', 'buy 59.9 0.001 0.1', false],
  ['a sell', 'quote', 'sell 60 0.001 0', false],
])('a buy that filled %s, asked for in %s: %s', async (_what, unit, deal, fits) => {
  const [side, deal_money, deal_stock, left] = deal.split(' ');
  const reply = { ...ORDER, client_order_id: 'u-1', amount: '60', side, deal_money, deal_stock, left };
  const { base } = await serveReply(reply);
  const request: StockMarketOrderRequest = { ...BUY, ...asked[unit] };
  const call = openClient(base).createStockMarketOrder(request);
  if (fits) expect(await call).toEqual(reply);
  else expect(await errorOf(call)).toMatchObject({ name: 'OrderMismatchError', order: reply });
});

test('an order of another side and with texts for amounts is told of without a text that the exchange made up', async () => {
  const reply = {
    ...ORDER,
    client_order_id: 'u-1',
    side: KEY,
    deal_stock: SECRET,
    deal_money: '7'.repeat(99),
  };
  const { base } = await serveReply(reply);
  const error = await errorOf(openClient(base).createStockMarketOrder({ ...BUY, ...asked.quote }));
  expect(error).toMatchObject({
    name: 'OrderMismatchError',
    message:
      'the exchange carried out, on neither side, (unreadable) BTC for (unreadable) USDT, asked was to buy for 60 USDT',
  });
});
