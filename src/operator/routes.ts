import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Snapshot } from '../core/snapshot.ts';
import type { Clock } from '../ports.ts';
import { createEventStream, EVENT_STREAM_TYPE, type EventStream } from './event-stream.ts';
import { type Check, describeChecks, describeOk, liveChecks, readyChecks } from './health.ts';
import { PAGE_POLICY, renderPage } from './page.ts';
import { PAGE_MARKETS } from './page-script.ts';
import { createBreather, onOver, shareWhileFresh } from './share.ts';
import { describeStatus, type RecentEvent, renderStatus, type StatusInput } from './status.ts';

/** A body in pieces: text, or bytes. */
type Body = Iterable<string | Uint8Array>;

/** The metrics page, as the listener needs it. */
export interface MetricsPage {
  /** In pieces, built without holding the event loop; in OpenMetrics with `open`. */
  render(snapshot: Snapshot, now: StatusInput['now'], open: boolean): Promise<readonly string[]>;
}

/** What the routes read. Nothing here can change anything. */
export interface WebSources {
  readonly snapshot: () => Snapshot;
  readonly metrics: MetricsPage;
  readonly recentEvents: () => readonly RecentEvent[];
  readonly version: string;
  readonly clock: Clock;
}

/** Every body that the routes can answer with, shared by all listeners and all who ask at the same time. */
export interface Pages {
  readonly live: () => Promise<Verdict>;
  readonly ready: () => Promise<Verdict>;
  readonly metrics: () => Promise<readonly string[]>;
  readonly openMetrics: () => Promise<readonly string[]>;
  readonly status: () => Promise<readonly string[]>;
  readonly briefStatus: () => Promise<readonly string[]>;
  readonly page: () => Promise<readonly string[]>;
  readonly events: EventStream;
  readonly send: ReturnType<typeof createSender>;
}

interface Verdict {
  readonly name: string;
  readonly ok: boolean;
  readonly checks: readonly Check[];
}

/** Bodies on their way at one time; each of slow readers' holds memory. */
const MAX_BODIES = 32;
const TEXT = 'text/plain; charset=utf-8';
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
const OPENMETRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8';
const JSON_TYPE = 'application/json; charset=utf-8';

/** Builds each body once for however many ask for it. */
export function createPages(sources: WebSources): Pages {
  const { clock, metrics, version } = sources;
  const startedAtWallMs = clock.now().wallMs;
  const input = (): StatusInput => {
    const events = sources.recentEvents();
    return { snapshot: sources.snapshot(), events, version, startedAtWallMs, now: clock.now() };
  };
  const breathe = createBreather(clock);
  const lastStatus = () => renderStatus(input(), PAGE_MARKETS, clock);
  const briefStatus = shareWhileFresh(clock, lastStatus);
  // Taken and judged in one turn: what a market says is as it stands when it is asked.
  const verdict = (name: string, judge: (seen: Snapshot) => Omit<Verdict, 'name'>) =>
    shareWhileFresh(clock, (): Verdict => ({ name, ...judge(sources.snapshot()) }));
  return {
    live: verdict('livez', (seen) => ({ ok: seen.live, checks: liveChecks(seen) })),
    ready: verdict('readyz', (seen) => ({ ok: seen.ready, checks: readyChecks(seen) })),
    metrics: shareWhileFresh(clock, () => metrics.render(sources.snapshot(), clock.now(), false)),
    openMetrics: shareWhileFresh(clock, () => metrics.render(sources.snapshot(), clock.now(), true)),
    status: shareWhileFresh(clock, () => renderStatus(input(), Number.POSITIVE_INFINITY, clock)),
    briefStatus,
    page: shareWhileFresh(clock, () => [renderPage(describeStatus(input(), PAGE_MARKETS))]),
    events: createEventStream({ clock, status: briefStatus, lastStatus, breathe }),
    send: createSender(breathe),
  };
}

/**
 * Sends a body piece by piece, as fast as its reader takes it; 503 while too many others are on their way. All bodies
 * together hold the event loop for a slice at a time: a reader on the same host takes megabytes without a pause.
 */
function createSender(breathe: () => Promise<void>) {
  let underWay = 0;
  async function* paced(chunks: Body) {
    for (const chunk of chunks) {
      await breathe();
      yield chunk;
    }
  }
  return async (reply: FastifyReply, type: string, body: () => Promise<Body>) => {
    if (underWay >= MAX_BODIES) {
      return reply.code(503).header('retry-after', '1').type(TEXT).send('too many readers at once\n');
    }
    underWay += 1;
    onOver(reply, () => {
      underWay -= 1;
    });
    return reply.type(type).send(Readable.from(paced(await body()), { objectMode: false }));
  };
}

function sendVerdict(reply: FastifyReply, { name, ok, checks }: Verdict, verbose: boolean): FastifyReply {
  const failing = checks.filter(({ failed }) => failed !== null);
  const brief = ok ? describeOk(checks) : describeChecks(name, ok, failing);
  return reply
    .code(ok ? 200 : 503)
    .type(TEXT)
    .send(verbose ? describeChecks(name, ok, checks) : brief);
}

/** As OpenMetrics for whoever names that type, as Prometheus does; as Prometheus text for everybody else. */
function sendMetrics(request: FastifyRequest, reply: FastifyReply, { send, metrics, openMetrics }: Pages) {
  void reply.header('vary', 'accept');
  const open = request.headers.accept?.includes('application/openmetrics-text') === true;
  return send(reply, open ? OPENMETRICS_TYPE : METRICS_TYPE, open ? openMetrics : metrics);
}

/** Adds the read-only routes to one listener. */
export function addRoutes(app: FastifyInstance, pages: Pages): void {
  const { send } = pages;
  for (const path of ['/livez', '/-/healthy']) {
    app.get<{ Querystring: { verbose?: string } }>(path, async (request, reply) =>
      sendVerdict(reply, await pages.live(), request.query.verbose !== undefined),
    );
  }
  for (const path of ['/readyz', '/-/ready']) {
    app.get<{ Querystring: { verbose?: string } }>(path, async (request, reply) =>
      sendVerdict(reply, await pages.ready(), request.query.verbose !== undefined),
    );
  }
  app.get('/metrics', (request, reply) => sendMetrics(request, reply, pages));
  app.get<{ Querystring: { view?: string } }>('/api/v1/status', (request, reply) =>
    send(reply, JSON_TYPE, request.query.view === 'page' ? pages.briefStatus : pages.status),
  );
  app.get('/api/v1/events', (request, reply) =>
    request.method === 'HEAD' ? reply.type(EVENT_STREAM_TYPE).send() : pages.events.open(reply),
  );
  app.get('/', (_, reply) => {
    void reply.header('content-security-policy', PAGE_POLICY);
    return send(reply, 'text/html; charset=utf-8', pages.page);
  });
}
