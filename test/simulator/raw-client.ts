import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { encodePayload, signPayload } from '../../src/exchange/sign.ts';

export const KILL_SWITCH = '/api/v4/order/kill-switch';

export interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string | Buffer;
}

let lastNonce = 0;

/** A nonce greater than every one before, and never behind the clock: some requests come with a window. */
export function nextNonce(): string {
  lastNonce = Math.max(lastNonce + 1, Date.now());
  return String(lastNonce);
}

/** A request signed as the exchange wants it. `fields` win over `request` and `nonce`; undefined leaves one out. */
export function signed(fields: object, how: { key?: string; secret?: string; path?: string } = {}): Sent {
  const { path = KILL_SWITCH } = how;
  return signedText(JSON.stringify({ request: path, nonce: nextNonce(), ...fields }), how);
}

export function signedText(
  body: string,
  { key = 'demo-key', secret = 'demo-secret', path = KILL_SWITCH } = {},
): Sent {
  const payload = encodePayload(body);
  const headers = {
    'content-type': 'application/json',
    'x-txc-apikey': key,
    'x-txc-payload': payload,
    'x-txc-signature': signPayload(payload, secret),
  };
  return { method: 'POST', path, headers, body };
}

export const ping: Sent = { method: 'GET', path: '/api/v4/public/ping', headers: {}, body: '' };

/** Sends one request on a connection of its own. Rejects with Node's error where the connection breaks. */
export async function send(url: string, { headers, body, ...sent }: Sent, signal?: AbortSignal) {
  const length = { 'content-length': String(Buffer.byteLength(body)) };
  const own = { agent: false, headers: { ...length, ...headers }, ...(signal && { signal }) };
  const outgoing = request(url, { ...sent, ...own });
  outgoing.on('error', () => undefined);
  outgoing.end(body);
  const [incoming] = await once(outgoing, 'response');
  return { status: incoming.statusCode as number, headers: incoming.headers, body: await text(incoming) };
}

/** Sends bytes on a connection of its own. What comes back until the server closes it; `ends`: the client ends first. */
export function sendBytes(url: string, bytes: string, ends: boolean): Promise<string> {
  return new Promise((resolve) => {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname, () => (ends ? socket.end(bytes) : socket.write(bytes)));
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk.toString('utf8');
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(received));
  });
}

export async function control(url: string, method: string, path: string, value?: unknown, headers?: object) {
  const json = value === undefined ? {} : { 'content-type': 'application/json' };
  const body = value === undefined ? '' : JSON.stringify(value);
  const answer = await send(url, { method, path, headers: { ...json, ...headers }, body });
  return { status: answer.status, value: JSON.parse(answer.body) as unknown };
}
