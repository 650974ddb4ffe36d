/** What an order type is called in the API document. */
export const ORDER_TYPES = ['spot', 'margin', 'futures'] as const;
export type OrderType = (typeof ORDER_TYPES)[number];

/** A timer as the exchange reports it. Times are whole Unix seconds of the exchange's clock. */
export interface ServerTimer {
  readonly market: string;
  readonly startTime: number;
  readonly cancellationTime: number;
  /** Null where the timer covers all order types. */
  readonly types: readonly string[] | null;
}

/** Why a request came to nothing, as a bounded set fit for a metric label. */
export const FAILURE_REASONS = [
  'timeout',
  'network',
  'dns',
  'tls',
  'http_5xx',
  'rate_limited',
  'nonce',
  'validation',
  'auth',
  'parse',
  'aborted',
] as const;
export type FailureReason = (typeof FAILURE_REASONS)[number];

/** What a ping of one base address came to. */
export interface Pinged {
  readonly kind: 'pinged';
  readonly base: number;
  readonly ok: boolean;
  readonly latencyMs: number;
  readonly reason: FailureReason | null;
  readonly detail: string;
}

/**
 * What became of one kill-switch request: the table "Failures" of the design, as data.
 *
 * `maybeApplied` is the question that belief turns on: could the exchange have carried the request out although no
 * good reply arrived? Only an answer of the API itself that refuses, or a failure before the first byte left, says no.
 */
export type Outcome =
  | { readonly kind: 'applied'; readonly timer: ServerTimer }
  | { readonly kind: 'deleted' }
  | { readonly kind: 'protocol'; readonly detail: string }
  | { readonly kind: 'nonce'; readonly detail: string }
  | { readonly kind: 'throttled'; readonly detail: string }
  | {
      readonly kind: 'transient';
      readonly reason: FailureReason;
      readonly detail: string;
      readonly maybeApplied: boolean;
    }
  | { readonly kind: 'refused'; readonly code: number; readonly detail: string }
  | { readonly kind: 'unauthorised'; readonly status: number; readonly detail: string };
