import { expect, test } from 'vitest';
import { encodePayload } from '../../src/exchange/sign.ts';
import type { Profile } from '../../src/simulator/answer.ts';
import { PERMISSIONS, type Permission } from '../../src/simulator/state.ts';
import { KILL_SWITCH, nextNonce, ping, type Sent, signed, signedText } from './raw-client.ts';
import { createTrader, keysOf, PATHS, refusal, START_MS } from './trader.ts';

const traders = { documented: createTrader(), live: createTrader({ profile: 'live' }) };
const ask = (sent: Sent, profile: Profile = 'documented') => traders[profile].handle(sent);

const FIELDS = { market: 'BTC_USDT', timeout: '60' };
const good = () => signed(FIELDS);
const INVALID = refusal(400, 9, 'Invalid payload.');
const STALE = refusal(429, 0, 'Too many requests.');

test('a payload that is not the base64 of exactly the body is refused', () => {
  const sent = good();
  const own = String(sent.headers['x-txc-payload']);
  const other = encodePayload(JSON.stringify({ request: KILL_SWITCH, nonce: nextNonce() }));
  for (const payload of [other, own.replace(/=*$/, (padding) => (padding === '' ? '=' : '')), 'AAAA='])
    expect(ask({ ...sent, headers: { ...sent.headers, 'x-txc-payload': payload } })).toEqual(INVALID);
  expect(ask({ ...sent, body: `${String(sent.body)} ` })).toEqual(INVALID);
});

test('the live profile also takes a body that has white space where the payload has none, and no other values', () => {
  const sent = good();
  const body = JSON.parse(String(sent.body)) as object;
  for (const wrong of [JSON.stringify({ ...body, timeout: '600' }), '', '[]', '{'])
    expect(ask({ ...sent, body: wrong }, 'live')).toEqual(INVALID);
  expect(ask({ ...sent, body: JSON.stringify(body, null, 1) }, 'live').status).toBe(200);
});

test('JSON that is nested deep is a payload like any other, also where the body has white space', () => {
  const deep = `{"request":"${KILL_SWITCH}","nonce":"1","x":${'['.repeat(4000)}${']'.repeat(4000)}}`;
  const sent = signedText(deep, { secret: 'wrong' });
  expect(ask({ ...sent, body: `${deep} ` }, 'live').status).toBe(401);
});

test('a body of 64 KiB whose text never ends is refused at once', () => {
  const startedMs = performance.now();
  expect(ask({ ...good(), body: `"${'\\"'.repeat(32_000)}` }, 'live')).toEqual(INVALID);
  expect(performance.now() - startedMs).toBeLessThan(500);
});

test('spaced JSON is a payload in the document, and none at the live exchange', () => {
  const fields = { request: KILL_SWITCH, nonce: nextNonce(), ...FIELDS };
  const sent = signedText(`${JSON.stringify(fields, null, 1)}\n`);
  expect(ask(sent).status).toBe(200);
  expect(ask(sent, 'live')).toEqual(INVALID);
});

test.each([
  ['text/plain', 400],
  ['application/jsonp', 400],
  [undefined, 400],
  ['Application/JSON; charset=utf-8', 200],
])('with content-type %s the document says %i, and the live exchange does not mind', (type, status) => {
  const sent = good();
  const { 'content-type': _left, ...headers } = sent.headers;
  const typed = { ...sent, headers: { ...headers, ...(type !== undefined && { 'content-type': type }) } };
  expect(ask(typed, 'live').status).toBe(200);
  expect(ask(typed).status).toBe(status);
});

test.each(['[]', '"x"', '{"request":', 'hello'])('%s is no payload', (body) => {
  expect(ask(signedText(body))).toEqual(INVALID);
});

test.each([
  [{ request: 7 }, 'Request not provided.'],
  [{ request: ping.path }, 'Invalid request.'],
  [{ nonce: 'x'.repeat(256) }, 'Nonce may not be longer than 255 characters.'],
  [{ nonce: ['7'] }, 'Nonce must be a string.'],
  [{ nonce: 'abc', nonceWindow: true }, 'Nonce not provided.'],
  [{ nonce: 1_700_000_000_000 }, 'Nonce must be a string.'],
  [{ nonce: null }, 'Nonce not provided.'],
  [{ nonceWindow: 'true' }, 'Invalid nonceWindow.'],
])('the signed fields %j are refused: %s', (fields, message) => {
  expect(ask(signed({ ...FIELDS, ...fields }))).toEqual(refusal(400, 9, message));
});

const statusesOf = (nonces: readonly unknown[], profile?: Profile) =>
  nonces.map((nonce) => ask(signed({ ...FIELDS, nonce }), profile).status);

test('a nonce that is not greater than the last accepted one gets a 429 with JSON', () => {
  const nonce = Number(nextNonce());
  expect(statusesOf([nonce, nonce, nonce - 1, nonce + 1].map(String))).toEqual([200, 429, 429, 200]);
  expect(ask(signed({ ...FIELDS, nonce: String(nonce) }))).toEqual(STALE);
});

