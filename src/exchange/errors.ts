import type { FailureReason, Outcome } from '../core/outcome.ts';
import type { Verdict } from './classify.ts';

/** An outcome that is not a success. */
export type Failure = Exclude<Outcome, { kind: 'applied' } | { kind: 'deleted' }>;

export interface ApiErrorOptions {
  /** Whether the exchange could have carried the request out all the same. */
  readonly maybeApplied: boolean;
  readonly cause?: unknown;
}

/** Every request that failed. The message is one line that holds no secret. */
export class ApiError extends Error {
  override readonly name: string = 'ApiError';
  readonly maybeApplied: boolean;
  constructor(message: string, { maybeApplied, cause }: ApiErrorOptions) {
    super(message, cause === undefined ? undefined : { cause });
    this.maybeApplied = maybeApplied;
  }
}

/** The API refused what was asked (400, 422): market not available, timeout too short, malformed payload. */
export class RefusedError extends ApiError {
  override readonly name = 'RefusedError';
  readonly code: number;
  /** Messages by parameter name. */
  readonly fields: Readonly<Record<string, readonly string[]>>;
  constructor(message: string, code: number, fields: RefusedError['fields']) {
    super(message, { maybeApplied: false });
    this.code = code;
    this.fields = fields;
  }
}

/** The key or its permissions were not accepted (401, 403). Repeating it can lock the key out. */
export class UnauthorisedError extends ApiError {
  override readonly name = 'UnauthorisedError';
  readonly status: number;
  constructor(message: string, status: number) {
    super(message, { maybeApplied: false });
    this.status = status;
  }
}

/** The nonce was not greater than one before, or too far from the exchange's clock. */
export class NonceError extends ApiError {
  override readonly name = 'NonceError';
  constructor(message: string) {
    super(message, { maybeApplied: false });
  }
}

/** The gateway turned the request away (429): too many requests. */
export class ThrottledError extends ApiError {
  override readonly name = 'ThrottledError';
  constructor(message: string) {
    super(message, { maybeApplied: false });
  }
}

/** The exchange answered 5xx: out of order or in maintenance. What became of the request is unknown. */
export class ServerError extends ApiError {
  override readonly name = 'ServerError';
}

/** The connection could not be opened or was lost (DNS, TLS, reset), or the request was withdrawn. */
export class NetworkError extends ApiError {
  override readonly name = 'NetworkError';
  readonly reason: FailureReason;
  constructor(message: string, reason: FailureReason, options: ApiErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** No answer in the time allowed. */
export class TimeoutError extends ApiError {
  override readonly name = 'TimeoutError';
}

/** An answer that is not the API's: cut short, too large, not JSON, of another market, a redirect. */
export class ProtocolError extends ApiError {
  override readonly name = 'ProtocolError';
}

/** An argument that the API document does not allow; nothing was sent. */
export class ArgumentError extends Error {
  override readonly name = 'ArgumentError';
  readonly argument: string;
  constructor(argument: string, message: string) {
    super(message);
    this.argument = argument;
  }
}

/** The error of a failure that is told by its reason: what came of a request whose outcome may be unknown, or a ping. */
export function errorOfReason(reason: FailureReason, message: string, options: ApiErrorOptions): ApiError {
  switch (reason) {
    case 'timeout':
      return new TimeoutError(message, options);
    case 'http_5xx':
      return new ServerError(message, options);
    case 'parse':
      return new ProtocolError(message, options);
    case 'rate_limited':
      return new ThrottledError(message);
    case 'nonce':
      return new NonceError(message);
    case 'validation':
    case 'auth':
      return new ApiError(message, options);
    case 'network':
    case 'dns':
    case 'tls':
    case 'aborted':
      return new NetworkError(message, reason, options);
  }
}

/** The error class of a failed outcome, by the table "Failures" of the design. */
export function toError(failure: Failure & Pick<Verdict, 'fields' | 'cause'>): ApiError {
  const { detail, cause } = failure;
  switch (failure.kind) {
    case 'protocol':
      return new ProtocolError(detail, { maybeApplied: true, cause });
    case 'nonce':
      return new NonceError(detail);
    case 'throttled':
      return new ThrottledError(detail);
    case 'refused':
      return new RefusedError(detail, failure.code, failure.fields ?? {});
    case 'unauthorised':
      return new UnauthorisedError(detail, failure.status);
    case 'transient':
      return errorOfReason(failure.reason, detail, { maybeApplied: failure.maybeApplied, cause });
  }
}
