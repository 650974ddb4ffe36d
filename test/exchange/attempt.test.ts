import { expect, test } from 'vitest';
import type { WireResult } from '../../src/exchange/wire.ts';
import { openTransport } from './open.ts';
import { serveBytes, serveHttp } from './servers.ts';

test.each<[string, string, Partial<Extract<WireResult, { kind: 'failed' }>>]>([
  [
    'shorter than announced',
    'HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{"market"',
    { reason: 'parse', status: 200 },
  ],
  [
    'cut in a chunk',
    'HTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\n\r\n20\r\nabc',
    { reason: 'parse', status: 503 },
  ],
  ['not HTTP', 'SSH-2.0-OpenSSH_9.9\r\n', { reason: 'parse' }],
  ['missing', '', { reason: 'network' }],
  ['only a part of its head', 'HTTP/1.1 200 OK\r\ncontent-', { reason: 'network' }],
  ['100 KiB of headers', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(102_400)}\r\n\r\n`, { reason: 'parse' }],
])('an answer that is %s fails with an unknown outcome', async (_what, bytes, expected) => {
  const server = await serveBytes((socket) => socket.end(bytes));
  const { send } = openTransport(server.base);
  const result = await send();
  expect(result).toMatchObject({ kind: 'failed', maybeApplied: true, ...expected });
  expect('status' in result ? result.status : undefined).toBe(expected.status);
});

test('64 KiB of body are read and not one byte more', async () => {
  let size = 65_536;
  const server = await serveHttp((_request, response) => response.end(Buffer.alloc(size, 'x')));
  const { send } = openTransport(server.base);
  const whole = await send();
  expect(whole.kind === 'response' && whole.body.length).toBe(65_536);
  size = 65_537;
  expect(await send()).toMatchObject({ kind: 'failed', reason: 'parse', status: 200, maybeApplied: true });
});

test('a slow answer is waited for, however slow its pieces come', async () => {
  const server = await serveHttp((_request, response) => {
    response.write('[');
    setTimeout(() => response.end(']'), 700);
  });
  const { send } = openTransport(server.base);
  expect(await send()).toMatchObject({ kind: 'response', body: Buffer.from('[]') });
});
