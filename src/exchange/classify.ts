import type { FailureReason, Outcome, ServerTimer } from '../core/outcome.ts';
import type { PingOutcome } from '../ports.ts';
import type { Redact } from '../util/redact.ts';
import {
  type ApiErrorBody,
  decodeError,
  decodePublicError,
  decodeTimer,
  isPong,
  parseBody,
} from './decode.ts';
import type { WireHeaders, WireResult } from './wire.ts';

/** An outcome with what only a library user asks for: the code, the messages by parameter, the error underneath. */
export type Verdict = Outcome & {
  readonly code?: number;
  readonly fields?: ApiErrorBody['fields'];
  readonly cause?: unknown;
};

/** A verdict that is no success. */
export type Rejection = Exclude<Verdict, { kind: 'applied' } | { kind: 'deleted' }>;

/** What was asked of the exchange, to hold the answer against. */
export interface Asked {
  readonly market: string;
  readonly timeoutSeconds: number | null;
}

export type Response = Extract<WireResult, { kind: 'response' }>;
type Failed = Extract<WireResult, { kind: 'failed' }>;

/** The value of a header, the first one where it was repeated. */
export function firstHeader(headers: WireHeaders, name: string): string | null {
  const value = headers[name];
  return (typeof value === 'object' ? value[0] : value) ?? null;
}

function describeError({ message, fields }: ApiErrorBody): string {
  const named = Object.entries(fields).map(([name, messages]) => `${name}: ${messages.join(', ')}`);
  return named.length === 0 ? message : `${message} (${named.join('; ')})`;
}

