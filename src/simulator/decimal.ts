/** A decimal number, exactly: so many units of 1e-40. Money is never a binary fraction. */
export type Decimal = bigint;

const DIGITS = 40;
const ONE = stepOf(0);
const FORM = /^-?\d+(\.\d+)?$/;
const SCIENTIFIC = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/;

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

/** Reads what a client wrote as text or as a finite number, as JavaScript writes it; null for anything else. */
export function readDecimal(value: unknown): Decimal | null {
  if (typeof value === 'string') return parseDecimal(value);
  if (typeof value !== 'number') return null;
  const [, sign = '', first = '', rest = '', exponent] = SCIENTIFIC.exec(String(value)) ?? [];
  if (exponent === undefined) return parseDecimal(String(value));
  const places = Number(exponent);
  const digits = `${first}${rest}`;
  const small = `0.${'0'.repeat(Math.max(0, -places - 1))}${digits}`;
  return parseDecimal(`${sign}${places < 0 ? small : digits.padEnd(places + 1, '0')}`);
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
