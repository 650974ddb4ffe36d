import { afterEach, expect, test } from 'vitest';
import { runServer } from './both-profiles.ts';
import { control, ping, send, signed } from './raw-client.ts';
import { PATHS } from './trader.ts';

const server = runServer({ exchange: { newAddresses: true, balances: { main: { BTC: '1' } } } });
afterEach(() => {
  server().reset();
});

const ask = (method: string, path: string, value?: unknown, headers?: Record<string, string>) =>
  control(server().url, method, `/simulator${path}`, value, headers);

test('the front page says what this is and lists the endpoints', async () => {
  const { status, body, headers } = await send(server().url, {
    method: 'GET',
    path: '/',
    headers: {},
    body: '',
  });
  expect([status, headers['content-type']]).toEqual([200, 'text/plain; charset=utf-8']);
  for (const text of [
    'simulated exchange',
    '/api/v4/order/kill-switch',
    '/simulator/events?since=SEQ',
    'cut-off',
  ]) {
    expect(body).toContain(text);
  }
});

test.each([
  ['POST', '/snapshots', 201, { snapshot: 1 }],
  ['POST', '/reset', 200, { snapshot: 0 }],
  ['DELETE', '/faults', 200, { cleared: 0 }],
  ['POST', '/faults', 400, { error: expect.stringMatching(/^fault: kind is missing/) }],
] as const)(
  '%s %s takes no body for one, whatever its content type: %i',
  async (method, path, status, value) => {
    const json = { 'content-type': 'application/json' };
    expect(await ask(method, path, undefined, json)).toEqual({ status, value });
  },
);

test('placed orders and armed timers are in the state', async () => {
  const order = { market: 'STATE_USDT', type: 'margin', side: 'sell', amount: 0.5, price: '110' };
  const placed = await ask('POST', '/orders', { ...order, count: 2 });
  expect(placed).toMatchObject({
    status: 201,
    value: [{ ...order, amount: '0.5' }, { market: 'STATE_USDT' }],
  });
  await send(server().url, signed({ market: 'STATE_USDT', timeout: '60', types: ['margin'] }));
  const { value } = await ask('GET', '/state');
  expect(value).toMatchObject({ profile: 'documented', markets: 'any', faults: [], orders: placed.value });
  const { timers } = value as { timers: { secondsLeft: number }[] };
  expect(timers).toMatchObject([{ account: 'main', market: 'STATE_USDT', types: ['margin'] }]);
  expect(timers[0]?.secondsLeft).toBeGreaterThan(50);
  expect(timers[0]?.secondsLeft).toBeLessThanOrEqual(60);
});

test('events after a number can be read, and waited for', async () => {
  const since = server().exchange.log.lastSeq();
  expect(await ask('GET', `/events?since=${since}`)).toEqual({ status: 200, value: [] });
  expect(await ask('GET', `/events?since=${since}&wait=20`)).toEqual({ status: 200, value: [] });
  const waiting = ask('GET', `/events?since=${since}&wait=5000`);
  await send(server().url, signed({ market: 'WAIT_USDT', timeout: '60' }));
  expect((await waiting).value).toMatchObject([{ seq: since + 1, kind: 'timer-armed', market: 'WAIT_USDT' }]);
});

test('faults are added and cleared', async () => {
  const faults = [
    { kind: 'throttle', match: { operation: 'ping' }, count: 5 },
    { kind: 'lie', forMs: 60_000 },
  ];
  const added = await ask('POST', '/faults', faults);
  expect(added).toMatchObject({ status: 201, value: faults.map((fault) => ({ fault, hits: 0 })) });
  expect((await send(server().url, ping)).status).toBe(429);
  expect((await ask('GET', '/state')).value).toMatchObject({ faults: [{ hits: 1 }, { hits: 0 }] });
  expect(await ask('DELETE', '/faults')).toEqual({ status: 200, value: { cleared: 2 } });
  expect((await send(server().url, ping)).status).toBe(200);
});

