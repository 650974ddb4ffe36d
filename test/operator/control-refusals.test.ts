import { describe, expect, test } from 'vitest';
import { ControlRefusal, type Refusal } from '../../src/operator/control-sources.ts';
import type { Asked } from '../process/control.ts';
import { dial, open, TCP } from './control-fixture.ts';

const TWO_BOTS = 'found "main" in the query and "maker" in the body';
const FORM = 'application/x-www-form-urlencoded';
const CURL = "with curl add -H 'content-type: application/json'";
const OTHER_SHARD = 'belongs to shard 1 of 3, counted from 0: ask that daemon';
const TOO_LONG = { markets: ['x'.repeat(65_537 - 16)] };
const sent = (body: unknown): Asked => ({ body });
const typed = (type: string, body: string): Asked => ({ body, headers: { 'content-type': type } });
const from = (origin: string): Asked => ({ headers: { origin } });
const fetched = (site: string): Asked => ({ headers: { 'sec-fetch-site': site } });
const preflight: Asked = { method: 'OPTIONS', ...from('https://evil.example') };
const get: Asked = { method: 'GET' };
const fail = (session: string): [string, Asked] => ['fail?bot=main', sent({ session })];
const beat = (seq: number): [string, Asked] => ['beat?bot=main', sent({ seq })];
const trip = (markets: unknown): [string, Asked] => ['trip', sent({ markets })];

type Row = readonly [what: string, path: string, asked: Asked, code: Refusal, part: string];
/** What is sent where below /v1/, the code of its refusal, and a part of the message. */
const EVERYWHERE: readonly Row[] = [
  ['an unknown path', 'beet', {}, 'unknown_path', 'did you mean /v1/beat?'],
  ['a path that cannot be read', '%zz', {}, 'malformed_request', 'the path cannot be read'],
  ['GET of a beat', 'beat', get, 'wrong_method', 'found GET; allowed: POST'],
  ['POST of the status', 'status', {}, 'wrong_method', 'found POST; allowed: GET, HEAD'],
  ['another query', 'beat?bto=main', {}, 'unknown_key', '"bto"; allowed: bot; did you mean bot?'],
  ['a query of a command', 'trip?markets=BTC_USDT', {}, 'unknown_key', 'allowed: none'],
  ['two bots in the query', 'beat?bot=main&bot=maker', {}, 'invalid_value', "allowed: a bot's name"],
  ['an unknown bot', 'beat?bot=mian', {}, 'unknown_bot', 'did you mean main?'],
  ['no bot where there are two', 'beat', {}, 'invalid_value', 'say which, as ?bot=NAME: main, maker'],
  ['query and body that differ', 'beat?bot=main', sent({ bot: 'maker' }), 'invalid_value', TWO_BOTS],
  ['an unknown market', ...trip(['BTC_USDC']), 'unknown_market', 'BTC_USDT?'],
  ['a market not on record', 'ack', sent({ markets: ['GONE_USDR'] }), 'unknown_market', 'GONE_USDT?'],
  ['a market of another shard', ...trip(['BTC_USDT', 'SOL_USDT']), 'unknown_market', OTHER_SHARD],
  ['no markets at all', ...trip([]), 'invalid_value', 'found an empty list'],
  ['a market that is no list', ...trip('BTC_USDT'), 'invalid_value', '["BTC_USDT"]'],
  ['an unknown key', 'arm', sent({ market: ['BTC_USDT'] }), 'unknown_key', 'did you mean markets?'],
  ['a key of another command', 'trip', sent({ forSeconds: 9 }), 'unknown_key', 'allowed: markets'],
  ['a list as body', 'arm', sent([]), 'invalid_value', 'found an empty list'],
  ['a pause without its time', 'pause', {}, 'invalid_value', 'forSeconds is missing; allowed: a number'],
  ['a pause of no time', 'pause', sent({ forSeconds: 0 }), 'invalid_value', 'from 1 to 86400'],
  ['a time as text', 'pause', sent({ forSeconds: '10m' }), 'invalid_value', 'found "10m"'],
  ['a long wait', 'arm', sent({ waitSeconds: 60.5 }), 'invalid_value', 'from 0 to 60'],
  ['a negative number', ...beat(-1), 'invalid_value', 'seq'],
  ['a number that JSON cannot hold', ...beat(2 ** 53), 'invalid_value', 'seq'],
  ['a long session', ...fail('x'.repeat(65)), 'invalid_value', 'of 65 char'],
  ['a line break', ...fail('a\nb'), 'invalid_value', 'printable'],
  ['a level that is none', 'log-level', sent({ level: 'debgu' }), 'invalid_value', 'mean debug?'],
  ['a time without a level', 'log-level', sent({ forSeconds: 9 }), 'invalid_value', 'without a level'],
  ['what curl -d sends', 'beat?bot=main', typed(FORM, 'seq=1'), 'wrong_content_type', CURL],
  ['text that is JSON', 'arm', typed('text/plain', '{}'), 'wrong_content_type', 'found "text/plain"'],
  ['a web page', 'trip', from('https://evil.example'), 'foreign_origin', 'web pages'],
  ['a form of the same site', 'trip', fetched('same-origin'), 'foreign_origin', ''],
  ['a preflight', 'trip', preflight, 'foreign_origin', ''],
  ...['evil.example', 'localhost.evil.example:80', '192.168.1.5:80', '127.0.0.2', '', 'localhost:x'].map(
    (host): Row => [`the Host header ${host}`, 'trip', { headers: { host } }, 'wrong_host', ''],
  ),
  ['65,537 bytes', 'arm', sent(TOO_LONG), 'too_large', '65536 bytes'],
  ['long headers', 'trip', { headers: { 'x-long': 'x'.repeat(9000) } }, 'headers_too_large', '8 KiB'],
];

