import { expect, test } from 'vitest';
import { runServer } from './both-profiles.ts';
import { nextNonce, ping, send, sendBytes, signed, signedText } from './raw-client.ts';

const ORDER = '/api/v4/order/stock_market';

const server = runServer();

/** An order that would be filled, with its head as text, to be spoilt. */
function order(): { readonly head: string; readonly body: string } {
  const { headers, body } = signed({ market: 'BTC_USDT', side: 'sell', amount: '0.01' }, { path: ORDER });
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return { head: `POST ${ORDER} HTTP/1.1\r\nhost: x\r\n${lines.join('')}`, body: String(body) };
}

const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const sized = (head: string, body: string) => `${head}content-length: ${body.length}\r\n\r\n${body}`;
const chunked = (head: string, chunks: string) => `${head}transfer-encoding: chunked\r\n\r\n${chunks}`;

test.each<[string, (head: string, body: string) => string]>([
  ['ends in the middle of its body', (head, body) => sized(head, body).slice(0, -9)],
  ['ends before its last chunk', (head, body) => chunked(head, chunk(body))],
  ['has a chunk without a length', (head, body) => chunked(head, `zz\r\n${body}`)],
  ['has two lengths', (head, body) => sized(`${head}content-length: 1\r\n`, body)],
  [
    'has a length and chunks',
    (head, body) => chunked(`${head}content-length: ${body.length}\r\n`, `${chunk(body)}${chunk('')}`),
  ],
  ['has two keys', (head, body) => sized(`${head}x-txc-apikey: x\r\n`, body)],
  ['has two signatures', (head, body) => sized(`${head}x-txc-signature: x\r\n`, body)],
  ['has two payloads', (head, body) => sized(`${head}x-txc-payload: e30=\r\n`, body)],
  ['has no body', (head) => sized(head, '')],
])('an order that %s is refused and changes nothing', async (_what, spoil) => {
  const before = server().exchange.books();
  const { head, body } = order();
  const answered = await sendBytes(server().url, spoil(head, body), true);
  expect(answered).toMatch(/^(HTTP\/1\.1 40[01] |$)/);
  expect(server().exchange.books()).toEqual(before);
  expect((await send(server().url, ping)).status).toBe(200);
});

test('an order in many small chunks is an order', async () => {
  const { head, body } = order();
  const chunks = `${Array.from(body, chunk).join('')}${chunk('')}`;
  const answered = await sendBytes(server().url, chunked(`${head}connection: close\r\n`, chunks), true);
  expect(answered).toMatch(/^HTTP\/1\.1 200 /);
});

test('requests that do not wait for the reply to the one before are all answered, in their order', async () => {
  const asked = ['ping', 'time', 'nothing', 'ping'].map(
    (name) => `GET /api/v4/public/${name} HTTP/1.1\r\nhost: x\r\n\r\n`,
  );
  const last = `GET ${ping.path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`;
  const answered = await sendBytes(server().url, [...asked, last].join(''), true);
  expect(answered.match(/HTTP\/1\.1 \d+/g)).toEqual(
    [200, 200, 404, 200, 200].map((status) => `HTTP/1.1 ${status}`),
  );
});

test('a path with the address before it, as proxies are sent, is the path', async () => {
  const path = `${server().url}${ping.path}?x=1`;
  expect((await send(server().url, { ...ping, path })).body).toBe('["pong"]');
});

test.each([
  '/api/v4/public/ping/',
  '//api/v4/public/ping',
  '/api/v4/../v4/public/ping',
  '/api/v4/public/%70ing',
  '/API/V4/PUBLIC/PING',
  '/api/v4/public/ping;x',
  '/%00',
  '/__proto__',
  '/constructor',
])('the path %s is none', async (path) => {
  expect((await send(server().url, { ...ping, path })).status).toBe(404);
});

test.each([
  ['amount', '1e400'],
  ['amount', '1e-400'],
  ['amount', '-0'],
  ['amount', '9'.repeat(400)],
  ['amount', `"0.${'0'.repeat(20_000)}1"`],
  ['amount', '"\\u0661"'],
  ['amount', '"1\\u0000"'],
  ['amount', '{"__proto__":{"length":1}}'],
  ['market', '"__proto__"'],
  ['market', '"\\ud800_USDT"'],
  ['side', '["sell"]'],
  ['stp', '"toString"'],
  ['client_order_id', '"\\n"'],
])('an order whose %s is %s is refused and changes nothing', (field, value) => {
  const before = server().exchange.books();
  const fields = { market: '"BTC_USDT"', side: '"sell"', amount: '"0.01"', [field]: value };
  const inside = Object.entries(fields).map(([name, json]) => `,"${name}":${json}`);
  const body = `{"request":"${ORDER}","nonce":"${nextNonce()}"${inside.join('')}}`;
  const reply = server().exchange.handle(signedText(body, { path: ORDER }), Date.now());
  expect(reply.status).toBeGreaterThanOrEqual(400);
  expect(reply.status).toBeLessThan(500);
  expect(server().exchange.books()).toEqual(before);
});
