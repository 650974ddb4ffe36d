import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { type Client, createClient } from '../../src/exchange/client.ts';
import { ApiError, ArgumentError } from '../../src/exchange/errors.ts';
import { OPERATIONS, type OperationName } from '../../src/exchange/operations.ts';
import { type SimulatedServer, startSimulatedServer } from '../../src/simulator/server.ts';
import { SAMPLES } from '../exchange/samples.ts';

const NAMES = Object.keys(OPERATIONS) as OperationName[];
const TIMEOUT_MS = 400;
/** What a busy host may add to a deadline. */
const LENIENCE_MS = 3000;

function clientOf(base: string): Client {
  return createClient({
    bases: [base],
    credentials: () => ({ key: 'demo-key', secret: 'demo-secret' }),
    nonce: 'window',
    clock: createSystemClock(),
    accessToken: () => 'demo-token',
  });
}

/** Null where the call resolved; else why it is no error that a caller could have expected. */
async function complaint(call: Promise<unknown>): Promise<string | null> {
  try {
    await call;
    return null;
  } catch (error) {
    if (!(error instanceof ApiError || error instanceof ArgumentError)) return `not named: ${String(error)}`;
    if (error.name === 'ApiError' || error.message.includes('\n')) return `${error.name}: ${error.message}`;
    return error.message.includes('demo-secret') ? 'shows the secret' : null;
  }
}

let simulated: SimulatedServer;
let bytes: Buffer = Buffer.alloc(0);
let ends = true;
let server: Server;
const sockets = new Set<Socket>();

beforeAll(async () => {
  const listen = { host: '127.0.0.1', port: 0 };
  const exchange = { newAddresses: true };
  simulated = await startSimulatedServer({ clock: createSystemClock(), listen, exchange });
  // Answers whatever is sent with the same bytes, and then closes the connection or leaves it open.
  server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('data', () => (ends ? socket.end(bytes) : socket.write(bytes)));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  server.close();
  await simulated.close();
});

const headerLine = fc.tuple(
  fc.constantFrom('content-type', 'date', 'location', 'retry-after', 'transfer-encoding', 'connection', 'x'),
  fc.oneof(fc.constantFrom('application/json', 'chunked', 'close'), fc.stringMatching(/^[ -~]{0,40}$/)),
);
const status = fc.oneof(
  fc.constantFrom(200, 201, 204, 302, 400, 401, 403, 404, 412, 422, 429, 500, 503),
  fc.integer({ min: 0, max: 999 }),
);
const body = fc.oneof(
  fc.json(),
  fc.json().map((text) => text.slice(0, text.length / 2)),
  fc.constantFrom('["pong"]', '[]', '{}', 'null', '', '{"code":30}', '{"success":false}', '<html>'),
  fc.constantFrom(...SAMPLES.map(({ reply }) => JSON.stringify(reply))),
  fc
    .record({ code: fc.anything(), message: fc.anything(), errors: fc.jsonValue() })
    .map((value) => JSON.stringify(value)),
);
/** An HTTP answer whose length may be a lie. */
const http = fc
  .tuple(status, fc.array(headerLine, { maxLength: 4 }), body, fc.integer({ min: -5, max: 20 }))
  .map(([code, headers, text, off]) => {
    const length = Math.max(0, Buffer.byteLength(text) + (off > 10 ? 0 : off));
    const lines = [
      `HTTP/1.1 ${code} X`,
      ...headers.map((pair) => pair.join(': ')),
      `content-length: ${length}`,
    ];
    return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${text}`);
  });
const garbage = fc.uint8Array({ maxLength: 300 }).map((given) => Buffer.from(given));

it('any bytes in the place of a reply give the client a value or a named error, within its deadline', async () => {
  const { port } = server.address() as AddressInfo;
  const client = clientOf(`http://127.0.0.1:${port}`);
  try {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof({ arbitrary: http, weight: 4 }, garbage),
        fc.boolean(),
        async (reply, close) => {
          [bytes, ends] = [reply, close];
          const startedMs = performance.now();
          const calls = SAMPLES.map(({ call }) => complaint(call(client, { timeoutMs: TIMEOUT_MS })));
          expect((await Promise.all(calls)).filter((found) => found !== null)).toEqual([]);
          expect(performance.now() - startedMs).toBeLessThan(TIMEOUT_MS + LENIENCE_MS);
        },
      ),
      { numRuns: 40 },
    );
  } finally {
    await client.close();
  }
}, 60_000);

const ARGUMENTS = [
  'market',
  'side',
  'amount',
  'clientOrderId',
  'stp',
  'ticker',
  'address',
  'uniqueId',
  'provider',
  'fiat',
  'network',
  'timeoutSeconds',
  'types',
  'limit',
  'offset',
  'account',
  'from',
  'to',
  'interval',
  'type',
  '__proto__',
];
const likely = fc.constantFrom<unknown>('BTC_USDT', 'buy', '10', 10, 60, null, 'a', 'USDT', 'ERC20', '1h', [
  'spot',
]);
const anyRequest = fc.oneof(
  fc.dictionary(fc.constantFrom(...ARGUMENTS), fc.oneof(likely, likely, fc.anything()), { maxKeys: 6 }),
  fc.anything(),
);

it('anything given to the client is carried out or rejects with a named error, and then no balance has changed', async () => {
  const client = clientOf(simulated.url);
  try {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...NAMES), anyRequest, async (name, given) => {
        const before = simulated.exchange.books();
        const isPublic = OPERATIONS[name].authentication === 'none';
        const method = client[name] as (request?: unknown) => Promise<unknown>;
        let succeeded = false;
        const call = (isPublic ? method() : method(given)).then(() => {
          succeeded = true;
        });
        expect(await complaint(call)).toBeNull();
        if (!succeeded) expect(simulated.exchange.books()).toEqual(before);
      }),
      { numRuns: 400 },
    );
  } finally {
    await client.close();
  }
}, 60_000);
