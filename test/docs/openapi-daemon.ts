import fastify, { type FastifyInstance } from 'fastify';
import { createRoutes } from '../../src/operator/control-routes.ts';
import { ControlRefusal, REFUSALS } from '../../src/operator/control-sources.ts';
import { describeStatus } from '../../src/operator/status.ts';
import { addRoutes, type Pages } from '../../src/operator/web.ts';
import { createSpy } from '../operator/control-fixture.ts';
import { sampleSnapshot } from '../operator/sample-snapshot.ts';
import { headOf, type Schema } from './openapi-exchange.ts';

/** A route as a listener registers it, with the schemas by which its requests are checked. */
interface Route {
  readonly method: string;
  readonly path: string;
  readonly body: Schema | undefined;
  readonly query: Schema | undefined;
}

/** By its status the schema of a reply, or the type of one that is no JSON. */
type Replies = Readonly<Record<number, Schema | string>>;

const object = (properties: Readonly<Record<string, Schema>>, optional: readonly string[] = []): Schema => ({
  type: 'object',
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
  properties,
});
const flag: Schema = { type: 'boolean' };
const text: Schema = { type: 'string' };
const number: Schema = { type: 'number' };
const texts: Schema = { type: 'array', items: text };
const orNull = (type: string): Schema => ({ type: [type, 'null'] });
const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });
const byMarket = (properties: Readonly<Record<string, Schema>>): Schema => ({
  type: 'object',
  additionalProperties: object(properties),
});

const heard = { counted: flag, why: text, bot: text };
const progress = {
  done: flag,
  markets: {
    type: 'array',
    items: object(
      {
        market: text,
        state: { enum: ['done', 'waiting', 'impossible'] },
        refused: { const: true },
        says: text,
      },
      ['refused'],
    ),
  },
};
const omitted = { marketsOmitted: { type: 'integer' } };
const failed = object(
  {
    ...heard,
    markets: byMarket({ state: text, firesInSeconds: orNull('number'), firesBy: orNull('number') }),
    ...omitted,
  },
  ['why', 'marketsOmitted'],
);
const goodbye = object({ ...heard, ...progress }, ['why']);
const CHANGES = { added: texts, removed: texts, moved: texts, changed: texts };
const reloaded = object(
  { result: { enum: ['unchanged', 'applied'] }, refused: texts, ...CHANGES, ...progress },
  ['refused', ...Object.keys(CHANGES), ...Object.keys(progress)],
);
const TEXT = 'text/plain';
const HEALTH = { 200: TEXT, 503: TEXT };
const HEALTH_QUERY = { verbose: 'lists every check' };
const READY = { ...HEALTH, 404: TEXT };
const READY_QUERY = {
  ...HEALTH_QUERY,
  exclude: 'bots: they may be missing',
  bot: 'of this bot and its markets alone',
};

const beat = object(
  {
    armed: flag,
    ...heard,
    ttlSeconds: number,
    markets: byMarket({
      state: text,
      armed: flag,
      expiresInSeconds: orNull('number'),
      expiresAt: orNull('number'),
    }),
    ...omitted,
  },
  ['why', 'marketsOmitted'],
);
const health = object(
  {
    live: flag,
    ready: flag,
    notReady: texts,
    notReadyOmitted: { type: 'integer' },
    nothingGuarded: orNull('string'),
    withoutBots: object({ ready: flag, notReady: texts }),
  },
  ['notReadyOmitted'],
);
const level = object({ level: text, before: text, forSeconds: orNull('number') });
const PAGE_QUERY = { view: 'page: at most 200 markets', find: 'a part of the name of a market or bot' };
const either = (name: string): Replies => ({ 200: ref(name), 202: ref(name), 409: ref(name) });

/** By path: what it is for, its replies, and what may be asked for. */
const NOTES: Readonly<
  Record<string, readonly [summary: string, Replies, query?: Readonly<Record<string, string>>]>
> = {
  '/': ['The status page.', { 200: 'text/html' }],
  '/metrics': ['The metrics.', { 200: TEXT }],
  '/livez': ["Whether the daemon's loop makes progress.", HEALTH, HEALTH_QUERY],
  '/-/healthy': ['The same as /livez.', HEALTH, HEALTH_QUERY],
  '/readyz': ['Whether every configured market of a living bot is armed.', READY, READY_QUERY],
  '/-/ready': ['The same as /readyz.', READY, READY_QUERY],
  '/api/v1/status': ['The status document.', { 200: ref('Status') }, PAGE_QUERY],
  '/api/v1/events': ['The status each second, as server-sent events.', { 200: 'text/event-stream' }],
  '/v1/beat': ['The bot lives.', { 200: beat }],
  '/v1/goodbye': ['The bot ends on purpose: its markets follow shutdown.policy.', either('Goodbye')],
  '/v1/fail': [
    'The bot is broken: nothing is renewed for it from now on.',
    { 200: ref('Failed'), 409: ref('Failed') },
  ],
  '/v1/arm': ['Guards markets again, whatever took them out of guard.', either('Progress')],
  '/v1/disarm': ['Deletes the timers, and leaves the markets alone until arm.', either('Progress')],
  '/v1/pause': ['The same as disarm, and ends by itself.', either('Progress')],
  '/v1/resume': ['Ends a pause before its time.', either('Progress')],
  '/v1/trip': ['Sets the timers to 5 s now, and leaves the markets until arm.', either('Progress')],
  '/v1/ack': ['Somebody has seen that orders were cancelled.', { 200: object({ acknowledged: texts }) }],
  '/v1/reload': ['Reads configuration and secret files again.', { ...either('Reloaded'), 422: ref('Error') }],
  '/v1/log-level': ['Sets the level of the log, or tells it.', { 200: level }],
  '/v1/status': ['The status document.', { 200: ref('Status') }],
  '/v1/health': ['Whether the daemon is live and ready.', { 200: health }],
};

