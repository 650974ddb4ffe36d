import { isIP } from 'node:net';
import { type FastifyInstance, type FastifyReply, fastify } from 'fastify';
import { isLoopback } from '../util/loopback.ts';
import { type ListenAddress, limitConnections, listenError, urlOf } from './listen.ts';
import { addRoutes, createPages, type Pages, type WebSources } from './routes.ts';

export interface WebOptions extends WebSources {
  /** All of them answer the same. */
  readonly listen: readonly ListenAddress[];
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
  const apps: FastifyInstance[] = [];
  const addresses: string[] = [];
  const close = async (): Promise<void> => {
    await pages.events.close();
    await Promise.all(apps.map((app) => app.close()));
  };
  for (const address of options.listen) {
    // The configuration allows addresses only.
    if (address.kind !== 'tcp') continue;
    const { host, port, text } = address;
    const app = createListener(pages, host);
    limitConnections(app.server, options.clock, options.mostConnections);
    apps.push(app);
    try {
      await app.listen({ host, port });
    } catch (error) {
      await close();
      throw listenError('web', text, error);
    }
    addresses.push(urlOf(host, app.server));
  }
  return { addresses, status: pages.status, close };
}

/**
 * Whether a request with this Host header may be answered on a loopback listener. A web page that points its own name at
 * 127.0.0.1 (DNS rebinding) could otherwise read the status through the browser of whoever looks at it.
 */
function isLocalHostHeader(header: string | undefined, listenHost: string): boolean {
  if (header === undefined) return true;
  const host = header
    .toLowerCase()
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1');
  return host === 'localhost' || host === listenHost.toLowerCase() || isIP(host) !== 0;
}

function createListener(pages: Pages, listenHost: string): FastifyInstance {
  const loopback = isLoopback(listenHost);
  const app = fastify({
    logger: false,
    forceCloseConnections: true,
    bodyLimit: 1024,
    connectionTimeout: 30_000,
    requestTimeout: 10_000,
    keepAliveTimeout: 20_000,
    http: { headersTimeout: 5000, connectionsCheckingInterval: 5000, maxHeaderSize: 8192 },
    frameworkErrors: (_error, _request, reply) => {
      void (reply as FastifyReply).code(400).headers(HEADERS).type(TEXT).send('bad request\n');
    },
  });
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