test('the live profile takes a nonce that is a number, and none that is other text', () => {
  const nonce = Number(nextNonce());
  expect(statusesOf([nonce, nonce - 1, 'abc', 1.5], 'live')).toEqual([200, 429, 400, 400]);
});

test('in the document a nonce is any text that was not used before', () => {
  const nonces = ['5c7d-b', '5c7d-a', '5c7d-a', 'ü', 'x'.repeat(255)];
  expect(statusesOf(nonces)).toEqual([200, 200, 429, 200, 200]);
});

test('a refused signature does not use its nonce up, a validation error does', () => {
  const nonce = nextNonce();
  const asked = (how?: { secret: string }) => ask(signed({ ...FIELDS, timeout: '1', nonce }, how)).status;
  expect([asked({ secret: 'wrong' }), asked(), asked()]).toEqual([401, 422, 429]);
});

test('a nonce window takes nonces in any order, each once, within 5 s of the clock of the exchange', () => {
  const at = (byMs: number) =>
    ask(signed({ ...FIELDS, nonceWindow: true, nonce: String(START_MS + byMs) }), 'live');
  expect([at(0).status, at(-2000).status]).toEqual([200, 200]);
  expect(at(-2000)).toEqual(STALE);
  const message = (which: string) => `Your nonce is more than 5 seconds ${which} than the current nonce.`;
  expect(at(-9000)).toEqual(refusal(400, 0, message('lesser')));
  expect(at(60_000)).toEqual(refusal(400, 0, message('greater')));
});

/** The permissions of the simulator's own: the document has no names for them. */
test.each<[path: string, permission: Permission]>([
  [PATHS.stockMarket, 'trade'],
  [PATHS.withdrawPay, 'withdraw'],
  [PATHS.killSwitch, 'trade'],
  [PATHS.codes, 'info'],
  [PATHS.hashrate, 'info'],
  [PATHS.newAddress, 'deposit'],
])('%s needs the permission %s', (path, needed) => {
  const withPermissions = (permissions: readonly Permission[] | undefined) => {
    const keys = keysOf({ 'demo-key': 'main' }).map((key) => ({
      ...key,
      ...(permissions && { permissions }),
    }));
    return createTrader({ newAddresses: true, keys }).ask(path, {});
  };
  const forbidden = refusal(403, 4, 'This API Key is not authorized to perform this action.');
  for (const others of [[], PERMISSIONS.filter((permission) => permission !== needed)])
    expect(withPermissions(others)).toEqual(forbidden);
  for (const enough of [[needed], undefined]) expect(withPermissions(enough).status).not.toBe(403);
});

test('keys of one account share its limits, accounts and operations do not', () => {
  const limit = { requests: 1, windowMs: 10_000 };
  const keys = keysOf({ first: 'main', second: 'main', stranger: 'other' });
  const trader = createTrader({ keys, limits: { 'my-codes': limit, hashrate: limit } });
  const statuses = ['first', 'second', 'stranger'].map((key) => trader.ask(PATHS.codes, {}, { key }).status);
  expect(statuses).toEqual([200, 429, 200]);
  expect(trader.ask(PATHS.hashrate, {}, { key: 'second' }).status).not.toBe(429);
});

test('an error over the limit has the shape of its audience, and is a page of the gateway in the live profile', () => {
  const limit = { requests: 0, windowMs: 10_000 };
  const limits = { 'mining-pool': limit, 'withdraw-pay': limit };
  const trader = createTrader({ limits });
  const message = 'Rate limit exceeded: 0 requests per 10 seconds.';
  const value = { success: false, message, params: [] };
  expect(trader.get(PATHS.miningPool)).toEqual({ status: 429, value });
  expect(trader.ask(PATHS.withdrawPay, {})).toEqual(refusal(429, 0, message));
  const { exchange } = createTrader({ limits, profile: 'live' });
  const page = exchange.handle({ ...ping, path: PATHS.miningPool }, START_MS);
  expect(page).toMatchObject({ status: 429, headers: { 'content-type': 'text/html; charset=UTF-8' } });
  expect(page.body).toContain('429 Too Many Requests');
});

test.each(Object.values(PATHS))('%s refuses another method and a large body in words of its own', (path) => {
  const isPublic = path.includes('/public/');
  const [right = '', wrong = ''] = isPublic ? ['GET', 'POST'] : ['POST', 'GET'];
  const refused = (method: string, body: string, status: number, code: number, message: string) => {
    const value = isPublic ? { success: false, message, params: [] } : { code, message, errors: {} };
    expect(ask({ method, path, headers: {}, body })).toEqual({ status, value });
  };
  refused(wrong, '', 405, 0, `Method not allowed. Allowed: ${right}.`);
  refused(right, 'x'.repeat(65_537), 413, 9, 'Payload too large. Allowed: 65536 bytes.');
});
