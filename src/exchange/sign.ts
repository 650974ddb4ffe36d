import { createHmac } from 'node:crypto';

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
