import { expect, test } from 'vitest';
import type { Refusal } from '../../src/operator/control-sources.ts';
import {
  type Asked,
  asker,
  codeOf,
  createSpy,
  messageOf,
  refusal,
  refusalOf,
  start,
  TCP,
} from './control-fixture.ts';

const TWO_BOTS = 'found "main" in the query and "maker" in the body';
const TEN_MEGABYTES = { markets: ['x'.repeat(10_000_000)] };
const FORM = 'application/x-www-form-urlencoded';
const CURL = "-H 'content-type: application/json'";
const typed = (type: string, body: string) => ({ body, headers: { 'content-type': type } });
const from = (origin: string) => ({ headers: { origin } });
const fetched = (site: string) => ({ headers: { 'sec-fetch-site': site } });
const preflight: Asked = { method: 'OPTIONS', ...from('https://evil.example') };

/** What is sent where, the code of its refusal, and a part of the message. */
const EVERYWHERE: readonly (readonly [
  what: string,
  path: string,
  asked: Asked,
  code: Refusal,
  part: string,
])[] = [
  ['an unknown path', '/v1/beet', {}, 'unknown_path', 'did you mean /v1/beat?'],
  ['a path without /v1', '/goodbye', {}, 'unknown_path', 'did you mean /v1/goodbye?'],
  ['the path of the web listener', '/api/v1/status', { method: 'GET' }, 'unknown_path', '/v1/status?'],
  ['a path with more after it', '/v1/beat/', {}, 'unknown_path', 'did you mean /v1/beat?'],
  ['a path that cannot be read', '/v1/%zz', {}, 'malformed_request', 'the path cannot be read'],
  ['GET of a beat', '/v1/beat', { method: 'GET' }, 'wrong_method', 'found GET; allowed: POST'],
  ['PUT of a beat', '/v1/beat', { method: 'PUT', body: '{}' }, 'wrong_method', 'found PUT'],
  ['DELETE of a trip', '/v1/trip', { method: 'DELETE' }, 'wrong_method', 'allowed: POST'],
  ['POST of the status', '/v1/status', {}, 'wrong_method', 'found POST; allowed: GET, HEAD'],
  ['another query', '/v1/beat?bto=main', {}, 'unknown_key', '"bto"; allowed: bot; did you mean bot?'],
  ['a query of a command', '/v1/trip?markets=BTC_USDT', {}, 'unknown_key', 'allowed: none'],
  ['two bots in the query', '/v1/beat?bot=main&bot=maker', {}, 'invalid_value', "allowed: a bot's name"],
  ['an unknown bot', '/v1/beat?bot=mian', {}, 'unknown_bot', 'did you mean main?'],
  ['no bot where there are two', '/v1/beat', {}, 'invalid_value', 'say which, as ?bot=NAME: main, maker'],
  [
    'query and body that do not agree',
    '/v1/beat?bot=main',
    { body: { bot: 'maker' } },
    'invalid_value',
    TWO_BOTS,
  ],
  ['an unknown market', '/v1/trip', { body: { markets: ['BTC_USDC'] } }, 'unknown_market', 'BTC_USDT?'],
  [
    'a market of another shard',
    '/v1/trip',
    { body: { markets: ['BTC_USDT', 'SOL_USDT'] } },
    'unknown_market',
    'belongs to shard 1 of 3, counted from 0: ask that daemon',
  ],
  [
    'one unknown market among known ones',
    '/v1/trip',
    { body: { markets: ['BTC_USDT', 'X'] } },
    'unknown_market',
    '"X"',
  ],
  ['no markets at all', '/v1/trip', { body: { markets: [] } }, 'invalid_value', 'found an empty list'],
  [
    'a market that is no list',
    '/v1/trip',
    { body: { markets: 'BTC_USDT' } },
    'invalid_value',
    '["BTC_USDT"]',
  ],
  ['null in place of markets', '/v1/trip', { body: { markets: null } }, 'invalid_value', 'found null'],
  ['an unknown key', '/v1/arm', { body: { market: ['BTC_USDT'] } }, 'unknown_key', 'did you mean markets?'],
  ['a key of another command', '/v1/trip', { body: { forSeconds: 9 } }, 'unknown_key', 'allowed: markets'],
  ['the prototype as a key', '/v1/arm', { body: '{"__proto__":{}}' }, 'wrong_content_type', 'curl'],
  ['a list as body', '/v1/arm', { body: [] }, 'invalid_value', 'found an empty list'],
  ['null as body', '/v1/arm', { body: null }, 'invalid_value', 'found null'],
  ['a pause of no time', '/v1/pause', { body: { forSeconds: 0 } }, 'invalid_value', 'from 1 to 86400'],
  ['a pause of more than a day', '/v1/pause', { body: { forSeconds: 86_401 } }, 'invalid_value', '86401'],
  ['a time as text', '/v1/pause', { body: { forSeconds: '10m' } }, 'invalid_value', 'found "10m"'],
  ['a long wait', '/v1/arm', { body: { waitSeconds: 60.5 } }, 'invalid_value', 'from 0 to 60'],
  ['a number that is not whole', '/v1/beat?bot=main', { body: { seq: 1.5 } }, 'invalid_value', 'seq'],
  ['a negative number', '/v1/beat?bot=main', { body: { seq: -1 } }, 'invalid_value', 'seq'],
  ['a number that JSON cannot hold', '/v1/beat?bot=main', { body: { seq: 2 ** 53 } }, 'invalid_value', 'seq'],
  [
    'a long session',
    '/v1/fail?bot=main',
    { body: { session: 'x'.repeat(65) } },
    'invalid_value',
    'of 65 char',
  ],
  ['a line break', '/v1/fail?bot=main', { body: { session: 'a\nb' } }, 'invalid_value', 'printable'],
  ['a level that is none', '/v1/log-level', { body: { level: 'debgu' } }, 'invalid_value', 'mean debug?'],
  [
    'a time without a level',
    '/v1/log-level',
    { body: { forSeconds: 9 } },
    'invalid_value',
    'without a level',
  ],
  [
    'what curl -d sends',
    '/v1/beat?bot=main',
    typed(FORM, 'seq=1'),
    'wrong_content_type',
    `with curl add ${CURL}`,
  ],
  ['text that is JSON', '/v1/arm', typed('text/plain', '{}'), 'wrong_content_type', 'found "text/plain"'],
  ['a content type that is none', '/v1/arm', typed('json', '{}'), 'wrong_content_type', 'found "json"'],
  ['a web page', '/v1/trip', from('https://evil.example'), 'foreign_origin', 'web pages'],
  ['a page in a sandbox', '/v1/trip', from('null'), 'foreign_origin', 'web pages'],
  ['a page of this host', '/v1/trip', from('http://localhost'), 'foreign_origin', ''],
  ['an image in a page', '/v1/trip', fetched('cross-site'), 'foreign_origin', ''],
  ['a form of the same site', '/v1/trip', fetched('same-origin'), 'foreign_origin', ''],
  ['a preflight', '/v1/trip', preflight, 'foreign_origin', ''],
  ['65,537 bytes', '/v1/arm', { body: { markets: ['x'.repeat(65_537 - 16)] } }, 'too_large', '65536 bytes'],
  ['ten megabytes', '/v1/arm', { body: TEN_MEGABYTES }, 'too_large', '65536 bytes'],
];

