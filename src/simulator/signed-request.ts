import { isUtf8 } from 'node:buffer';
import { signPayload } from '../exchange/sign.ts';
import { isRecord } from '../util/text.ts';
import { type Profile, type Refusal, refuse } from './answer.ts';
import { type Call, createNonces, type ExchangeState, type Headers, type Permission } from './state.ts';

/** `account`: empty for public operations. */
export const accept = (account: string, body: Call['body']) => ({ kind: 'accepted' as const, account, body });

type RequestParts = { readonly headers: Headers; readonly body: Buffer };

export const UNAUTHORISED = refuse(401, 10, 'Unauthorized request.');
const INVALID_PAYLOAD = refuse(400, 9, 'Invalid payload.');

/** As the live exchange answers a key that may not do what it asks for. */
export const FORBIDDEN = refuse(403, 4, 'This API Key is not authorized to perform this action.');
const NO_CONTENT_TYPE = refuse(400, 9, 'Content-type must be application/json.');

/**
 * The checks that every signed operation begins with, in the order of the live exchange: headers, payload, key,
 * signature, `request`, permission, nonce. Messages are those of the live exchange; the API document has none.
 */
export function checkSignedRequest(
  request: RequestParts & { readonly path: string; readonly permission: Permission },
  state: ExchangeState,
  nowMs: number,
) {
  const { profile, checkSignatures, data } = state;
  const payload = headerOf(request.headers, 'x-txc-payload');
  const key = headerOf(request.headers, 'x-txc-apikey');
  const signature = headerOf(request.headers, 'x-txc-signature');
  if (payload === '') return refuse(400, 9, 'Payload not provided.');
  if (key === '') return refuse(400, 9, 'API key not provided.');
  if (signature === '') return refuse(400, 9, 'Signature not provided.');
  if (lacksContentType(request.headers, profile)) return NO_CONTENT_TYPE;
  const body = payloadOf(payload, request.body, profile);
  if (body === null) return INVALID_PAYLOAD;
  const known = data.keys.get(key);
  if (known === undefined) return UNAUTHORISED;
  if (checkSignatures && signature !== signPayload(payload, known.secret)) return UNAUTHORISED;
  const { request: named } = body;
  if (typeof named !== 'string' || named === '') return refuse(400, 9, 'Request not provided.');
  if (named !== request.path) return refuse(400, 9, 'Invalid request.');
  if (known.permissions?.includes(request.permission) === false) return FORBIDDEN;
  const staleness = judgeNonce(state, key, body, nowMs);
  return staleness ?? accept(known.account, body);
}

/** The API document asks for the header with every private request; libraries of the live exchange also go without. */
function lacksContentType(headers: Headers, profile: Profile): boolean {
  return profile !== 'live' && !/^application\/json *(;|$)/i.test(headerOf(headers, 'content-type'));
}

/**
 * The body that the payload stands for; null where it is none. The live exchange takes no white space in the payload, and
 * a body of other bytes: a library of its own sends the same JSON with white space and escaped slashes there.
 */
function payloadOf(payload: string, body: Buffer, profile: Profile): Call['body'] | null {
  if (profile === 'documented') return payload === body.toString('base64') ? objectIn(body) : null;
  const bytes = Buffer.from(payload, 'base64');
  const json = bytes.toString('utf8');
  const isItself = bytes.toString('base64') === payload && compact(json) === json;
  return isItself && unslashed(compact(body.toString('utf8'))) === unslashed(json) ? objectIn(bytes) : null;
}

/** The JSON object that a body holds; null where it holds none. */
export function objectIn(body: Buffer): Call['body'] | null {
  if (!isUtf8(body)) return null;
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}

const unslashed = (json: string) => json.replaceAll('\\/', '/');

/** The JSON without white space between tokens. Read as text: it may be nested deeper than the stack, or break off. */
function compact(json: string): string {
  return json.replace(/("(?:[^"\\]|\\.)*"?)|\s+/g, '$1');
}

function headerOf(headers: Headers, name: string): string {
  const value = headers[name];
  return typeof value === 'string' ? value : '';
}

