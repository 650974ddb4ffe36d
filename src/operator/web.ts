import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { type FastifyInstance, type FastifyReply, fastify } from 'fastify';
import type { Snapshot } from '../core/view.ts';
import type { Clock } from '../ports.ts';
import { createBreather, within } from '../util/pace.ts';
import { isLoopback } from '../util/text.ts';
import { describeMistake, queriedWith } from './control-routes.ts';
import { ControlRefusal } from './control-sources.ts';
import { describeVerdict, judgeLive, judgeReady, ofBot, type Verdict } from './health.ts';
import { countAhead, EVERY_HEADER, type ListenOptions, openAll, SERVER } from './listen.ts';
import { PAGE_POLICY, renderPage } from './page.ts';
import { createSender, oneAtATime, onOver, shareWhileFresh } from './share.ts';
import { describeStatus, renderStatus, type StatusSources } from './status.ts';

interface WebOptions extends ListenOptions, Omit<StatusSources, 'startedAtWallMs'> {
  /** Builds their page without holding the event loop; in OpenMetrics with `open`. */
  readonly metrics: { render(snapshot: Snapshot, open: boolean): Promise<Buffer> };
}

/** Serves status page, metrics and health at all addresses, which are those of TCP. */
export async function startWeb(options: WebOptions) {
  const pages = createPages(options);
  const { addresses, close } = await openAll('web', options, (address) =>
    createListener(pages, address.kind === 'tcp' ? address.host : ''),
  );
  return {
    addresses,
    status: pages.status,
    /** Ends the event streams with the last status, stops listening and ends every connection. Waits for no slow reader. */
    async close(): Promise<void> {
      await pages.events.close();
      await close();
    },
  };
}

export type Web = Awaited<ReturnType<typeof startWeb>>;

/** Against DNS rebinding: a web page that points its own name at 127.0.0.1 could read a loopback listener. */
function isLocalHostHeader(header: string | undefined, listenHost: string): boolean {
  if (header === undefined) return true;
  const host = header.toLowerCase().replace(/^\[?(.*?)\]?(?::\d*)?$/, '$1');
  return host === 'localhost' || host === listenHost.toLowerCase() || isIP(host) !== 0;
}

function createListener(pages: Pages, listenHost: string): FastifyInstance {
  const loopback = isLoopback(listenHost);
  const app = fastify({
    ...SERVER,
    schemaErrorFormatter: describeMistake,
    frameworkErrors: (_error, _request, reply) => {
      void (reply as FastifyReply).code(400).headers(EVERY_HEADER).type(TEXT).send('bad request\n');
    },
  });
  app.addHook('onRequest', async (request, reply) => {
    const ahead = countAhead(request.raw.socket, reply.raw);
    // Node keeps what it has read until the replies before it are sent: tens of thousands would stop the loop for seconds.
    if (ahead === 'last') request.raw.socket.destroy();
    if (ahead !== 'goes') return reply.hijack();
    void reply.headers(EVERY_HEADER).type(TEXT);
    if (request.method !== 'GET' && request.method !== 'HEAD')
      throw new ControlRefusal('wrong_method', 'this listener is read-only', { allow: 'GET, HEAD' });
    if (loopback && !isLocalHostHeader(request.headers.host, listenHost))
      throw new ControlRefusal('wrong_host', 'this listener answers to localhost and IP addresses only');
    return undefined;
  });
  app.setNotFoundHandler((_, reply) => reply.code(404).send('not found\n'));
  app.setErrorHandler((error, _, reply) => {
    const { status, headers, message } = error instanceof ControlRefusal ? error : FAULT;
    return reply.code(status).headers(headers).type(TEXT).send(`${message}\n`);
  });
  addRoutes(app, pages);
  return app;
}

/** Most markets that the page asks for and shows. */
const PAGE_MARKETS = 200;
const TEXT = 'text/plain; charset=utf-8';
const TOO_MANY = 'too many readers at once';
const FAULT = { status: 500, headers: {}, message: 'internal error' };
const OPENMETRICS = 'application/openmetrics-text';

export type Pages = ReturnType<typeof createPages>;

/** Every body that the routes can answer with, built once for all listeners and all who ask at the same time. */
function createPages(options: WebOptions) {
  const { clock, metrics } = options;
  const sources = { ...options, startedAtWallMs: clock.now().wallMs };
  const lastStatus = () => renderStatus(sources, PAGE_MARKETS);
  const briefStatus = shareWhileFresh(clock, lastStatus);
  return {
    snapshot: shareWhileFresh(clock, sources.snapshot),
    metrics: shareWhileFresh(clock, () => metrics.render(sources.snapshot(), false)),
    openMetrics: shareWhileFresh(clock, () => metrics.render(sources.snapshot(), true)),
    status: shareWhileFresh(clock, () => renderStatus(sources, Number.POSITIVE_INFINITY)),
    briefStatus,
    foundStatus: oneAtATime(clock, (find: string) => renderStatus(sources, PAGE_MARKETS, find)),
    page: shareWhileFresh(clock, () => Buffer.from(renderPage(describeStatus(sources, PAGE_MARKETS)))),
    events: createEventStream(clock, briefStatus, lastStatus),
    send: createSender(clock, TOO_MANY),
  };
}

