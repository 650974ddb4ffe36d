import { gunzipSync, inflateRawSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { createRandom } from '../../src/simulator/random.ts';
import { deflatedPiece, gzipOf, plainPiece, textOf } from '../../src/telemetry/gzip.ts';

/** What stands before and behind the deflated blocks of a member. */
const [HEADER_BYTES, TRAILER_BYTES] = [10, 8];

/** Lines of about so many bytes, with letters that take several bytes. */
function lines(bytes: number, random: () => number): string {
  let text = '';
  while (text.length < bytes) text += `metric{market="Ö${Math.floor(random() * 1000)}_€"} ${random()}\n`;
  return text;
}

test.each([1, 2, 3, 4, 5, 6, 7, 8])(
  'pieces of any sort are one gzip member and one text (seed %i)',
  (seed) => {
    const random = createRandom(seed);
    const texts = Array.from({ length: 40 }, () => lines(random() < 0.2 ? 0 : 4 ** (random() * 9), random));
    const pieces = texts.map((text) => (random() < 0.5 ? plainPiece(text) : deflatedPiece(text)));
    const gzip = Buffer.concat([...gzipOf(pieces)]);
    expect(Buffer.concat([...textOf(pieces)]).toString()).toBe(texts.join(''));
    expect(gunzipSync(gzip).toString()).toBe(texts.join(''));
    // A decoder that stops at the end of the first member has read everything.
    const { engine } = inflateRawSync(gzip.subarray(HEADER_BYTES), { info: true }) as unknown as {
      engine: { bytesWritten: number };
    };
    expect(engine.bytesWritten).toBe(gzip.length - HEADER_BYTES - TRAILER_BYTES);
  },
);

test('no pieces are an empty text', () => {
  expect(gunzipSync(Buffer.concat([...gzipOf([])])).toString()).toBe('');
  expect([...textOf([])]).toEqual([]);
});

test('a piece that is kept holds on to its own bytes only', () => {
  const { bytes } = deflatedPiece(lines(64 * 1024, createRandom(1)));
  expect(bytes.buffer.byteLength).toBe(bytes.length);
});
