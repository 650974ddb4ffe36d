import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openTransport } from './open.ts';
import {
  createHandClock,
  passOn,
  serveBytes,
  serveHttp,
  serveReply,
  serveSilence,
  serveSockets,
  serveTls,
} from './servers.ts';

test('requests at the same time have a connection each, and no more than the limit are kept', async () => {
  const server = await serveHttp((_request, response) => setTimeout(() => response.end('[]'), 40));
  const { send } = openTransport(server.base, { connections: 3 });
  const opened: number[] = [];
  for (const length of [9, 3, 4]) {
    const results = await Promise.all(Array.from({ length }, () => send()));
    expect(results.every(({ kind }) => kind === 'response')).toBe(true);
    opened.push(server.connections());
  }
  expect(opened).toEqual([9, 9, 10]);
});

test('a fresh request has a connection that nobody used, and that one is kept for later requests', async () => {
  const server = await serveReply([]);
  const { send } = openTransport(server.base);
  await send();
  await send({ fresh: true });
  expect(server.connections()).toBe(2);
  await send();
  await send();
  expect(server.connections()).toBe(2);
});

/** A TLS server behind a line that lets only the first connections through; the others never shake hands. */
async function serveFew(passing: number) {
  const behind = await serveTls((_request, response) => response.end('[]'));
  let left = passing;
  const line = await serveSockets((socket) => {
    left -= 1;
    if (left >= 0) passOn(socket, behind.port);
  });
  return { ...line, base: line.base.replace('http:', 'https:'), ca: behind.ca };
}

test('eight connections are opened at a time; one that takes 250 ms holds up no other', async () => {
  const clock = createHandClock(0);
  const line = await serveFew(0);
  const { start } = openTransport(line.base, { clock });
  const attempts = Array.from({ length: 20 }, () => start());
  await expect.poll(() => line.connections()).toBe(8);
  await sleep(50);
  expect(line.connections()).toBe(8);
  attempts[0]?.cancel();
  await expect.poll(() => line.connections()).toBe(9);
  clock.advance(250);
  await expect.poll(() => line.connections()).toBe(17);
  attempts[19]?.cancel();
  expect(await attempts[19]?.result).toMatchObject({ reason: 'timeout', maybeApplied: false });
});

test('more connections are opened at a time as long as each opens quickly, and fewer again once they open slowly', async () => {
  const clock = createHandClock(0);
  const behind = await serveTls(() => undefined);
  const held: (() => void)[] = [];
  const line = await serveSockets((socket) => {
    held.push(() => passOn(socket, behind.port));
  });
  const base = line.base.replace('http:', 'https:');
  const { start } = openTransport(base, { clock, ca: behind.ca });
  for (let count = 0; count < 60; count += 1) start();
  const openAll = () => {
    for (const open of held.splice(0)) open();
  };
  await expect.poll(() => held.length).toBe(8);
  openAll();
  await expect.poll(() => held.length).toBe(16);
  clock.advance(10);
  openAll();
  await expect.poll(() => behind.paths.length).toBe(24);
  await expect.poll(() => held.length).toBe(8);
});

test('a request that waits until it may open a connection takes the first that answers', async () => {
  const clock = createHandClock(0);
  const line = await serveFew(1);
  const { start } = openTransport(line.base, { clock, ca: line.ca });
  const [first] = Array.from({ length: 8 }, () => start());
  // The first one opens quickly, so that two may be opened in its place. They hang as the others do.
  for (let count = 0; count < 2; count += 1) start();
  const waiting = start({ fresh: true });
  for (const one of [first, waiting]) expect(await one?.result).toMatchObject({ kind: 'response' });
  expect(line.connections()).toBe(10);
  clock.advance(201);
  expect(await Promise.race([start({ fresh: true }).result, sleep(100, 'waits')])).toBe('waits');
});

const TWO_LINES = { content: () => ({ headers: { 'X-TXC-APIKEY': 'secret\r\nlines' }, body: null }) };
const GOOD = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]';

async function serveWell() {
  const sockets: Socket[] = [];
  const server = await serveBytes((socket) => {
    sockets.push(socket);
    socket.write(GOOD);
  });
  return { ...server, sockets };
}

