import { expect, test } from 'vitest';
import { isLoopback } from '../../src/util/text.ts';

test.each(['localhost', 'LOCALHOST', '127.0.0.1', '127.8.9.10', '::1', '[::1]', '::ffff:127.0.0.1'])(
  '%s is reached by this host only',
  (host) => expect(isLoopback(host)).toBe(true),
);

test.each([
  '0.0.0.0',
  '::',
  '10.0.0.7',
  '127.0.0.1.example.com',
  '127.1',
  'localhost.example',
  '::ffff:10.0.0.7',
  '',
])('%s may be reached by others', (host) => expect(isLoopback(host)).toBe(false));