// At a socket the same: `test/process/control.test.ts` asks a daemon over both.
test.each(EVERYWHERE)('%s is refused and changes nothing', async (_, path, asked, code, part) => {
  const { ask, calls, refused } = await open({}, TCP);
  const reply = await ask(`/v1/${path}`, asked);
  const { status } = new ControlRefusal(code, '');
  const headers = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' };
  expect(reply).toMatchObject({ status, headers, body: { error: { code } } });
  expect(Object.keys(reply.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
  expect([calls, refused]).toEqual([[], [code]]);
  expect(reply.message).toContain(part);
  if (code === 'wrong_method') expect(reply.headers['allow']).toMatch(/^(POST|GET, HEAD)$/);
});

test('the place of a mistake in JSON is named, and none of its text', async () => {
  const { ask, calls } = await open({}, TCP);
  for (const [body, place] of [
    ['{"markets":["BTC_USDT"],\n  "waitSeconds":1,}', 'line 2 column 19'],
    ['{"level":"debug"', 'line 1 column 17'],
    ['{"a":[1}', 'line 1 column 8'],
    // Node names no place here, and would show what stands there.
    ['{"markets":[secret]}', 'a part of it'],
  ] as const) {
    const message = `the body is not JSON: ${place} cannot be read`;
    expect(await ask('/v1/arm', { body })).toMatchObject({ status: 400, code: 'malformed_json', message });
  }
  expect(calls).toEqual([]);
});

test('an empty body is none, whatever its type', async () => {
  const { ask, calls, refused } = await open({ bots: () => ['main'] }, TCP);
  const json = typed('Application/JSON; charset=utf-8', '{"seq":1}');
  for (const asked of [typed(FORM, ''), typed('application/json', ''), typed('text/plain', ''), json])
    expect((await ask('/v1/beat', asked)).status).toBe(200);
  expect([calls.length, refused]).toEqual([4, []]);
});

test('a mistake of the daemon is an error without details', async () => {
  const fault = () => {
    throw new Error('the secret of the key is 1234');
  };
  const faults = { operate: async () => fault(), snapshot: fault, status: async () => fault() };
  const { ask } = await open(faults, TCP);
  for (const [path, asked] of Object.entries({ trip: {}, health: get, status: get })) {
    const reply = await ask(`/v1/${path}`, asked);
    expect(reply).toMatchObject({ status: 500, code: 'internal_error' });
    expect(reply.text).not.toContain('1234');
  }
  expect((await ask('/v1/log-level')).status).toBe(200);
});

const TOKEN = 'correct-horse-battery-stäple';
/** A text as a header carries it: its bytes, one character each. */
const latin = (text: string) => Buffer.from(text).toString('latin1');
const bearer = (token: string) => ({ authorization: `Bearer ${latin(token)}` });
const EVERYWHERE_ELSE = '0.0.0.0:0';
const HOSTS = ['localhost', 'LOCALHOST:1', '127.0.0.1:17478', '[::1]:17478', '[::1]'];

// That a reload changes the token: `test/process/reload-files.test.ts`.
describe('lets in', () => {
  test.each<[string, string | undefined, string | null, readonly string[], Record<string, string>]>([
    // The permissions of the file decide.
    ['over a Unix socket', undefined, TOKEN, ['localhost', 'x', 'evil.example:80', '10.0.0.1', ''], {}],
    ['over loopback', TCP, null, HOSTS, {}],
    ['whoever has the token', TCP, TOKEN, HOSTS, { authorization: `bearer ${latin(TOKEN)}` }],
    ['from another host whoever has the token', EVERYWHERE_ELSE, TOKEN, ['killswitchd:17478'], bearer(TOKEN)],
  ])('%s', async (_, listen, token, hosts, headers) => {
    const { ask } = await open({}, listen, token);
    for (const host of hosts)
      expect((await ask('/v1/trip', { headers: { host, ...headers } })).status, host).toBe(200);
  });
});

const nearly = [TOKEN.slice(0, -1), `x${TOKEN.slice(1)}`, `${TOKEN.slice(0, -1)}x`, `${TOKEN}x`];
const WRONG = [...nearly, TOKEN.toUpperCase(), `${TOKEN} `.repeat(2), 'wrong', 'null', ''].map(bearer);
const BASIC = { authorization: `Basic ${Buffer.from(`:${TOKEN}`).toString('base64')}` };
const NONE: readonly { readonly authorization?: string }[] = [
  {},
  { authorization: '' },
  { authorization: 'Bearer' },
];

test.each<[string, string, string | null]>([
  ['over loopback without the very token, where one is configured', TCP, TOKEN],
  ['over loopback where the file of the token is empty', TCP, ''],
  ['from another host without the very token', EVERYWHERE_ELSE, TOKEN],
  ['from another host where no token is configured', EVERYWHERE_ELSE, null],
])('nobody is let in %s, and no token is repeated', async (_, listen, token) => {
  const { ask, calls } = await open({}, listen, token);
  for (const headers of [...NONE, BASIC, ...WRONG])
    for (const path of ['/v1/trip', '/v1/nothing']) {
      const authorization = headers.authorization ?? '';
      const reply = await ask(path, { headers });
      expect(reply, authorization).toMatchObject({ status: 401, code: 'unauthorised' });
      expect(reply.headers['www-authenticate']).toMatch(/^Bearer realm="killswitchd"/);
      const said = reply.text + JSON.stringify(reply.headers);
      expect(said).not.toContain('correct');
      if (authorization.length > 10) expect(said).not.toContain(authorization.slice(7));
    }
  expect(calls).toEqual([]);
});

test.each(['1.0', '1.1'])(
  'over loopback a request in HTTP %s without a Host header is refused',
  async (version) => {
    const { address, calls } = await open({}, TCP);
    const socket = dial(address);
    socket.write(`POST /v1/trip HTTP/${version}\r\n\r\n`);
    const heard = await new Promise((resolve) => socket.once('data', (data) => resolve(String(data))));
    expect(heard).toMatch(/^HTTP\/1.1 421 /);
    expect(calls).toEqual([]);
  },
);
