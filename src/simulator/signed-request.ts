import { isUtf8 } from 'node:buffer';
import { timingSafeEqual } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { signPayload } from '../exchange/sign.ts';
import { type Refusal, refuse } from './answer.ts';
import type { Profile } from './exchange-state.ts';
import type { NonceBook } from './nonce-book.ts';
import { FORBIDDEN, type Permission } from './permissions.ts';

/** A key that the exchange knows. Several keys may belong to one account and then share its timers and orders. */
export interface ApiKey {
  readonly key: string;
  readonly secret: string;
  readonly account: string;
  /** What it may be used for; default everything. */
  readonly permissions?: readonly Permission[];
}

/** Header names in lower case, as Node gives them. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface Accepted {
  readonly kind: 'accepted';
  readonly account: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface SignatureRules {
  readonly profile: Profile;
  readonly keys: ReadonlyMap<string, ApiKey>;
  readonly nonces: NonceBook;
  readonly checkSignatures: boolean;
}

export const UNAUTHORISED = refuse(401, 10, 'Unauthorized request.');
export const INVALID_PAYLOAD = refuse(400, 9, 'Invalid payload.');

const NO_CONTENT_TYPE = refuse(400, 9, 'Content-type must be application/json.');

/**
 * The checks that every signed operation begins with, in the order of the live exchange: headers, payload, key,
 * signature, `request`, permission, nonce. Messages are those of the live exchange; the API document has none.
 */
export function checkSignedRequest(
  request: {
    readonly path: string;
    /** What the key needs; null: any key will do. */
    readonly permission: Permission | null;
    readonly headers: Headers;
    readonly body: Buffer;
  },
  rules: SignatureRules,
  nowMs: number,
): Accepted | Refusal {
  const payload = headerOf(request.headers, 'x-txc-payload');
  const key = headerOf(request.headers, 'x-txc-apikey');
  const signature = headerOf(request.headers, 'x-txc-signature');
  if (payload === '') return refuse(400, 9, 'Payload not provided.');
  if (key === '') return refuse(400, 9, 'API key not provided.');
  if (signature === '') return refuse(400, 9, 'Signature not provided.');
  const untyped = checkContentType(request.headers, rules.profile);
  if (untyped !== null) return untyped;
  const body =
    rules.profile === 'live' ? payloadLive(payload, request.body) : payloadOf(payload, request.body);
  if (body === null) return INVALID_PAYLOAD;
  const known = rules.keys.get(key);
  if (known === undefined) return UNAUTHORISED;
  if (rules.checkSignatures && !isSame(signature, signPayload(payload, known.secret))) return UNAUTHORISED;
  const problem = checkRequestPath(body['request'], request.path);
  if (problem !== null) return problem;
  const { permission } = request;
  if (permission !== null && known.permissions?.includes(permission) === false) return FORBIDDEN;
  const staleness = rules.nonces.judge(key, body['nonce'], body['nonceWindow'], nowMs);
  return staleness ?? { kind: 'accepted', account: known.account, body };
}

/** The API document asks for the header with every private request; libraries of the live exchange also go without. */
export function checkContentType(headers: Headers, profile: Profile): Refusal | null {
  if (profile === 'live' || /^application\/json *(;|$)/i.test(headerOf(headers, 'content-type'))) return null;
  return NO_CONTENT_TYPE;
}

/** The API document: the payload is the Base64 encoding of the body. */
function payloadOf(payload: string, body: Buffer): Accepted['body'] | null {
  return payload === body.toString('base64') ? objectIn(body) : null;
}

/**
 * The live exchange takes no white space in the payload. The body need not have its bytes: a library of its own sends
 * the same JSON with white space there.
 */
function payloadLive(payload: string, body: Buffer): Accepted['body'] | null {
  const bytes = Buffer.from(payload, 'base64');
  if (bytes.toString('base64') !== payload) return null;
  const value = parseCompactObject(bytes);
  if (value === null || bytes.equals(body)) return value;
  return isDeepStrictEqual(value, objectIn(body)) ? value : null;
}

function checkRequestPath(request: unknown, path: string): Refusal | null {
  if (typeof request !== 'string' || request === '') return refuse(400, 9, 'Request not provided.');
  return request === path ? null : refuse(400, 9, 'Invalid request.');
}

/** The same, and null where there is white space between its tokens. */
function parseCompactObject(body: Buffer): Accepted['body'] | null {
  const value = objectIn(body);
  return value !== null && isCompact(body.toString('utf8')) ? value : null;
}

/** The JSON object that a body holds; null where it holds none. */
export function objectIn(body: Buffer): Accepted['body'] | null {
  if (!isUtf8(body)) return null;
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCompact(json: string): boolean {
  return !/\s/.test(json) || !/\s/.test(json.replace(/"(?:[^"\\]|\\.)*"/g, '""'));
}

function headerOf(headers: Headers, name: string): string {
  const value = headers[name];
  return typeof value === 'string' ? value : '';
}

function isSame(given: string, expected: string): boolean {
  const a = Buffer.from(given, 'utf8');
  const b = Buffer.from(expected, 'utf8');
  return a.length === b.length && timingSafeEqual(a, b);
}
