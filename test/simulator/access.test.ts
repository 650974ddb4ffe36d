import { describe, expect, test } from 'vitest';
import { PERMISSIONS, type Permission } from '../../src/simulator/state.ts';
import { createTrader, PATHS, START_MS, type Trader } from './trader.ts';

const { stockMarket, history, withdrawPay, killSwitch, codes, hashrate, newAddress, miningPool, ping } =
  PATHS;

/** The operations of the API document with the limit of its table, and the permission of the simulator's own. */
const TABLE: readonly (readonly [path: string, limit: number | null, permission: Permission | null])[] = [
  [stockMarket, 10_000, 'trade'],
  [history, null, null],
  [withdrawPay, 1000, 'withdraw'],
  [killSwitch, 10_000, 'trade'],
  [codes, 1000, 'info'],
  [hashrate, 1000, 'info'],
  [newAddress, 1000, 'deposit'],
  [miningPool, 1000, null],
  [ping, 2000, null],
];

/** The status of one request to a path, good or not. */
function knock(trader: Trader, path: string, atMs: number, key = 'demo-key'): number {
  if (path === history) return trader.history().status;
  const isPublic = path === miningPool || path === ping;
  return (isPublic ? trader.get(path, { atMs }) : trader.ask(path, {}, { atMs, key })).status;
}

describe('permissions', () => {
  const withPermissions = (permissions?: readonly Permission[]) =>
    createTrader({
      newAddresses: true,
      keys: [
        { key: 'demo-key', secret: 'demo-secret', account: 'main', ...(permissions && { permissions }) },
      ],
    });

  test.each(TABLE.filter(([, , permission]) => permission !== null))(
    '%s (limit %s) needs the permission %s',
    (path, _limit, needed) => {
      const forbidden = {
        status: 403,
        value: { code: 4, message: 'This API Key is not authorized to perform this action.', errors: {} },
      };
      const others = PERMISSIONS.filter((permission) => permission !== needed);
      expect(withPermissions(others).ask(path, {})).toEqual(forbidden);
      expect(withPermissions([]).ask(path, {})).toEqual(forbidden);
      expect(withPermissions(PERMISSIONS.filter((own) => own === needed)).ask(path, {}).status).not.toBe(403);
      expect(withPermissions().ask(path, {}).status).not.toBe(403);
    },
  );

  test('a key without permission moves nothing, and its nonce stays good', () => {
    const trader = withPermissions(['trade']);
    const nonce = String(START_MS * 10);
    const fields = { ticker: 'BTC', amount: '1', address: 'x', unique_id: 'x', nonce };
    const before = trader.exchange.books();
    expect(trader.ask(withdrawPay, fields).status).toBe(403);
    expect(trader.exchange.books()).toEqual(before);
    expect(trader.ask(stockMarket, { market: 'BTC_USDT', side: 'buy', amount: '10', nonce }).status).toBe(
      200,
    );
  });
});

describe('limits', () => {
  const keys = [
    { key: 'demo-key', secret: 'demo-secret', account: 'main' },
    { key: 'second', secret: 'demo-secret', account: 'main' },
    { key: 'stranger', secret: 'demo-secret', account: 'other' },
  ];

  test('keys of one account share it, accounts and operations do not', () => {
    const limit = { requests: 1, windowMs: 10_000 };
    const trader = createTrader({ keys, limits: { 'my-codes': limit, hashrate: limit } });
    expect(knock(trader, codes, START_MS)).toBe(200);
    expect(knock(trader, codes, START_MS, 'second')).toBe(429);
    expect(knock(trader, codes, START_MS, 'stranger')).toBe(200);
    expect(knock(trader, hashrate, START_MS, 'second')).not.toBe(429);
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

test.each(TABLE)('%s refuses another method and a large body in the shape of its errors', (path) => {
  const { exchange } = createTrader();
  const ask = (method: string, body: string) => {
    const reply = exchange.handle({ method, path, headers: {}, body }, START_MS);
    return { status: reply.status, value: JSON.parse(reply.body) as unknown };
  };
  const isPublic = path === miningPool || path === ping;
  const refused = (status: number, code: number, message: string) => ({
    status,
    value: isPublic ? { success: false, message, params: [] } : { code, message, errors: {} },
  });
  const [right, wrong] = isPublic ? ['GET', 'POST'] : ['POST', 'GET'];
  expect(ask(wrong, '')).toEqual(refused(405, 0, `Method not allowed. Allowed: ${right}.`));
  const large = 'Payload too large. Allowed: 65536 bytes.';
  expect(ask(right, 'x'.repeat(65_537))).toEqual(refused(413, 9, large));
});
