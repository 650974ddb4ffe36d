import { expect, test } from 'vitest';
import { classifyPing, classifySync } from '../../src/exchange/classify.ts';
import type { WireResult } from '../../src/exchange/wire.ts';
import { tidy } from '../../src/util/text.ts';
import { TIMER } from './samples.ts';

const ARM = { market: 'BTC_USDT', timeoutSeconds: 60 };
const DELETE = { market: 'BTC_USDT', timeoutSeconds: null };

function answer(status: number, body: unknown, headers: Record<string, string> = {}): WireResult {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return { kind: 'response', status, headers, body: Buffer.from(text) };
}

const arm = (result: WireResult) => classifySync(result, ARM, tidy);

test('the timer applies it; fields beyond the document and types that no document names are not shown', () => {
  // The example of the exchange has equal times.
  for (const timer of [TIMER, { ...TIMER, cancellationTime: TIMER.startTime }, { ...TIMER, types: ['spot'] }])
    for (const status of [200, 201])
      expect(arm(answer(status, { ...timer, extra: 1 }))).toEqual({ kind: 'applied', timer });
  const types = ['spot', 'spot', '(made up)', 'x'.repeat(60_000)];
  const timer = { ...TIMER, types: ['spot', '(unknown)'] };
  expect(arm(answer(200, { ...TIMER, types }))).toEqual({ kind: 'applied', timer });
});

test.each<[string, unknown]>([
  ['of another market', { ...TIMER, market: 'ETH_USDT' }],
  ['that is empty', ''],
  ['that is a page', '<html>ok</html>'],
  ['that says it was deleted', []],
  ['with times as text', { ...TIMER, startTime: '1700000000' }],
  ['with times in milliseconds', { ...TIMER, startTime: 1.7e15, cancellationTime: 1.7e15 }],
  ['with half a second', { ...TIMER, startTime: 0.5 }],
  ['without types', { ...TIMER, types: undefined }],
  ['cut off', JSON.stringify(TIMER).slice(0, 40)],
  ['with an error in a 200', { code: 30, message: 'Validation failed', errors: {} }],
  ['of null', null],
  ['of a list with the timer', [TIMER]],
])('an answer to arming %s is a protocol error: nobody knows whether the timer runs', (_what, body) => {
  expect(arm(answer(200, body)).kind).toBe('protocol');
});

test.each<[string, unknown, string]>([
  ['an empty list', [], 'deleted'],
  ['the timer', TIMER, 'deleted'],
  ['an empty object', {}, 'protocol'],
  ['a list with something in it', [1], 'protocol'],
  ['the timer of another market', { ...TIMER, market: 'ETH_USDT' }, 'protocol'],
])('an answer to deleting of %s is %s', (_what, body, kind) => {
  expect(classifySync(answer(200, body), DELETE, tidy).kind).toBe(kind);
});

test('an answer may begin with a byte order mark, and the coding that a gateway put it in is named', () => {
  expect(arm(answer(200, `\uFEFF${JSON.stringify(TIMER)}`)).kind).toBe('applied');
  const head = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
  const detail = 'HTTP 200 with 4 bytes of application/json in gzip, expected a timer';
  expect(arm(answer(200, '\u001f\b\b\b', head))).toMatchObject({ kind: 'protocol', detail });
});

const error = (code: number, message: unknown, errors: unknown = {}) => ({ code, message, errors });
const TOO_FAR = 'Your nonce is more than 5 seconds lesser than the current nonce.';
const FIELDS = { market: ['Market is not available.'] };
const WHY = 'HTTP 422: Validation failed (market: Market is not available.)';
const REFUSED = { kind: 'refused', code: 31, detail: WHY, fields: FIELDS };
const lost = (reason: string) => ({ kind: 'transient', reason, maybeApplied: true });
const UNDONE = { kind: 'transient', reason: 'validation', maybeApplied: false };

test('of an error object with thousands of names and texts a few are kept', () => {
  const many = Object.fromEntries(
    Array.from({ length: 3000 }, (_, index) => [`p${index}`, Array(20).fill('')]),
  );
  const verdict = classifySync(
    answer(422, error(31, 'x', { ...many, p0: Array(3000).fill('y') })),
    DELETE,
    tidy,
  );
  const fields = Object.values((verdict as typeof REFUSED).fields) as string[][];
  expect([fields.length, fields[0]?.length]).toEqual([30, 30]);
});