/** Where to | what | the answer; three dots stand for a part of it. */
const REFUSED = String.raw`
faults   | {"kind":"latncy","ms":1}                     | fault: kind is "latncy"; allowed: latency, hang, reset... did you mean latency?
faults   | [{"kind":"lie"},{"kind":"latency"}]          | fault 2: ms is missing; expected milliseconds from 0
faults   | {"kind":"lie","ms":1}                        | fault: unknown field "ms"; allowed for "lie": kind, match, skip
faults   | {"kind":"reset","when":"later"}              | fault: when is "later"; allowed: before, after
faults   | {"kind":"status","status":399}               | fault: status is 399; expected a whole number from 400 to 599
faults   | {"kind":"lie","probability":2}               | fault: probability is 2; expected a number from 0 to 1
faults   | {"kind":"lie","count":0}                     | fault: count is 0; expected a whole number of at least 1
faults   | {"kind":"lie","match":{"operation":"sync"}}  | fault: match is {"operation":"sync"}; expected ... operation (stock-market, ...kill-switch
faults   | {"kind":"redirect","location":"a\r\nb"}      | fault: location is "a\r\nb"; expected an address
faults   | "lie"                                        | fault: expected an object such as
orders   | {"market":"btc","type":"spot","side":"buy"}  | order: market is "btc"; expected an available market such as BTC_USDT
orders   | {"market":"A_B","type":"stock"}              | order: type is "stock"; allowed: spot, margin, futures
orders   | {"market":"A_B","type":"spot"}               | order: side is missing; allowed: buy, sell
orders   | [{"market":"A_B","type":"spot","side":"buy","price":{}}] | order 1: price is {}; expected a decimal
orders   | {"market":"A_B","type":"spot","side":"buy","count":1000000000} | order: count is 1000000000; expected
balances | {"currency":"BTC"}                           | balance: amount is missing; expected a decimal of at least 0
balances | [{"currency":"BTC","amount":"1"},{"currency":"btc","amount":"1"}] | balance 2: currency is "btc"
balances | {"currency":"BTC","amount":"1111111111111111111111111111111111111111111111111111111111111"} | balance: amount is "1111
balances | {"account":"mian","currency":"BTC","amount":"1"} | balance: account is "mian"; allowed: main
prices   | {"market":"BTC_PERP","price":"1"}            | price: market is "BTC_PERP"; expected an available spot market
prices   | {"market":"BTC_USDT","price":"0.0"}          | price: price is "0.0"; expected a decimal above 0
`
  .trim()
  .split('\n')
  .map((line) => line.split(' | ').map((cell) => cell.trim()));

test.each(REFUSED)('%s refuses %s and says what is allowed', async (path, body = '', message = '') => {
  const { status, value } = await ask('POST', `/${path}`, JSON.parse(body));
  expect(status).toBe(400);
  const { error } = value as { error: string };
  const [start = '', ...parts] = message.split('...');
  expect(error.startsWith(start), error).toBe(true);
  for (const part of parts) expect(error).toContain(part);
  expect((await ask('GET', '/state')).value).toMatchObject({ faults: [] });
});

test('what is no JSON, no number or no endpoint is refused in words', async () => {
  const headers = { 'content-type': 'application/json' };
  const broken = await send(server().url, { method: 'POST', path: '/simulator/faults', headers, body: '{' });
  expect(broken.status).toBe(400);
  expect(JSON.parse(broken.body)).toHaveProperty('error');
  expect(await ask('GET', '/events?since=-1')).toMatchObject({ status: 400 });
  expect(await ask('GET', '/events?wait=999999')).toMatchObject({ status: 400 });
  expect(await ask('GET', '/unknown')).toEqual({
    status: 404,
    value: { error: 'No such endpoint; GET / lists them.' },
  });
});

test('a script of a web page cannot control the exchange', async () => {
  const origin = { origin: 'https://example.com' };
  const refused = await ask('POST', '/faults', { kind: 'lie' }, origin);
  expect(refused.status).toBe(403);
  expect((await ask('GET', '/state', undefined, origin)).status).toBe(403);
  expect((await ask('GET', '/state')).value).toMatchObject({ faults: [] });
});

const trade = (path: string, fields: object) => send(server().url, signed({ ...fields }, { path }));

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
