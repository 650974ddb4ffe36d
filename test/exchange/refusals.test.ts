import { describe, expect, test } from 'vitest';
import {
  type ApiError,
  ERROR_CODES,
  NonceError,
  NotFoundError,
  PublicRefusedError,
  RefusedError,
  ServerError,
  ThrottledError,
  UnauthorisedError,
  UnknownOutcomeError,
} from '../../src/exchange/errors.ts';
import { errorOf, KEY, openClient, SECRET, TOKEN } from './open.ts';
import { SAMPLES, sampleOf } from './samples.ts';
import { serveBytes, serveHttp, serveReply, serveSilence } from './servers.ts';

type Sample = (typeof SAMPLES)[number];
const SIGNED = SAMPLES.filter(({ authentication }) => authentication === 'signed');
const PRIVATE = SAMPLES.filter(({ authentication }) => authentication !== 'none');
const PUBLIC = SAMPLES.filter(({ authentication }) => authentication === 'none');

/** At once: what only reads is asked again, and waits in between. */
async function each(samples: readonly Sample[], check: (sample: Sample) => Promise<void>): Promise<void> {
  await Promise.all(samples.map(check));
}

describe('the error object of a private endpoint', () => {
  test.each<[number, number, Record<string, string[]>]>([
    [400, 30, { side: ['Side field should contain only "buy" or "sell" values.'] }],
    [422, 31, { market: ['Market is not available.'] }],
    [400, 32, { amount: ['Not enough balance.', 'Minimum amount step = 0.001'] }],
    [422, 36, { client_order_id: ['ClientOrderId field should be a string.'] }],
    [400, 0, {}],
    [422, 422, {}],
    [412, 2, {}],
  ])('with status %i and code %i is a refusal with both, and with its messages', (status, code, errors) =>
    each(PRIVATE, async ({ call }) => {
      const { base, paths } = await serveReply({ code, message: 'Validation failed', errors }, status);
      const error = await errorOf(call(openClient(base)));
      expect(error).toBeInstanceOf(RefusedError);
      expect(error).toMatchObject({ code, status, fields: errors, maybeApplied: false });
      expect((error as Error).message).toContain(`HTTP ${status}: Validation failed`);
      expect(paths).toHaveLength(1);
    }),
  );
});

test.each([
  ['orderHistory', 30],
  ['miningHashrate', ERROR_CODES.timeRange],
] as const)(
  'an error object in place of the reply of %s is a refusal, whatever its status',
  async (name, code) => {
    const fields = { limit: ['Too large.'] };
    const { base } = await serveReply({ code, message: 'Incorrect timestamp', errors: fields });
    const error = await errorOf(sampleOf(name).call(openClient(base)));
    const message = 'HTTP 200: Incorrect timestamp (limit: Too large.)';
    expect(error).toMatchObject({ name: 'RefusedError', code, status: 200, fields, message });
  },
);

test('the error object of a public endpoint keeps its params', () =>
  each(PUBLIC, async ({ call }) => {
    const body = { success: false, message: 'Request failed', params: ['pool', { n: 1 }] };
    const refused = async (status: number) => {
      const { base } = await serveReply(body, status);
      const error = await errorOf(call(openClient(base)));
      expect(error).toBeInstanceOf(PublicRefusedError);
      expect(error).toMatchObject({
        status,
        params: body.params,
        message: `HTTP ${status}: Request failed`,
        maybeApplied: false,
      });
    };
    await Promise.all([200, 400, 422].map(refused));
    const { base } = await serveReply(body, 503);
    expect(await errorOf(call(openClient(base)))).toMatchObject({
      name: 'ServerError',
      message: 'HTTP 503: Request failed',
    });
  }));

const CHANGES = ['syncKillSwitch', 'createNewAddress'];