export function addRoutes(app: FastifyInstance, pages: Pages): void {
  type Asked = Partial<Record<'verbose' | 'exclude' | 'bot' | 'view' | 'find', string>>;
  type Judge = (snapshot: Snapshot, asked: Asked) => Verdict;
  const health = (paths: readonly string[], query: Partial<ReturnType<typeof queriedWith>>, judge: Judge) => {
    for (const path of paths) {
      app.get<{ Querystring: Asked }>(path, query, async ({ query }, reply) => {
        const verdict = judge(await pages.snapshot(), query);
        return reply.code(verdict.ok ? 200 : 503).send(describeVerdict(verdict, query.verbose !== undefined));
      });
    }
  };
  // A probe that restarts the daemon must not fail for its query.
  health(['/livez', '/-/healthy'], {}, judgeLive);
  health(['/readyz', '/-/ready'], queriedWith('verbose', 'exclude', 'bot'), (whole, { exclude, bot }) =>
    judgeReady(ofBot(whole, bot), exclude !== 'bots'),
  );
  // As OpenMetrics for whoever names that type, as Prometheus does; as Prometheus text for everybody else.
  app.get('/metrics', ({ headers }, reply) => {
    void reply.header('vary', 'accept');
    return headers.accept?.includes(OPENMETRICS) === true
      ? pages.send(reply.type(`${OPENMETRICS}; version=1.0.0; charset=utf-8`), pages.openMetrics)
      : pages.send(reply.type('text/plain; version=0.0.4; charset=utf-8'), pages.metrics);
  });
  app.get<{ Querystring: Asked }>('/api/v1/status', queriedWith('view', 'find'), ({ query }, reply) => {
    const { view, find = '' } = query;
    const ofPage = find === '' ? pages.briefStatus : () => pages.foundStatus(find);
    return pages.send(reply.type('application/json; charset=utf-8'), view === 'page' ? ofPage : pages.status);
  });
  app.get('/api/v1/events', (request, reply) =>
    request.method === 'HEAD' ? reply.type(EVENT_STREAM_TYPE).send() : pages.events.open(reply),
  );
  app.get('/', (_, reply) => {
    void reply.header('content-security-policy', PAGE_POLICY);
    return pages.send(reply.type('text/html; charset=utf-8'), pages.page);
  });
}

/** What a stream is answered with; `x-accel-buffering` keeps a proxy from holding events back. */
const EVENT_STREAM_TYPE = 'text/event-stream; charset=utf-8';
const MAX_STREAMS = 32;
const EVERY_MS = 1000;
/** A status that takes longer is left out. A comment is sent instead, because proxies end silent connections. */
const LATE_MS = 3000;
/** A reader that does not take one status within this is disconnected. */
const BEHIND_MS = 10_000;
const LAST_WORD_MS = 200;

/**
 * The status as server-sent events. One is made each second while somebody listens, and the same bytes go to all. A
 * reader that has not taken the last one misses the next, so that at most one waits for anybody. `status`: the brief
 * status as a line of JSON, up to a second old; `lastStatus`: the same, made now, for the end.
 */
function createEventStream(clock: Clock, status: () => Promise<Buffer>, lastStatus: () => Promise<Buffer>) {
  /** When each of them was written to last. */
  const streams = new Map<ServerResponse, number>();
  const breathe = createBreather(clock);
  let isServing = false;
  let closed = false;

  /** Writes, unless what was written before is still waiting; disconnects the reader where that lasts too long. */
  const send = (raw: ServerResponse, bytes: Buffer | string): void => {
    const nowMs = clock.now().monoMs;
    if (raw.writableLength > 0) {
      if (nowMs - (streams.get(raw) ?? nowMs) >= BEHIND_MS) raw.destroy();
      return;
    }
    streams.set(raw, nowMs);
    raw.write(bytes);
  };
  const serve = async (): Promise<void> => {
    isServing = true;
    while (streams.size > 0 && !closed) {
      await new Promise<void>((resolve) => void clock.after(EVERY_MS, resolve));
      // A status that cannot be made is missed.
      const event = await within(clock, LATE_MS, status().then(toEvent)).catch(() => null);
      for (const raw of streams.keys()) {
        await breathe();
        if (!closed && streams.has(raw)) send(raw, event ?? ': still here\n\n');
      }
    }
    isServing = false;
  };

  return {
    /** Answers with a stream whose first event is the whole status. Rejects where that cannot be made. */
    async open(reply: FastifyReply): Promise<FastifyReply> {
      const first = await status();
      if (closed || streams.size >= MAX_STREAMS)
        throw new ControlRefusal('too_many_commands', TOO_MANY, { 'retry-after': '5' });
      const { raw } = reply;
      void reply.header('content-type', EVENT_STREAM_TYPE).header('x-accel-buffering', 'no').hijack();
      for (const [name, value] of Object.entries(reply.getHeaders())) raw.setHeader(name, value ?? '');
      send(raw, Buffer.concat([Buffer.from('retry: 2000\n\n'), toEvent(first)]));
      onOver(reply, () => streams.delete(raw));
      if (!isServing) void serve();
      return reply;
    },
    /** Sends everybody the last status and the event `end`, and ends every stream, at the latest after a moment. */
    async close(): Promise<void> {
      closed = true;
      if (streams.size === 0) return;
      const last = await within(clock, LAST_WORD_MS, lastStatus().then(toEvent)).catch(() => null);
      const ends = [...streams.keys()].map((raw) => {
        if (last !== null && raw.writableLength === 0) raw.write(last);
        raw.end('event: end\ndata: {}\n\n');
        return once(raw, 'close');
      });
      await within(clock, LAST_WORD_MS, Promise.all(ends));
      for (const raw of streams.keys()) raw.destroy();
    },
  };
}

function toEvent(line: Buffer): Buffer {
  return Buffer.concat([Buffer.from('event: status\ndata: '), line, Buffer.from('\n')]);
}
