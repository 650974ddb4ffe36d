import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../src/core/events.ts';
import { classifyPing, classifySync } from '../../src/exchange/classify.ts';
import type { WireResult } from '../../src/exchange/wire.ts';
import { redact as blot } from '../../src/util/text.ts';

const ARM = { market: 'BTC_USDT', timeoutSeconds: 60 };
const DELETE = { market: 'BTC_USDT', timeoutSeconds: null };
const TIMER = {
  market: 'BTC_USDT',
  startTime: 1_700_000_000,
  cancellationTime: 1_700_000_060,
  types: ['spot'],
};
const SECRETS = ['test-key-0001', 'test-secret-0001'];
const redact = (text: string) => blot(text, SECRETS);

function answer(status: number, body: unknown, headers: Record<string, string> = {}): WireResult {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return { kind: 'response', status, headers, body: Buffer.from(text) };
}

function arm(result: WireResult): Outcome {
  return classifySync(result, ARM, redact);
}

describe('an answer to arming a timer', () => {
  test('with the timer applies it, and fields beyond the document are left out', () => {
    expect(arm(answer(200, { ...TIMER, extra: 1 }))).toEqual({ kind: 'applied', timer: TIMER });
    // The example of the exchange has equal times.
    const odd = { ...TIMER, types: null, cancellationTime: TIMER.startTime };
    expect(arm(answer(201, odd))).toEqual({ kind: 'applied', timer: odd });
  });

  test('with order types that no document names shows none of them', () => {
    const types = ['spot', 'spot', ...SECRETS, 'x'.repeat(60_000)];
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
  ])('%s is a protocol error: nobody knows whether the timer runs', (_what, body) => {
    expect(arm(answer(200, body)).kind).toBe('protocol');
  });

  test('with a redirect is a protocol error that names the target', () => {
    expect(arm(answer(302, '', { location: 'https://elsewhere.example/' }))).toEqual({
      kind: 'protocol',
      detail: 'HTTP 302 to https://elsewhere.example/, which is not followed',
    });
  });
});

describe('an answer to deleting a timer', () => {
  test.each<[string, unknown]>([
    ['an empty list', []],
    ['the timer', TIMER],
  ])('of %s confirms it', (_what, body) => {
    expect(classifySync(answer(200, body), DELETE, redact)).toEqual({ kind: 'deleted' });
  });

  test.each<[string, unknown]>([
    ['an empty object', {}],
    ['a list with something in it', [1]],
    ['the timer of another market', { ...TIMER, market: 'ETH_USDT' }],
  ])('of %s does not confirm it', (_what, body) => {
    expect(classifySync(answer(200, body), DELETE, redact).kind).toBe('protocol');
  });
});

const STALE = { code: 0, errors: {}, message: 'Too many requests.' };
const AHEAD = {
  code: 0,
  message: 'Your nonce is more than 5 seconds lesser than the current nonce.',
  errors: [],
};
const REFUSED = { code: 31, message: 'Validation failed', errors: { market: ['Market is not available.'] } };
const REFUSED_TEXT = 'HTTP 422: Validation failed (market: Market is not available.)';

const limited = (message: string) => ({ code: 0, message, errors: {} });
const lost = (reason: string) => ({ kind: 'transient', reason, maybeApplied: true });
const UNDONE = { kind: 'transient', reason: 'validation', maybeApplied: false };
const EMPTY_404 = 'HTTP 404 with 0 bytes of no content type';

