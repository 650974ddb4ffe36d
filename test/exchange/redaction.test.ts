import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRedaction } from '../../src/exchange/redaction.ts';

test('no secret survives, wherever it stands and however long the text is', () => {
  const secret = fc.stringMatching(/^[A-Za-z0-9+/=]{8,40}$/);
  fc.assert(
    fc.property(secret, secret, fc.string(), fc.nat(320), (key, token, rest, padding) => {
      const text = createRedaction([key, token])(`${'x'.repeat(padding)}${key}${rest}${token}`);
      expect(text).not.toContain(key);
      expect(text).not.toContain(token);
      expect(text.length).toBeLessThanOrEqual(300);
    }),
  );
});

test('control characters cannot forge a log line or colour a terminal', () => {
  expect(createRedaction([])('first\r\nsecond\u001b[31m\u2028third\u0000\u202e')).toBe(
    'first second [31m third',
  );
});

test('a secret that control characters were put into is not put together again', () => {
  expect(createRedaction(['hunter22'])('hunt\u0000er22')).not.toContain('hunter22');
});
