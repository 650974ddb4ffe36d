import { afterEach, expect, test } from 'vitest';
import { control, ping, send, signed } from './raw-client.ts';
import { PATHS, rowsOf, runServer } from './trader.ts';

const server = runServer({ exchange: { newAddresses: true, balances: { main: { BTC: '1' } } } });
afterEach(() => void server().reset());

const ask = (method: string, path: string, value?: unknown, headers?: object) =>
  control(server().url, method, `/simulator${path}`, value, headers);
const get = async (path: string) => (await ask('GET', path)).value;
const trade = (path: string, fields: object) => send(server().url, signed(fields, { path }));
const arm = (market: string, types?: readonly string[]) =>
  send(server().url, signed({ market, timeout: '60', types }));

test('the front page says what this is and lists the endpoints', async () => {
  const { status, body, headers } = await send(server().url, { ...ping, path: '/' });
  expect([status, headers['content-type']]).toEqual([200, 'text/plain; charset=utf-8']);
  const parts = ['simulated exchange', PATHS.killSwitch, '/simulator/events?since=SEQ', 'cut-off'];
  for (const text of parts) expect(body).toContain(text);
});

test.each([
  ['POST', '/snapshots', 201, { snapshot: 1 }],
  ['POST', '/reset', 200, { snapshot: 0 }],
  ['DELETE', '/faults', 200, { cleared: 0 }],
  ['POST', '/faults', 400, { error: expect.stringMatching(/^fault: kind is missing/) }],
] as const)('%s %s takes no body, whatever its content type: %i', async (method, path, status, value) => {
  const json = { 'content-type': 'application/json' };
  expect(await ask(method, path, undefined, json)).toEqual({ status, value });
});

test('placed orders and armed timers are in the state', async () => {
  const order = { market: 'STATE_USDT', type: 'margin', side: 'sell', amount: '0.5', price: '110' };
  const placed = await ask('POST', '/orders', { ...order, amount: 0.5, count: 2 });
  expect(placed).toMatchObject({ status: 201, value: [order, order] });
  await arm('STATE_USDT', ['margin']);
  const state = await get('/state');
  expect(state).toMatchObject({ profile: 'documented', markets: 'any', faults: [], orders: placed.value });
  const { timers } = state as { timers: { secondsLeft: number }[] };
  expect(timers).toMatchObject([{ account: 'main', market: 'STATE_USDT', types: ['margin'] }]);
  expect(timers[0]?.secondsLeft).toBeGreaterThan(50);
  expect(timers[0]?.secondsLeft).toBeLessThanOrEqual(60);
});

test('events after a number can be read, and waited for', async () => {
  const since = server().exchange.log.lastSeq();
  expect(await get(`/events?since=${since}`)).toEqual([]);
  expect(await get(`/events?since=${since}&wait=20`)).toEqual([]);
  const waiting = get(`/events?since=${since}&wait=5000`);
  await arm('WAIT_USDT');
  expect(await waiting).toMatchObject([{ seq: since + 1, kind: 'timer-armed', market: 'WAIT_USDT' }]);
});

