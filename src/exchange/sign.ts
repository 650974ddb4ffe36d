import { createHmac, hash } from 'node:crypto';

/** Base64 (standard alphabet, padded) of exactly the bytes of the body: the value of `X-TXC-PAYLOAD`. */
export function encodePayload(body: string): string {
  return Buffer.from(body, 'utf8').toString('base64');
}

/**
 * The value of `X-TXC-SIGNATURE`: lowercase hex HMAC-SHA512 over the base64 text. The key is the secret's UTF-8 bytes
 * as they are written, not decoded from hex or base64.
 */
export function signPayload(payload: string, secret: string): string {
  return createHmac('sha512', secret).update(payload).digest('hex');
}

/** What SHA-512 works on at a time, and what it makes. */
const BLOCK_BYTES = 128;
const DIGEST_BYTES = 64;
/** Grows with the payload; a renewal's has about 200 bytes. */
const PAYLOAD_BYTES = 512;

/**
 * `signPayload` for somebody who signs a thousand times a second with one secret: the same value in two hashes over
 * blocks that are prepared once. createHmac makes an object per signature that the collector must finalise.
 */
export function createSigner(): typeof signPayload {
  let prepared: string | null = null;
  let inner = Buffer.alloc(BLOCK_BYTES + PAYLOAD_BYTES);
  const outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES);

  function prepare(secret: string): void {
    const key = Buffer.from(secret, 'utf8');
    const block = Buffer.alloc(BLOCK_BYTES);
    block.set(key.length > BLOCK_BYTES ? hash('sha512', key, 'buffer') : key);
    for (const [at, byte] of block.entries()) {
      inner[at] = byte ^ 0x36;
      outer[at] = byte ^ 0x5c;
    }
    prepared = secret;
  }

  return (payload, secret) => {
    if (secret !== prepared) prepare(secret);
    if (inner.length < BLOCK_BYTES + payload.length) {
      inner = Buffer.concat([inner.subarray(0, BLOCK_BYTES), Buffer.alloc(payload.length)]);
    }
    // Base64 has no other characters.
    inner.write(payload, BLOCK_BYTES, 'latin1');
    const digest = hash('sha512', inner.subarray(0, BLOCK_BYTES + payload.length), 'buffer');
    outer.set(digest, BLOCK_BYTES);
    return hash('sha512', outer, 'hex');
  };
}