describe('each operation tells the statuses apart:', () => {
  test.each<[number, typeof ApiError | typeof UnauthorisedError | typeof NonceError, boolean]>([
    [401, UnauthorisedError, false],
    [403, UnauthorisedError, false],
    [404, NotFoundError, true],
    [429, ThrottledError, false],
    [500, ServerError, true],
    [503, ServerError, true],
  ])('%i', (status, expected, uncertain) =>
    each(SAMPLES, async ({ call, name, movesMoney }) => {
      const tells = async (body: unknown) => {
        const { base, paths } = await serveReply(body, status);
        const error = await errorOf(call(openClient(base), { timeoutMs: 5_000 }));
        const isUnknown = movesMoney && uncertain;
        expect(error).toBeInstanceOf(isUnknown ? UnknownOutcomeError : expected);
        expect(isUnknown ? (error as ApiError).cause : error).toBeInstanceOf(expected);
        expect(error).toMatchObject({ status });
        // What only reads is asked again when the exchange is out of order.
        if (status < 500 || movesMoney || CHANGES.includes(name)) expect(paths).toHaveLength(1);
      };
      const bodies = ['', '<html>', ...(status === 429 ? [] : [{ code: 3, message: 'why', errors: {} }])];
      await Promise.all(bodies.map(tells));
    }),
  );

  test('429 with an error object is a stale nonce where there is one, and too much elsewhere', () =>
    each(SAMPLES, async ({ call, movesMoney, authentication }) => {
      const { base, paths } = await serveReply({ code: 0, message: 'Too many requests.', errors: {} }, 429);
      const error = await errorOf(call(openClient(base)));
      const isSigned = authentication === 'signed';
      expect(error).toBeInstanceOf(isSigned ? NonceError : ThrottledError);
      expect(error).toMatchObject({ status: 429, maybeApplied: false });
      expect(paths).toHaveLength(isSigned && !movesMoney ? 4 : 1);
    }));

  test('429 with an error object that speaks of a limit is told as such at once', () =>
    each(SAMPLES, async ({ call }) => {
      const message = 'Rate limit exceeded: 1000 requests per 10 seconds.';
      const { base, paths } = await serveReply({ code: 0, message, errors: {} }, 429);
      const error = await errorOf(call(openClient(base)));
      expect(error).toBeInstanceOf(ThrottledError);
      expect(error).toMatchObject({ status: 429, maybeApplied: false });
      expect(paths).toHaveLength(1);
    }));
});

test('an operation has what it asked for when a stale nonce was the only trouble', () =>
  each(
    SIGNED.filter(({ movesMoney }) => !movesMoney),
    async (sample) => {
      let stale = 3;
      const server = await serveHttp((_request, response) => {
        stale -= 1;
        if (stale < 0) response.end(JSON.stringify(sample.reply));
        else response.writeHead(429).end('{"code":0,"message":"Too many requests.","errors":{}}');
      });
      expect(await sample.call(openClient(server.base))).toEqual(sample.value ?? sample.reply);
    },
  ));

test('an operation ends in time, whether no answer comes or one that never ends', () =>
  each(SAMPLES, async (sample) => {
    const silent = await serveSilence();
    const dripping = await serveBytes((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n');
      const drip = setInterval(() => socket.write(' '), 10);
      socket.on('close', () => clearInterval(drip));
    });
    const ends = async ({ base }: { readonly base: string }) => {
      const begunMs = performance.now();
      const error = await errorOf(sample.call(openClient(base), { timeoutMs: 1_000 }));
      expect(performance.now() - begunMs).toBeLessThan(2_000);
      expect(sample.movesMoney ? (error as Error).cause : error).toMatchObject({ name: 'TimeoutError' });
    };
    await Promise.all([silent, dripping].map(ends));
  }));

test('no error repeats a key, secret, token or signature that a server repeats', () =>
  each(SAMPLES, async (sample) => {
    const repeatsNothing = async (status: number) => {
      const server = await serveHttp(({ headers }, response, body) => {
        // It has the key of earlier requests, also where this one does not show it.
        const echo = JSON.stringify([headers, body, KEY, SECRET]);
        const error = { code: 30, message: echo, errors: { [echo]: [echo] }, success: false, params: [] };
        response.writeHead(status, { location: `/${encodeURIComponent(echo)}` }).end(JSON.stringify(error));
      });
      const error = await sample.call(openClient(server.base)).catch((failed: unknown) => failed);
      if (!(error instanceof Error)) expect.fail(`HTTP ${status} was taken for an answer`);
      const causes = [error, error.cause].filter((each) => each instanceof Error);
      const text = causes.map((each) => JSON.stringify(each, Object.getOwnPropertyNames(each))).join();
      for (const secret of [KEY, SECRET, TOKEN]) expect(text).not.toContain(secret);
    };
    await Promise.all([200, 302, 400, 401, 404, 422, 429, 503].map(repeatsNothing));
  }));