/** One line about an answer: its status, and the message of the API's error object or what else its body is. */
export function describeResponse(response: Response, value: unknown): string {
  const error = decodeError(value);
  if (error !== null) return `HTTP ${response.status}: ${describeError(error)}`;
  const publicError = decodePublicError(value);
  if (publicError !== null) return `HTTP ${response.status}: ${publicError.message}`;
  const type = firstHeader(response.headers, 'content-type') ?? 'no content type';
  return `HTTP ${response.status} with ${response.body.length} bytes of ${type}`;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function judgeSuccess(response: Response, value: unknown, asked: Asked): Outcome {
  if (asked.timeoutSeconds === null && Array.isArray(value) && value.length === 0) return { kind: 'deleted' };
  const timer: ServerTimer | null = decodeTimer(value);
  if (timer === null) {
    const wanted = asked.timeoutSeconds === null ? 'a timer or []' : 'a timer';
    return { kind: 'protocol', detail: `${describeResponse(response, value)}, expected ${wanted}` };
  }
  if (timer.market !== asked.market) {
    return { kind: 'protocol', detail: `a timer of market ${timer.market}, asked for ${asked.market}` };
  }
  return asked.timeoutSeconds === null ? { kind: 'deleted' } : { kind: 'applied', timer };
}

/** Validation and market: what the document says of a request that will be refused again. */
const LATCHING_CODES: readonly number[] = [30, 31];

/**
 * A 4xx other than 401, 403 and 429. Codes 30 and 31 with 400 or 422 are the API's refusal of what was asked. Other
 * error objects with these statuses were not carried out either, but say nothing that holds for the next request. Any
 * other 4xx may be a proxy's, and what became of the request behind it is unknown.
 */
function judgeRefusal(status: number, value: unknown, detail: string): Rejection {
  const error = decodeError(value);
  if (error === null) return { kind: 'transient', reason: 'parse', detail, maybeApplied: true };
  // With nonceWindow a nonce too far from the exchange's clock comes as code 0, which has other meanings as well.
  if ((status === 400 || status === 422) && error.code === 0 && /\bnonce\b/i.test(error.message))
    return { kind: 'nonce', detail };
  const isApi = status === 400 || status === 422;
  if (isApi && LATCHING_CODES.includes(error.code))
    return { kind: 'refused', code: error.code, detail, fields: error.fields };
  const { code, fields } = error;
  return { kind: 'transient', reason: 'validation', detail, maybeApplied: !isApi, code, fields };
}

/**
 * Of a 401 or 403: only the API's own error object says something about the key. Anything else is a gateway's, which
 * may be well again in a moment, and what became of the request behind it is unknown.
 */
function judgeUnauthorised(status: number, isApi: boolean, detail: string): Rejection {
  if (isApi) return { kind: 'unauthorised', status, detail };
  return { kind: 'transient', reason: 'auth', detail, maybeApplied: true };
}

/** True for the statuses that say the request was carried out. */
export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

const OF_LIMITS = /\b(rate|limit|limits|limited|throttled?|quota)\b/i;

/**
 * Of an answer with 429: a stale nonce comes from the API with its error object, and a real rate limit from the gateway
 * with a page. The words of the error object for a nonce are `Too many requests.`, so only an error object that speaks
 * of a limit is one.
 */
function saysStaleNonce(value: unknown): boolean {
  if (!isObject(value) || !('code' in value)) return false;
  const message = 'message' in value && typeof value.message === 'string' ? value.message : '';
  return /\bnonce\b/i.test(message) || !OF_LIMITS.test(message);
}

/** What an answer without success says: by status first, then by body. */
export function judgeRejection(response: Response, value: unknown): Rejection {
  const { status } = response;
  const detail = describeResponse(response, value);
  if (status >= 500) return { kind: 'transient', reason: 'http_5xx', detail, maybeApplied: true };
  if (status === 401 || status === 403) return judgeUnauthorised(status, decodeError(value) !== null, detail);
  if (status === 429) return { kind: saysStaleNonce(value) ? 'nonce' : 'throttled', detail };
  if (status >= 400) return judgeRefusal(status, value, detail);
  const target = firstHeader(response.headers, 'location');
  return {
    kind: 'protocol',
    detail: target === null ? detail : `HTTP ${status} to ${target}, which is not followed`,
  };
}

function judgeResponse(response: Response, asked: Asked): Verdict {
  const value = parseBody(response.body);
  return isSuccess(response.status) ? judgeSuccess(response, value, asked) : judgeRejection(response, value);
}

/** An answer that broke off or grew too large is judged by its status, as a whole one would be. */
export function judgeFailed({ reason, detail, maybeApplied, status, cause }: Failed): Rejection {
  if (reason === 'parse') {
    if (status !== undefined && status >= 500)
      return { kind: 'transient', reason: 'http_5xx', detail, maybeApplied, cause };
    if (status === 401 || status === 403) return judgeUnauthorised(status, false, detail);
    if (status === 429) return { kind: 'throttled', detail };
    if (status === undefined || status < 400) return { kind: 'protocol', detail, cause };
  }
  return { kind: 'transient', reason, detail, maybeApplied, cause };
}

/** The rejection with every text in it redacted. */
export function redacted(verdict: Rejection, redact: Redact): Rejection {
  const detail = redact(verdict.detail);
  if (verdict.fields === undefined) return { ...verdict, detail };
  const fields = Object.entries(verdict.fields).map(([name, messages]): [string, string[]] => [
    redact(name),
    messages.map(redact),
  ]);
  return { ...verdict, detail, fields: Object.fromEntries(fields) };
}

/**
 * What became of a kill-switch request: the table "Failures" of the design. By status first, then by body; the API's
 * codes alone are ambiguous. Never throws, whatever the bytes. Every text in the verdict has passed `redact`.
 */
export function classifySync(result: WireResult, asked: Asked, redact: Redact): Verdict {
  const verdict = result.kind === 'failed' ? judgeFailed(result) : judgeResponse(result, asked);
  return verdict.kind === 'applied' || verdict.kind === 'deleted' ? verdict : redacted(verdict, redact);
}

type PingVerdict = { readonly ok: true } | Omit<Extract<PingOutcome, { ok: false }>, 'latencyMs'>;

function reasonOfStatus(status: number): FailureReason {
  if (status >= 500) return 'http_5xx';
  if (status === 429) return 'rate_limited';
  return status === 401 || status === 403 ? 'auth' : 'parse';
}

/** What became of a ping: anything but 2xx with `["pong"]` is a failure. */
export function classifyPing(result: WireResult, redact: Redact): PingVerdict {
  if (result.kind === 'failed') return { ok: false, reason: result.reason, detail: redact(result.detail) };
  const value = parseBody(result.body);
  const succeeded = isSuccess(result.status);
  if (succeeded && isPong(value)) return { ok: true };
  const detail = `${describeResponse(result, value)}${succeeded ? ', expected ["pong"]' : ''}`;
  return { ok: false, reason: reasonOfStatus(result.status), detail: redact(detail) };
}
