import { networkInterfaces } from 'node:os';
import { describe, expect, test } from 'vitest';
import type { Fault } from '../../src/simulator/faults.ts';
import type { SimulatedServer } from '../../src/simulator/server.ts';
import { openServer } from './both-profiles.ts';
import { control, ping, send, signed } from './raw-client.ts';
import { PATHS } from './trader.ts';

const V4 = '/api/v4/';

/** A signed request of profile `live`, with the status and the JSON of its answer. */
async function ask({ url }: SimulatedServer, path: string, fields: object = {}) {
  const { status, body } = await send(url, signed({ ...fields }, { path: `${V4}${path}` }));
  return { status, value: JSON.parse(body) as Record<string, unknown> };
}

const post = ({ url }: SimulatedServer, path: string, body?: unknown) =>
  control(url, 'POST', `/simulator/${path}`, body);
const get = async ({ url }: SimulatedServer, path: string) =>
  (await control(url, 'GET', `/simulator/${path}`)).value;
const kinds = ({ exchange }: SimulatedServer) => exchange.log.since(0).map(({ kind }) => kind);

describe('time', () => {
  test.each(['running', 'manual'] as const)(
    'of a %s clock is moved ahead, and timers fire on the way at their own moment',
    async (time) => {
      const server = await openServer({ time, orders: [ORDER] });
      for (const [market, timeout] of [
        ['BTC_USDT', '60'],
        ['ETH_USDT', '30'],
      ]) {
        await send(server.url, signed({ market, timeout }));
      }
      const startedMs = server.nowMs();
      const { value } = await post(server, 'advance', { ms: 61_000 });
      const { nowMs } = value as { nowMs: number };
      expect(nowMs - startedMs).toBeGreaterThanOrEqual(61_000);
      const fired = server.exchange.log.since(0).filter((event) => event.kind === 'timer-fired');
      expect(fired).toMatchObject([{ market: 'ETH_USDT' }, { market: 'BTC_USDT', cancelledOrders: 1 }]);
      for (const { atMs, cancellationTime } of fired) {
        expect(atMs - cancellationTime * 1000).toBeLessThan(time === 'manual' ? 1 : 1000);
      }
    },
  );

  test('brings back what a fault delays', async () => {
    const server = await openServer({ time: 'manual' });
    server.addFaults([{ kind: 'latency', ms: 3_600_000, when: 'after' }]);
    const late = send(server.url, signed({ market: 'BTC_USDT', timeout: '60' }));
    await expect.poll(() => kinds(server)).toContain('timer-armed');
    server.advance(3_600_000);
    expect((await late).status).toBe(200);
    expect(kinds(server)).toContain('timer-fired');
  });

  test.each([{ ms: -1 }, { ms: 0.5 }, {}])('does not take %j', async (body) => {
    const { status, value } = await post(await openServer(), 'advance', body);
    expect([status, value]).toEqual([
      400,
      { error: expect.stringMatching(/^advance: ms is .*; expected a whole number from 1 to 2678400000$/) },
    ]);
  });
});

const ORDER = { market: 'BTC_USDT', type: 'spot', side: 'sell', amount: '0.5', price: '70000' } as const;

describe('in the program of a test', () => {
  test('what no control endpoint would take throws, and changes nothing', async () => {
    const server = await openServer({ time: 'manual' });
    const before = server.nowMs();
    for (const ms of [Number.NaN, -1, Number.POSITIVE_INFINITY, undefined as unknown as number])
      expect(() => server.advance(ms)).toThrow(`advance: ms is ${ms}; expected a number of at least 0`);
    expect(server.nowMs()).toBe(before);
    const add = (fault: object) => () => server.addFaults([{ kind: 'lie' }, fault as Fault]);
    expect(add({ kind: 'latencyy' })).toThrow(
      /^fault 2: kind is "latencyy"; allowed: .* did you mean latency\?$/,
    );
    expect(add({ kind: 'latency' })).toThrow('fault 2: ms is missing; expected milliseconds from 0 to');
    expect(add({ kind: 'throttle', match: { operation: 'killswitch' } })).toThrow(
      /^fault 2: match is \{"operation":"killswitch"\}; expected .*kill-switch, .*limit-order/,
    );
    expect((await get(server, 'state')) as object).toMatchObject({ faults: [] });
  });
});

