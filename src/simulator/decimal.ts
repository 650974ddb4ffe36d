/** A decimal number, exactly: `units` times ten to the power of minus `scale`. Money is never a binary fraction. */
export interface Decimal {
  readonly units: bigint;
  /** Digits after the point, 0 or more. */
  readonly scale: number;
}

export const ZERO: Decimal = { units: 0n, scale: 0 };

const PLAIN = /^-?\d+(\.\d+)?$/;
const SCIENTIFIC = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/;

/** Reads a plain decimal such as `0.5`; null for anything else, also for one with an exponent. */
export function parseDecimal(text: string): Decimal | null {
  if (!PLAIN.test(text)) return null;
  const point = text.indexOf('.');
  if (point === -1) return { units: BigInt(text), scale: 0 };
  return { units: BigInt(text.slice(0, point) + text.slice(point + 1)), scale: text.length - point - 1 };
}

/** The number as JavaScript writes it: 0.1 is a tenth. Null where it is not finite. */
export function decimalOfNumber(value: number): Decimal | null {
  const [, sign = '', first = '', rest = '', exponent] = SCIENTIFIC.exec(String(value)) ?? [];
  if (exponent === undefined) return parseDecimal(String(value));
  const places = Number(exponent);
  const digits = `${first}${rest}`;
  return places < 0
    ? parseDecimal(`${sign}0.${'0'.repeat(-places - 1)}${digits}`)
    : parseDecimal(`${sign}${digits.padEnd(places + 1, '0')}`);
}

/** Reads a decimal of the program's own or of a test's options. Throws a RangeError where it is none. */
export function decimal(text: string): Decimal {
  const value = parseDecimal(text);
  if (value === null) throw new RangeError(`found "${text}"; expected a decimal such as "0.5"`);
  return value;
}

/** The shortest plain form: no exponent, no zeros at the end. */
export function formatDecimal({ units, scale }: Decimal): string {
  const digits = (units < 0n ? -units : units).toString().padStart(scale + 1, '0');
  const whole = digits.slice(0, digits.length - scale);
  const fraction = digits.slice(digits.length - scale).replace(/0+$/, '');
  return `${units < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}

export function add(a: Decimal, b: Decimal): Decimal {
  const scale = Math.max(a.scale, b.scale);
  return { units: unitsAt(a, scale) + unitsAt(b, scale), scale };
}

export function subtract(a: Decimal, b: Decimal): Decimal {
  return add(a, { units: -b.units, scale: b.scale });
}

/** Exact: the product has as many digits after the point as its factors together. */
export function multiply(a: Decimal, b: Decimal): Decimal {
  return { units: a.units * b.units, scale: a.scale + b.scale };
}

/** Less than, equal to or greater than zero as `a` is less than, equal to or greater than `b`. */
export function compare(a: Decimal, b: Decimal): number {
  const { units } = subtract(a, b);
  return units === 0n ? 0 : units < 0n ? -1 : 1;
}

/** `a / b` for `a` of at least zero and `b` above it, rounded down to `scale` digits after the point. */
export function divideDown(a: Decimal, b: Decimal, scale: number): Decimal {
  return { units: (a.units * 10n ** BigInt(scale + b.scale)) / (b.units * 10n ** BigInt(a.scale)), scale };
}

/** The number has at most `scale` digits after the point that are not zero. */
export function fitsScale({ units, scale: own }: Decimal, scale: number): boolean {
  return own <= scale || units % 10n ** BigInt(own - scale) === 0n;
}

/** One unit of the last of `scale` digits after the point. */
export function stepOf(scale: number): Decimal {
  return { units: 1n, scale };
}

function unitsAt({ units, scale }: Decimal, wanted: number): bigint {
  return units * 10n ** BigInt(wanted - scale);
}
