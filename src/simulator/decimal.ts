/** A decimal number, exactly: so many units of 1e-40. Money is never a binary fraction. */
export type Decimal = bigint;

const DIGITS = 40;
const ONE = stepOf(0);
const FORM = /^-?\d+(\.\d+)?$/;

/** Reads a plain decimal such as `0.5`; null for anything else, also for one with an exponent. */
export function parseDecimal(text: string): Decimal | null {
  if (!FORM.test(text)) return null;
  const [whole = '', fraction = ''] = text.split('.');
  const kept = fraction.slice(0, DIGITS);
  const units = BigInt(whole + kept) * stepOf(kept.length);
  if (fraction.length === kept.length || !/[1-9]/.test(fraction.slice(DIGITS))) return units;
  // What is finer than a unit is no step of any market: rounded up it is still none.
  return text.startsWith('-') ? units - 1n : units + 1n;
}

/** Numbers in plain digits, the shortest that mean them. What is below 1e-100 is 0. */
const PLAIN = new Intl.NumberFormat('en', { useGrouping: false, maximumFractionDigits: 100 });

/** Reads what a client wrote as text or as a finite number; null for anything else. */
export function readDecimal(value: unknown): Decimal | null {
  if (typeof value === 'number') return parseDecimal(PLAIN.format(value));
  return typeof value === 'string' ? parseDecimal(value) : null;
}

/** Reads a decimal of the program's own or of a test's options. Throws a RangeError where it is none. */
export function decimal(text: string): Decimal {
  const value = parseDecimal(text);
  if (value === null) throw new RangeError(`found "${text}"; expected a decimal such as "0.5"`);
  return value;
}

/** The shortest plain form: no exponent, no zeros at the end. */
export function formatDecimal(value: Decimal): string {
  const digits = (value < 0n ? -value : value).toString().padStart(DIGITS + 1, '0');
  const fraction = digits.slice(-DIGITS).replace(/0+$/, '');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -DIGITS)}${fraction === '' ? '' : `.${fraction}`}`;
}

/** Exact where the factors have no more than 40 digits after the point together. */
export const multiply = (a: Decimal, b: Decimal): Decimal => (a * b) / ONE;

/** `a / b` for `a` of at least zero and `b` above it, rounded down to so many `digits` after the point. */
export function divideDown(a: Decimal, b: Decimal, digits: number): Decimal {
  const quotient = (a * ONE) / b;
  return quotient - (quotient % stepOf(digits));
}

/** The number has at most so many `digits` after the point that are not zero. */
export const fitsDigits = (value: Decimal, digits: number) => value % stepOf(digits) === 0n;

/** One unit of the last of so many `digits` after the point. */
export function stepOf(digits: number): Decimal {
  return 10n ** BigInt(DIGITS - Math.min(digits, DIGITS));
}
