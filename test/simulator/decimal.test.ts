import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  add,
  compare,
  type Decimal,
  decimal,
  decimalOfNumber,
  divideDown,
  fitsScale,
  formatDecimal,
  multiply,
  parseDecimal,
  subtract,
} from '../../src/simulator/decimal.ts';

const anyDecimal: fc.Arbitrary<Decimal> = fc.record({
  units: fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }),
  scale: fc.nat(20),
});
const positive = anyDecimal.filter(({ units }) => units > 0n);

test('a tenth and two tenths are three tenths', () => {
  expect(formatDecimal(add(decimal('0.1'), decimal('0.2')))).toBe('0.3');
});

test.each([
  ['0', '0'],
  ['-0', '0'],
  ['007', '7'],
  ['1.50', '1.5'],
  ['-0.050', '-0.05'],
  ['100000000000000000000.00000000000000000001', '100000000000000000000.00000000000000000001'],
])('%s is written as %s', (text, written) => {
  expect(formatDecimal(decimal(text))).toBe(written);
});

test.each(['', ' 1', '1 ', '1.', '.5', '+1', '1e3', '0x10', '1,5', '1.2.3', 'NaN', '--1', '１'])(
  '%j is no decimal',
  (text) => {
    expect(parseDecimal(text)).toBeNull();
    expect(() => decimal(text)).toThrow(RangeError);
  },
);

test.each([
  [0.1, '0.1'],
  [1e-7, '0.0000001'],
  [-1.25e-9, '-0.00000000125'],
  [1e21, '1000000000000000000000'],
  [1.5e22, '15000000000000000000000'],
  [60_000, '60000'],
])('the number %d is %s', (value, text) => {
  expect(formatDecimal(decimalOfNumber(value) ?? decimal('0'))).toBe(text);
});

test('no number is lost on the way, and those that are not finite are none', () => {
  fc.assert(
    fc.property(fc.double({ noDefaultInfinity: true, noNaN: true }), (value) => {
      const read = decimalOfNumber(value);
      expect(read === null ? null : Number(formatDecimal(read))).toBe(value === 0 ? 0 : value);
    }),
  );
  expect(decimalOfNumber(Number.POSITIVE_INFINITY)).toBeNull();
  expect(decimalOfNumber(Number.NaN)).toBeNull();
});

test('what is written is read back, and what is added can be taken away', () => {
  fc.assert(
    fc.property(anyDecimal, anyDecimal, (a, b) => {
      expect(compare(decimal(formatDecimal(a)), a)).toBe(0);
      expect(compare(subtract(add(a, b), b), a)).toBe(0);
      expect(compare(multiply(a, b), multiply(b, a))).toBe(0);
      expect(Math.sign(compare(a, b))).toBe(-Math.sign(compare(b, a)) || 0);
    }),
  );
});

test('a quotient is rounded down by less than one step', () => {
  fc.assert(
    fc.property(positive, positive, fc.nat(12), (a, b, scale) => {
      const quotient = divideDown(a, b, scale);
      const next = add(quotient, { units: 1n, scale });
      expect(fitsScale(quotient, scale)).toBe(true);
      expect(compare(multiply(quotient, b), a)).toBeLessThanOrEqual(0);
      expect(compare(multiply(next, b), a)).toBeGreaterThan(0);
    }),
  );
});
