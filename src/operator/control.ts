import type { AddressInfo } from 'node:net';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { didYouMean } from '../util/nearest.ts';
import { checkSender } from './control-guard.ts';
import { parseJsonBody } from './control-json.ts';
import { ControlRefusal, describeFound, errorBody } from './control-refusal.ts';
import { addRoutes, type ControlRoutes, createRoutes } from './control-routes.ts';
import { createSend, type Send } from './control-send.ts';
import { CONTROL_HEADERS, type ControlServer, createControlServer } from './control-server.ts';
import { placeSocket, type SocketAccess, type SocketFile } from './control-socket.ts';
import type { ControlSources } from './control-sources.ts';
import { createTurnstile, type Turnstile } from './control-turnstile.ts';
import { type ControlAddress, codeOf, listenError, parseControlAddress } from './listen-address.ts';

export { REFUSALS } from './control-refusal.ts';

export interface ControlOptions {
  /** Addresses as `unix:/PATH`, or as `HOST:PORT` of the loopback; all of them answer the same. */
  readonly listen: readonly string[];
  /** Connections that each of them may have, those that are refused included; 512 where it is not given. */
  readonly mostConnections?: number;
  /** Who may connect to the Unix sockets; the user of this process unless given. */
  readonly access?: SocketAccess;
  /** The bearer token that requests over loopback need, asked for at each of them; null where none is configured. */
  readonly token: () => string | null;
  readonly sources: ControlSources;
  /** Blots secrets out of what a refusal repeats of its request. Where it is not given, nothing is blotted out. */
  readonly hide?: (text: string) => string;
}

/** The listeners that change state. */
export interface Control {
  /** Where they are to be found: `unix:/PATH`, or URLs with the ports that were really bound. */
  readonly addresses: readonly string[];
  /** Stops listening, removes the socket files and ends every connection, without waiting for any reply. */
  close(): Promise<void>;
}

/** What the listeners have in common. */
interface Shared extends ControlOptions {
  readonly routes: ControlRoutes;
  readonly send: Send;
  readonly turnstile: Turnstile;
}

const BODY_BYTES = 64 * 1024;

/**
 * Opens the control listeners. Rejects with `ListenError` where an address cannot be opened, and then none of them stays
 * open. A Unix socket can be connected to by root and those whom `access` names only, from its first moment.
 */
export async function startControl(options: ControlOptions): Promise<Control> {
  const { sources } = options;
  const shared = {
    ...options,
    routes: createRoutes(sources),
    send: createSend(sources.clock),
    turnstile: createTurnstile(sources.clock),
  };
  const parsed = options.listen.map((text) => ({ text, address: parseControlAddress(text) }));
  const apps: FastifyInstance[] = [];
  const files: SocketFile[] = [];
  const addresses: string[] = [];
  const close = async (): Promise<void> => {
    shared.turnstile.close();
    for (const file of files.splice(0)) file.remove();
    await Promise.all(apps.map((app) => app.close()));
  };
  for (const { text, address } of parsed) {
    const app = createListener(shared, address);
    apps.push(app);
    try {
      if (address.kind === 'unix')
        files.push(await placeSocket(address.path, (path) => app.listen({ path }), options.access));
      else await app.listen({ host: address.host, port: address.port });
    } catch (error) {
      await close();
      throw address.kind === 'unix' ? error : listenError(text, error, 'control');
    }
    addresses.push(address.kind === 'unix' ? text : urlOf(address.host, app.server.address() as AddressInfo));
  }
  return { addresses, close };
}

