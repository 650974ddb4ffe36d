import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { signPayload } from '../../src/exchange/sign.ts';
import { type SimulatedServer, startSimulatedServer } from '../../src/simulator/server.ts';
import { control, hostClock, KILL_SWITCH, nextNonce, PING, send, signedText } from './raw-client.ts';

let server: SimulatedServer;

beforeAll(async () => {
  server = await startSimulatedServer({ clock: hostClock, listen: { host: '127.0.0.1', port: 0 } });
});
afterAll(() => server.close());

const DOCUMENTED = [200, 400, 401, 404, 405, 413, 422, 429];
const headerText = fc.stringMatching(/^[ -~]{0,80}$/);
const path = fc.constantFrom(
  KILL_SWITCH,
  PING,
  `${KILL_SWITCH}?a=1`,
  '/',
  '//',
  '/api/v4/%zz',
  '/simulatorx',
);

/** What is not of the document in an answer: an unknown status, or a body of no documented shape. */
function undocumented(status: number, body: string): string | null {
  if (!DOCUMENTED.includes(status)) return `status ${status}`;
  if (status === 200) return null;
  const names = Object.keys(JSON.parse(body) as object)
    .toSorted()
    .join();
  return ['code,errors,message', 'message,params,success'].includes(names) ? null : names;
}

test('any method, path, headers and bytes get a documented answer', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND'),
      path,
      fc.dictionary(
        fc.constantFrom('content-type', 'x-txc-apikey', 'x-txc-payload', 'x-txc-signature', 'authorization'),
        headerText,
      ),
      fc.uint8Array({ maxLength: 2000 }),
      async (method, target, headers, bytes) => {
        const { status, body } = await send(server.url, {
          method,
          path: target,
          headers,
          body: Buffer.from(bytes),
        });
        const complaint = target === '/' ? null : undocumented(status, body);
        expect(complaint).toBeNull();
        expect(status).toBeLessThan(500);
      },
    ),
    { numRuns: 150 },
  );
});

test('any JSON that is rightly signed gets a documented answer', async () => {
  await fc.assert(
    fc.asyncProperty(fc.json({ maxDepth: 4 }), async (text) => {
      const { status, body } = await send(server.url, signedText(text));
      expect(undocumented(status, body)).toBeNull();
    }),
    { numRuns: 100 },
  );
});

test('any bytes that are rightly signed get a documented answer', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 500 }), async (bytes) => {
      const sent = Buffer.from(bytes);
      const payload = sent.toString('base64');
      const headers = {
        'x-txc-apikey': 'demo-key',
        'x-txc-payload': payload,
        'x-txc-signature': signPayload(payload, 'demo-secret'),
      };
      const { status, body } = await send(server.url, {
        method: 'POST',
        path: KILL_SWITCH,
        headers,
        body: sent,
      });
      expect(undocumented(status, body)).toBeNull();
    }),
    { numRuns: 50 },
  );
});

test('any fields of a rightly signed kill-switch request are carried out or refused with code 30 or 31', async () => {
  const anything = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom(
      'BTC_USDT',
      '5',
      '600',
      '60',
      60,
      null,
      ['spot'],
      ['spot', 'spot', 'spot', 'spot'],
      '__proto__',
    ),
  );
  const fields = fc.dictionary(fc.constantFrom('market', 'timeout', 'types', 'extra', '__proto__'), anything);
  await fc.assert(
    fc.asyncProperty(fields, async (given) => {
      const body = JSON.stringify({ ...given, request: KILL_SWITCH, nonce: nextNonce() });
      const received = await send(server.url, signedText(body));
      expect(undocumented(received.status, received.body)).toBeNull();
      const { code } = JSON.parse(received.body) as { code?: number };
      expect(received.status === 200 || (received.status === 422 && (code === 30 || code === 31))).toBe(true);
    }),
    { numRuns: 150 },
  );
});

test('anything posted to a control endpoint is carried out or refused with a sentence', async () => {
  const kinds = fc.constantFrom('latency', 'hang', 'lie', 'toString', 1);
  await fc.assert(
    fc.asyncProperty(fc.jsonValue(), kinds, async (value, kind) => {
      const wrapped = typeof value === 'object' && !Array.isArray(value) ? { ...value, kind } : value;
      for (const path of ['faults', 'orders', 'balances', 'prices', 'keys', 'reset']) {
        const answer = await control(server.url, 'POST', `/simulator/${path}`, wrapped);
        const { error } = answer.value as { error?: string };
        expect(answer.status < 300 || (answer.status === 400 && (error ?? '').length > 0)).toBe(true);
      }
    }),
    { numRuns: 50 },
  );
  server.clearFaults();
});
