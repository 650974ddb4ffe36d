import { describe, expect, test } from 'vitest';
import { PERMISSIONS, type Permission } from '../../src/simulator/state.ts';
import { createTrader, keysOf, PATHS, START_MS } from './trader.ts';

const { stockMarket, withdrawPay, killSwitch, codes, hashrate, newAddress, miningPool, ping } = PATHS;

const PUBLIC: readonly string[] = [miningPool, ping];
const DOCUMENTED = Object.values(PATHS);

/** The permissions of the simulator's own: the document has no names for them. */
const NEEDED: readonly (readonly [path: string, permission: Permission])[] = [
  [stockMarket, 'trade'],
  [withdrawPay, 'withdraw'],
  [killSwitch, 'trade'],
  [codes, 'info'],
  [hashrate, 'info'],
  [newAddress, 'deposit'],
];

describe('permissions', () => {
  const withPermissions = (permissions?: readonly Permission[]) => {
    const [key = expect.fail('a key')] = keysOf({ 'demo-key': 'main' });
    return createTrader({ newAddresses: true, keys: [{ ...key, ...(permissions && { permissions }) }] });
  };

  test.each(NEEDED)('%s needs the permission %s', (path, needed) => {
    const message = 'This API Key is not authorized to perform this action.';
    const forbidden = { status: 403, value: { code: 4, message, errors: {} } };
    const others = PERMISSIONS.filter((permission) => permission !== needed);
    expect(withPermissions(others).ask(path, {})).toEqual(forbidden);
    expect(withPermissions([]).ask(path, {})).toEqual(forbidden);
    expect(withPermissions([needed]).ask(path, {}).status).not.toBe(403);
    expect(withPermissions().ask(path, {}).status).not.toBe(403);
  });

  test('a key without permission moves nothing, and its nonce stays good', () => {
    const trader = withPermissions(['trade']);
    const nonce = String(START_MS * 10);
    const fields = { ticker: 'BTC', amount: '1', address: 'x', unique_id: 'x', nonce };
    const before = trader.exchange.books();
    expect(trader.ask(withdrawPay, fields).status).toBe(403);
    expect(trader.exchange.books()).toEqual(before);
    const buy = { market: 'BTC_USDT', side: 'buy', amount: '10', nonce };
    expect(trader.ask(stockMarket, buy).status).toBe(200);
  });
});

describe('limits', () => {
  test('keys of one account share it, accounts and operations do not', () => {
    const limit = { requests: 1, windowMs: 10_000 };
    const keys = keysOf({ first: 'main', second: 'main', stranger: 'other' });
    const trader = createTrader({ keys, limits: { 'my-codes': limit, hashrate: limit } });
    const knock = (path: string, key: string) => trader.ask(path, {}, { key }).status;
    const statuses = ['first', 'second', 'stranger'].map((key) => knock(codes, key));
    expect(statuses).toEqual([200, 429, 200]);
    expect(knock(hashrate, 'second')).not.toBe(429);
  });

  test('a limit of no requests lets none by', () => {
    const trader = createTrader({ limits: { ping: { requests: 0, windowMs: 10_000 } } });
    expect([trader.get(ping).status, trader.get(ping).status]).toEqual([429, 429]);
  });

  test('an error over the limit has the shape of its audience, and is a page of the gateway in the live profile', () => {
    const limit = { requests: 1, windowMs: 10_000 };
    const limits = { 'mining-pool': limit, 'withdraw-pay': limit };
    const trader = createTrader({ limits });
    const message = 'Rate limit exceeded: 1 requests per 10 seconds.';
    trader.get(miningPool);
    trader.ask(withdrawPay, {});
    expect(trader.get(miningPool)).toEqual({ status: 429, value: { success: false, message, params: [] } });
    expect(trader.ask(withdrawPay, {})).toEqual({ status: 429, value: { code: 0, message, errors: {} } });
    const { exchange } = createTrader({ limits, profile: 'live' });
    const pool = { method: 'GET', path: miningPool, headers: {}, body: '' };
    const [, live] = [exchange.handle(pool, START_MS), exchange.handle(pool, START_MS)];
    expect(live).toMatchObject({ status: 429, headers: { 'content-type': 'text/html; charset=UTF-8' } });
    expect(live.body).toContain('429 Too Many Requests');
  });
});

test.each(DOCUMENTED)('%s refuses another method and a large body in the shape of its errors', (path) => {
  const { exchange } = createTrader();
  const ask = (method: string, body: string) => {
    const reply = exchange.handle({ method, path, headers: {}, body }, START_MS);
    return { status: reply.status, value: JSON.parse(reply.body) as unknown };
  };
  const isPublic = PUBLIC.includes(path);
  const refused = (status: number, code: number, message: string) => ({
    status,
    value: isPublic ? { success: false, message, params: [] } : { code, message, errors: {} },
  });
  const [right, wrong] = isPublic ? ['GET', 'POST'] : ['POST', 'GET'];
  expect(ask(wrong, '')).toEqual(refused(405, 0, `Method not allowed. Allowed: ${right}.`));
  const large = 'Payload too large. Allowed: 65536 bytes.';
  expect(ask(right, 'x'.repeat(65_537))).toEqual(refused(413, 9, large));
});
