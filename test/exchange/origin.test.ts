import { expect, test } from 'vitest';
import { openClient } from './open.ts';
import { serveReply } from './servers.ts';

test.each([
  'https://exchange.example/',
  'https://exchange.example:8443',
  'http://[::1]:8080',
  'http://localhost',
])('%s is an address for requests', (base) => expect(() => openClient(base)).not.toThrow());

test('an address that ends with a slash is asked as well', async () => {
  const { base } = await serveReply(['pong']);
  expect(await openClient(`${base}/`).ping()).toBeGreaterThan(0);
});

test.each([
  [
    'http://exchange.example',
    'plain http is allowed only to 127.0.0.1, [::1] or localhost; write https://exchange.example',
  ],
  ['http://127.0.0.1.example', 'plain http is allowed only to'],
  ['http://localhost.example', 'plain http is allowed only to'],
  ['ftp://exchange.example', 'allowed: https: (http: only to loopback)'],
  ['exchange.example', 'is not a URL; write https://HOST[:PORT]'],
  ['https://exchange.example/api/v4', 'goes on after the host; write https://exchange.example'],
  ['https://exchange.example?a=1', 'goes on after the host'],
])('%s is refused: %s', (base, message) => {
  expect(() => openClient(base)).toThrow(message);
});

test('a client without any address is refused', () => {
  expect(() => openClient([])).toThrow('bases is []; allowed: one base address or more');
});

test('a password in an address is refused and not repeated', () => {
  expect(() => openClient('https://user:hunter22@exchange.example')).toThrow(
    /^exchange address of exchange\.example names a user or password; write https:\/\/exchange\.example$/,
  );
});
