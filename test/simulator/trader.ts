import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { type SimulatorOptions, startExchange } from '../../src/library/simulator.ts';
import type { SimulatedServer } from '../../src/simulator/server.ts';
import { createSimulatedExchange } from '../../src/simulator/simulated-exchange.ts';
import type { ApiKey, ExchangeOptions } from '../../src/simulator/state.ts';
import { type Sent, signed } from './raw-client.ts';

export const PATHS = {
  stockMarket: '/api/v4/order/stock_market',
  history: '/api/v4/accounts/orders',
  withdrawPay: '/api/v4/main-account/withdraw-pay',
  killSwitch: '/api/v4/order/kill-switch',
  codes: '/api/v4/main-account/codes/my',
  hashrate: '/api/v4/mining/hashrate',
  newAddress: '/api/v4/main-account/create-new-address',
  miningPool: '/api/v4/public/mining-pool',
} as const;

export const START_MS = 1_700_000_000_000;

export async function openServer(options: SimulatorOptions = {}) {
  const server = await startExchange(options);
  onTestFinished(() => server.close());
  return server;
}

/** Runs a server for the tests of a file. */
export function runServer(options: SimulatorOptions = {}): () => SimulatedServer {
  let running: SimulatedServer | undefined;
  beforeAll(async () => {
    running = await startExchange(options);
  });
  afterAll(() => running?.close());
  return () => running ?? expect.fail('the server runs only inside tests');
}

const BEARER = { authorization: 'Bearer demo-token', 'content-type': 'application/json' };

export type Trader = ReturnType<typeof createTrader>;

/** Somebody with a key at an exchange of their own, in this process. */
export function createTrader(options: ExchangeOptions = {}) {
  const exchange = createSimulatedExchange(options);
  const handle = (sent: Sent, atMs = START_MS, pretend?: 'pretend') => {
    const { status, body } = exchange.handle(sent, atMs, pretend);
    return { status, value: body === '' ? '' : (JSON.parse(body) as unknown) };
  };
  return {
    exchange,
    handle,
    ask: (path: string, fields: object, how: { atMs?: number; key?: string; pretend?: 'pretend' } = {}) =>
      handle(signed(fields, { path, key: how.key ?? 'demo-key' }), how.atMs, how.pretend),
    /** A request with an access token, or with other headers. */
    history: (body: unknown = {}, headers: Record<string, string> = BEARER) =>
      handle({ method: 'POST', path: PATHS.history, headers, body: JSON.stringify(body) }),
    get: (path: string, atMs = START_MS) => handle({ method: 'GET', path, headers: {}, body: '' }, atMs),
  };
}

/** The cells of a table, which stand between ` | `. */
export const rowsOf = (table: string): string[][] =>
  table
    .trim()
    .split('\n')
    .map((line) => line.split(' | ').map((cell) => cell.trim()));

/** Keys with the usual secret, each with the account that it opens. */
export function keysOf(accounts: Readonly<Record<string, string>>): readonly ApiKey[] {
  return Object.entries(accounts).map(([key, account]) => ({ key, secret: 'demo-secret', account }));
}

/** The private error object of the API document. */
export const refusal = (status: number, code: number, message: string, errors: object = {}) => ({
  status,
  value: { code, message, errors },
});
