import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { type Client, createClient, type KillSwitchRequest } from '../../src/exchange/client.ts';
import {
  ArgumentError,
  NetworkError,
  NonceError,
  RefusedError,
  TimeoutError,
  UnauthorisedError,
} from '../../src/exchange/errors.ts';
import type { ExchangeOptions } from '../../src/exchange/exchange.ts';
import { serveHttp, type TestServer } from './servers.ts';

function open(server: TestServer, options: Partial<ExchangeOptions> = {}): Client {
  const client = createClient({
    bases: [server.base],
    credentials: () => ({ key: 'key', secret: 'secret' }),
    nonce: 'increasing',
    clock: createSystemClock(),
    ...options,
  });
  onTestFinished(() => client.close());
  return client;
}

const ARM: KillSwitchRequest = { market: 'BTC_USDT', timeoutSeconds: 60 };
const TIMER = { market: 'BTC_USDT', startTime: 1_700_000_000, cancellationTime: 1_700_000_060, types: null };

test('arming resolves with the timer, deleting with null, a ping with its milliseconds', async () => {
  const server = await serveHttp((request, response, body) => {
    if (request.method === 'GET') return response.end('["pong"]');
    const { timeout } = JSON.parse(body) as { timeout: string | null };
    return response.end(JSON.stringify(timeout === null ? [] : TIMER));
  });
  const client = open(server);
  expect(await client.syncKillSwitch(ARM)).toEqual(TIMER);
  expect(await client.syncKillSwitch({ market: 'BTC_USDT', timeoutSeconds: null })).toBeNull();
  expect(await client.ping()).toBeGreaterThan(0);
});

describe('an argument that the document does not allow', () => {
  const cases: [unknown, string][] = [
    [{ market: 'btc_usdt', timeoutSeconds: 60 }, 'market is "btc_usdt"; allowed: BASE_QUOTE in capitals'],
    [{ market: 'BTCUSDT', timeoutSeconds: 60 }, 'market is "BTCUSDT"'],
    [{ market: 7, timeoutSeconds: 60 }, 'market is 7'],
    [
      { market: 'BTC_USDT', timeoutSeconds: 4 },
      'timeoutSeconds is 4; allowed: whole seconds 5 to 600, or null',
    ],
    [{ market: 'BTC_USDT', timeoutSeconds: 601 }, 'timeoutSeconds is 601'],
    [{ market: 'BTC_USDT', timeoutSeconds: 5.5 }, 'timeoutSeconds is 5.5'],
    [{ market: 'BTC_USDT', timeoutSeconds: '60' }, 'timeoutSeconds is "60"'],
    [
      { market: 'BTC_USDT', timeoutSeconds: 60, types: ['spto'] },
      'types[0] is "spto"; allowed: spot, margin, futures; null for all',
    ],
    [{ market: 'BTC_USDT', timeoutSeconds: 60, types: [] }, 'types is []; allowed: spot'],
    [{ market: 'BTC_USDT', timeoutSeconds: 60, types: 'spot' }, 'types is "spot"'],
  ];

  test.each(cases)('as in %j is told before anything is sent', async (request, message) => {
    let requests = 0;
    const server = await serveHttp((_request, response) => {
      requests += 1;
      response.end('[]');
    });
    const failed = open(server).syncKillSwitch(request as KillSwitchRequest);
    await expect(failed).rejects.toThrow(ArgumentError);
    await expect(failed).rejects.toThrow(message);
    expect(requests).toBe(0);
  });
});

test('a refusal rejects with its code and messages by parameter', async () => {
  const refusal = {
    code: 31,
    message: 'Validation failed',
    errors: { market: ['Market is not available.'] },
  };
  const server = await serveHttp((_request, response) =>
    response.writeHead(422).end(JSON.stringify(refusal)),
  );
  const failed = open(server).syncKillSwitch(ARM);
  await expect(failed).rejects.toThrow(RefusedError);
  await expect(failed).rejects.toMatchObject({
    code: 31,
    fields: { market: ['Market is not available.'] },
    message: 'HTTP 422: Validation failed (market: Market is not available.)',
  });
});

test('a wrong key rejects after one request: repeating it could lock the key out', async () => {
  let requests = 0;
  const server = await serveHttp((_request, response) => {
    requests += 1;
    response.writeHead(401).end('{"code":10,"message":"Unauthorized request."}');
  });
  await expect(open(server).syncKillSwitch(ARM)).rejects.toThrow(UnauthorisedError);
  expect(requests).toBe(1);
});