describe('the journal', () => {
  test('has every request, what it asked for and what its client was told', async () => {
    const server = await openServer();
    await send(server.url, signed({ market: 'BTC_USDT', timeout: '60' }));
    await send(server.url, signed({ market: 'BTC_USDT', timeout: '1' }));
    server.addFaults([{ kind: 'reset', when: 'after' }]);
    await send(server.url, ping).catch(() => null);
    const journal = await get(server, 'requests');
    const sync = { method: 'POST', path: PATHS.killSwitch, operation: 'kill-switch', market: 'BTC_USDT' };
    expect(journal).toMatchObject([
      { seq: 1, ...sync, key: 'demo-key', status: 200, body: { timeout: '60' }, faults: [] },
      { seq: 2, ...sync, status: 422, reply: expect.stringContaining('should be at least 5') },
      { seq: 3, operation: 'ping', market: null, key: null, body: null, status: null, faults: ['reset'] },
    ]);
    expect(server.requests(2)).toMatchObject([{ seq: 3 }]);
    expect(await get(server, 'requests?since=2')).toMatchObject([{ seq: 3 }]);
    expect(JSON.stringify(journal)).not.toContain('demo-secret');
    expect((await control(server.url, 'GET', '/simulator/requests?since=x')).status).toBe(400);
  });
});

describe('reset', () => {
  test('brings back the start or a snapshot: money, orders, prices, keys, timers, nonces, faults', async () => {
    const server = await openServer({ orders: [ORDER], setup: [{ path: '/simulator/keys', body: [KEY] }] });
    const state = async () => ({
      ...((await get(server, 'state')) as object),
      nowMs: 0,
      lastSeq: 0,
      money: await get(server, 'balances'),
      prices: await get(server, 'prices'),
      filled: await get(server, 'orders'),
    });
    const atStart = await state();
    await post(server, 'prices', { market: 'BTC_USDT', price: '50000' });
    await ask(server, 'order/stock_market', { market: 'BTC_USDT', side: 'buy', amount: '100' });
    expect(await post(server, 'snapshots')).toEqual({ status: 201, value: { snapshot: 1 } });
    const later = await state();
    expect(later).not.toEqual(atStart);
    await ask(server, 'order/kill-switch', { market: 'BTC_USDT', timeout: '600', nonce: '9'.repeat(20) });
    server.addFaults([{ kind: 'lie' }]);
    for (const [body, expected] of [
      [{ snapshot: 1 }, later],
      [undefined, atStart],
      [{ snapshot: 1 }, later],
    ]) {
      expect((await post(server, 'reset', body)).status).toBe(200);
      expect(await state()).toMatchObject({ ...(expected as object), timers: [], faults: [] });
    }
    const usual = await ask(server, 'order/kill-switch', { market: 'BTC_USDT', timeout: '600' });
    expect(usual.status).toBe(200);
    expect(await post(server, 'reset', { snapshot: 7 })).toEqual({
      status: 400,
      value: { error: 'reset: snapshot is 7; no such snapshot was taken' },
    });
  });
});

const KEY = { key: 'second', secret: 'second-secret', account: 'second' } as const;