test.each<[number, unknown, object]>([
  [429, STALE, { kind: 'nonce', detail: 'HTTP 429: Too many requests.' }],
  [429, { code: 0, message: 'Nonce is over the limit.' }, { kind: 'nonce' }],
  [429, { code: 0, message: { toString: 1 } }, { kind: 'nonce' }],
  [429, limited('Rate limit exceeded.'), { kind: 'throttled', detail: 'HTTP 429: Rate limit exceeded.' }],
  [429, limited('You are being throttled'), { kind: 'throttled' }],
  [429, '<html>slow down</html>', { kind: 'throttled' }],
  [429, '', { kind: 'throttled' }],
  [429, ['code'], { kind: 'throttled' }],
  [400, AHEAD, { kind: 'nonce' }],
  [422, AHEAD, { kind: 'nonce' }],
  [500, { error: ['Internal server error.'] }, lost('http_5xx')],
  [503, '<html>maintenance</html>', lost('http_5xx')],
  [503, { response: null, status: 503, errors: { message: [''] } }, lost('http_5xx')],
  [502, REFUSED, lost('http_5xx')],
  [401, { code: 10, message: 'No.' }, { kind: 'unauthorised', status: 401, detail: 'HTTP 401: No.' }],
  [403, { code: 4, message: 'Not authorized.', errors: {} }, { kind: 'unauthorised', status: 403 }],
  [403, '<html>blocked</html>', lost('auth')],
  [403, { message: 'blocked' }, lost('auth')],
  [401, '', lost('auth')],
  [422, REFUSED, { kind: 'refused', code: 31, detail: REFUSED_TEXT, fields: REFUSED.errors }],
  [400, { ...REFUSED, code: 30 }, { kind: 'refused', code: 30 }],
  [400, { code: 9, message: 'Invalid payload.' }, { ...UNDONE, detail: 'HTTP 400: Invalid payload.' }],
  [400, { code: 9, message: 'Invalid nonceWindow.', errors: {} }, UNDONE],
  [400, { code: 0, message: 'Something else.' }, UNDONE],
  [404, { code: 30, message: 'Not here.', errors: {} }, lost('validation')],
  [404, '', { ...lost('parse'), detail: EMPTY_404 }],
  [405, { message: 'Method not allowed' }, lost('parse')],
  [400, '<html>bad request</html>', lost('parse')],
])('HTTP %i with %j is judged as the table of failures says', (status, body, expected) => {
  expect(arm(answer(status, body))).toMatchObject(expected);
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

test('a failure on the wire keeps its reason and whether anything was written', () => {
  for (const reason of ['timeout', 'network', 'dns', 'tls', 'aborted'] as const) {
    for (const maybeApplied of [true, false]) {
      expect(arm({ kind: 'failed', reason, detail: 'why', maybeApplied })).toMatchObject({
        kind: 'transient',
        reason,
        maybeApplied,
      });
    }
  }
});

test('what a server repeats of the secrets appears nowhere in the verdict', () => {
  const echo = SECRETS.join(' and ');
  for (const status of [200, 302, 400, 401, 422, 429, 500]) {
    const body = { code: 30, message: echo, errors: { [echo]: [echo] } };
    const verdict = arm(answer(status, body, { location: echo, 'content-type': echo }));
    const plain = arm(answer(status, echo, { location: echo, 'content-type': echo }));
    for (const secret of SECRETS) {
      expect(JSON.stringify(verdict)).not.toContain(secret);
      expect(JSON.stringify(plain)).not.toContain(secret);
    }
  }
});

test('any status with any bytes has a verdict with a short printable detail, and only 2xx can succeed', () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }).map((some) => Buffer.from(some)),
    fc.json().map((text) => Buffer.from(text)),
    fc
      .record({ code: fc.anything(), message: fc.anything(), errors: fc.anything() }, { requiredKeys: [] })
      .map((value) => Buffer.from(JSON.stringify(value) ?? '')),
    fc
      .record({
        market: fc.constantFrom('BTC_USDT', 'X'),
        startTime: fc.anything(),
        cancellationTime: fc.anything(),
        types: fc.anything(),
      })
      .map((value) => Buffer.from(JSON.stringify(value) ?? '')),
  );
  const headers = fc.dictionary(fc.constantFrom('location', 'content-type', 'date'), fc.string());
  fc.assert(
    fc.property(
      fc.integer({ min: 200, max: 599 }),
      bytes,
      headers,
      fc.boolean(),
      (status, body, head, deleting) => {
        const result: WireResult = { kind: 'response', status, headers: head, body };
        const verdict = classifySync(result, deleting ? DELETE : ARM, redact);
        const succeeded = verdict.kind === 'applied' || verdict.kind === 'deleted';
        expect(succeeded && status >= 300).toBe(false);
        expect('detail' in verdict ? verdict.detail : '').toMatch(/^[^\p{Cc}]{0,300}$/u);
        const pinged = classifyPing(result, redact);
        expect(pinged.ok ? '' : pinged.detail).toMatch(/^[^\p{Cc}]{0,300}$/u);
      },
    ),
    { numRuns: 500 },
  );
});

test('a ping is good only with pong', () => {
  expect(classifyPing(answer(200, ['pong']), redact)).toEqual({ ok: true });
  expect(classifyPing(answer(200, []), redact)).toMatchObject({ ok: false, reason: 'parse' });
  expect(classifyPing(answer(200, 'pong'), redact)).toMatchObject({ ok: false, reason: 'parse' });
  expect(classifyPing(answer(503, '<html>'), redact)).toMatchObject({ ok: false, reason: 'http_5xx' });
  expect(classifyPing(answer(429, '<html>'), redact)).toMatchObject({ ok: false, reason: 'rate_limited' });
  expect(classifyPing(answer(403, '<html>'), redact)).toMatchObject({ ok: false, reason: 'auth' });
  expect(classifyPing(answer(302, ['pong']), redact)).toMatchObject({ ok: false, reason: 'parse' });
});