test('a stale nonce is repeated with a new one, three times at most', async () => {
  const nonces: string[] = [];
  let refuse = 2;
  const server = await serveHttp((_request, response, body) => {
    nonces.push((JSON.parse(body) as { nonce: string }).nonce);
    refuse -= 1;
    if (refuse < 0) response.end(JSON.stringify(TIMER));
    else response.writeHead(429).end('{"code":0,"message":"Too many requests.","errors":{}}');
  });
  const client = open(server);
  expect(await client.syncKillSwitch(ARM)).toEqual(TIMER);
  expect(nonces).toHaveLength(3);
  refuse = 100;
  await expect(client.syncKillSwitch(ARM)).rejects.toThrow(NonceError);
  expect(nonces).toHaveLength(7);
  expect(nonces).toEqual([...nonces].sort());
});

test('a hung exchange rejects with a time-out that leaves the outcome open', async () => {
  const server = await serveHttp(() => undefined);
  const failed = open(server).syncKillSwitch(ARM, { timeoutMs: 2_000 });
  await expect(failed).rejects.toThrow(TimeoutError);
  await expect(failed).rejects.toMatchObject({ maybeApplied: true });
});

test('a refused connection rejects with its cause and with the certainty that nothing was applied', async () => {
  const server = await serveHttp(() => undefined);
  const failed = open({ ...server, base: 'http://127.0.0.1:1' }).syncKillSwitch(ARM);
  await expect(failed).rejects.toThrow(NetworkError);
  await expect(failed).rejects.toMatchObject({ maybeApplied: false, cause: { code: 'ECONNREFUSED' } });
});

test('a signal withdraws a call that is on its way, and one that has not begun', async () => {
  let arrived = 0;
  const server = await serveHttp(() => {
    arrived += 1;
  });
  const client = open(server);
  const stopping = new AbortController();
  const failed = client.syncKillSwitch(ARM, { signal: stopping.signal });
  await expect.poll(() => arrived).toBe(1);
  stopping.abort(new Error('enough'));
  await expect(failed).rejects.toMatchObject({
    reason: 'aborted',
    maybeApplied: true,
    cause: { message: 'enough' },
  });
  await expect(client.syncKillSwitch(ARM, { signal: stopping.signal })).rejects.toMatchObject({
    reason: 'aborted',
    maybeApplied: false,
  });
  await expect(client.ping({ signal: stopping.signal })).rejects.toMatchObject({ reason: 'aborted' });
});

test('a failed ping rejects with the class of its failure', async () => {
  const server = await serveHttp((_request, response) => response.writeHead(503).end('<html>'));
  await expect(open(server).ping()).rejects.toMatchObject({ name: 'ServerError' });
});

test('a closed client rejects instead of waiting', async () => {
  const server = await serveHttp((_request, response) => response.end('[]'));
  const client = open(server);
  await client.close();
  await expect(client.syncKillSwitch(ARM)).rejects.toMatchObject({ name: 'NetworkError', reason: 'aborted' });
});

test('key and secret are in no error, whatever the server repeats', async () => {
  const server = await serveHttp((request, response) => {
    response
      .writeHead(400)
      .end(JSON.stringify({ code: 30, message: JSON.stringify(request.headers), errors: {} }));
  });
  const credentials = () => ({ key: 'key-0123456789', secret: 'secret-0123456789' });
  const error: unknown = await open(server, { credentials })
    .syncKillSwitch(ARM)
    .catch((failed: unknown) => failed);
  expect(error).toBeInstanceOf(RefusedError);
  const text = JSON.stringify(error, Object.getOwnPropertyNames(error));
  expect(text).not.toContain('key-0123456789');
  expect(text).not.toContain('secret-0123456789');
});

test('a program that used the client and closed it ends by itself', async () => {
  const server = await serveHttp((request, response) => {
    response.end(request.method === 'GET' ? '["pong"]' : JSON.stringify(TIMER));
  });
  const program = `
    const { createClient } = await import(${JSON.stringify(new URL('../../src/exchange/client.ts', import.meta.url).href)});
    const { createSystemClock } = await import(${JSON.stringify(new URL('../../src/clock.ts', import.meta.url).href)});
    const client = createClient({ bases: ['${server.base}'], credentials: () => ({ key: 'k', secret: 's' }),
      nonce: 'increasing', clock: createSystemClock() });
    await client.ping();
    await client.syncKillSwitch({ market: 'BTC_USDT', timeoutSeconds: 60 });
    await client.close();
    console.log('closed');`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], {
    timeout: 8_000,
  });
  expect(stdout).toBe('closed\n');
});