test('a request whose connection closes in the moment of sending takes a new one, and is signed for it', async () => {
  const { base, sockets, connections, received } = await serveWell();
  const { send } = openTransport(base);
  let signed = 0;
  const content = () => {
    signed += 1;
    return { headers: {}, body: `{"signed":${signed}}` };
  };
  await send({ content });
  // The close lies in the client's kernel, and the loop reads of it before the request is written.
  await new Promise<void>((resolve) => sockets[0]?.end(() => setImmediate(resolve)));
  expect(await send({ content })).toMatchObject({ kind: 'response', status: 200 });
  expect([connections(), signed]).toEqual([2, 3]);
  expect(received()).toContain('{"signed":3}');
  expect(received()).not.toContain('{"signed":2}');
});

test('evidence is asked for in the very step of the write, on new connections and on used ones', async () => {
  const server = await serveReply([]);
  const { send } = openTransport(server.base);
  for (let round = 0; round < 3; round += 1) {
    let asked = 0;
    const mayWrite = () => {
      asked += 1;
      expect(server.paths).toHaveLength(round);
      return true;
    };
    await send({ mayWrite });
    // A new one is asked about when it opens as well.
    expect(asked).toBe(round === 0 ? 2 : 1);
  }
  let asked = 0;
  const failsLast = () => {
    asked += 1;
    return asked === 1;
  };
  const unsent = { reason: 'aborted', maybeApplied: false };
  expect(await send({ mayWrite: () => false })).toMatchObject(unsent);
  expect(await send({ fresh: true, mayWrite: failsLast })).toMatchObject(unsent);
  expect([asked, server.paths.length]).toEqual([2, 3]);
});

test('a connection that opens too late for its request is kept for another one', async () => {
  const server = await serveReply([]);
  const { send } = openTransport(server.base);
  const detail = 'not sent: no longer allowed when the connection was ready';
  expect(await send({ mayWrite: () => false })).toMatchObject({
    reason: 'aborted',
    maybeApplied: false,
    detail,
  });
  expect(await send()).toMatchObject({ kind: 'response', status: 200 });
  expect([server.connections(), server.paths.length]).toEqual([1, 1]);
});

test('a kept connection that nobody used, and that the server closed, is no answer lost', async () => {
  const server = await serveReply([]);
  const { send } = openTransport(server.base);
  await send({ mayWrite: () => false });
  await expect.poll(() => server.connections()).toBe(1);
  server.closeAll();
  await sleep(50);
  expect(await send()).toMatchObject({ kind: 'response', status: 200 });
  expect(server.connections()).toBe(2);
});

test('giving up settles once and later: what the server still answers is ignored', async () => {
  const answers: (() => void)[] = [];
  const server = await serveHttp((_request, response) => answers.push(() => response.end('[]')));
  const { start } = openTransport(server.base);
  const attempt = start();
  await expect.poll(() => answers.length).toBe(1);
  attempt.cancel();
  expect(attempt.settled).not.toHaveBeenCalled();
  attempt.cancel();
  answers[0]?.();
  const detail = 'given up while waiting for an answer';
  expect(await attempt.result).toMatchObject({ reason: 'timeout', maybeApplied: true, detail });
  await sleep(80);
  attempt.cancel();
  expect(attempt.settled).toHaveBeenCalledTimes(1);
});

test.each(['http:', 'https:'])(
  'giving up on an %s connection that is not open yet sends nothing',
  async (protocol) => {
    const server = await serveBytes(() => undefined);
    const opening = openTransport(server.base.replace('http:', protocol)).start();
    // Over TLS the other side never shakes hands.
    if (protocol === 'https:') await sleep(50);
    opening.cancel();
    const detail = 'given up while waiting for the connection to open';
    expect(await opening.result).toMatchObject({ reason: 'timeout', maybeApplied: false, detail });
    await sleep(50);
    if (protocol === 'http:') expect(server.received()).toBe('');
  },
);

test.each([
  ['network', 'a connection is refused', async () => openTransport('http://127.0.0.1:1').send()],
  // A label may have 63 letters: no resolver is asked for this name.
  ['dns', 'a name does not resolve', async () => openTransport(`https://${'x'.repeat(64)}.invalid`).send()],
  [
    'tls',
    'no authority has signed the certificate',
    async () => openTransport((await serveTls(() => expect.fail('a request came'))).base).send(),
  ],
  [
    'aborted',
    'HTTP does not allow a header',
    async () => openTransport((await serveSilence()).base).send(TWO_LINES),
  ],
])(
  'with reason %s, and without repeating anything, nothing is sent where %s',
  async (reason, _what, send) => {
    const result = await send();
    expect(result).toMatchObject({ kind: 'failed', reason, maybeApplied: false });
    expect(JSON.stringify(result)).not.toContain('secret');
  },
);