describe('other hosts', () => {
  const token = 'a-token-of-a-test';
  /** An address of this host that is not the loopback: its own requests come from there. */
  const [address] = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4');

  test.each<[string, string | undefined, Record<string, string>, number]>([
    ['without a token of the server', undefined, { authorization: `Bearer ${token}` }, 403],
    ['without their token', token, {}, 401],
    ['with another token', token, { authorization: 'Bearer other' }, 401],
    ['with the token in a web page', token, { authorization: `Bearer ${token}`, origin: 'http://x' }, 403],
    ['with the token', token, { authorization: `Bearer ${token}` }, 200],
  ])('control it %s: %s, %j: %i', async (_name, own, headers, status) => {
    const host = address?.address ?? '127.0.0.1';
    const listen = { host, port: 0 };
    const server = await openServer({ listen, ...(own !== undefined && { token: own }) });
    const answer = await control(server.url, 'GET', '/simulator/state', undefined, headers);
    // A host without a network has the loopback alone, where no token is asked for.
    const isAlone = address === undefined && headers['origin'] === undefined;
    expect(answer.status).toBe(isAlone ? 200 : status);
    expect((await send(server.url, ping)).status).toBe(200);
  });
});

describe('a limit order', () => {
  const live = { exchange: { profile: 'live', balances: { main: { USDT: '1000', BTC: '1' } } } } as const;
  const buy = { market: 'BTC_USDT', side: 'buy', amount: '0.01', price: '50000' };
  const balance = async (server: SimulatedServer) => {
    const { value } = await ask(server, 'trade-account/balance');
    return { USDT: value['USDT'], BTC: value['BTC'] };
  };

  test('rests, holds its money back, is filled by the price, and cancelled by a timer', async () => {
    const server = await openServer(live);
    const { value: placed } = await ask(server, 'order/new', { ...buy, clientOrderId: 'mine' });
    expect(placed).toMatchObject({ type: 'limit', status: 'OPEN', left: '0.01', price: '50000' });
    expect(await balance(server)).toMatchObject({ USDT: { available: '499.5', freeze: '500.5' } });
    expect((await ask(server, 'order/new', buy)).value).toMatchObject({
      errors: { amount: ['Not enough balance.'] },
    });
    const again = await ask(server, 'order/new', { ...buy, amount: '0.001', clientOrderId: 'mine' });
    expect(again).toMatchObject({ status: 400, value: { code: 36 } });
    expect((await ask(server, 'orders')).value).toMatchObject([{ clientOrderId: 'mine' }]);
    await post(server, 'prices', { market: 'BTC_USDT', price: '49000' });
    expect(await balance(server)).toEqual({
      USDT: { available: '499.5', freeze: '0' },
      BTC: { available: '1.01', freeze: '0' },
    });
    const { value: history } = await ask(server, 'trade-account/order/history');
    expect(history).toMatchObject({
      BTC_USDT: [{ clientOrderId: 'mine', status: 'FILLED', price: '50000' }],
    });

    await ask(server, 'order/new', { ...buy, price: '40000', amount: '0.001' });
    await ask(server, 'order/kill-switch', { market: 'BTC_USDT', timeout: '5', types: ['spot'] });
    server.advance(6000);
    expect((await ask(server, 'orders')).value).toEqual([]);
    expect(await balance(server)).toMatchObject({ USDT: { freeze: '0' } });
  });

  test.each<[object, number, object]>([
    [{ ...buy, price: '70000' }, 200, { status: 'FILLED', dealMoney: '600', dealFee: '0.6' }],
    [{ ...buy, price: '70000', postOnly: true }, 400, { errors: { postOnly: [expect.any(String)] } }],
    [{ ...buy, ioc: true }, 200, { status: 'CANCELED', ioc: true }],
    [{ ...buy, amount: '0.00001' }, 400, { code: 32 }],
    [{ ...buy, price: '50000.001' }, 400, { errors: { price: ['Min price step = 0.01'] } }],
    [{ ...buy, price: '1' }, 400, { errors: { total: ['Total is less than 5'] } }],
    [{ ...buy, price: 'x' }, 422, { errors: { price: [expect.stringContaining('numeric')] } }],
    [{ ...buy, price: undefined }, 422, { errors: { price: ['Price field is required.'] } }],
    [{ ...buy, market: 'btc' }, 400, { errors: { market: ['Market is not available.'] } }],
    [{ ...buy, side: 'sell', price: '70000', amount: '2' }, 400, { code: 32 }],
  ])('%j is answered with %i', async (fields, status, value) => {
    expect(await ask(await openServer(live), 'order/new', fields)).toMatchObject({ status, value });
  });

  test('is cancelled alone, or with all of its market and type; others keep resting', async () => {
    const server = await openServer(live);
    const ids = [];
    for (const price of ['10000', '20000', '30000']) {
      const { value } = await ask(server, 'order/new', { ...buy, price, amount: '0.001' });
      ids.push(value['orderId']);
    }
    await ask(server, 'order/collateral/limit', { ...buy, amount: '0.001' });
    const cancelled = await ask(server, 'order/cancel', { market: 'BTC_USDT', orderId: ids[0] });
    expect(cancelled).toMatchObject({ status: 200, value: { orderId: ids[0], status: 'CANCELED' } });
    expect(await ask(server, 'order/cancel', { market: 'BTC_USDT', orderId: ids[0] })).toMatchObject({
      status: 422,
      value: { code: 2, errors: { orderId: ['Unexecuted order was not found.'] } },
    });
    expect((await ask(server, 'order/cancel', {})).status).toBe(400);
    expect((await ask(server, 'order/cancel/all', { market: 'BTC_USDT', type: ['spot'] })).value).toEqual([]);
    expect((await ask(server, 'orders')).value).toMatchObject([{ type: 'margin limit' }]);
    const cancels = server.exchange.log.since(0).filter((event) => event.kind === 'order-cancelled');
    expect(cancels.map(({ by }) => by)).toEqual(['request', 'request', 'request']);
  });
});

