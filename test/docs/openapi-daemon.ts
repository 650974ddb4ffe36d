import fastify, { type FastifyInstance } from 'fastify';
import { createSystemClock } from '../../src/clock.ts';
import { createRoutes } from '../../src/operator/control-routes.ts';
import { ControlRefusal, REFUSALS } from '../../src/operator/control-sources.ts';
import { describeStatus, type StatusSources } from '../../src/operator/status.ts';
import { addRoutes, type Pages } from '../../src/operator/web.ts';
import { createSpy } from '../operator/control-fixture.ts';
import { sampleSnapshot } from '../operator/sample-snapshot.ts';
import { describedIn, type Schema } from './openapi-exchange.ts';

/** The HTTP surface of the daemon as OpenAPI 3.1, with the routes that its listeners register. */
export async function daemonDocument() {
  const { document, of } = describedIn('daemon.yaml');
  const web = await routesOf((app) => addRoutes(app, {} as Pages));
  const control = await routesOf(createRoutes(createSpy().sources));
  const paths = [...web, ...control].map(({ method, path, body, query }) => {
    const described = of(path, method);
    const queried = Object.entries(query?.properties ?? {}).map(parameterOf);
    const asked = path.startsWith('/v1/') ? queried : (described['parameters'] as typeof queried | undefined);
    const operation = {
      ...described,
      parameters: asked?.length === 0 ? undefined : asked,
      requestBody: body && { content: { 'application/json': { schema: body } } },
    };
    return [path, { ...document.paths[path], [method]: operation }];
  });
  const { components } = document;
  const fields = {
    code: { enum: ['config_rejected', ...REFUSALS] },
    message: { type: 'string' },
    problems: { type: 'array', items: { type: 'string' } },
  };
  const error = { type: 'object', required: ['code', 'message'], properties: fields };
  const Error = { ...components.schemas['Error'], properties: { error } };
  return {
    ...document,
    paths: Object.fromEntries(paths),
    components: { ...components, schemas: { ...components.schemas, Status: statusSchema(), Error } },
    'x-refusals': REFUSALS.map((code) => ({ code, status: new ControlRefusal(code, '').status })),
  };
}

/** The routes as a listener registers them, with the schemas by which its requests are checked. */
async function routesOf(add: (app: FastifyInstance) => void) {
  const app = fastify();
  const routes: { method: string; path: string; body?: Schema; query?: Schema }[] = [];
  app.addHook('onRoute', ({ method, url, schema }) => {
    const { body, querystring } = (schema ?? {}) as { body?: Schema; querystring?: Schema };
    if (typeof method !== 'string' || method === 'HEAD') return;
    const checked = { ...(body && { body }), ...(querystring && { query: querystring }) };
    routes.push({ method: method.toLowerCase(), path: url, ...checked });
  });
  add(app);
  await app.close();
  return routes;
}

const parameterOf = ([name, { description, ...schema }]: [string, Schema]) => {
  return { name, in: 'query', description, schema };
};

/** The status document has no schema in the code: its fields and their types are read off one. */
function statusSchema(): Schema {
  const sources: StatusSources = {
    clock: createSystemClock(),
    snapshot: () => sampleSnapshot(),
    recentEvents: () => [{ atWallMs: 0, level: 'info', event: 'armed', market: null, text: '' }],
    cancellations: () => [{ market: '', certainty: 'certain', why: 'unrenewed', byWallMs: 0, count: 1 }],
    version: '',
    startedAtWallMs: 0,
  };
  return schemaOf(JSON.parse(JSON.stringify(describeStatus(sources, 1))));
}

function schemaOf(value: unknown): Schema {
  if (value === null) return {};
  if (Array.isArray(value)) return { type: 'array', items: value.length === 0 ? {} : schemaOf(value[0]) };
  if (typeof value !== 'object') return { type: [typeof value, 'null'] };
  const properties = Object.entries(value).map(([name, inner]) => [name, schemaOf(inner)]);
  return { type: 'object', required: Object.keys(value), properties: Object.fromEntries(properties) };
}
