import { constants, createSign, generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Server,
  type Socket,
} from 'node:net';
import { onTestFinished } from 'vitest';
import { createHostClock, createTimeline } from '../simulation/virtual-clock.ts';

/** A clock that goes on by hand. */
export function createHandClock(wallMs: number) {
  const timeline = createTimeline();
  const advance = (byMs: number) => timeline.runUntil(timeline.nowMs() + byMs);
  return { ...createHostClock(timeline, { wallMs }), advance };
}

/** Listens on the loopback until the test ends: at any port of 127.0.0.1 where nothing is given. */
async function listening(
  server: Server,
  { host = '127.0.0.1', port = 0 }: { host?: string; port?: number | undefined } = {},
) {
  const sockets = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  const closeAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(() => {
    server.close();
    closeAll();
  });
  await once(server.listen(port, host), 'listening');
  const taken = (server.address() as AddressInfo).port;
  /** `connections`: accepted so far; `open`: those of them that are not closed. */
  const counts = { connections: () => connections, open: () => sockets.size };
  return { base: `http://127.0.0.1:${taken}`, port: taken, ...counts, closeAll };
}

type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => unknown;

function withBody(handler: Handler, paths: string[]): RequestListener {
  return (request, response) => {
    paths.push(request.url ?? '');
    let body = '';
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on('end', () => handler(request, response, body));
  };
}

/** A real HTTP server on the loopback, closed when the test ends. `paths`: those that were asked for. */
export async function serveHttp(handler: Handler, at?: Parameters<typeof listening>[1]) {
  const paths: string[] = [];
  return { ...(await listening(createServer(withBody(handler, paths)), at)), paths };
}

/** One that answers every request alike: with a text as it is, with everything else as JSON. */
export const serveReply = (reply: unknown, status = 200) =>
  serveHttp((_request, response) =>
    response.writeHead(status).end(typeof reply === 'string' ? reply : JSON.stringify(reply)),
  );

export const serveSilence = () => serveHttp(() => undefined);

/** A real HTTPS server whose certificate no authority has signed. With `onResume` it keeps sessions, which TLS 1.2 asks for. */
export async function serveTls(handler: Handler, onResume?: (done: (error: Error | null) => void) => void) {
  const { key, certificate } = selfSigned();
  const paths: string[] = [];
  let resumed = 0;
  const sessions = { maxVersion: 'TLSv1.2', secureOptions: constants.SSL_OP_NO_TICKET } as const;
  const server = createTlsServer(
    { key, cert: certificate, ...(onResume === undefined ? {} : sessions) },
    withBody(handler, paths),
  );
  if (onResume !== undefined) {
    const known = new Set<string>();
    server.on('newSession', (id: Buffer, _session, done: () => void) => {
      known.add(id.toString('hex'));
      done();
    });
    server.on('resumeSession', (id: Buffer, done: (error: Error | null) => void) => {
      // A client without a session sends an id of no meaning.
      if (!known.has(id.toString('hex'))) return done(null);
      resumed += 1;
      onResume(done);
    });
  }
  server.on('tlsClientError', () => undefined);
  const { port } = await listening(server);
  return { base: `https://127.0.0.1:${port}`, port, paths, ca: certificate, resumed: () => resumed };
}

/** A TCP server that does with each connection what it is told. */
export const serveSockets = (accepted: (socket: Socket) => void) => listening(createTcpServer(accepted));

/** Joins a connection to a server behind. */
export function passOn(socket: Socket, port: number): void {
  const through = connect(port, '127.0.0.1').on('error', () => undefined);
  socket.on('close', () => through.destroy());
  socket.pipe(through).pipe(socket);
}

/** A TCP server that answers with whatever bytes `answer` writes once a whole request is there. */
export async function serveBytes(answer: (socket: Socket) => unknown) {
  let received = '';
  const server = createTcpServer((socket) => {
    let pending = '';
    socket.on('data', (chunk) => {
      received += chunk.toString();
      pending += chunk.toString();
      const head = pending.indexOf('\r\n\r\n');
      if (head === -1) return;
      const length = Number(/content-length: (\d+)/i.exec(pending)?.[1] ?? 0);
      if (pending.length < head + 4 + length) return;
      pending = '';
      answer(socket);
    });
  });
  return { ...(await listening(server)), received: () => received };
}

function der(tag: number, ...parts: Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content]);
  return Buffer.concat([Buffer.from([tag, 0x82, length >> 8, length & 0xff]), content]);
}

/**
 * A key and a certificate that it signed itself, made anew so that no key lies in the repository; for 127.0.0.1, or for
 * one DNS name.
 */
export function selfSigned(dnsName?: string): { key: string; certificate: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const hex = (text: string) => Buffer.from(text, 'hex');
  const ecdsaWithSha256 = der(0x30, hex('06082a8648ce3d040302'));
  const moment = (text: string) => der(0x17, Buffer.from(text));
  const commonName = der(0x30, hex('0603550403'), der(0x0c, Buffer.from('test')));
  const name = der(0x30, der(0x31, commonName));
  const validity = der(0x30, moment('200101000000Z'), moment('491231235959Z'));
  const subject = dnsName === undefined ? der(0x87, hex('7f000001')) : der(0x82, Buffer.from(dnsName));
  const altName = der(0x30, hex('0603551d11'), der(0x04, der(0x30, subject)));
  const constraints = der(0x30, hex('0603551d13'), der(0x04, der(0x30, hex('0101ff'))));
  const body = der(
    0x30,
    hex('a003020102020101'),
    ecdsaWithSha256,
    name,
    validity,
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(0x30, altName, constraints)),
  );
  const signature = createSign('sha256').update(body).sign(privateKey);
  const whole = der(0x30, body, ecdsaWithSha256, der(0x03, Buffer.from([0]), signature));
  const lines = whole.toString('base64').replace(/(.{64})/g, '$1\n');
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    certificate: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
  };
}
