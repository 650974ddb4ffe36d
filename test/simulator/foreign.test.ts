import { expect, test } from 'vitest';
import { encodePayload, signPayload } from '../../src/exchange/sign.ts';
import { runServer } from './both-profiles.ts';
import { RECORDED, type Recorded } from './foreign-requests.ts';
import { send } from './raw-client.ts';

const server = runServer({ exchange: { profile: 'live', newAddresses: true } });

let lastNonce = 0;

/** Sends it as it was recorded, but with a nonce and a signature of now, and in a connection of its own. */
async function replay({ path, headers, payload, body = payload }: Recorded) {
  // Some come with a window, so that it may not run ahead of the clock either.
  lastNonce = Math.max(lastNonce + 1, Date.now());
  const nonce = String(lastNonce);
  const encoded = encodePayload(payload.replace('NONCE', nonce));
  const received = await send(server().url, {
    method: 'POST',
    path,
    headers: {
      ...headers,
      connection: 'close',
      'x-txc-apikey': 'demo-key',
      'x-txc-payload': encoded,
      'x-txc-signature': signPayload(encoded, 'demo-secret'),
    },
    body: body.replace('NONCE', nonce),
  });
  return { status: received.status, value: JSON.parse(received.body) as unknown };
}

const TYPES: readonly unknown[] = [Number, String, Array];

/** The expectation of a recording, where a type stands for any value of it. */
function expected(reads: unknown): unknown {
  if (TYPES.includes(reads)) return expect.any(reads as NumberConstructor);
  if (Array.isArray(reads)) return reads.map(expected);
  if (typeof reads !== 'object' || reads === null) return reads;
  const inside = Object.entries(reads).map(([name, value]) => [name, expected(value)]);
  return expect.objectContaining(Object.fromEntries(inside));
}

test.each(RECORDED.map((one) => [`${one.library} ${one.does}`, one] as const))('%s', async (_name, one) => {
  const { status, value } = await replay(one);
  expect({ status, value }).toEqual({ status: one.status, value: expected(one.reads) });
});
