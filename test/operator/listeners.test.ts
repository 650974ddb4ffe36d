import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { Ajv } from 'ajv';
import { describe, expect, it, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { asker as askerOf } from '../process/control.ts';
import { sleep } from '../process/program.ts';
import { asker, open } from './control-fixture.ts';
import { sampleSnapshot } from './sample-snapshot.ts';
import { ask, clock, start } from './web-fixture.ts';

/** A snapshot that takes 20 ms, and how often it was made. */
function countSnapshots() {
  const made = { times: 0 };
  const snapshot = () => {
    made.times += 1;
    const until = clock.now().monoMs + 20;
    while (clock.now().monoMs < until);
    return sampleSnapshot();
  };
  return { made, snapshot };
}

test.each(['/api/v1/status', '/readyz?bot=main'])(
  'many who ask for %s at the same time cost one snapshot',
  async (path) => {
    const { made, snapshot } = countSnapshots();
    const web = await start(snapshot);
    const replies = await Promise.all(Array.from({ length: 30 }, () => ask(web, path)));
    expect(replies.every(({ status }) => status === 200)).toBe(true);
    expect(made.times).toBeLessThan(10);
  },
);

test('100 bots that wait until they may start cost one snapshot', async () => {
  const { made, snapshot } = countSnapshots();
  const { address } = await open({ snapshot });
  const wait = askerOf({ onTestFinished }, address ?? '', 100);
  const asked = Array.from({ length: 100 }, () => wait('/v1/health?bot=main', { method: 'GET' }));
  expect((await Promise.all(asked)).every(({ status }) => status === 200)).toBe(true);
  expect(made.times).toBeLessThan(10);
});

test('a thousand bots that connect in one turn of the loop all get through', async () => {
  const { address = '' } = await open();
  const path = address.slice('unix:'.length);
  const most = Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'));
  const count = Math.min(1000, most);
  const connected = Array.from({ length: count }, async () => {
    const socket = connect({ path });
    onTestFinished(() => void socket.destroy());
    return new Promise((resolve) => {
      socket.once('connect', () => resolve('connected'));
      socket.once('error', ({ message }) => resolve(message));
    });
  });
  expect(new Set(await Promise.all(connected))).toEqual(new Set(['connected']));
});

const BEAT = 'POST /v1/beat HTTP/1.1\r\n';
const WRONG = 'authorization: Bearer wrong\r\nconnection: keep-alive\r\n';

describe('300 connections that come back as soon as they are closed, of whoever', () => {
  const besiege = (address: string, said: string) => {
    const sockets = new Set<Socket>();
    let over = false;
    const come = (): void => {
      if (over) return;
      const socket = connect(Number(new URL(address).port), '127.0.0.1').on('error', () => {});
      sockets.add(socket);
      socket.write(said);
      socket.once('close', () => {
        sockets.delete(socket);
        setImmediate(come);
      });
    };
    for (let stranger = 0; stranger < 300; stranger += 1) come();
    onTestFinished(() => {
      over = true;
      for (const socket of sockets) socket.destroy();
    });
  };
  /** Twenty a second for so long. */
  const statusesOf = async (forMs: number, send: () => Promise<{ readonly status: number }>) => {
    await sleep(500);
    const sent = Array.from({ length: forMs / 50 }, async (_, index) => {
      await sleep(50 * index);
      return send().catch(() => ({ status: 0 }));
    });
    return new Set((await Promise.all(sent)).map(({ status }) => status));
  };

  test.each([
    ['is silent', '', 3000],
    ['has no token', `${BEAT}host: x\r\n\r\n`, 500],
    ['asks for a path that cannot be read', 'POST /%zz HTTP/1.1\r\nhost: x\r\n\r\n', 500],
    ['never ends its request', `${BEAT}host: `, 500],
    ['shows a wrong token and no body', `${BEAT}host: x\r\n${WRONG}content-length: 9\r\n\r\n`, 500],
    ['expects what there is not', `${BEAT}host: x\r\nexpect: it\r\n${WRONG}\r\n`, 500],
  ])('%s, keep no beat with the token from the control listener', async (_, said, forMs) => {
    const { address = '', refused } = await open({ bots: () => ['main'] }, '0.0.0.0:0', 'right');
    besiege(address, said);
    const headers = { authorization: 'Bearer right' };
    const beat = () => asker(address)('/v1/beat', { headers });
    expect(await statusesOf(forMs, beat)).toEqual(new Set([200]));
    if (said === '') expect(new Set(refused)).toEqual(new Set(['too_many_connections']));
  });

  test('is silent, keep no probe from the web listener', async () => {
    const web = await start();
    besiege(String(web.addresses[0]), '');
    expect(await statusesOf(3000, () => ask(web, '/livez'))).toEqual(new Set([200]));
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