/** The HTTP surface of the daemon as OpenAPI 3.1, from the routes that its listeners register. */
export async function daemonDocument() {
  const web = await routesOf((app) => addRoutes(app, {} as Pages));
  const control = await routesOf(createRoutes(createSpy().sources));
  const codes = REFUSALS.map((code) => ({ code, status: new ControlRefusal(code, '').status }));
  return {
    ...headOf(
      {
        title: 'killswitchd',
        version: '1',
        description: 'The read-only web listener, and the control listener under /v1. See docs/http.md.',
      },
      { url: 'http://127.0.0.1:17477', description: 'web.listen, unless configured otherwise' },
    ),
    paths: Object.fromEntries([
      ...web.map((route) => [route.path, pathOf(route, false)]),
      ...control.map((route) => [route.path, pathOf(route, true)]),
    ]),
    components: {
      schemas: {
        Status: statusSchema(),
        Progress: object(progress),
        Goodbye: goodbye,
        Failed: failed,
        Reloaded: reloaded,
        Error: object({
          error: object(
            { code: { enum: ['config_rejected', ...REFUSALS] }, message: text, problems: texts },
            ['problems'],
          ),
        }),
      },
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'what control.tokenFile holds; not at a socket',
        },
      },
    },
    'x-refusals': codes,
  };
}

async function routesOf(add: (app: FastifyInstance) => void): Promise<Route[]> {
  const app = fastify();
  const routes: Route[] = [];
  app.addHook('onRoute', ({ method, url, schema }) => {
    const { body, querystring } = (schema ?? {}) as { body?: Schema; querystring?: Schema };
    if (typeof method === 'string' && method !== 'HEAD')
      routes.push({ method, path: url, body, query: querystring });
  });
  add(app);
  await app.close();
  return routes;
}

function pathOf({ method, path, body, query }: Route, isControl: boolean) {
  const [summary, described, asked] = NOTES[path] ?? [];
  if (described === undefined) throw new Error(`${path} is not described`);
  const content = (schema: Schema | string) =>
    typeof schema === 'string' ? { [schema]: { schema: text } } : { 'application/json': { schema } };
  const replies = Object.entries(described).map(([status, schema]) => [
    status,
    { description: WORDS[status] ?? status, content: content(schema) },
  ]);
  const queried = { ...query?.properties, ...asked };
  const operation = {
    operationId: `${method.toLowerCase()}${path.replaceAll(/[^a-z0-9]+(\w?)/g, (_, letter: string) => letter.toUpperCase())}`,
    summary,
    ...(Object.keys(queried).length > 0 && { parameters: Object.entries(queried).map(parameterOf) }),
    ...(body !== undefined && { requestBody: { content: content(body) } }),
    responses: {
      ...Object.fromEntries(replies),
      default: { description: 'refused', content: content(isControl ? ref('Error') : TEXT) },
    },
    security: isControl ? [{ token: [] }, {}] : [],
  };
  const servers = [{ url: 'http://localhost', description: 'control.listen: a socket, or HOST:PORT' }];
  return { ...(isControl && { servers }), [method.toLowerCase()]: operation };
}

const WORDS: Readonly<Record<string, string>> = {
  200: 'done',
  202: 'some still wait; it goes on',
  404: 'no market of this daemon names the bot',
  409: 'to some it will not happen as things stand',
  422: 'the configuration has mistakes, or cannot be read now, and nothing was changed',
  503: 'not so, and why',
};

const parameterOf = ([name, rule]: [string, Schema | string]) => {
  const { description, ...schema } = typeof rule === 'string' ? { ...text, description: rule } : rule;
  return { name, in: 'query', description, schema };
};

/** The status document has no schema in the code: its fields and their types are read off one. */
function statusSchema(): Schema {
  const input = {
    snapshot: sampleSnapshot(),
    events: [{ atWallMs: 0, level: 'info', event: 'armed', market: null, text: '' }],
    cancellations: [{ market: '', certainty: 'certain', why: 'unrenewed', byWallMs: 0, count: 1 }],
    version: '',
    startedAtWallMs: 0,
    now: { monoMs: 0, bootMs: 0, wallMs: 0 },
  } as unknown as Parameters<typeof describeStatus>[0];
  return schemaOf(JSON.parse(JSON.stringify(describeStatus(input, { limit: 1 }))));
}

function schemaOf(value: unknown): Schema {
  if (value === null) return {};
  if (Array.isArray(value)) return { type: 'array', items: value.length === 0 ? {} : schemaOf(value[0]) };
  if (typeof value !== 'object') return orNull(typeof value);
  const properties = Object.entries(value as object).map(([name, inner]) => [name, schemaOf(inner)]);
  return object(Object.fromEntries(properties) as Readonly<Record<string, Schema>>);
}
