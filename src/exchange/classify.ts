import { isDeepStrictEqual } from 'node:util';
import { type FailureReason, ORDER_TYPES, type Outcome, type ServerTimer } from '../core/events.ts';
import { isRecord, type Redact } from '../util/text.ts';
import type { KillSwitchArguments, Operation } from './operations.ts';
import type { WireFailure, WireHeaders, WireResponse, WireResult } from './wire.ts';

/** The last second of the year 9999: times in milliseconds or nanoseconds do not pass as Unix seconds. */
export const LAST_SECOND = 253_402_300_799;

// Written by hand: a few fields, and no message says which of them is wrong. The client checks replies by schema.

function isSecond(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= LAST_SECOND;
}

/** Skips a byte order mark. */
const UTF_8 = new TextDecoder();

/** The value of a JSON body, or undefined where it is not JSON. */
function parseBody(body: Buffer): unknown {
  try {
    return JSON.parse(UTF_8.decode(body)) as unknown;
  } catch {
    return undefined;
  }
}

/**
 * A kill-switch timer, or null where the value is none. Fields beyond the documented ones are left out. Whether its
 * times make sense is for the core to judge: the exchange's own example has both times equal.
 */
function decodeTimer(value: unknown): ServerTimer | null {
  if (!isRecord(value)) return null;
  const { market, startTime, cancellationTime, types } = value;
  if (typeof market !== 'string' || !isSecond(startTime) || !isSecond(cancellationTime)) return null;
  const isList = Array.isArray(types) && types.every((text) => typeof text === 'string');
  return types === null || isList ? { market, startTime, cancellationTime, types } : null;
}

/** Secrets are looked for in each message: in thousands that would hold up the renewals. */
const MOST_NAMED = 30;

/**
 * The error object of a private endpoint, or null where the value is none. `errors`, the messages by parameter name, may
 * be an object, `[]` or missing.
 */
export function decodeError(value: unknown) {
  if (!isRecord(value)) return null;
  const { code, message, errors } = value;
  if (!Number.isInteger(code) || typeof message !== 'string') return null;
  const named = typeof errors === 'object' && errors !== null ? Object.entries(errors) : [];
  const textsOf = (found: unknown) => [found].flat().filter((text) => typeof text === 'string');
  const fields: Fields = Object.fromEntries(
    named.slice(0, MOST_NAMED).map(([name, found]) => [name, textsOf(found).slice(0, MOST_NAMED)]),
  );
  return { code: code as number, message, fields };
}

export function decodePublicError(value: unknown): { message: string; params: unknown[] } | null {
  if (!isRecord(value)) return null;
  const { success, message, params } = value;
  return success === false && typeof message === 'string' && Array.isArray(params)
    ? { message, params }
    : null;
}

type Fields = Readonly<Record<string, readonly string[]>>;
type Success = Extract<Outcome, { kind: 'applied' } | { kind: 'deleted' }>;

/** An outcome without success, with what only a user of the client asks for. */
export type Failure = Exclude<Outcome, Success> & {
  readonly code?: number;
  readonly fields?: Fields;
  readonly cause?: unknown;
  /** HTTP status of the answer; null where none came. */
  readonly status?: number | null;
  readonly params?: readonly unknown[];
};

export type Verdict = Success | Failure;

/** What was asked of the exchange, to hold the answer against. */
type Asked = Pick<KillSwitchArguments, 'market' | 'timeoutSeconds'>;

/** The value of a header, the first one where it was repeated. */
export function firstHeader(headers: WireHeaders, name: string): string | null {
  const value = headers[name];
  return (typeof value === 'object' ? value[0] : value) ?? null;
}

/** One line about an answer: its status, and the message of the API's error object or what else its body is. */
function describeResponse({ status, headers, body }: WireResponse, value: unknown): string {
  const error = decodeError(value);
  const { message } = error ?? decodePublicError(value) ?? {};
  const type = firstHeader(headers, 'content-type') ?? 'no content type';
  const coding = firstHeader(headers, 'content-encoding');
  const form = coding === null ? type : `${type} in ${coding}`;
  if (message === undefined) return `HTTP ${status} with ${body.length} bytes of ${form}`;
  const named = Object.entries(error?.fields ?? {}).map(([name, texts]) => `${name}: ${texts.join(', ')}`);
  return `HTTP ${status}: ${named.length === 0 ? message : `${message} (${named.join('; ')})`}`;
}

function judgeSuccess(response: WireResponse, value: unknown, asked: Asked): Outcome {
  if (asked.timeoutSeconds === null && Array.isArray(value) && value.length === 0) return { kind: 'deleted' };
  const timer = decodeTimer(value);
  if (timer === null) {
    const wanted = asked.timeoutSeconds === null ? 'a timer or []' : 'a timer';
    return { kind: 'protocol', detail: `${describeResponse(response, value)}, expected ${wanted}` };
  }
  if (timer.market !== asked.market) {
    return { kind: 'protocol', detail: `a timer of market ${timer.market}, asked for ${asked.market}` };
  }
  return asked.timeoutSeconds === null ? { kind: 'deleted' } : { kind: 'applied', timer };
}

