import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { asker, createSpy, start as startControl } from './control-fixture.ts';
import { ask as askWeb, start as startWeb } from './web-fixture.ts';

const FILE = new URL('../../docs/openapi/daemon.yaml', import.meta.url);
const document = parse(readFileSync(FILE, 'utf8')) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
};
const ajv = new Ajv({ strict: false }).addSchema(document, 'document');

/** What the document has against a reply; null where nothing. */
function flawOf(
  path: string,
  method: string,
  status: number | 'default',
  type: string,
  value: unknown,
): string | null {
  const steps = ['paths', path, method, 'responses', String(status), 'content', type, 'schema'];
  const pointer = steps.map((step) => step.replaceAll('~', '~0').replaceAll('/', '~1')).join('/');
  const valid = ajv.validate({ $ref: `document#/${encodeURI(pointer)}` }, value);
  return valid ? null : ajv.errorsText();
}

const BODIES: Readonly<Record<string, object>> = {
  '/v1/beat': { bot: 'main', session: 'one', seq: 1 },
  '/v1/goodbye': { bot: 'main' },
  '/v1/fail': { bot: 'maker' },
  '/v1/pause': { forSeconds: 60 },
  '/v1/log-level': { level: 'debug' },
};

describe('docs/openapi/daemon.yaml describes what is answered', () => {
  it('by the control listener', async () => {
    const control = await startControl(createSpy());
    const ask = asker(control.addresses[0]);
    const paths = Object.keys(document.paths).filter((path) => path.startsWith('/v1/'));
    expect(paths).toHaveLength(13);
    for (const path of paths.filter((one) => one !== '/v1/status')) {
      const method = document.paths[path]?.['get'] === undefined ? 'POST' : 'GET';
      const asked = method === 'GET' ? { method } : { method, body: BODIES[path] ?? {} };
      const { status, body } = await ask(path, asked as { method: 'POST' });
      expect(flawOf(path, method.toLowerCase(), status, 'application/json', body), path).toBeNull();
      const refused = await ask(path, { method: 'POST', body: { bogus: true } });
      expect(ajv.validate({ $ref: 'document#/components/schemas/Error' }, refused.body), path).toBe(true);
    }
  });

  it('by the web listener', async () => {
    const web = await startWeb();
    for (const path of Object.keys(document.paths).filter((one) => !one.startsWith('/v1/'))) {
      const { status, headers, body } = await askWeb(web, path);
      const type = String(headers['content-type']).split(';')[0] ?? '';
      const value: unknown = type === 'application/json' ? JSON.parse(body) : body;
      expect(flawOf(path, 'get', status, type, value), path).toBeNull();
      const refused = await askWeb(web, path, 'GET', { host: 'rebound.example' });
      const refusal = String(refused.headers['content-type']).split(';')[0] ?? '';
      expect(flawOf(path, 'get', 'default', refusal, refused.body), path).toBeNull();
    }
  });
});
