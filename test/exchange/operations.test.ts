import { expect, test } from 'vitest';
import type { AmountUnit } from '../../src/exchange/schemas.ts';
import { signPayload } from '../../src/exchange/sign.ts';
import type { Profile } from '../../src/simulator/answer.ts';
import { openServer } from '../simulator/trader.ts';
import { errorOf, KEY, openClient, SECRET, TOKEN } from './open.ts';
import { ORDER, ORDER_REQUEST, SAMPLES, WITHDRAWAL } from './samples.ts';
import { serveHttp, serveReply } from './servers.ts';

async function note(reply: unknown, status = 200) {
  const seen: { method: unknown; path: unknown; body: string; headers: Record<string, unknown> }[] = [];
  const server = await serveHttp(({ method, url, headers }, response, body) => {
    seen.push({ method, path: url, body, headers });
    response.writeHead(status).end(JSON.stringify(reply));
  });
  return { base: server.base, seen };
}

const nonceless = (body: string | undefined) => body?.replace(/"nonce":"\d{13}"/, '"nonce":"N"');

test.each(SAMPLES)(
  '$name sends what the document asks for and gives back the whole reply, at either address, with 200 or 201',
  async ({ call, reply, value, method, path, authentication, fields }) => {
    const { base, seen } = await note(reply);
    const created = await note(reply, 201);
    const client = openClient([base, created.base]);
    expect([await call(client), await call(client, { base: 1 })]).toEqual([value, value]);
    expect([seen, created.seen]).toMatchObject([[{ method, path }], [{ method, path }]]);
    const { body, headers } = seen[0] ?? expect.fail('nothing came');
    // Who does not say so may be answered in any coding.
    expect([headers['user-agent'], headers['accept-encoding']]).toEqual(['killswitchd', 'identity']);
    const named = ['x-txc-apikey', 'x-txc-payload', 'x-txc-signature', 'authorization', 'content-type'];
    const shown = named.map((name) => headers[name]);
    if (authentication === 'signed') {
      expect(nonceless(body)).toBe(`{"request":"${path}","nonce":"N",${fields}}`);
      const payload = Buffer.from(body).toString('base64');
      expect(shown).toEqual([KEY, payload, signPayload(payload, SECRET), undefined, 'application/json']);
    } else if (authentication === 'bearer') {
      expect(body).toBe(`{${fields}}`);
      expect(shown).toEqual([undefined, undefined, undefined, `Bearer ${TOKEN}`, 'application/json']);
    } else {
      expect(body).toBe('');
      expect(shown.slice(0, 4)).toEqual([undefined, undefined, undefined, undefined]);
    }
  },
);

test('what is left out is not sent, and neither is the word that a currency is fiat', async () => {
  const { base, seen } = await note({ ...ORDER, side: 'sell', deal_stock: '0.5', client_order_id: '' });
  const client = openClient(base);
  await client.createStockMarketOrder({ market: 'BTC_USDT', side: 'sell', amount: 0.5, stp: undefined });
  const euros = { ticker: 'EUR', network: undefined, provider: 'SEPA', fiat: true };
  await client.withdrawPay({ ...WITHDRAWAL, ...euros });
  await errorOf(client.myCodes());
  expect(seen.map(({ body }) => nonceless(body))).toEqual([
    '{"request":"/api/v4/order/stock_market","nonce":"N","market":"BTC_USDT","side":"sell","amount":"0.5"}',
    '{"request":"/api/v4/main-account/withdraw-pay","nonce":"N","ticker":"EUR","amount":"10","address":"TXyz","unique_id":"w-1","provider":"SEPA"}',
    '{"request":"/api/v4/main-account/codes/my","nonce":"N"}',
  ]);
});

test('a request is sent as it was when it was checked', async () => {
  const { base, seen } = await note(ORDER);
  const order = { ...ORDER_REQUEST };
  const placed = openClient(base).createStockMarketOrder(order);
  Object.assign(order, { amount: '5000000' });
  await placed;
  expect(seen[0]?.body).toContain('"amount":"60"');
});

test('an order history takes the token of the call, reads no key, and comes as an object even where it is empty', async () => {
  const { base, seen } = await note([]);
  const client = openClient(base, { credentials: () => expect.fail('asked for the key') });
  expect(await client.orderHistory({}, { accessToken: 'another' })).toEqual({});
  expect(seen[0]?.headers['authorization']).toBe('Bearer another');
});

const BUY = { market: 'BTC_USDT', side: 'buy', amount: '60', clientOrderId: 'u-1' } as const;

/** Profile | the unit that it is said to count in, and an amount | what the error tells */
test.each<[Profile, AmountUnit, string, string]>([
  ['live', 'quote', '6', 'bought 6 BTC for 360000 USDT, asked was to buy for 6 USDT; BTC'],
  ['documented', 'base', '60', 'bought 0.001 BTC for 60 USDT, asked was to buy for 60 BTC; USDT'],
])(
  'a buy at an exchange of profile %s that is said to count in %s',
  async (profile, amountIn, amount, told) => {
    const balances = { main: { USDT: '1000000', BTC: '10' } };
    const server = await openServer({ exchange: { balances, profile } });
    const credentials = () => ({ key: 'demo-key', secret: 'demo-secret' });
    const client = openClient(server.url, { credentials });
    const error = await errorOf(client.createStockMarketOrder({ ...BUY, amount, amountIn }));
    const message = `the exchange ${told.replace(';', '; the exchange seems to count this amount in')}`;
    const order = { client_order_id: 'u-1' };
    expect(error).toMatchObject({ name: 'OrderMismatchError', message, maybeApplied: true, order });
    expect(server.exchange.marketOrders()).toHaveLength(1);
    const sold = await client.createStockMarketOrder({ market: 'BTC_USDT', side: 'sell', amount: '0.01' });
    expect(sold).toMatchObject({ deal_stock: '0.01', deal_money: '600' });
  },
);

/** What was filled | the unit that was asked for | side, deal_money, deal_stock, left | whether that is what was asked for */
test.each<[string, AmountUnit, string, boolean]>([
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
  ['no readable money', 'quote', 'buy n/a 0.001 0', false],
  ['no readable stock', 'quote', 'buy 60 n/a 0', false],
  ['with no readable rest', 'quote', 'buy 60 0.001 n/a', false],
])('a buy that filled %s, asked for in %s: %s', async (_what, amountIn, deal, fits) => {
  const [side, deal_money, deal_stock, left] = deal.split(' ');
  const reply = { ...ORDER, client_order_id: 'u-1', amount: '60', side, deal_money, deal_stock, left };
  const call = openClient((await serveReply(reply)).base).createStockMarketOrder({ ...BUY, amountIn });
  if (fits) expect(await call).toEqual(reply);
  else {
    const message: unknown = expect.not.stringContaining('n/a');
    const told = { name: 'OrderMismatchError', maybeApplied: true, order: reply, message };
    expect(await errorOf(call)).toMatchObject(told);
  }
});

test('an order of another side and with texts for amounts is told of without a text that the exchange made up', async () => {
  const madeUp = { side: KEY, deal_stock: SECRET, deal_money: '7'.repeat(99) };
  const { base } = await serveReply({ ...ORDER, client_order_id: 'u-1', ...madeUp });
  const call = openClient(base).createStockMarketOrder({ ...BUY, amountIn: 'quote' });
  expect(await errorOf(call)).toMatchObject({
    name: 'OrderMismatchError',
    message:
      'the exchange carried out, on neither side, (unreadable) BTC for (unreadable) USDT, asked was to buy for 60 USDT',
  });
});