test.each<[number, unknown, object]>([
  [429, error(0, 'Too many requests.'), { kind: 'nonce', detail: 'HTTP 429: Too many requests.' }],
  [429, { code: 0, message: 'Nonce is over the limit.' }, { kind: 'nonce' }],
  [429, error(0, { toString: 1 }), { kind: 'nonce' }],
  [429, error(0, 'Rate limit hit.'), { kind: 'throttled', detail: 'HTTP 429: Rate limit hit.' }],
  [429, error(0, 'You are being throttled'), { kind: 'throttled' }],
  [429, '<html>slow down</html>', { kind: 'throttled' }],
  [429, '', { kind: 'throttled' }],
  [429, ['code'], { kind: 'throttled' }],
  [400, error(0, TOO_FAR, []), { kind: 'nonce' }],
  [422, error(0, TOO_FAR, []), { kind: 'nonce' }],
  [500, { error: ['Internal server error.'] }, lost('http_5xx')],
  [503, '<html>maintenance</html>', lost('http_5xx')],
  [503, { response: null, status: 503, errors: { message: [''] } }, lost('http_5xx')],
  [502, error(31, 'Validation failed', FIELDS), lost('http_5xx')],
  [401, { code: 10, message: 'No.' }, { kind: 'unauthorised', status: 401, detail: 'HTTP 401: No.' }],
  [403, error(4, 'Not authorized.'), { kind: 'unauthorised', status: 403 }],
  [403, '<html>blocked</html>', lost('auth')],
  [403, { message: 'blocked' }, lost('auth')],
  [401, '', lost('auth')],
  [422, error(31, 'Validation failed', FIELDS), REFUSED],
  [400, error(30, 'Validation failed'), { kind: 'refused', code: 30 }],
  [400, { code: 9, message: 'Invalid payload.' }, { ...UNDONE, detail: 'HTTP 400: Invalid payload.' }],
  [400, error(9, 'Invalid nonceWindow.'), UNDONE],
  [400, { code: 0, message: 'Something else.' }, UNDONE],
  [404, error(30, 'Not here.'), lost('validation')],
  [404, '', { ...lost('parse'), detail: 'HTTP 404 with 0 bytes of no content type' }],
  [405, { message: 'Method not allowed' }, lost('parse')],
  [400, '<html>bad request</html>', lost('parse')],
  [302, '', { kind: 'protocol', detail: 'HTTP 302 to https://elsewhere.example/, which is not followed' }],
])('HTTP %i with %j is judged as the table of failures says', (status, body, expected) => {
  const location: Record<string, string> = status === 302 ? { location: 'https://elsewhere.example/' } : {};
  expect(arm(answer(status, body, location))).toMatchObject(expected);
});

test.each<[number | undefined, object]>([
  [undefined, { kind: 'protocol' }],
  [200, { kind: 'protocol' }],
  [302, { kind: 'protocol' }],
  [401, lost('auth')],
  [404, lost('parse')],
  [429, { kind: 'throttled' }],
  [503, lost('http_5xx')],
])('an answer with status %s whose body broke off is judged by its status', (status, expected) => {
  const failed = { kind: 'failed', reason: 'parse', detail: 'cut', maybeApplied: true } as const;
  expect(arm(status === undefined ? failed : { ...failed, status })).toMatchObject(expected);
});

test.each(['timeout', 'network', 'dns', 'tls', 'aborted'] as const)(
  'a failure on the wire keeps its reason and whether anything was written: %s',
  (reason) => {
    for (const maybeApplied of [true, false]) {
      const verdict = arm({ kind: 'failed', reason, detail: 'why', maybeApplied });
      expect(verdict).toMatchObject({ kind: 'transient', reason, maybeApplied });
    }
  },
);

test.each<[number, unknown, object]>([
  [200, ['pong'], { kind: 'answered' }],
  [200, [], { kind: 'failed', reason: 'parse' }],
  [200, 'pong', { kind: 'failed', reason: 'parse' }],
  [302, ['pong'], { kind: 'failed', reason: 'parse' }],
  [503, '<html>', { kind: 'failed', reason: 'http_5xx' }],
  [429, '<html>', { kind: 'failed', reason: 'rate_limited' }],
  [403, '<html>', { kind: 'failed', reason: 'auth' }],
])('a ping is good only with pong: %i with %j', (status, body, expected) => {
  expect(classifyPing(answer(status, body), tidy)).toMatchObject(expected);
});
