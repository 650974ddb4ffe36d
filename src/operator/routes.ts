import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Snapshot } from '../core/view.ts';
import type { Clock } from '../ports.ts';
import type { Cancellation } from './cancellations.ts';
import { createEventStream, EVENT_STREAM_TYPE, type EventStream } from './event-stream.ts';
import { describeVerdict, judgeLive, judgeReady, ofBot, type Verdict } from './health.ts';
import { PAGE_POLICY, renderPage } from './page.ts';
import { createBreather, createSender, oneAtATime, shareWhileFresh } from './share.ts';
import { describeStatus, type RecentEvent, renderStatus, type StatusInput } from './status.ts';

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
  readonly cancellations: () => readonly Cancellation[];
  readonly version: string;
  readonly clock: Clock;
}

/** Every body that the routes can answer with, shared by all listeners and all who ask at the same time. */
export interface Pages {
  readonly live: () => Promise<Verdict>;
  readonly ready: () => Promise<Verdict>;
  readonly readyForBots: () => Promise<Verdict>;
  /** Of one bot; null where no market names it. */
  readonly readyOf: (asked: { readonly bot: string; readonly withBots: boolean }) => Promise<Verdict | null>;
  readonly metrics: () => Promise<readonly string[]>;
  readonly openMetrics: () => Promise<readonly string[]>;
  readonly status: () => Promise<readonly string[]>;
  readonly briefStatus: () => Promise<readonly string[]>;
  readonly foundStatus: (find: string) => Promise<readonly string[]>;
  readonly page: () => Promise<readonly string[]>;
  readonly events: EventStream;
  readonly send: ReturnType<typeof createSender>;
}

/** Most markets that the page asks for and shows. */
const PAGE_MARKETS = 200;
const TEXT = 'text/plain; charset=utf-8';
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
const OPENMETRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8';
const JSON_TYPE = 'application/json; charset=utf-8';

/** Builds each body once for however many ask for it. */
export function createPages(sources: WebSources): Pages {
  const { clock, metrics, version } = sources;
  const startedAtWallMs = clock.now().wallMs;
  const input = (): StatusInput => {
    const [events, cancellations] = [sources.recentEvents(), sources.cancellations()];
    return {
      snapshot: sources.snapshot(),
      events,
      cancellations,
      version,
      startedAtWallMs,
      now: clock.now(),
    };
  };
  const statusOf = (limit: number, find = '') => renderStatus(input(), { limit, find }, clock);
  const lastStatus = () => statusOf(PAGE_MARKETS);
  const briefStatus = shareWhileFresh(clock, lastStatus);
  return {
    live: shareWhileFresh(clock, () => judgeLive(sources.snapshot())),
    ready: shareWhileFresh(clock, () => judgeReady(sources.snapshot(), true)),
    readyForBots: shareWhileFresh(clock, () => judgeReady(sources.snapshot(), false)),
    readyOf: oneAtATime(clock, async ({ bot, withBots }) => {
      const own = ofBot(sources.snapshot(), bot);
      return own === null ? null : judgeReady(own, withBots);
    }),
    metrics: shareWhileFresh(clock, () => metrics.render(sources.snapshot(), clock.now(), false)),
    openMetrics: shareWhileFresh(clock, () => metrics.render(sources.snapshot(), clock.now(), true)),
    status: shareWhileFresh(clock, () => statusOf(Number.POSITIVE_INFINITY)),
    briefStatus,
    foundStatus: oneAtATime(clock, (find: string) => statusOf(PAGE_MARKETS, find)),
    page: shareWhileFresh(clock, () => [renderPage(describeStatus(input(), { limit: PAGE_MARKETS }))]),
    events: createEventStream({ clock, status: briefStatus, lastStatus, breathe: createBreather(clock) }),
    send: createSender(clock),
  };
}

/** Sends a body, or 503 while too many others are on their way. */
async function sendBody(
  reply: FastifyReply,
  { send }: Pages,
  type: string,
  body: () => Promise<Iterable<string | Uint8Array>>,
): Promise<FastifyReply> {
  void reply.type(type);
  const sent = await send(reply, body);
  return sent ?? reply.code(503).header('retry-after', '1').type(TEXT).send('too many readers at once\n');
}

/** As OpenMetrics for whoever names that type, as Prometheus does; as Prometheus text for everybody else. */
function sendMetrics(request: FastifyRequest, reply: FastifyReply, pages: Pages) {
  void reply.header('vary', 'accept');
  const open = request.headers.accept?.includes('application/openmetrics-text') === true;
  return sendBody(
    reply,
    pages,
    open ? OPENMETRICS_TYPE : METRICS_TYPE,
    open ? pages.openMetrics : pages.metrics,
  );
}

/** Adds the read-only routes to one listener. */
export function addRoutes(app: FastifyInstance, pages: Pages): void {
  interface Asked {
    readonly verbose?: string;
    readonly exclude?: string;
    readonly bot?: string;
  }
  const health = (paths: readonly string[], judge: (asked: Asked) => Promise<Verdict | null>) => {
    for (const path of paths) {
      app.get<{ Querystring: Asked }>(path, async ({ query }, reply) => {
        const verdict = await judge(query);
        void reply.type(TEXT);
        if (verdict === null) return reply.code(404).send('unknown bot: no market of this daemon names it\n');
        void reply.code(verdict.ok ? 200 : 503);
        return reply.send(describeVerdict(verdict, query.verbose !== undefined));
      });
    }
  };
  health(['/livez', '/-/healthy'], () => pages.live());
  health(['/readyz', '/-/ready'], ({ exclude, bot }) => {
    const withBots = exclude !== 'bots';
    if (bot !== undefined) return pages.readyOf({ bot: String(bot), withBots });
    return withBots ? pages.ready() : pages.readyForBots();
  });
  app.get('/metrics', (request, reply) => sendMetrics(request, reply, pages));
  app.get<{ Querystring: { view?: string; find?: string } }>('/api/v1/status', ({ query }, reply) => {
    const { view, find = '' } = query;
    const body =
      view !== 'page'
        ? pages.status
        : find === ''
          ? pages.briefStatus
          : () => pages.foundStatus(String(find));
    return sendBody(reply, pages, JSON_TYPE, body);
  });
  app.get('/api/v1/events', (request, reply) =>
    request.method === 'HEAD' ? reply.type(EVENT_STREAM_TYPE).send() : pages.events.open(reply),
  );
  app.get('/', (_, reply) => {
    void reply.header('content-security-policy', PAGE_POLICY);
    return sendBody(reply, pages, 'text/html; charset=utf-8', pages.page);
  });
}
