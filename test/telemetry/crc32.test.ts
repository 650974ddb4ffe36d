import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { createRandom } from '../../src/simulator/random.ts';
import { combineCrc32 } from '../../src/telemetry/crc32.ts';

test('the CRC of a text is that of its pieces, wherever it is cut', () => {
  const random = createRandom(5);
  for (let round = 0; round < 300; round += 1) {
    const bytes = randomBytes(Math.floor(random() * 3 ** (round % 11)));
    const at = Math.floor(random() * (bytes.length + 1));
    const [first, second] = [bytes.subarray(0, at), bytes.subarray(at)];
    expect(combineCrc32(crc32(first), crc32(second), second.length)).toBe(crc32(bytes));
  }
});

test('thirty megabytes after the cut are no other than thirty bytes', () => {
  const [first, second] = [Buffer.from('first'), Buffer.alloc(30_000_001, 'second')];
  expect(combineCrc32(crc32(first), crc32(second), second.length)).toBe(
    crc32(Buffer.concat([first, second])),
  );
});
