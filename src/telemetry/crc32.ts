/** The polynomial of CRC-32 (RFC 1952, section 8) without x^32, the highest power in the lowest bit. */
const POLYNOMIAL = 0xedb88320;
/** The polynomial 1. */
const ONE = 0x80000000;

/** The product of two polynomials modulo that of the CRC. */
function multiply(one: number, other: number): number {
  let product = 0;
  let shifted = other;
  for (let bit = ONE; bit !== 0; bit >>>= 1) {
    if ((one & bit) !== 0) product ^= shifted;
    shifted = (shifted & 1) === 0 ? shifted >>> 1 : (shifted >>> 1) ^ POLYNOMIAL;
  }
  return product >>> 0;
}

/** By n: x^(8 * 2^n), the shift by 2^n bytes. */
const SHIFTS: readonly number[] = shifts();

function shifts(): number[] {
  const list: number[] = [];
  // x^8; the square of a shift is the shift by twice as many bytes.
  for (let shift = ONE >>> 8; list.length < 31; shift = multiply(shift, shift)) list.push(shift);
  return list;
}

/**
 * The CRC-32 of two texts one after the other, of the CRC of each and the bytes of the second (below 2^31), as
 * `crc32_combine` of zlib 1.2.12 does it: the first is multiplied by x^(8 * bytes), the second is added.
 */
export function combineCrc32(first: number, second: number, secondBytes: number): number {
  let combined = first;
  for (let rest = secondBytes, bit = 0; rest > 0; rest >>>= 1, bit += 1) {
    if ((rest & 1) === 1) combined = multiply(SHIFTS[bit] ?? ONE, combined);
  }
  return (combined ^ second) >>> 0;
}