/** Validation and market: the same request will be refused again. */
const REFUSAL_CODES: readonly number[] = [30, 31];
/** With these statuses an error object is the API's, and nothing was carried out. 412: a second factor is missing. */
const REFUSAL_STATUSES: readonly number[] = [400, 412, 422];

/**
 * A 4xx other than 401, 403 and 429. Codes 30 and 31 are the API's refusal of what was asked. Its other error objects
 * say nothing about the next request. Any other 4xx may be a proxy's: nobody knows what became of the request behind it.
 */
function judgeRefusal(status: number, error: ReturnType<typeof decodeError>, detail: string): Failure {
  if (error === null) return { kind: 'transient', reason: 'parse', detail, maybeApplied: true };
  const { code, message, fields } = error;
  const isApi = REFUSAL_STATUSES.includes(status);
  // With nonceWindow a nonce too far from the exchange's clock comes as code 0, which has other meanings as well.
  if (isApi && code === 0 && /\bnonce\b/i.test(message)) return { kind: 'nonce', code, detail };
  if (isApi && REFUSAL_CODES.includes(code)) return { kind: 'refused', code, detail, fields };
  return { kind: 'transient', reason: 'validation', detail, maybeApplied: !isApi, code, fields };
}

/** True where the API itself has refused. A gateway may answer with a 5xx, or with any page. */
export function isRefusal({ status, body }: WireResponse): boolean {
  const value = parseBody(body);
  return status < 500 && (decodeError(value) !== null || decodePublicError(value) !== null);
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

const OF_LIMITS = /\b(rate|limit|limits|limited|throttled?|quota)\b/i;

/**
 * Is an answer with 429 about a stale nonce? The API tells of one with its error object and the words `Too many requests.`;
 * the gateway tells of a rate limit with a page. So an error object is about a limit only where it names one.
 */
function saysStaleNonce(value: unknown): boolean {
  if (!isRecord(value) || !('code' in value)) return false;
  const message = 'message' in value && typeof value.message === 'string' ? value.message : '';
  return /\bnonce\b/i.test(message) || !OF_LIMITS.test(message);
}

/**
 * What an answer without success says: by status first, then by body. With 401 and 403 only the API's own error object
 * says something about the key. Any other body is a gateway's, which may be well again in a moment: nobody knows what
 * became of the request behind it.
 */
function judgeStatus(status: number, value: unknown, detail: string): Failure {
  const error = decodeError(value);
  const unknown = { kind: 'transient', detail, maybeApplied: true } as const;
  if (status >= 500) return { ...unknown, reason: 'http_5xx' };
  if (status === 401 || status === 403)
    return error === null ? { ...unknown, reason: 'auth' } : { kind: 'unauthorised', status, detail };
  if (status === 429)
    return {
      kind: saysStaleNonce(value) ? 'nonce' : 'throttled',
      detail,
      ...(error && { code: error.code }),
    };
  return status >= 400 ? judgeRefusal(status, error, detail) : { kind: 'protocol', detail };
}

function judgeError(response: WireResponse, value: unknown): Failure {
  const { status, headers } = response;
  const target = status < 400 ? firstHeader(headers, 'location') : null;
  if (target !== null)
    return { kind: 'protocol', detail: `HTTP ${status} to ${target}, which is not followed` };
  return judgeStatus(status, value, describeResponse(response, value));
}

/** An answer that broke off or grew too large is judged by its status, as a whole one would be. */
function judgeFailed({ reason, detail, maybeApplied, status = 0, cause }: WireFailure): Failure {
  if (reason === 'parse') return { ...judgeStatus(status, undefined, detail), cause };
  return { kind: 'transient', reason, detail, maybeApplied, cause };
}

/** The failure with its HTTP status; every text of it has passed `redact`. */
function redacted(failure: Failure, { status }: WireResult, redact: Redact): Failure {
  const told = { status: status ?? null, ...failure, detail: redact(failure.detail) };
  if (failure.fields === undefined) return told;
  const named = Object.entries(failure.fields).map(([name, texts]) => [redact(name), texts.map(redact)]);
  return { ...told, fields: Object.fromEntries(named) };
}

/** Stands for all order types that the document does not name. */
const UNKNOWN_TYPE = '(unknown)';

/** The timer with known order types only: any other text may be a secret that the exchange repeats, or endless. */
function inKnownWords(timer: ServerTimer): ServerTimer {
  if (timer.types === null) return timer;
  const given = new Set(timer.types);
  const known: readonly string[] = ORDER_TYPES.filter((type) => given.has(type));
  return { ...timer, types: known.length === given.size ? known : [...known, UNKNOWN_TYPE] };
}

function judgeSync(result: WireResult, asked: Asked): Verdict {
  if (result.kind === 'failed') return judgeFailed(result);
  const value = parseBody(result.body);
  return isSuccess(result.status) ? judgeSuccess(result, value, asked) : judgeError(result, value);
}

/**
 * What became of a kill-switch request. By status first, then by body; the API's codes alone are ambiguous. Never throws,
 * whatever the bytes. Every text in the verdict has passed `redact`, or is a word of the document.
 */
export function classifySync(result: WireResult, asked: Asked, redact: Redact): Verdict {
  const verdict = judgeSync(result, asked);
  if (verdict.kind === 'deleted') return verdict;
  if (verdict.kind === 'applied') return { kind: 'applied', timer: inKnownWords(verdict.timer) };
  return redacted(verdict, result, redact);
}

type PingVerdict =
  | { readonly kind: 'answered' }
  | { readonly kind: 'failed'; readonly reason: FailureReason; readonly detail: string };

function reasonOfStatus(status: number): FailureReason {
  if (status >= 500) return 'http_5xx';
  if (status === 429) return 'rate_limited';
  return status === 401 || status === 403 ? 'auth' : 'parse';
}

/** What became of a ping: anything but 2xx with `["pong"]` is a failure. */
export function classifyPing(result: WireResult, redact: Redact): PingVerdict {
  const { kind } = result;
  if (kind === 'failed') return { kind, reason: result.reason, detail: redact(result.detail) };
  const value = parseBody(result.body);
  const succeeded = isSuccess(result.status);
  if (succeeded && isDeepStrictEqual(value, ['pong'])) return { kind: 'answered' };
  const detail = `${describeResponse(result, value)}${succeeded ? ', expected ["pong"]' : ''}`;
  return { kind: 'failed', reason: reasonOfStatus(result.status), detail: redact(detail) };
}

/**
 * Reads the JSON value of an answer with success; undefined where it was no JSON. Gives the reply, or what it should have
 * been instead. Never throws.
 */
export type Decoder<T> = (
  value: unknown,
) => { readonly ok: true; readonly value: T } | { readonly ok: false; readonly expected: string };

export type Reply<T> =
  | {
      readonly kind: 'answered';
      readonly value: T;
      /** Where the answer is a kill-switch timer, which shows the exchange's clock. */
      readonly timer?: ServerTimer;
    }
  | Failure;

type Judged = Pick<Operation, 'authentication' | 'effect'>;

/** The API's error object, of either shape, as a refusal after which nothing has changed; null where there is none. */
function refusalIn(value: unknown, detail: string): Failure | null {
  const refusal = { kind: 'transient', reason: 'validation', detail, maybeApplied: false } as const;
  const error = decodeError(value);
  if (error !== null) return { ...refusal, code: error.code, fields: error.fields };
  const publicError = decodePublicError(value);
  return publicError === null ? null : { ...refusal, params: publicError.params };
}

function judgeReply<T>(
  response: WireResponse,
  { authentication, effect }: Judged,
  read: Decoder<T>,
): Reply<T> {
  const { status } = response;
  const value = parseBody(response.body);
  const detail = describeResponse(response, value);
  if (isSuccess(status)) {
    const decoded = read(value);
    if (decoded.ok) return { kind: 'answered', value: decoded.value };
    // The document leaves open with which status the error of a time range comes. What changes something is not
    // believed to have failed while the status says that it was done.
    const refusal = effect === 'reads' ? refusalIn(value, detail) : null;
    return refusal ?? { kind: 'protocol', detail: `${detail}, expected ${decoded.expected}` };
  }
  const failure = judgeError(response, value);
  // Only a signed request has a nonce that can be stale.
  if (failure.kind === 'nonce' && authentication !== 'signed') return { kind: 'throttled', detail };
  const isPublicError = authentication === 'none' && decodeError(value) === null;
  return (isPublicError && REFUSAL_STATUSES.includes(status) ? refusalIn(value, detail) : null) ?? failure;
}

/**
 * What became of a request of the client: by status first, then by body. Never throws, whatever the bytes. Every text in
 * a refusal has passed `redact`; the value of an answer is as it came, and so are the `params` of a public endpoint's
 * error: its request held no secret.
 */
export function classifyReply<T>(
  result: WireResult,
  operation: Judged,
  read: Decoder<T>,
  redact: Redact,
): Reply<T> {
  const reply = result.kind === 'failed' ? judgeFailed(result) : judgeReply(result, operation, read);
  return reply.kind === 'answered' ? reply : redacted(reply, result, redact);
}

/** What became of a kill-switch request of the client. The value is null where the timer was deleted. */
export function classifyTimer(
  result: WireResult,
  asked: KillSwitchArguments,
  redact: Redact,
): Reply<ServerTimer | null> {
  const verdict = judgeSync(result, asked);
  if (verdict.kind === 'deleted') return { kind: 'answered', value: null };
  if (verdict.kind !== 'applied') return redacted(verdict, result, redact);
  return { kind: 'answered', value: verdict.timer, timer: verdict.timer };
}