/** The form of RFC 6750: the word in any case, one space or more, the token. */
const BEARER = /^bearer +([\w.~+/-]+=*)$/i;

/** A token stands for signature, nonce and `request`. The document shows no errors of it; these are of signed requests. */
export function checkBearerRequest({ headers, body: bytes }: RequestParts, state: ExchangeState) {
  const [, token = ''] = BEARER.exec(headerOf(headers, 'authorization')) ?? [];
  const known = state.tokens.get(token);
  if (known === undefined) return UNAUTHORISED;
  if (lacksContentType(headers, state.profile)) return NO_CONTENT_TYPE;
  const body = objectIn(bytes);
  return body === null ? INVALID_PAYLOAD : accept(known.account, body);
}

/** Nonces beside the exchange's clock further than this are refused in a nonce window (the live exchange: 5 s). */
const NONCE_WINDOW_MS = 5000;

/** Digits longer than this are no nonce: far more than nanoseconds since 1970 need. */
const MAX_DIGITS = 32;

/** The API document calls a nonce a unique request identifier: any text may be one, up to this length. */
const MAX_TEXT = 255;

/** So many texts are remembered per key; the oldest could then be used again. */
const TEXTS_KEPT = 100_000;

export const STALE = refuse(429, 0, 'Too many requests.');
const MISSING = refuse(400, 9, 'Nonce not provided.');

/**
 * The nonce rules of the live exchange, per API key. The document has less, a unique string: so the documented profile
 * refuses numbers, and takes text that is no digits once. Returns null and remembers the nonce where it is accepted.
 */
function judgeNonce(state: ExchangeState, key: string, body: Call['body'], nowMs: number): Refusal | null {
  const { nonce, nonceWindow: window } = body;
  const { profile } = state;
  const { nonces } = state.data;
  const problem = profile === 'documented' ? textProblem(nonce) : null;
  if (problem !== null) return problem;
  const own = nonces.get(key) ?? createNonces();
  nonces.set(key, own);
  const number = numberOf(nonce);
  if (number === null) {
    const isText = profile === 'documented' && typeof nonce === 'string' && window !== true;
    return isText ? judgeText(own.texts, nonce) : MISSING;
  }
  if (window !== undefined && typeof window !== 'boolean') return refuse(400, 9, 'Invalid nonceWindow.');
  if (window === true) return judgeInWindow(own.used, Number(number), nowMs);
  if (number <= own.lastAccepted) return STALE;
  own.lastAccepted = number;
  return null;
}

function textProblem(nonce: unknown): Refusal | null {
  if (nonce === undefined || nonce === null || nonce === '') return MISSING;
  if (typeof nonce !== 'string') return refuse(400, 9, 'Nonce must be a string.');
  if (nonce.length <= MAX_TEXT) return null;
  return refuse(400, 9, `Nonce may not be longer than ${MAX_TEXT} characters.`);
}

function judgeText(texts: Set<string>, nonce: string): Refusal | null {
  if (texts.has(nonce)) return STALE;
  texts.add(nonce);
  const [oldest = nonce] = texts;
  if (texts.size > TEXTS_KEPT) texts.delete(oldest);
  return null;
}

function judgeInWindow(used: Set<number>, nonce: number, nowMs: number): Refusal | null {
  const aheadMs = nonce - nowMs;
  if (Math.abs(aheadMs) > NONCE_WINDOW_MS) {
    const which = aheadMs < 0 ? 'lesser' : 'greater';
    return refuse(400, 0, `Your nonce is more than 5 seconds ${which} than the current nonce.`);
  }
  if (used.has(nonce)) return STALE;
  for (const old of used) {
    if (old >= nowMs - NONCE_WINDOW_MS) break;
    used.delete(old);
  }
  used.add(nonce);
  return null;
}

/** Null where a nonce is neither a string of digits nor a whole number. */
function numberOf(nonce: unknown): bigint | null {
  if (typeof nonce === 'number') return Number.isSafeInteger(nonce) && nonce >= 0 ? BigInt(nonce) : null;
  if (typeof nonce !== 'string' || nonce.length > MAX_DIGITS || !/^\d+$/.test(nonce)) return null;
  return BigInt(nonce);
}
