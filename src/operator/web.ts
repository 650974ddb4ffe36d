import type { AddressInfo, Socket } from 'node:net';
import { type FastifyInstance, type FastifyReply, fastify } from 'fastify';
import type { Clock } from '../ports.ts';
import { isLoopback } from '../util/loopback.ts';
import { isLocalHostHeader, listenError, parseListenAddress } from './listen-address.ts';
import { addRoutes, createPages, type Pages, type WebSources } from './routes.ts';

export interface WebOptions extends WebSources {
  /** Addresses as `host:port` or `[v6]:port`; all of them answer the same. */
  readonly listen: readonly string[];
  /** Connections that each of them may have; 256 where it is not given, and never more. */
  readonly mostConnections?: number;
}

/** The read-only listeners. */
export interface Web {
  /** The status document in pieces, as the listeners serve it. */
  readonly status: () => Promise<readonly string[]>;
  /** Where they are to be found, as URLs with the ports that were really bound. */
  readonly addresses: readonly string[];
  /** Ends the event streams with the last status, stops listening and ends every connection. Waits for no slow reader. */
  close(): Promise<void>;
}

/** More connections than this are closed at once: file descriptors belong to the renewals first. */
const MAX_CONNECTIONS = 256;
const SILENT_MS = 100;

const HEADERS = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-store',
} as const;
const TEXT = 'text/plain; charset=utf-8';

/**
 * Serves status page, metrics and health. Rejects with `ListenError` where an address cannot be opened, and then none of
 * them stays open.
 */
export async function startWeb(options: WebOptions): Promise<Web> {
  const pages = createPages(options);
  const parsed = options.listen.map((text) => ({ text, ...parseListenAddress(text) }));
  const apps: FastifyInstance[] = [];
  const addresses: string[] = [];
  const close = async (): Promise<void> => {
    await pages.events.close();
    await Promise.all(apps.map((app) => app.close()));
  };
  for (const { text, host, port } of parsed) {
    const app = createListener(
      pages,
      host,
      Math.min(MAX_CONNECTIONS, options.mostConnections ?? MAX_CONNECTIONS),
    );
    apps.push(app);
    try {
      await app.listen({ host, port });
    } catch (error) {
      await close();
      throw listenError(text, error);
    }
    // A connection that cannot be accepted, for want of descriptors, ends no daemon.
    app.server.on('error', () => {});
    letSilentGo(app.server, options.clock);
    addresses.push(urlOf(host, app.server.address() as AddressInfo));
  }
  return { addresses, status: pages.status, close };
}

/** Where there is no place for another one, those make room who connected a while ago and have said nothing since. */
function letSilentGo(server: FastifyInstance['server'], clock: Clock): void {
  const since = new Map<Socket, number>();
  server.on('connection', (socket: Socket) => {
    since.set(socket, clock.now().monoMs);
    socket.once('close', () => since.delete(socket));
  });
  server.on('drop', () => {
    const { monoMs } = clock.now();
    for (const [socket, sinceMs] of since) {
      if (socket.bytesRead === 0 && monoMs - sinceMs > SILENT_MS) socket.destroy();
    }
  });
}

function urlOf(host: string, { port }: AddressInfo): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function createListener(pages: Pages, listenHost: string, mostConnections: number): FastifyInstance {
  const loopback = isLoopback(listenHost);
  const app = fastify({
    logger: false,
    forceCloseConnections: true,
    bodyLimit: 1024,
    connectionTimeout: 30_000,
    requestTimeout: 10_000,
    keepAliveTimeout: 20_000,
    http: { headersTimeout: 5000, connectionsCheckingInterval: 2000, maxHeaderSize: 8192 },
    frameworkErrors: (_error, _request, reply) => {
      void (reply as FastifyReply).code(400).headers(HEADERS).type(TEXT).send('bad request\n');
    },
  });
  app.server.maxConnections = mostConnections;
  app.addHook('onRequest', async (request, reply) => {
    void reply.headers(HEADERS).type(TEXT);
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return reply.code(405).header('allow', 'GET, HEAD').send('this listener is read-only\n');
    }
    if (loopback && !isLocalHostHeader(request.headers.host, listenHost)) {
      return reply.code(421).send('this listener answers to localhost and IP addresses only\n');
    }
    return undefined;
  });
  app.setNotFoundHandler((_, reply) => reply.code(404).type(TEXT).send('not found\n'));
  app.setErrorHandler((_, __, reply) => reply.code(500).type(TEXT).send('internal error\n'));
  addRoutes(app, pages);
  return app;
}
