import { expect, test } from 'vitest';
import type { Profile } from '../../src/simulator/answer.ts';
import { PERMISSIONS } from '../../src/simulator/state.ts';
import { KILL_SWITCH, nextNonce, ping, type Sent, signed, signedText } from './raw-client.ts';
import { createTrader, keysOf, PATHS, refusal, START_MS } from './trader.ts';

// What a signature must be made of is in test/contract/cases-wire.ts.
const traders = { documented: createTrader(), live: createTrader({ profile: 'live' }) };
const ask = (sent: Sent, profile: Profile = 'documented') => traders[profile].handle(sent);

const FIELDS = { market: 'BTC_USDT', timeout: '60' };
const INVALID = refusal(400, 9, 'Invalid payload.');
const STALE = refusal(429, 0, 'Too many requests.');
const DEEP = `{"request":"${KILL_SWITCH}","nonce":"1","x":${'['.repeat(4000)}${']'.repeat(4000)}}`;

/** A signed request with another body than the payload has. */
const withBody = (change: (body: string) => string, sent = signed(FIELDS)) => ({
  ...sent,
  body: change(String(sent.body)),
});
const typed = (type: string) => {
  const sent = signed(FIELDS);
  return { ...sent, headers: { ...sent.headers, 'content-type': type } };
};
const indented = (body: string) => JSON.stringify(JSON.parse(body), null, 1);

test.each<[string, Profile, () => Sent, number]>([
  ['a body with a space behind it', 'documented', () => withBody((body) => `${body} `), 400],
  ['a body that is indented', 'live', () => withBody(indented), 200],
  ['a body whose slashes are escaped', 'live', () => withBody((body) => body.replaceAll('/', '\\/')), 200],
  ['a body with other values', 'live', () => withBody((body) => body.replace('60', '600')), 400],
  ['no body', 'live', () => withBody(() => ''), 400],
  ['a body that is a list', 'live', () => withBody(() => '[]'), 400],
  ['a body that breaks off', 'live', () => withBody(() => '{'), 400],
  ['a payload that is indented', 'documented', () => signedText(indented(String(signed(FIELDS).body))), 200],
  ['a payload that is indented', 'live', () => signedText(indented(String(signed(FIELDS).body))), 400],
  ['a payload that is a list', 'documented', () => signedText('[]'), 400],
  ['a payload that is a text', 'documented', () => signedText('"x"'), 400],
  ['a payload that breaks off', 'documented', () => signedText('{"request":'), 400],
  ['a type with a charset', 'documented', () => typed('Application/JSON; charset=utf-8'), 200],
  ['a type that only begins well', 'documented', () => typed('application/jsonp'), 400],
  ['another type', 'live', () => typed('text/plain'), 200],
  // Its signature is wrong, and that is all that is.
  [
    'JSON nested deep',
    'live',
    () => withBody((body) => `${body} `, signedText(DEEP, { secret: 'wrong' })),
    401,
  ],
])('%s, before profile %s', (_what, profile, make, status) => {
  expect(ask(make(), profile).status).toBe(status);
});

test('a body of 64 KiB whose text never ends is refused at once', () => {
  const startedMs = performance.now();
  expect(
    ask(
      withBody(() => `"${'\\"'.repeat(32_000)}`),
      'live',
    ),
  ).toEqual(INVALID);
  expect(performance.now() - startedMs).toBeLessThan(500);
});

test('a payload with padding of its own, or of other bytes, is refused', () => {
  const sent = signed(FIELDS);
  const own = String(sent.headers['x-txc-payload']);
  for (const payload of [own.replace(/=*$/, (padding) => (padding === '' ? '=' : '')), 'AAAA='])
    expect(ask({ ...sent, headers: { ...sent.headers, 'x-txc-payload': payload } })).toEqual(INVALID);
});

