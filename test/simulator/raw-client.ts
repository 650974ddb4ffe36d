import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';
import { encodePayload, signPayload } from '../../src/exchange/sign.ts';

export const KILL_SWITCH = '/api/v4/order/kill-switch';
export const PING = '/api/v4/public/ping';

export interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string | Buffer;
}

export interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

let lastNonce = 0;

/** A nonce greater than every one before, and never behind the clock: some requests come with a window. */
export function nextNonce(): string {
  lastNonce = Math.max(lastNonce + 1, Date.now());
  return String(lastNonce);
}

/** A request signed as the exchange wants it. `fields` win over `request` and `nonce`; undefined leaves one out. */
export function signed(
  fields: Readonly<Record<string, unknown>>,
  { key = 'demo-key', secret = 'demo-secret', path = KILL_SWITCH } = {},
): Sent {
  return signedText(JSON.stringify({ request: path, nonce: nextNonce(), ...fields }), { key, secret, path });
}

/** The same for a body that is already text. */
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

export const ping: Sent = { method: 'GET', path: PING, headers: {}, body: '' };

/** Sends one request on a connection of its own. Rejects with Node's error where the connection breaks. */
export function send(url: string, sent: Sent, signal?: AbortSignal): Promise<Received> {
  return new Promise((resolve, reject) => {
    const agent = new Agent({ keepAlive: false });
    const { method, path, headers, body } = sent;
    const length = { 'content-length': String(Buffer.byteLength(body)) };
    const options = { method, path, agent, headers: { ...length, ...headers }, ...(signal && { signal }) };
    const outgoing = request(url, options, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('error', reject);
      incoming.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: text });
      });
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
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

/** A JSON request to a control endpoint. */
export async function control(
  url: string,
  method: string,
  path: string,
  value?: unknown,
  headers: Record<string, string> = {},
): Promise<{ status: number; value: unknown }> {
  const json: Record<string, string> = value === undefined ? {} : { 'content-type': 'application/json' };
  const body = value === undefined ? '' : JSON.stringify(value);
  const received = await send(url, { method, path, headers: { ...json, ...headers }, body });
  return { status: received.status, value: JSON.parse(received.body) };
}
