import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createHttpDates, parseHttpDate } from '../../src/exchange/http-date.ts';

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

test('answers in a row are each read right, whether or not they show the same second', () => {
  const dateOf = createHttpDates();
  const texts = [
    'Sun, 06 Nov 1994 08:49:37 GMT',
    'Sun, 06 Nov 1994 08:49:37 GMT',
    'nonsense',
    'nonsense',
    '',
  ];
  const again = [...texts, 'Sun, 06 Nov 1994 08:49:38 GMT', ...texts];
  expect(again.map(dateOf)).toEqual(again.map(parseHttpDate));
});
