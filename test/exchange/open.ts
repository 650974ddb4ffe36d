import { expect, onTestFinished, vi } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import type { Outcome } from '../../src/core/events.ts';
import { type Client, type ClientOptions, createClient } from '../../src/exchange/client.ts';
import { createExchange, type ExchangeOptions } from '../../src/exchange/exchange.ts';
import { createTransport, type TransportOptions } from '../../src/exchange/transport.ts';
import type { WireRequest, WireResult } from '../../src/exchange/wire.ts';
import type { PingOutcome, SyncRequest } from '../../src/ports.ts';

export const KEY = 'key-0123456789';
export const SECRET = 'secret-0123456789';
export const TOKEN = 'token-0123456789';

export function openTransport(base: string, options: Partial<TransportOptions> = {}) {
  const clock = createSystemClock();
  const transport = createTransport({ clock, bases: [base], connections: 4, ...options });
  onTestFinished(() => transport.close());
  const start = (given: Partial<WireRequest> = {}) => {
    const request: WireRequest = {
      base,
      method: 'POST',
      path: '/api/v4/order/kill-switch',
      content: () => ({ headers: { 'Content-type': 'application/json' }, body: '{"market":"BTC_USDT"}' }),
      fresh: false,
      mayWrite: () => true,
      ...given,
    };
    const { promise: result, resolve } = Promise.withResolvers<WireResult>();
    const settled = vi.fn<(result: WireResult) => void>(resolve);
    return { result, cancel: transport.send(request, settled), settled };
  };
  return { transport, start, send: (given?: Partial<WireRequest>) => start(given).result };
}

const ACCESS = {
  credentials: () => ({ key: KEY, secret: SECRET }),
  nonce: 'increasing',
  clock: createSystemClock(),
} as const;

export function openExchange(server: { readonly base: string }, options: Partial<ExchangeOptions> = {}) {
  const exchange = createExchange({ ...ACCESS, bases: [server.base], ...options });
  onTestFinished(() => exchange.close());
  const sync = (given: Partial<SyncRequest> = {}) => {
    const request: SyncRequest = {
      market: 'BTC_USDT',
      timeoutSeconds: 60,
      types: null,
      base: 0,
      fresh: false,
      signed: () => undefined,
      mayWrite: () => true,
      ...given,
    };
    const { promise: outcome, resolve } = Promise.withResolvers<Outcome>();
    let returned = false;
    exchange.sync(request, (settled) => {
      expect(returned).toBe(true);
      resolve(settled);
    });
    returned = true;
    return outcome;
  };
  const ping = (timeoutMs: number, base = 0) =>
    new Promise<PingOutcome>((resolve) => {
      exchange.ping(base, timeoutMs, resolve);
    });
  return { exchange, sync, ping };
}

export function openClient(bases: string | readonly string[], options: Partial<ClientOptions> = {}): Client {
  const client = createClient({ ...ACCESS, accessToken: () => TOKEN, bases: [bases].flat(), ...options });
  onTestFinished(() => client.close());
  return client;
}

/** What a call rejects with; fails the test where it resolves. */
export async function errorOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    (value) => expect.fail(`resolved with ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );
}