test.each([
  [{ request: 7 }, 'Request not provided.'],
  [{ request: ping.path }, 'Invalid request.'],
  [{ nonce: 'x'.repeat(256) }, 'Nonce may not be longer than 255 characters.'],
  [{ nonce: ['7'] }, 'Nonce must be a string.'],
  [{ nonce: 'abc', nonceWindow: true }, 'Nonce not provided.'],
  [{ nonce: null }, 'Nonce not provided.'],
  [{ nonceWindow: 'true' }, 'Invalid nonceWindow.'],
])('the signed fields %j are refused: %s', (fields, message) => {
  expect(ask(signed({ ...FIELDS, ...fields }))).toEqual(refusal(400, 9, message));
});

const NONCE = Date.now();
const used = ['5c7d-b', '5c7d-a', '5c7d-a', 'ü', 'x'.repeat(255)];
test.each<[string, Profile, readonly unknown[], readonly number[]]>([
  ['must rise', 'documented', [0, 0, -1, 1].map((by) => String(NONCE + by)), [200, 429, 429, 200]],
  ['may be any text that was not used before', 'documented', used, [200, 200, 429, 200, 200]],
  ['may be a number, and no other text', 'live', [NONCE, NONCE - 1, 'abc', 1.5], [200, 429, 400, 400]],
])('nonces %s, before profile %s: %j', (_what, profile, nonces, statuses) => {
  const trader = createTrader({ profile });
  const statusOf = (nonce: unknown) => trader.handle(signed({ ...FIELDS, nonce })).status;
  expect(nonces.map(statusOf)).toEqual(statuses);
});

test('a refused signature does not use its nonce up, a validation error does', () => {
  const nonce = nextNonce();
  const asked = (how?: { secret: string }) => ask(signed({ ...FIELDS, timeout: '1', nonce }, how));
  expect([asked({ secret: 'wrong' }).status, asked().status, asked()]).toEqual([401, 422, STALE]);
});

test('a nonce window takes nonces in any order, each once, within 5 s of the clock of the exchange', () => {
  const at = (byMs: number) =>
    ask(signed({ ...FIELDS, nonceWindow: true, nonce: String(START_MS + byMs) }), 'live');
  expect([at(0).status, at(-2000).status, at(-2000)]).toEqual([200, 200, STALE]);
  const message = (which: string) => `Your nonce is more than 5 seconds ${which} than the current nonce.`;
  expect(at(-9000)).toEqual(refusal(400, 0, message('lesser')));
  expect(at(60_000)).toEqual(refusal(400, 0, message('greater')));
});

test('each permission opens operations of its own', () => {
  const { stockMarket, withdrawPay, killSwitch, codes, hashrate, newAddress } = PATHS;
  const paths = [stockMarket, withdrawPay, killSwitch, codes, hashrate, newAddress];
  const opened = PERMISSIONS.map((permission) => {
    const keys = keysOf({ 'demo-key': 'main' }).map((key) => ({ ...key, permissions: [permission] }));
    const trader = createTrader({ newAddresses: true, keys });
    return [permission, paths.filter((path) => trader.ask(path, {}).status !== 403)];
  });
  const trade = [stockMarket, killSwitch];
  const expected = { info: [codes, hashrate], trade, deposit: [newAddress], withdraw: [withdrawPay] };
  expect(Object.fromEntries(opened)).toEqual(expected);
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

test('another method and a large body are refused in words of their own', () => {
  const refused = (method: string, body: string) => ask({ method, path: KILL_SWITCH, headers: {}, body });
  expect(refused('GET', '')).toEqual(refusal(405, 0, 'Method not allowed. Allowed: POST.'));
  const message = 'Payload too large. Allowed: 65536 bytes.';
  expect(refused('POST', 'x'.repeat(65_537))).toEqual(refusal(413, 9, message));
  const value = { success: false, message, params: [] };
  expect(ask({ ...ping, body: 'x'.repeat(65_537) })).toEqual({ status: 413, value });
});
