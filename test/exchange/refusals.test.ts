import { expect, test } from 'vitest';
import type { NonceMode } from '../../src/exchange/sign.ts';
import { errorOf, KEY, openClient, openExchange, SECRET, TOKEN } from './open.ts';
import { SAMPLES, type Sample, sampleOf } from './samples.ts';
import { serveBytes, serveHttp, serveReply, serveSilence } from './servers.ts';

const SIGNED = SAMPLES.filter(({ authentication }) => authentication === 'signed');
const PUBLIC = SAMPLES.filter(({ authentication }) => authentication === 'none');
const PRIVATE = SAMPLES.filter((sample) => !PUBLIC.includes(sample));
const READS = ['orderHistory', 'myCodes', 'miningHashrate', 'miningPool', 'ping'];

/** At once: what only reads is asked again, and waits in between. */
async function each(samples: readonly Sample[], check: (sample: Sample) => Promise<unknown>): Promise<void> {
  await Promise.all(samples.map(check));
}

/** The error of a call that is answered so, and how many requests came. */
async function refused({ call }: Sample, status: number, body: unknown, nonce: NonceMode = 'increasing') {
  const { base, paths } = await serveReply(body, status);
  const error = await errorOf(call(openClient(base, { nonce }), { timeoutMs: 20_000 }));
  return { error: error as Error, requests: paths.length };
}

test.each<[number, number, Record<string, string[]>]>([
  [400, 30, { side: ['Side field should contain only "buy" or "sell" values.'] }],
  [422, 31, { market: ['Market is not available.'] }],
  [400, 32, { amount: ['Not enough balance.', 'Minimum amount step = 0.001'] }],
  [422, 36, { client_order_id: ['ClientOrderId field should be a string.'] }],
  [400, 0, {}],
  [422, 422, {}],
  [412, 2, {}],
])(
  'a private error with status %i and code %i is a refusal with both, and with its messages',
  (status, code, errors) =>
    each(PRIVATE, async (sample) => {
      const { error, requests } = await refused(sample, status, { code, message: 'Failed', errors });
      const message: unknown = expect.stringContaining(`HTTP ${status}: Failed`);
      const told = { name: 'RefusedError', code, status, fields: errors, message, maybeApplied: false };
      expect(error).toMatchObject(told);
      expect(requests).toBe(1);
    }),
);

test('an error object in place of the reply of what only reads is a refusal, whatever its status', async () => {
  const fields = { limit: ['Too large.'] };
  const message = 'HTTP 200: Incorrect timestamp (limit: Too large.)';
  for (const name of ['orderHistory', 'miningHashrate'] as const) {
    const body = { code: 422, message: 'Incorrect timestamp', errors: fields };
    const { error } = await refused(sampleOf(name), 200, body);
    expect(error).toMatchObject({ name: 'RefusedError', code: 422, status: 200, fields, message });
  }
});

test.each([200, 400, 422, 503])('the error object of a public endpoint keeps its params: %i', (status) =>
  each(PUBLIC, async (sample) => {
    const params = ['pool', { n: 1 }];
    const { error } = await refused(sample, status, { success: false, message: 'Request failed', params });
    const name = status === 503 ? 'ServerError' : 'PublicRefusedError';
    const told = { name, status, message: `HTTP ${status}: Request failed`, maybeApplied: false };
    expect(error).toMatchObject(status === 503 ? told : { ...told, params });
  }),
);

test.each<[number, string, boolean]>([
  [401, 'UnauthorisedError', false],
  [403, 'UnauthorisedError', false],
  [404, 'NotFoundError', true],
  [429, 'ThrottledError', false],
  [500, 'ServerError', true],
  [503, 'ServerError', true],
])('each operation tells a %i apart', (status, name, uncertain) =>
  each(SAMPLES, async (sample) => {
    const tells = async (body: unknown) => {
      const { error, requests } = await refused(sample, status, body);
      const isUnknown = sample.movesMoney && uncertain;
      expect(error).toMatchObject({ name: isUnknown ? 'UnknownOutcomeError' : name, status });
      if (isUnknown) expect(error.cause).toMatchObject({ name });
      // What only reads is asked again when the exchange is out of order.
      if (status < 500 || !READS.includes(sample.name)) expect(requests).toBe(1);
    };
    const bodies = ['', '<html>', ...(status === 429 ? [] : [{ code: 3, message: 'why', errors: {} }])];
    await Promise.all(bodies.map(tells));
  }),
);

