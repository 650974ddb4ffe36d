import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hideSecrets, isLoopback, redact } from '../../src/util/text.ts';

test('no secret survives, wherever it stands and however long the text is', () => {
  const secret = fc.stringMatching(/^[A-Za-z0-9+/=]{8,40}$/);
  fc.assert(
    fc.property(secret, secret, fc.string(), fc.nat(320), (key, token, rest, padding) => {
      const text = redact(`${'x'.repeat(padding)}${key}${rest}${token}`, [key, token]);
      expect(text).not.toContain(key);
      expect(text).not.toContain(token);
      expect(text.length).toBeLessThanOrEqual(300);
    }),
  );
});

test('a secret is found behind a percent sign that makes a code of its first characters', () => {
  const secret = '00+a/0/==+';
  for (const form of [secret, encodeURIComponent(secret)]) {
    expect(hideSecrets(`100%${form}`, [secret])).toBe('100%[redacted]');
  }
});

test('control characters cannot forge a log line or colour a terminal, nor put a secret together', () => {
  expect(redact('first\r\nsecond\u001b[31m\u2028third\u0000\u202e', [])).toBe('first second [31m third');
  expect(redact('hunt\u0000er22', ['hunter22'])).not.toContain('hunter22');
});

test('a secret is found inside quotes and inside an address, too; one of less than 8 characters is left alone', () => {
  const secret = 'pass"word/with spaces';
  const text = `${JSON.stringify({ secret })} https://host/?q=${encodeURIComponent(secret)}`;
  expect(hideSecrets(text, [secret])).toBe('{"secret":"[redacted]"} https://host/?q=[redacted]');
  expect(hideSecrets('the market is armed', ['', 'market', 'mark\ud800'])).toBe('the market is armed');
});

test.each([
  ['the URL class', (secret: string) => new URL(`https://host/?q=${secret}`).href],
  ['a form', (secret: string) => `https://host/?${new URLSearchParams({ q: secret }).toString()}`],
  ['lower case', (secret: string) => `https://host/?q=${secret.replace('/', '%2f').replace('!', '%21')}`],
])('a secret is found as %s percent-encodes it', (_who, encode) => {
  const secret = `it's/"5~3%4!`;
  expect(hideSecrets(encode(secret), [secret])).toBe('https://host/?q=[redacted]');
  expect(hideSecrets(JSON.stringify(encode(secret)), [secret])).toBe('"https://host/?q=[redacted]"');
});

const every = (text: string) => text.replaceAll(/./g, (one) => `%${one.charCodeAt(0).toString(16)}`);

test.each([
  ['in upper case', (secret: string) => secret.toUpperCase()],
  ['with all characters percent-encoded', every],
  ['broken into lines', (secret: string) => secret.replaceAll(/(.{8})/g, '$1\r\n')],
  ['escaped twice', (secret: string) => JSON.stringify(JSON.stringify(secret)).slice(3, -3)],
])('a secret is found %s', (_how, write) => {
  const secret = 'a-"key"\\0123456789abcdef';
  expect(redact(`<${write(secret)}>`, [secret])).toMatch(/^<\[redacted\]\s*>$/);
});

test('a text that is almost a percent-encoded secret is looked through in no time', { timeout: 2000 }, () => {
  for (const one of ["'", '%27', '\\', ' ', '%5c', '\\"']) {
    const text = one.repeat(10_000);
    expect(hideSecrets(text, [`${"'".repeat(24)}x`, `${'\\ '.repeat(24)}"x"x"x"`])).toBe(text);
  }
});

test.each([
  ['localhost LOCALHOST 127.0.0.1 127.8.9.10 ::1 [::1] ::ffff:127.0.0.1', true],
  ['0.0.0.0 :: 10.0.0.7 127.0.0.1.example.com 127.1 localhost.example ::ffff:10.0.0.7', false],
])('%s are reached by this host only: %s', (hosts, isHere) => {
  for (const host of hosts.split(' ')) expect(isLoopback(host), host).toBe(isHere);
  expect(isLoopback('')).toBe(false);
});
