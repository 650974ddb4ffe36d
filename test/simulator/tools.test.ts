import { networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import type { SimulatorOptions } from '../../src/library/simulator.ts';
import type { Fault } from '../../src/simulator/faults.ts';
import { control, ping, send, signed } from './raw-client.ts';
import { openServer, PATHS } from './trader.ts';

/** A server until the test ends, with signed requests to it and requests to its control endpoints. */
async function open(options: SimulatorOptions = {}) {
  const server = await openServer(options);
  return {
    server,
    ask: async (path: string, fields: object = {}) => {
      const { status, body } = await send(server.url, signed(fields, { path: `/api/v4/${path}` }));
      return { status, value: JSON.parse(body) as Record<string, unknown> };
    },
    arm: (market: string, timeout = '60') => send(server.url, signed({ market, timeout })),
    post: (path: string, body?: unknown) => control(server.url, 'POST', `/simulator/${path}`, body),
    get: async (path: string) => (await control(server.url, 'GET', `/simulator/${path}`)).value,
    kinds: () => server.exchange.log.since(0).map(({ kind }) => kind),
  };
}

const LIVE = { profile: 'live', balances: { main: { USDT: '1000', BTC: '1' } } } as const;
const ORDER = { market: 'BTC_USDT', type: 'spot', side: 'sell', amount: '0.5', price: '70000' } as const;

test.each(['running', 'manual'] as const)('a %s clock that jumps fires each timer in time', async (time) => {
  const { server, arm, post } = await open({ time, orders: [ORDER] });
  await arm('BTC_USDT', '60');
  await arm('ETH_USDT', '30');
  const startedMs = server.nowMs();
  const { nowMs } = (await post('advance', { ms: 61_000 })).value as { nowMs: number };
  expect(nowMs - startedMs).toBeGreaterThanOrEqual(61_000);
  const fired = server.exchange.log.since(0).filter((event) => event.kind === 'timer-fired');
  expect(fired).toMatchObject([{ market: 'ETH_USDT' }, { market: 'BTC_USDT', cancelledOrders: 1 }]);
  for (const { atMs, cancellationTime } of fired)
    expect(atMs - cancellationTime * 1000).toBeLessThan(time === 'manual' ? 1 : 1000);
});

test('a running clock that jumps brings forward what is due after the jump', async () => {
  const { server, arm, kinds } = await open();
  server.addFaults([{ kind: 'latency', ms: 60_000, when: 'after', count: 1 }]);
  const late = arm('ETH_USDT', '600');
  await expect.poll(kinds).toContain('timer-armed');
  await arm('BTC_USDT', '60');
  server.advance(59_500);
  // Nobody asks the exchange meanwhile: it would look at what is due.
  expect((await late).status).toBe(200);
  await expect.poll(kinds, { timeout: 5000 }).toContain('timer-fired');
});

test('a clock that is moved ahead brings back what a fault delays', async () => {
  const { server, arm, kinds } = await open({ time: 'manual' });
  server.addFaults([{ kind: 'latency', ms: 3_600_000, when: 'after' }]);
  const late = arm('BTC_USDT');
  await expect.poll(kinds).toContain('timer-armed');
  server.advance(3_600_000);
  expect((await late).status).toBe(200);
  expect(kinds()).toContain('timer-fired');
});

test('what no control endpoint would take is refused by it and by the program of a test, and changes nothing', async () => {
  const { server, post, get } = await open({ time: 'manual' });
  const before = server.nowMs();
  const error: unknown = expect.stringMatching(/^advance: ms is .*; expected a whole .* 1 to 2678400000$/);
  for (const body of [{ ms: -1 }, { ms: 0.5 }, {}])
    expect(await post('advance', body)).toEqual({ status: 400, value: { error } });
  for (const ms of [Number.NaN, -1, Number.POSITIVE_INFINITY, undefined as unknown as number])
    expect(() => server.advance(ms)).toThrow(`advance: ms is ${ms}; expected a number of at least 0`);
  expect(server.nowMs()).toBe(before);
  for (const price of ['0', '-1', 'none'])
    expect(() => server.exchange.setPrice('BTC_USDT', price, before)).toThrow(RangeError);
  expect(server.exchange.prices()['BTC_USDT']).toBe('60000');
  const add = (fault: object) => () => server.addFaults([{ kind: 'lie' }, fault as Fault]);
  expect(add({ kind: 'latencyy' })).toThrow(/^fault 2: kind is "latencyy"; .* did you mean latency\?$/);
  expect(await get('state')).toMatchObject({ faults: [] });
});

test('the journal has every request, what it asked for and what its client was told', async () => {
  const { server, arm, get } = await open();
  await arm('BTC_USDT');
  await arm('BTC_USDT', '1');
  server.addFaults([{ kind: 'reset', when: 'after' }]);
  await send(server.url, ping).catch(() => null);
  const journal = await get('requests');
  const sync = { method: 'POST', path: PATHS.killSwitch, operation: 'kill-switch', market: 'BTC_USDT' };
  const reply: unknown = expect.stringContaining('should be at least 5');
  expect(journal).toMatchObject([
    { seq: 1, ...sync, key: 'demo-key', status: 200, body: { timeout: '60' }, faults: [] },
    { seq: 2, ...sync, status: 422, reply },
    { seq: 3, operation: 'ping', market: null, key: null, body: null, status: null, faults: ['reset'] },
  ]);
  expect([server.requests(2), await get('requests?since=2')]).toMatchObject([[{ seq: 3 }], [{ seq: 3 }]]);
  expect(JSON.stringify(journal)).not.toContain('demo-secret');
  expect((await control(server.url, 'GET', '/simulator/requests?since=x')).status).toBe(400);
});

test('a reset brings back the start or a snapshot: money, orders, prices, keys, timers, nonces, faults', async () => {
  const key = { key: 'second', secret: 'second-secret', account: 'second' };
  const setup = [{ path: '/simulator/keys', body: [key] }];
  const { server, ask, post, get } = await open({ orders: [ORDER], setup });
  const state = async () => ({
    ...((await get('state')) as object),
    nowMs: 0,
    lastSeq: 0,
    money: await get('balances'),
    prices: await get('prices'),
    filled: await get('orders'),
  });
  const timer = { market: 'BTC_USDT', timeout: '600' };
  const atStart = await state();
  await post('prices', { market: 'BTC_USDT', price: '50000' });
  await ask('order/stock_market', { market: 'BTC_USDT', side: 'buy', amount: '100' });
  expect(await post('snapshots')).toEqual({ status: 201, value: { snapshot: 1 } });
  const later = await state();
  expect(later).not.toEqual(atStart);
  await ask('order/kill-switch', { ...timer, nonce: '9'.repeat(20) });
  server.addFaults([{ kind: 'lie' }]);
  for (const [body, expected] of [
    [{ snapshot: 1 }, later],
    [undefined, atStart],
    [{ snapshot: 1 }, later],
  ]) {
    expect((await post('reset', body)).status).toBe(200);
    expect(await state()).toMatchObject({ ...(expected as object), timers: [], faults: [] });
  }
  expect((await ask('order/kill-switch', timer)).status).toBe(200);
  const error = 'reset: snapshot is 7; no such snapshot was taken';
  expect(await post('reset', { snapshot: 7 })).toEqual({ status: 400, value: { error } });
});

const TOKEN = 'a-token-of-a-test';
/** An address of this host that is not the loopback: its own requests come from there. */
const [ADDRESS] = Object.values(networkInterfaces())
  .flatMap((list) => list ?? [])
  .filter(({ internal, family }) => !internal && family === 'IPv4');

test.each<[string, string | undefined, Record<string, string>, number]>([
  ['without a token of the server', undefined, { authorization: `Bearer ${TOKEN}` }, 403],
  ['without their token', TOKEN, {}, 401],
  ['with another token', TOKEN, { authorization: 'Bearer other' }, 401],
  ['with the token in a web page', TOKEN, { authorization: `Bearer ${TOKEN}`, origin: 'http://x' }, 403],
  ['with the token', TOKEN, { authorization: `Bearer ${TOKEN}` }, 200],
])('other hosts control it %s: %s, %j: %i', async (_name, token, headers, status) => {
  const listen = { host: ADDRESS?.address ?? '127.0.0.1', port: 0 };
  const server = await openServer({ listen, ...(token !== undefined && { token }) });
  const answer = await control(server.url, 'GET', '/simulator/state', undefined, headers);
  // A host without a network has the loopback alone, where no token is asked for.
  const isAlone = ADDRESS === undefined && headers['origin'] === undefined;
  expect(answer.status).toBe(isAlone ? 200 : status);
  expect((await send(server.url, ping)).status).toBe(200);
});

const BUY = { market: 'BTC_USDT', side: 'buy', amount: '0.01', price: '50000' };

test('a limit order rests, holds its money back, is filled by the price, and cancelled by a timer', async () => {
  const { server, ask, post } = await open({ exchange: LIVE });
  const balances = async () => (await ask('trade-account/balance')).value;
  const { value: placed } = await ask('order/new', { ...BUY, clientOrderId: 'mine' });
  expect(placed).toMatchObject({ type: 'limit', status: 'OPEN', left: '0.01', price: '50000' });
  expect(await balances()).toMatchObject({ USDT: { available: '499.5', freeze: '500.5' } });
  expect((await ask('order/new', BUY)).value).toMatchObject({ errors: { amount: ['Not enough balance.'] } });
  const again = await ask('order/new', { ...BUY, amount: '0.001', clientOrderId: 'mine' });
  expect(again).toMatchObject({ status: 400, value: { code: 36 } });
  expect((await ask('orders')).value).toMatchObject([{ clientOrderId: 'mine' }]);
  await post('prices', { market: 'BTC_USDT', price: '49000' });
  const filled = { USDT: { available: '499.5', freeze: '0' }, BTC: { available: '1.01', freeze: '0' } };
  expect(await balances()).toMatchObject(filled);
  const BTC_USDT = [{ clientOrderId: 'mine', status: 'FILLED', price: '50000' }];
  expect((await ask('trade-account/order/history')).value).toMatchObject({ BTC_USDT });

  await ask('order/new', { ...BUY, price: '40000', amount: '0.001' });
  await ask('order/kill-switch', { market: 'BTC_USDT', timeout: '5', types: ['spot'] });
  server.advance(6000);
  expect((await ask('orders')).value).toEqual([]);
  expect(await balances()).toMatchObject({ USDT: { freeze: '0' } });
});

const TEXTS: unknown = [expect.any(String)];

test.each<[object, number, object]>([
  [{ price: '70000' }, 200, { status: 'FILLED', dealMoney: '600', dealFee: '0.6' }],
  [{ price: '70000', postOnly: true }, 400, { errors: { postOnly: TEXTS } }],
  [{ ioc: true }, 200, { status: 'CANCELED', ioc: true }],
  [
    { ioc: 'true', postOnly: 0 },
    422,
    { errors: { ioc: [expect.anything()], postOnly: [expect.anything()] } },
  ],
  [{ price: '50000.001' }, 400, { errors: { price: ['Min price step = 0.01'] } }],
  [{ price: '1' }, 400, { errors: { total: ['Total is less than 5'] } }],
  [{ price: undefined }, 422, { errors: { price: ['Price field is required.'] } }],
  [{ market: 'btc' }, 400, { errors: { market: ['Market is not available.'] } }],
  [{ side: 'sell', price: '70000', amount: '2' }, 400, { code: 32 }],
  [{ market: 'BTC_PERP', amount: '-5' }, 400, { code: 32 }],
  [{ market: 'BTC_PERP', price: '-50000' }, 400, { code: 32 }],
])('a limit order with %j is answered with %i', async (fields, status, value) => {
  const { server, ask } = await open({ exchange: LIVE });
  const path = 'market' in fields && fields.market === 'BTC_PERP' ? 'order/collateral/limit' : 'order/new';
  expect(await ask(path, { ...BUY, ...fields })).toMatchObject({ status, value });
  expect(server.exchange.orders()).toEqual([]);
});

test('a limit order is cancelled alone, or with all of its market and type; others keep resting', async () => {
  const { server, ask } = await open({ exchange: LIVE });
  const place = async (price: string) => (await ask('order/new', { ...BUY, price, amount: '0.001' })).value;
  const { orderId } = await place('10000');
  await place('20000');
  await place('30000');
  await ask('order/collateral/limit', { ...BUY, amount: '0.001' });
  const cancel = () => ask('order/cancel', { market: 'BTC_USDT', orderId });
  expect(await cancel()).toMatchObject({ status: 200, value: { orderId, status: 'CANCELED' } });
  const errors = { orderId: ['Unexecuted order was not found.'] };
  expect(await cancel()).toMatchObject({ status: 422, value: { code: 2, errors } });
  for (const named of [{}, { market: 'BTC_USDT', clientOrderId: '' }])
    expect((await ask('order/cancel', named)).status).toBe(400);
  for (const type of ['spot', ['limit'], {}])
    expect((await ask('order/cancel/all', { type })).value).toMatchObject({ errors: { type: TEXTS } });
  expect((await ask('order/cancel/all', { market: 'BTC_USDT', type: ['spot'] })).value).toEqual([]);
  expect((await ask('orders')).value).toMatchObject([{ type: 'margin limit' }]);
  const cancels = server.exchange.log.since(0).filter((event) => event.kind === 'order-cancelled');
  expect(cancels.map(({ by }) => by)).toEqual(['request', 'request', 'request']);
});

const WITHDRAWAL = { ticker: 'USDT', amount: '20', address: 'x', uniqueId: 'one', network: 'TRC20' };

test.each<[string, object, number, unknown]>([
  ['main-account/withdraw', WITHDRAWAL, 201, []],
  ['main-account/withdraw', { ...WITHDRAWAL, amount: '3.2' }, 422, { code: 3 }],
  ['main-account/balance', { ticker: 'BTC' }, 200, { main_balance: '10' }],
  ['main-account/address', { ticker: 'XRP' }, 200, { account: { memo: expect.any(String) } }],
  ['main-account/address', { ticker: 'EUR' }, 422, { errors: { ticker: TEXTS } }],
  ['order/market', { market: 'BTC_USDT', side: 'buy', amount: '120' }, 200, { dealStock: '0.002' }],
])('%s, beyond the document, takes %j: %i', async (path, fields, status, value) => {
  const { ask } = await open({ exchange: { profile: 'live' } });
  expect(await ask(path, fields)).toMatchObject({ status, value });
});

test('the deposit address of an account stays until a new one is made, and tickers show the price', async () => {
  const { server, ask } = await open({ exchange: { profile: 'live', newAddresses: true } });
  const addresses: unknown[] = [];
  for (const path of ['address', 'address', 'create-new-address', 'address'])
    addresses.push((await ask(`main-account/${path}`, { ticker: 'BTC' })).value['account']);
  const [first, same, second, last] = addresses;
  expect([same, last]).toEqual([first, second]);
  expect(second).not.toEqual(first);
  const read = async (path: string): Promise<unknown> => (await fetch(`${server.url}/api/${path}`)).json();
  const result = { last: '60000', bid: '59999.99', ask: '60000.01' };
  expect(await read('v1/public/ticker?market=BTC_USDT')).toMatchObject({ result });
  expect(await read('v4/public/ticker')).toMatchObject({ ETH_USDT: { last_price: '2500' } });
  expect(await read('v1/public/ticker?market=nothing')).toMatchObject({ success: false });
});