function urlOf(host: string, { port }: AddressInfo): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function createListener(shared: Shared, address: ControlAddress): FastifyInstance {
  const { sources, token, routes, send, turnstile, hide = (text: string) => text } = shared;
  const arrivals = new WeakMap<FastifyRequest, number>();
  const refuse = (reply: FastifyReply, error: unknown): FastifyReply => {
    const refusal = asRefusal(error, reply.request.headers['content-type']);
    // Who has gone in the middle of a request was refused nothing, or by the server already.
    if (reply.raw.socket?.destroyed === false) sources.onRefused(refusal.code);
    void reply.code(refusal.status).headers(CONTROL_HEADERS).headers(refusal.headers);
    return reply.send(errorBody(refusal.code, hide(refusal.message)));
  };
  let begin: ControlServer['begin'] = () => true;
  const app = fastify({
    logger: false,
    forceCloseConnections: true,
    bodyLimit: BODY_BYTES,
    serverFactory: (serve) => {
      const made = createControlServer(sources.clock, serve, sources.onRefused, shared.mostConnections);
      begin = made.begin;
      return made.server;
    },
    // The server itself answers what is no HTTP.
    clientErrorHandler: () => {},
    frameworkErrors: (_error, _request, reply) => {
      refuse(reply as FastifyReply, new ControlRefusal('malformed_request', 'the path cannot be read'));
    },
  });
  app.addHook('onRequest', (request, reply, done) => {
    arrivals.set(request, sources.clock.now().monoMs);
    turnstile.pass(() => {
      try {
        checkSender(request.headers, address, token);
        checkPath(request, routes);
      } catch (error) {
        refuse(reply, error);
        return;
      }
      void reply.headers(CONTROL_HEADERS);
      done();
    });
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    turnstile.pass(() => {
      let read: unknown;
      try {
        if (body.length > 0) checkContentType(request.headers['content-type']);
        read = parseJsonBody(body);
      } catch (error) {
        done(error as ControlRefusal);
        return;
      }
      done(null, read);
    });
  });
  app.setErrorHandler((error, _request, reply) => refuse(reply, error));
  addRoutes(app, routes, {
    clock: sources.clock,
    arrivedMs: (request) => arrivals.get(request) ?? sources.clock.now().monoMs,
    begin: (reply) => begin(reply.raw),
    inTurn: (run) => turnstile.pass(run),
    send,
  });
  return app;
}

/** Throws `ControlRefusal` where no route has this path and method. */
function checkPath(request: FastifyRequest, routes: ControlRoutes): void {
  if (!request.is404) return;
  const path = request.url.split('?', 1)[0] ?? '';
  const route = routes.get(path);
  if (route === undefined) {
    const paths = [...routes.keys()];
    const text = `there is no ${describeFound(path)} here; allowed: ${paths.join(', ')}${didYouMean(path, paths)}`;
    throw new ControlRefusal('unknown_path', text);
  }
  const allow = route.method === 'GET' ? 'GET, HEAD' : 'POST';
  throw new ControlRefusal('wrong_method', `${path}: found ${request.method}; allowed: ${allow}`, { allow });
}

/** Throws `ControlRefusal` where a body is said to be something else than JSON. */
function checkContentType(found: string | undefined): void {
  if (!/^application\/json *(;|$)/i.test(found ?? '')) throw wrongContentType(found);
}

function wrongContentType(found: string | undefined): ControlRefusal {
  const shown = found === undefined ? 'none' : describeFound(found);
  const hint = "with curl add -H 'content-type: application/json'";
  const text = `content-type: found ${shown}; allowed: application/json, or no body; ${hint}`;
  return new ControlRefusal('wrong_content_type', text);
}

/** What went wrong, for whoever asked. Of an error that nobody foresaw nothing is shown. */
function asRefusal(error: unknown, contentType: string | undefined): ControlRefusal {
  if (error instanceof ControlRefusal) return error;
  switch (codeOf(error)) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new ControlRefusal('too_large', `the body is longer than ${BODY_BYTES} bytes`);
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return wrongContentType(contentType);
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new ControlRefusal('malformed_request', 'the body is not as long as content-length says');
    default:
      return new ControlRefusal('internal_error', 'the daemon made a mistake; nothing more is known here');
  }
}