const WITHDRAWAL = { ticker: 'USDT', amount: '20', address: 'x', uniqueId: 'one', network: 'TRC20' };

describe('beyond the document', () => {
  test.each<[string, object, number, unknown]>([
    ['main-account/withdraw', WITHDRAWAL, 201, []],
    ['main-account/withdraw', { ...WITHDRAWAL, amount: '3.2' }, 422, { code: 3 }],
    ['main-account/balance', { ticker: 'BTC' }, 200, { main_balance: '10' }],
    ['main-account/address', { ticker: 'XRP' }, 200, { account: { memo: expect.any(String) } }],
    ['main-account/address', { ticker: 'EUR' }, 422, { errors: { ticker: [expect.any(String)] } }],
    ['order/market', { market: 'BTC_USDT', side: 'buy', amount: '120' }, 200, { dealStock: '0.002' }],
  ])('%s takes %j: %i', async (path, fields, status, value) => {
    const server = await openServer({ exchange: { profile: 'live' } });
    expect(await ask(server, path, fields)).toMatchObject({ status, value });
  });

  test('the deposit address of an account stays until a new one is made', async () => {
    const server = await openServer({ exchange: { profile: 'live', newAddresses: true } });
    const addressOf = async (path: string) =>
      ((await ask(server, path, { ticker: 'BTC' })).value['account'] as { address: string }).address;
    const first = await addressOf('main-account/address');
    expect(await addressOf('main-account/address')).toBe(first);
    const second = await addressOf('main-account/create-new-address');
    expect(second).not.toBe(first);
    expect(await addressOf('main-account/address')).toBe(second);
  });

  test('tickers show the price', async () => {
    const { url } = await openServer();
    const read = async (path: string): Promise<unknown> => (await fetch(`${url}/api/${path}`)).json();
    expect(await read('v1/public/ticker?market=BTC_USDT')).toMatchObject({
      result: { last: '60000', bid: '59999.99', ask: '60000.01' },
    });
    expect(await read('v4/public/ticker')).toMatchObject({ ETH_USDT: { last_price: '2500' } });
    expect(await read('v1/public/ticker?market=nothing')).toMatchObject({ success: false });
  });
});
