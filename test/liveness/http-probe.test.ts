import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { openHttpProber } from '../../src/daemon/asking.ts';
import type { ProbeAnswer } from '../../src/liveness/http.ts';
import { until } from './started.ts';

/** A real server on the loopback that says how many connections it has and had. */
async function serve(handler: RequestListener, host = '127.0.0.1', listenAt = 0) {
  let had = 0;
  const paths: string[] = [];
  const open = new Set<unknown>();
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    paths.push(request.url ?? '');
    handler(request, response);
  });
  server.on('connection', (socket) => {
    had += 1;
    open.add(socket);
    socket.on('close', () => open.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(listenAt, host, resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://${host}:${port}`, paths, had: () => had, open: () => open.size };
}

function probing(url: string) {
  const prober = openHttpProber(createSystemClock(), url);
  onTestFinished(() => prober.close());
  const ask = (timeoutMs = 5000) => new Promise<ProbeAnswer>((resolve) => prober.probe(timeoutMs, resolve));
  return { prober, ask };
}

describe('one probe', () => {
  test('is a GET of the very URL, over one connection that is kept and closed in the end', async () => {
    const { url, paths, had, open } = await serve((request, response) => {
      response.end(request.method);
    });
    const { prober, ask } = probing(`${url}/health?deep=1`);
    for (let count = 0; count < 5; count += 1) {
      expect(await ask()).toEqual({ kind: 'answered', status: 200 });
    }
    expect(paths).toEqual(Array.from({ length: 5 }, () => '/health?deep=1'));
    expect([had(), open()]).toEqual([1, 1]);
    prober.close();
    await until('the connection to close', () => open() === 0);
  });

  test('follows no redirect, and finds a bot again that has closed the connection', async () => {
    const { url, paths } = await serve((_request, response) => {
      response.writeHead(302, { location: '/elsewhere', connection: 'close' }).end();
    });
    const { ask } = probing(`${url}/`);
    for (let count = 0; count < 2; count += 1) expect(await ask()).toEqual({ kind: 'answered', status: 302 });
    expect(paths).toEqual(['/', '/']);
  });

  test('reads 64 KiB of an endless answer and hangs up', async () => {
    let sent = 0;
    const { url, open } = await serve((_request, response) => {
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(16_384))) sent += 16_384;
      };
      response.on('drain', more);
      more();
    });
    expect(await probing(url).ask()).toEqual({ kind: 'answered', status: 200 });
    await until('the connection to close', () => open() === 0);
    // What the sockets' own buffers hold comes on top of what was read.
    expect(sent).toBeLessThan(32 * 1024 * 1024);
  });

  test.each<[string, RequestListener]>([
    ['never answers', () => undefined],
    ['never ends its answer', (_request, response) => response.write('alive')],
  ])(
    'of a bot that %s is given up in time, and the next goes over a new connection',
    async (_what, handler) => {
      let isIll = true;
      const { url, open, had } = await serve((request, response) => {
        if (isIll) handler(request, response);
        else response.end();
      });
      const { ask } = probing(url);
      expect(await ask(200)).toEqual({ kind: 'failed', detail: 'no whole answer within 200 ms' });
      await until('the connection to close', () => open() === 0);
      isIll = false;
      expect(await ask()).toEqual({ kind: 'answered', status: 200 });
      expect(had()).toBe(2);
    },
  );

  test('of an address where nobody listens says so, and finds the bot that is started there', async () => {
    // Nobody is given a port by chance while it is in use at another address of the loopback.
    const { port } = new URL((await serve(() => undefined)).url);
    const { ask } = probing(`http://127.0.0.2:${port}`);
    const detail = expect.stringContaining('ECONNREFUSED');
    expect(await ask()).toEqual({ kind: 'failed', detail });
    await serve((_request, response) => response.end(), '127.0.0.2', Number(port));
    expect(await ask()).toEqual({ kind: 'answered', status: 200 });
  });

  test.each([
    ['that is not HTTP', 'SSH-2.0-OpenSSH\r\n'],
    ['that breaks off', 'HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nshort'],
  ])('with an answer %s counts for nothing', async (_what, bytes) => {
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.end(bytes));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    expect((await probing(`http://127.0.0.1:${port}/`).ask()).kind).toBe('failed');
  });
});