test('faults are added, told of and cleared', async () => {
  const { log } = server().exchange;
  const since = log.lastSeq();
  const throttle = { kind: 'throttle', match: { operation: 'ping' }, count: 5 };
  const faults = [throttle, { kind: 'lie', forMs: 60_000 }];
  const added = await ask('POST', '/faults', faults);
  expect(added).toMatchObject({ status: 201, value: faults.map((fault) => ({ fault, hits: 0 })) });
  expect((await send(server().url, ping)).status).toBe(429);
  const kinds = log.since(since).map(({ kind }) => kind);
  expect(kinds).toEqual(['fault-added', 'fault-added', 'fault-applied']);
  expect(await get('/state')).toMatchObject({ faults: [{ hits: 1 }, { hits: 0 }] });
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
reset    | []                                           | reset: expected one object, found 0
reset    | [{"snapshot":0},{"snapshot":1}]              | reset: expected one object, found 2
`;

test.each(rowsOf(REFUSED))('%s refuses %s and says what is allowed', async (path, body, message) => {
  const says = message.split('...').map((part) => part.replace(/[^\w ]/g, '\\$&'));
  const error: unknown = expect.stringMatching(`^${says.join('.*')}`);
  expect(await ask('POST', `/${path}`, JSON.parse(body))).toEqual({ status: 400, value: { error } });
  expect(await get('/state')).toMatchObject({ faults: [] });
});

test('what is no JSON, no number or no endpoint is refused in words', async () => {
  const headers = { 'content-type': 'application/json' };
  const told: unknown = expect.stringContaining('{"error":');
  const order = '"market":"A_B","type":"spot","side":"buy"';
  for (const [path, body] of [
    ['faults', '{'],
    ['balances', '[{"currency":"BTC","amount":1},{"currency":"ETH","amount":1e400}]'],
    ['orders', `{${order},"amount":1e400}`],
  ] as const) {
    const broken = { method: 'POST', path: `/simulator/${path}`, headers, body };
    expect(await send(server().url, broken)).toMatchObject({ status: 400, body: told });
  }
  for (const [query, error] of [
    ['since=-1', 'since is "-1"; expected a whole number'],
    ['wait=999999', 'wait: expected milliseconds from 0 to 60000'],
    ['sinc=1', 'unknown field "sinc"; allowed: since, wait; did you mean since?'],
  ] as const)
    expect(await ask('GET', `/events?${query}`)).toEqual({ status: 400, value: { error } });
  const form = { ...headers, 'content-type': 'application/x-www-form-urlencoded' };
  const posted = await send(server().url, {
    method: 'POST',
    path: '/simulator/advance',
    headers: form,
    body: 'ms=1',
  });
  expect(posted).toMatchObject({ status: 415, body: expect.stringContaining('application/json') });
  const error = 'No such endpoint; GET / lists them.';
  expect(await ask('GET', '/unknown')).toEqual({ status: 404, value: { error } });
});

test('a script of a web page cannot control the exchange', async () => {
  const origin = { origin: 'https://example.com' };
  expect((await ask('POST', '/faults', { kind: 'lie' }, origin)).status).toBe(403);
  expect((await ask('GET', '/state', undefined, origin)).status).toBe(403);
  expect(await get('/state')).toMatchObject({ faults: [] });
});

test('balances are seen and set, and all money is accounted for', async () => {
  const bitcoin = { account: 'main', currency: 'BTC', amount: 0.5 };
  const set = await ask('POST', '/balances', [{ currency: 'USDT', amount: '100.5' }, bitcoin]);
  const deposited = { BTC: '0.5', USDT: '100.5' };
  const value = { accounts: { main: deposited }, market: {}, fees: {}, withdrawn: {}, deposited };
  expect(set).toEqual({ status: 200, value });
  await trade(PATHS.stockMarket, { market: 'BTC_USDT', side: 'sell', amount: '0.1' });
  await trade(PATHS.withdrawPay, { ticker: 'BTC', amount: '0.1', address: 'x', unique_id: 'x' });
  expect(await get('/balances')).toEqual({
    accounts: { main: { BTC: '0.2996', USDT: '6094.5' } },
    market: { BTC: '0.1', USDT: '-6000' },
    fees: { USDT: '6', BTC: '0.0004' },
    withdrawn: { BTC: '0.1' },
    deposited,
  });
});

test('filled and resting orders, withdrawals and addresses are seen', async () => {
  const resting = { market: 'BTC_USDT', type: 'spot', side: 'buy', amount: '1', price: '2' };
  await ask('POST', '/orders', resting);
  const sell = { market: 'BTC_USDT', side: 'sell', amount: '0.1', client_order_id: 'mine' };
  await trade(PATHS.stockMarket, sell);
  await trade(PATHS.withdrawPay, { ticker: 'BTC', amount: '0.1', address: 'there', unique_id: 'w' });
  await trade(PATHS.newAddress, { ticker: 'LTC' });
  const filled = [{ orderId: 2, clientOrderId: 'mine', side: 'sell', dealMoney: '6000' }];
  expect(await get('/orders')).toMatchObject({ resting: [resting], filled });
  expect(await get('/withdrawals')).toMatchObject([{ uniqueId: 'w', address: 'there' }]);
  expect(await get('/addresses')).toMatchObject([{ ticker: 'LTC', type: 'bech32' }]);
});
