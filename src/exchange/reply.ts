import type { ServerTimer } from '../core/outcome.ts';
import type { Redact } from '../util/redact.ts';
import {
  classifySync,
  describeResponse,
  isSuccess,
  judgeFailed,
  judgeRejection,
  type Rejection,
  type Response,
  redacted,
} from './classify.ts';
import { decodeError, decodePublicError, parseBody } from './decode.ts';
import { type KillSwitchArguments, type Operation, syncKillSwitch } from './operations.ts';
import type { Decoder } from './replies.ts';
import type { WireResult } from './wire.ts';

/** A rejection with what the error of the client tells of the answer. */
export type Refusal = Rejection & {
  /** HTTP status of the answer; null where none came. */
  readonly status?: number | null;
  /** `params` of the error object of a public endpoint. */
  readonly params?: readonly unknown[];
  /** True where the request could only read: whether it was carried out is all the same. */
  readonly harmless?: boolean;
};

/** What became of one request of the client. */
export type Reply<T> =
  | {
      readonly kind: 'answered';
      readonly value: T;
      /** Where the answer is a kill-switch timer, which shows the exchange's clock. */
      readonly timer?: ServerTimer;
    }
  | Refusal;

type Judged = Pick<Operation<never>, 'authentication' | 'effect'>;

/** Precondition failed: with an error object of the API a second factor is missing, and nothing was carried out. */
const PRECONDITION_FAILED = 412;

/** The API's error object, of either shape, as a refusal after which nothing has changed; null where there is none. */
function refusalIn(value: unknown, detail: string): Refusal | null {
  const refusal = { kind: 'transient', reason: 'validation', detail, maybeApplied: false } as const;
  const error = decodeError(value);
  if (error !== null) return { ...refusal, code: error.code, fields: error.fields };
  const publicError = decodePublicError(value);
  return publicError === null ? null : { ...refusal, params: publicError.params };
}

function judgeReply<T>(response: Response, { authentication, effect }: Judged, read: Decoder<T>): Reply<T> {
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
  const rejection = judgeRejection(response, value);
  // Only a signed request has a nonce that can be stale.
  if (rejection.kind === 'nonce' && authentication !== 'signed') return { kind: 'throttled', detail };
  const isPublicError = authentication === 'none' && decodeError(value) === null;
  return (isPublicError && (status === 400 || status === 422) ? refusalIn(value, detail) : null) ?? rejection;
}

function refusalOf(rejection: Refusal, result: WireResult, { effect }: Judged): Refusal {
  if (rejection.kind === 'unauthorised') return rejection;
  const { status = null } = result;
  const harmless = effect === 'reads';
  const lacksFactor = status === PRECONDITION_FAILED && rejection.code !== undefined;
  return rejection.kind === 'transient' && lacksFactor
    ? { ...rejection, maybeApplied: false, status, harmless }
    : { ...rejection, status, harmless };
}

/**
 * What became of a request of the client, by the table "Failures" of the design: by status first, then by body. Never
 * throws, whatever the bytes. Every text in a refusal has passed `redact`; the value of an answer is as it came, and so
 * are the `params` of a public endpoint's error: its request held no secret.
 */
export function classifyReply<T>(
  result: WireResult,
  operation: Judged,
  read: Decoder<T>,
  redact: Redact,
): Reply<T> {
  const reply: Reply<T> =
    result.kind === 'failed' ? judgeFailed(result) : judgeReply(result, operation, read);
  if (reply.kind === 'answered') return reply;
  const { params } = reply;
  const refusal: Refusal = redacted(reply, redact);
  return refusalOf(params === undefined ? refusal : { ...refusal, params }, result, operation);
}

/** What became of a kill-switch request of the client. The value is null where the timer was deleted. */
export function classifyTimer(
  result: WireResult,
  asked: KillSwitchArguments,
  redact: Redact,
): Reply<ServerTimer | null> {
  const verdict = classifySync(result, asked, redact);
  if (verdict.kind === 'deleted') return { kind: 'answered', value: null };
  if (verdict.kind !== 'applied') return refusalOf(verdict, result, syncKillSwitch);
  return { kind: 'answered', value: verdict.timer, timer: verdict.timer };
}
