import { expect, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { ping, send, sendBytes, signed } from './raw-client.ts';
import { createTrader, openServer, PATHS, refusal, runServer } from './trader.ts';

const server = runServer();
const hostClock = createSystemClock();

test('an unknown path gets a 404, which is empty at the live exchange and JSON in the document', () => {
  const unknown = { ...signed({}), path: '/api/v4/order/unknown' };
  expect(createTrader({ profile: 'live' }).handle(unknown)).toEqual({ status: 404, value: '' });
  const trader = createTrader();
  expect(trader.handle(unknown)).toEqual(refusal(404, 0, 'Not found.'));
  const value = { success: false, message: 'Not found.', params: [] };
  expect(trader.get('/api/v4/public/unknown')).toEqual({ status: 404, value });
});

const GET_PING = `GET ${ping.path} HTTP/1.1\r\n`;
const LAST = 'host: x\r\nconnection: close\r\n\r\n';

test.each([
  ['no Host', `${GET_PING}connection: close\r\n\r\n`, 200, '["pong"]'],
  ['an expectation of its own', `${GET_PING}expect: much\r\n${LAST}`, 200, '["pong"]'],
  ['no way through', `CONNECT x:1 HTTP/1.1\r\n${LAST}`, 405, 'allow: GET, POST\r\n'],
  ['a method of other operations', `PUT ${PATHS.codes} HTTP/1.1\r\n${LAST}`, 405, 'allow: POST\r\n'],
  ['too large headers', `${GET_PING}x: ${'x'.repeat(140_000)}\r\n${LAST}`, 431, 'Header Fields Too Large."'],
  ['no form', 'nonsense\r\n\r\n', 400, '{"code":0,"message":"Bad Request.","errors":{}}'],
])('a request with %s gets an answer of the exchange', async (_name, bytes, status, body) => {
  const answered = await sendBytes(server().url, bytes, false);
  expect(answered).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(answered).toContain(body);
});

const sized = (head: string, body: string) => `${head}content-length: ${body.length}\r\n\r\n${body}`;

test('the payload of a body of 64 KiB, which is a header too, is taken', async () => {
  const long = signed({ account: 'x'.repeat(65_000) }, { path: PATHS.hashrate });
  expect((await send(server().url, long)).status).toBe(200);
});

/** Of an order that would be filled. */
test.each<[string, (head: string, body: string) => string]>([
  ['ends in the middle of its body', (head, body) => sized(head, body).slice(0, -9)],
  ['has two keys', (head, body) => sized(`${head}x-txc-apikey: x\r\n`, body)],
  ['has two signatures', (head, body) => sized(`${head}x-txc-signature: x\r\n`, body)],
  ['has two payloads', (head, body) => sized(`${head}x-txc-payload: e30=\r\n`, body)],
  ['has no body', (head) => sized(head, '')],
])('an order that %s is refused and changes nothing', async (_what, spoil) => {
  const before = server().exchange.books();
  const path = PATHS.stockMarket;
  const { headers, body } = signed({ market: 'BTC_USDT', side: 'sell', amount: '0.01' }, { path });
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `POST ${path} HTTP/1.1\r\nhost: x\r\n${lines.join('')}`;
  const answered = await sendBytes(server().url, spoil(head, String(body)), true);
  expect(answered).toMatch(/^(HTTP\/1\.1 40[01] |$)/);
  expect(server().exchange.books()).toEqual(before);
  expect((await send(server().url, ping)).status).toBe(200);
});

test('a path with the address before it, as proxies are sent, is the path', async () => {
  const path = `${server().url}${ping.path}?x=1`;
  expect((await send(server().url, { ...ping, path })).body).toBe('["pong"]');
});

const NO_PATHS = ['//api/v4/public/ping', '/api/v4/../v4/public/ping', '/api/v4/public/%70ing'];
test.each([...NO_PATHS, '/%00', '/__proto__'])('the path %s is none', async (path) => {
  expect((await send(server().url, { ...ping, path })).status).toBe(404);
});

test('the clock of the exchange does not follow a step of the wall clock of its host', async () => {
  let stepMs = 0;
  const now = () => ({ ...hostClock.now(), wallMs: hostClock.now().wallMs + stepMs });
  const own = await openServer({ clock: { ...hostClock, now }, clockOffsetMs: 2000 });
  const before = own.nowMs();
  stepMs = 3_600_000;
  const { headers } = await send(own.url, ping);
  expect(own.nowMs() - before).toBeLessThan(5000);
  expect(before - Date.now()).toBeGreaterThan(1000);
  expect(Math.abs(Date.parse(headers.date ?? '') - own.nowMs())).toBeLessThan(2000);
});