test.each<[number, string, NonceMode, readonly Sample[]]>([
  [429, 'Too many requests.', 'increasing', SIGNED],
  [429, 'Too many requests.', 'window', SIGNED],
  [429, 'Rate limit exceeded: 1000 requests per 10 seconds.', 'increasing', []],
  [400, 'Your nonce is too far.', 'window', SIGNED],
])(
  '%i with "%s" in an error object is a stale nonce where there is one, else too much: in mode %s',
  (status, message, nonce, stale) =>
    each(status === 429 ? SAMPLES : SIGNED, async (sample) => {
      const { error, requests } = await refused(sample, status, { code: 0, message, errors: {} }, nonce);
      const isStale = stale.includes(sample);
      const name = isStale ? 'NonceError' : 'ThrottledError';
      expect(error).toMatchObject({ name, status, maybeApplied: false });
      expect(requests).toBe(isStale && !sample.movesMoney ? 4 : 1);
    }),
);

test('an operation has what it asked for when a stale nonce was the only trouble', () =>
  each(SIGNED, async ({ call, reply, value, movesMoney }) => {
    if (movesMoney) return;
    const server = await serveHttp((_request, response) => {
      if (server.paths.length > 3) response.end(JSON.stringify(reply));
      else response.writeHead(429).end('{"code":0,"message":"Too many requests.","errors":{}}');
    });
    expect(await call(openClient(server.base))).toEqual(value);
  }));

test('an operation ends in time, whether no answer comes or one that never ends', () =>
  each(SAMPLES, async ({ call, movesMoney }) => {
    const dripping = await serveBytes((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n');
      const drip = setInterval(() => socket.write(' '), 10);
      socket.on('close', () => clearInterval(drip));
    });
    const ends = async ({ base }: { readonly base: string }) => {
      const begunMs = performance.now();
      const error = await errorOf(call(openClient(base), { timeoutMs: 1_000 }));
      expect(performance.now() - begunMs).toBeLessThan(2_000);
      expect(movesMoney ? (error as Error).cause : error).toMatchObject({ name: 'TimeoutError' });
    };
    await Promise.all([await serveSilence(), dripping].map(ends));
  }));

test.each([200, 302, 400, 401, 404, 422, 429, 503])(
  'neither an error about a %i nor an outcome for the daemon repeats a key, secret, token or signature that a server repeats',
  (status) =>
    each(SAMPLES, async ({ name, call }) => {
      const secrets: string[] = [KEY, SECRET, TOKEN];
      const server = await serveHttp(({ headers }, response, body) => {
        for (const shown of ['x-txc-payload', 'x-txc-signature'])
          if (headers[shown] !== undefined) secrets.push(String(headers[shown]));
        // It has the key of earlier requests, also where this one does not show it.
        const echo = JSON.stringify([headers, body, KEY, SECRET]);
        const error = { code: 30, message: echo, errors: { [echo]: [echo] }, success: false, params: [] };
        const head = { location: `/${encodeURIComponent(echo)}`, 'content-type': encodeURIComponent(echo) };
        // The daemon is answered with a page and with an error object.
        response.writeHead(status, head).end(server.paths.length === 3 ? echo : JSON.stringify(error));
      });
      const error = await errorOf(call(openClient(server.base)));
      const causes = [error, (error as Error).cause].filter((one) => one instanceof Error);
      const texts = causes.map((one) => JSON.stringify(one, Object.getOwnPropertyNames(one)));
      if (name === 'syncKillSwitch') {
        const { sync } = openExchange(server);
        texts.push(JSON.stringify([await sync(), await sync()]));
        expect(texts.at(-1)).toContain('[redacted]');
      }
      for (const secret of secrets) expect(texts.join()).not.toContain(secret);
    }),
);
