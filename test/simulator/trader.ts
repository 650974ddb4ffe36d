import { createSimulatedExchange, type SimulatedExchange } from '../../src/simulator/simulated-exchange.ts';
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
  ping: '/api/v4/public/ping',
} as const;

/** Unix milliseconds at which a trader begins. */
export const START_MS = 1_700_000_000_000;

const BEARER = { authorization: 'Bearer demo-token', 'content-type': 'application/json' };

export interface Answered {
  readonly status: number;
  readonly value: unknown;
}

/** Somebody with a key at an exchange of their own, in this process. */
export interface Trader {
  readonly exchange: SimulatedExchange;
  /** A signed request. */
  ask(path: string, fields: object, how?: { atMs?: number; key?: string; pretend?: 'pretend' }): Answered;
  /** A request with an access token, or with other headers. */
  history(body?: unknown, headers?: Record<string, string>): Answered;
  get(path: string, how?: { atMs?: number; method?: string }): Answered;
  /** The account's balance as a decimal string; `0` where there is none. */
  balance(currency: string, account?: string): string;
}

export function createTrader(options: ExchangeOptions = {}): Trader {
  const exchange = createSimulatedExchange(options);
  const handle = (sent: Sent, atMs: number, pretend?: 'pretend'): Answered => {
    const { status, body } = exchange.handle(sent, atMs, pretend);
    return { status, value: body === '' ? '' : JSON.parse(body) };
  };
  return {
    exchange,
    ask: (path, fields, { atMs = START_MS, key = 'demo-key', pretend } = {}) =>
      handle(signed({ ...fields }, { path, key }), atMs, pretend),
    history: (body = {}, headers = BEARER) =>
      handle({ method: 'POST', path: PATHS.history, headers, body: JSON.stringify(body) }, START_MS),
    get: (path, { atMs = START_MS, method = 'GET' } = {}) =>
      handle({ method, path, headers: {}, body: '' }, atMs),
    balance: (currency, account = 'main') => exchange.books().accounts[account]?.[currency] ?? '0',
  };
}

/** Keys with the usual secret, each with the account that it opens. */
export function keysOf(accounts: Readonly<Record<string, string>>): readonly ApiKey[] {
  return Object.entries(accounts).map(([key, account]) => ({ key, secret: 'demo-secret', account }));
}

/** An error object with `Validation failed`, as the API document shows it. */
export function invalid(status: number, code: number, errors: object): Answered {
  return { status, value: { code, message: 'Validation failed', errors } };
}
