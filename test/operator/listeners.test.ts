import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { Ajv } from 'ajv';
import { describe, expect, it, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { sleep } from '../process/program.ts';
import { asker, dial, open } from './control-fixture.ts';
import { sampleSnapshot } from './sample-snapshot.ts';
import { ask, clock, start } from './web-fixture.ts';

test('somebody who never reads delays neither the others nor the end', async () => {
  const web = await start(undefined, undefined, 'x'.repeat(400 * 65_536));
  const sockets = Array.from({ length: 20 }, () => dial(web.addresses[0]).pause());
  for (const socket of sockets) socket.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n');
  expect((await ask(web, '/livez')).status).toBe(200);
  expect((await ask(web, '/api/v1/status')).status).toBe(200);
  const before = clock.now().monoMs;
  await web.close();
  expect(clock.now().monoMs - before).toBeLessThan(2000);
});

test('many who ask at the same time cost one snapshot', async () => {
  let snapshots = 0;
  const web = await start(() => {
    snapshots += 1;
    const until = clock.now().monoMs + 20;
    while (clock.now().monoMs < until);
    return sampleSnapshot();
  });
  const replies = await Promise.all(Array.from({ length: 30 }, () => ask(web, '/api/v1/status')));
  expect(replies.every(({ status }) => status === 200)).toBe(true);
  expect(snapshots).toBeLessThan(10);
});

describe('256 silent connections that come back as soon as they are closed', () => {
  const besiege = (address: string) => {
    const port = Number(new URL(address).port);
    const sockets = new Set<Socket>();
    let over = false;
    const come = (): void => {
      if (over) return;
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      sockets.add(socket);
      socket.once('close', () => {
        sockets.delete(socket);
        setImmediate(come);
      });
    };
    for (let stranger = 0; stranger < 256; stranger += 1) come();
    onTestFinished(() => {
      over = true;
      for (const socket of sockets) socket.destroy();
    });
  };
  /** Twenty a second for 3 s. */
  const statusesOf = async (send: () => Promise<{ readonly status: number }>) => {
    await sleep(500);
    const sent = Array.from({ length: 60 }, async (_, index) => {
      await sleep(50 * index);
      return send().catch(() => ({ status: 0 }));
    });
    return new Set((await Promise.all(sent)).map(({ status }) => status));
  };

  test('keep no beat from the control listener, and are counted', async () => {
    const { address, refused } = await open({ bots: () => ['main'] }, '0.0.0.0:0', () => 'right');
    besiege(String(address));
    const headers = { authorization: 'Bearer right' };
    expect(await statusesOf(() => asker(address)('/v1/beat', { headers }))).toEqual(new Set([200]));
    expect(new Set(refused)).toEqual(new Set(['too_many_connections']));
  });

  test('keep no probe from the web listener', async () => {
    const web = await start();
    besiege(String(web.addresses[0]));
    expect(await statusesOf(() => ask(web, '/livez'))).toEqual(new Set([200]));
  });
});

const FILE = new URL('../../docs/openapi/daemon.yaml', import.meta.url);
const document = parse(readFileSync(FILE, 'utf8')) as { readonly paths: Record<string, object> };
const ajv = new Ajv({ strict: false }).addSchema(document, 'document');

/** What the document has against a reply; null where nothing. */
function flawOf(path: string, method: string, status: number | 'default', type: string, value: unknown) {
  const steps = ['paths', path, method, 'responses', status, 'content', type, 'schema'];
  const pointer = steps.map((step) => String(step).replaceAll('/', '~1')).join('/');
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
    const { ask } = await open();
    const paths = Object.keys(document.paths).filter((path) => path.startsWith('/v1/'));
    expect(paths).toHaveLength(13);
    for (const path of paths.filter((one) => one !== '/v1/status')) {
      const method = 'get' in (document.paths[path] ?? {}) ? 'GET' : 'POST';
      const asked = method === 'GET' ? { method } : { method, body: BODIES[path] ?? {} };
      const { status, body } = await ask(path, asked);
      expect(flawOf(path, method.toLowerCase(), status, 'application/json', body), path).toBeNull();
      const refused = await ask(path, { body: { bogus: true } });
      expect(ajv.validate({ $ref: 'document#/components/schemas/Error' }, refused.body), path).toBe(true);
    }
  });

  it('by the web listener', async () => {
    const web = await start();
    for (const path of Object.keys(document.paths).filter((one) => !one.startsWith('/v1/'))) {
      const { status, headers, body } = await ask(web, path);
      const type = String(headers['content-type']).split(';')[0] ?? '';
      const value: unknown = type === 'application/json' ? JSON.parse(body) : body;
      expect(flawOf(path, 'get', status, type, value), path).toBeNull();
      const refused = await ask(web, path, 'GET', { host: 'rebound.example' });
      const refusal = String(refused.headers['content-type']).split(';')[0] ?? '';
      expect(flawOf(path, 'get', 'default', refusal, refused.body), path).toBeNull();
    }
  });
});
