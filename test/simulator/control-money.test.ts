import { afterEach, beforeEach, expect, test } from 'vitest';
import { type SimulatedServer, startSimulatedServer } from '../../src/simulator/server.ts';
import { control, hostClock, send, signed } from './raw-client.ts';
import { PATHS } from './trader.ts';

let server: SimulatedServer;

beforeEach(async () => {
  const listen = { host: '127.0.0.1', port: 0 };
  const exchange = { newAddresses: true, balances: { main: { BTC: '1' } } };
  server = await startSimulatedServer({ clock: hostClock, listen, exchange });
});
afterEach(() => server.close());

const ask = (method: string, path: string, value?: unknown) =>
  control(server.url, method, `/simulator${path}`, value);
const trade = (path: string, fields: object) => send(server.url, signed({ ...fields }, { path }));

test('balances are seen and set, and all money is accounted for', async () => {
  const set = await ask('POST', '/balances', [
    { currency: 'USDT', amount: '100.5' },
    { account: 'main', currency: 'BTC', amount: 0.5 },
  ]);
  expect(set).toEqual({
    status: 200,
    value: {
      accounts: { main: { BTC: '0.5', USDT: '100.5' } },
      market: {},
      fees: {},
      withdrawn: {},
      deposited: { BTC: '0.5', USDT: '100.5' },
    },
  });
  await trade(PATHS.stockMarket, { market: 'BTC_USDT', side: 'sell', amount: '0.1' });
  await trade(PATHS.withdrawPay, { ticker: 'BTC', amount: '0.1', address: 'x', unique_id: 'x' });
  expect((await ask('GET', '/balances')).value).toEqual({
    accounts: { main: { BTC: '0.2996', USDT: '6094.5' } },
    market: { BTC: '0.1', USDT: '-6000' },
    fees: { USDT: '6', BTC: '0.0004' },
    withdrawn: { BTC: '0.1' },
    deposited: { BTC: '0.5', USDT: '100.5' },
  });
});

test('filled and resting orders, withdrawals and addresses are seen', async () => {
  const resting = { market: 'BTC_USDT', type: 'spot', side: 'buy', amount: '1', price: '2' };
  await ask('POST', '/orders', resting);
  await trade(PATHS.stockMarket, {
    market: 'BTC_USDT',
    side: 'sell',
    amount: '0.1',
    client_order_id: 'mine',
  });
  await trade(PATHS.withdrawPay, { ticker: 'BTC', amount: '0.1', address: 'there', unique_id: 'w' });
  await trade(PATHS.newAddress, { ticker: 'LTC' });
  expect((await ask('GET', '/orders')).value).toMatchObject({
    resting: [resting],
    filled: [{ orderId: 2, clientOrderId: 'mine', side: 'sell', dealMoney: '6000' }],
  });
  expect((await ask('GET', '/withdrawals')).value).toMatchObject([{ uniqueId: 'w', address: 'there' }]);
  expect((await ask('GET', '/addresses')).value).toMatchObject([{ ticker: 'LTC', type: 'bech32' }]);
});

test('a price that is set is the price of the next order', async () => {
  expect((await ask('GET', '/prices')).value).toMatchObject({ BTC_USDT: '60000' });
  const set = await ask('POST', '/prices', [
    { market: 'BTC_USDT', price: '100' },
    { market: 'NEW_USDT', price: 0.5 },
  ]);
  expect(set).toMatchObject({ status: 200, value: { BTC_USDT: '100', NEW_USDT: '0.5' } });
  const { body } = await trade(PATHS.stockMarket, { market: 'BTC_USDT', side: 'sell', amount: '0.1' });
  expect(JSON.parse(body)).toMatchObject({ price: '100', deal_money: '10' });
});

test.each([
  ['/balances', { currency: 'BTC' }, /^balance: amount is missing; expected a decimal of at least 0/],
  [
    '/balances',
    [
      { currency: 'BTC', amount: '1' },
      { currency: 'btc', amount: '1' },
    ],
    /^balance 2: currency is "btc"/,
  ],
  ['/balances', { currency: 'BTC', amount: '-1' }, /^balance: amount is "-1"/],
  ['/balances', { currency: 'BTC', amount: '1'.repeat(61) }, /^balance: amount is "1+"/],
  [
    '/balances',
    { account: 'mian', currency: 'BTC', amount: '1' },
    /^balance: account is "mian"; allowed: main$/,
  ],
  ['/balances', { ticker: 'BTC' }, /^balance: unknown field "ticker"; allowed: account, currency, amount$/],
  ['/balances', 7, /^balance: expected an object with account, currency, amount$/],
  [
    '/prices',
    { market: 'BTC_PERP', price: '1' },
    /^price: market is "BTC_PERP"; expected an available spot market/,
  ],
  ['/prices', { market: 'BTC_USDT', price: '0.0' }, /^price: price is "0.0"; expected a decimal above 0/],
  ['/prices', [{ market: 'BTC_USDT', price: 'x' }], /^price 1: price is "x"/],
])(
  '%s refuses %j with a sentence that says what is allowed, and changes nothing',
  async (path, value, message) => {
    const before = [await ask('GET', '/balances'), await ask('GET', '/prices')];
    const { status, value: answer } = await ask('POST', path, value);
    expect(status).toBe(400);
    expect((answer as { error: string }).error).toMatch(message);
    expect([await ask('GET', '/balances'), await ask('GET', '/prices')]).toEqual(before);
  },
);

test('the front page lists the operations and these endpoints', async () => {
  const { body } = await send(server.url, { method: 'GET', path: '/', headers: {}, body: '' });
  for (const path of Object.values(PATHS)) expect(body).toContain(path);
  for (const path of ['balances', 'orders', 'prices', 'withdrawals', 'addresses']) {
    expect(body).toContain(`/simulator/${path}`);
  }
});