// At a socket the same: `test/process/control.test.ts` asks a daemon over both.
const open = async (spy: ReturnType<typeof createSpy>) => asker((await start(spy, [TCP])).addresses[0]);

test.each(EVERYWHERE)('%s is refused and changes nothing', async (_, path, asked, code, part) => {
  const spy = createSpy();
  const reply = await (await open(spy))(path, asked);
  expect(refusalOf(reply, spy)).toEqual(refusal(code));
  expect(messageOf(reply)).toContain(part);
  if (code === 'wrong_method') expect(reply.headers['allow']).toMatch(/^(POST|GET, HEAD)$/);
});

test('the place of a mistake in JSON is named, and none of its text', async () => {
  const spy = createSpy();
  const ask = await open(spy);
  for (const [body, place] of [
    ['{"markets":["BTC_USDT"],\n  "waitSeconds":1,}', 'line 2 column 19'],
    ['{"level":"debug"', 'line 1 column 17'],
    ['{"a":[1}', 'line 1 column 8'],
    // Node names no place here, and would show what stands there.
    ['{"markets":[secret]}', 'a part of it'],
  ] as const) {
    const reply = await ask('/v1/arm', { body, headers: { 'content-type': 'application/json' } });
    expect([reply.status, codeOf(reply)]).toEqual([400, 'malformed_json']);
    expect(messageOf(reply)).toBe(`the body is not JSON: ${place} cannot be read`);
  }
  expect(spy.calls).toEqual([]);
});

test('headers that are too long are refused', async () => {
  const spy = createSpy();
  const reply = await (await open(spy))('/v1/trip', { headers: { 'x-long': 'x'.repeat(9000) } });
  expect(refusalOf(reply, spy)).toEqual(refusal('headers_too_large'));
});

test('an empty body is none, whatever its type', async () => {
  const spy = createSpy({ bots: () => ['main'] });
  const ask = await open(spy);
  for (const type of ['application/x-www-form-urlencoded', 'application/json', 'text/plain']) {
    const reply = await ask('/v1/beat', { body: '', headers: { 'content-type': type } });
    expect(reply.status).toBe(200);
  }
  const typed = { 'content-type': 'Application/JSON; charset=utf-8' };
  expect((await ask('/v1/beat', { body: '{"seq":1}', headers: typed })).status).toBe(200);
  expect(spy.calls).toHaveLength(4);
  expect(spy.refused).toEqual([]);
});

test('a mistake of the daemon is an error without details', async () => {
  const fault = () => {
    throw new Error('the secret of the key is 1234');
  };
  const spy = createSpy({ operate: async () => fault(), snapshot: fault, status: async () => fault() });
  const ask = await open(spy);
  for (const [path, method] of [
    ['/v1/trip', 'POST'],
    ['/v1/health', 'GET'],
    ['/v1/status', 'GET'],
  ] as const) {
    const reply = await ask(path, { method });
    expect([reply.status, codeOf(reply)]).toEqual([500, 'internal_error']);
    expect(reply.text).not.toContain('1234');
  }
  expect((await ask('/v1/log-level')).status).toBe(200);
});
