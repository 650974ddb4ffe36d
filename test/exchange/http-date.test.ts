import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseHttpDate } from '../../src/exchange/http-date.ts';

test('every second from 1970 to 2200 reads back from its HTTP form', () => {
  fc.assert(
    fc.property(fc.nat(7_258_118_399), (second) => {
      expect(parseHttpDate(new Date(second * 1000).toUTCString())).toBe(second * 1000);
    }),
  );
});

test.each([
  '',
  'now',
  '0',
  '2023-11-14T22:13:20Z',
  'Tue, 14 Nov 2023 22:13:20 CET',
  'Tue, 14 Xxx 2023 22:13:20 GMT',
])('a Date header of "%s" is not a date', (text) => {
  expect(parseHttpDate(text)).toBeNull();
});
