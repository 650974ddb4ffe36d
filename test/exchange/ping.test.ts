import { expect, test } from 'vitest';
import type { PingOutcome } from '../../src/ports.ts';
import { openExchange } from './open.ts';
import { serveHttp, serveSilence } from './servers.ts';

test('a ping that is answered tells how long it took', async () => {
  const server = await serveHttp((request, response) => {
    expect([request.method, request.url]).toEqual(['GET', '/api/v4/public/ping']);
    expect(request.headers).not.toHaveProperty('x-txc-apikey');
    setTimeout(() => response.end('["pong"]'), 30);
  });
  const { ping } = openExchange(server);
  const outcome = await ping(2_000);
  expect(outcome.ok).toBe(true);
  expect(outcome.latencyMs).toBeGreaterThanOrEqual(25);
});

test('a ping that hangs is tried once more on a fresh connection within its time', async () => {
  const server = await serveHttp((_request, response) => {
    if (server.paths.length === 2) response.end('["pong"]');
  });
  const { ping } = openExchange(server);
  expect(await ping(6_000)).toMatchObject({ ok: true });
  expect([server.paths.length, server.connections()]).toEqual([2, 2]);
});

test('a ping of an exchange that never answers fails when its time is over', async () => {
  const server = await serveSilence();
  const { ping } = openExchange(server);
  const outcome = await ping(200);
  expect(outcome).toMatchObject({ ok: false, reason: 'timeout', detail: 'no answer within 200 ms' });
  expect(outcome.latencyMs).toBeGreaterThanOrEqual(195);
});

test('a ping that is out of order is asked twice, one that is rate limited only once', async () => {
  let status = 503;
  const server = await serveHttp((_request, response) => {
    response.writeHead(status).end('<html>');
  });
  const { ping } = openExchange(server);
  expect(await ping(2_000)).toMatchObject({ ok: false, reason: 'http_5xx' });
  expect(server.paths).toHaveLength(2);
  status = 429;
  expect(await ping(2_000)).toMatchObject({ ok: false, reason: 'rate_limited' });
  expect(server.paths).toHaveLength(3);
});

test('a ping that is withdrawn settles once, later', async () => {
  const server = await serveSilence();
  const { exchange } = openExchange(server);
  const outcomes: PingOutcome[] = [];
  const cancel = exchange.ping(0, 5_000, (outcome) => outcomes.push(outcome));
  cancel();
  cancel();
  expect(outcomes).toEqual([]);
  await expect.poll(() => outcomes.length).toBe(1);
  expect(outcomes[0]).toMatchObject({ ok: false, reason: 'aborted' });
});

test('a hung ping does not hold up a renewal', async () => {
  const server = await serveHttp((request, response) => {
    if (request.method === 'POST') response.end('[]');
  });
  const { sync, ping } = openExchange(server);
  const pinging = ping(1_000);
  expect(await sync({ timeoutSeconds: null })).toEqual({ kind: 'deleted' });
  expect((await pinging).ok).toBe(false);
});