test.each([
  ['ends', (done: (error: Error | null) => void) => done(new Error('no such session'))],
  ['hangs', () => undefined],
])('a TLS session whose resumption %s is not offered again', async (_how, onResume) => {
  const server = await serveTls((_request, response) => {
    response.setHeader('connection', 'close').end('[]');
  }, onResume);
  const { send, start } = openTransport(server.base, { ca: server.ca });
  expect(await send()).toMatchObject({ kind: 'response' });
  const second = start();
  await expect.poll(() => server.resumed()).toBe(1);
  second.cancel();
  expect(await second.result).toMatchObject({ kind: 'failed', maybeApplied: false });
  expect(await send()).toMatchObject({ kind: 'response' });
});

test('closing settles what is in flight, and later requests at once', async () => {
  const server = await serveSilence();
  const { transport, start } = openTransport(server.base);
  const written = start();
  await expect.poll(() => server.paths.length).toBe(1);
  const opening = start();
  await transport.close();
  expect(await written.result).toMatchObject({ reason: 'aborted', maybeApplied: true });
  expect(await opening.result).toMatchObject({ reason: 'aborted', maybeApplied: false });
  expect(await start().result).toMatchObject({ reason: 'aborted', maybeApplied: false });
});

test.each([
  ['plain', serveHttp],
  ['TLS', serveTls],
])(
  'giving up resets a %s connection: the kernel must not send again what nobody stands for',
  async (_what, serve) => {
    const ends: unknown[] = [];
    const server = await serve((request) => {
      request.socket.on('error', (error: NodeJS.ErrnoException) => ends.push(error.code));
      request.socket.on('end', () => ends.push('closed'));
    });
    const { transport, start } = openTransport(server.base, 'ca' in server ? { ca: String(server.ca) } : {});
    const first = start();
    await expect.poll(() => server.paths.length).toBe(1);
    first.cancel();
    await first.result;
    await expect.poll(() => ends).toEqual(['ECONNRESET']);
    const second = start();
    await expect.poll(() => server.paths.length).toBe(2);
    await transport.close();
    await second.result;
    await expect.poll(() => ends).toEqual(['ECONNRESET', 'ECONNRESET']);
  },
);

test('a request without an answer is given up at the end of its lifetime, which counts from its first byte', async () => {
  const server = await serveSilence();
  const { start } = openTransport(server.base, { requestLifetimeMs: 200 });
  const begunMs = performance.now();
  expect(await start().result).toMatchObject({ reason: 'timeout', maybeApplied: true });
  expect(performance.now() - begunMs).toBeGreaterThan(195);
});

test('a slow request that is given up leaves alone the connections that have answered since', async () => {
  const slow: (() => void)[] = [];
  const server = await serveHttp((request, response) => {
    if (request.url === '/slow') slow.push(() => response.end('[]'));
    else setTimeout(() => response.end('[]'), 20);
  });
  const { start, send } = openTransport(server.base);
  await Promise.all([send(), send(), send()]);
  const hanging = start({ path: '/slow' });
  await expect.poll(() => slow.length).toBe(1);
  // One of the two idle connections is used again meanwhile, and one is not.
  await send();
  hanging.cancel();
  await hanging.result;
  await Promise.all([send(), send()]);
  expect(server.connections()).toBe(4);
});

const SPLIT = ['HTTP/1.', '1 100 Continue\r\nx: y\r\n\r', '\nHTTP/1.1 100 \r\n\r\nHTT', GOOD.slice(3)];
const EARLY = 'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n';
test.each([
  ['in pieces, twice, with headers', SPLIT],
  ['among other interim answers', [EARLY, `HTTP/1.1 100 Continue\r\n\r\n${GOOD}`]],
])('a `100 Continue` that nobody asked for is passed over: %s', async (_what, pieces) => {
  const server = await serveBytes(async (socket) => {
    for (const piece of pieces) {
      socket.write(piece);
      await sleep(20);
    }
  });
  const { send } = openTransport(server.base);
  for (let round = 0; round < 2; round += 1)
    expect(await send()).toMatchObject({ kind: 'response', status: 200, body: Buffer.from('[]') });
  expect(server.connections()).toBe(1);
});
