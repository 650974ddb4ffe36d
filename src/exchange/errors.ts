import type { FailureReason } from '../core/events.ts';
import { tidy } from '../util/text.ts';
import type { Order, StockMarketOrderRequest } from './schemas.ts';

export interface ApiErrorOptions {
  /** Whether the exchange could have carried the request out all the same; false where it is not given. */
  readonly maybeApplied?: boolean;
  /** HTTP status of the answer; left out or null where none came. */
  readonly status?: number | null | undefined;
  readonly cause?: unknown;
}

/** Every request that failed. The message is one line that holds no secret. */
export class ApiError extends Error {
  override readonly name: string = 'ApiError';
  readonly maybeApplied: boolean;
  /** HTTP status of the answer; null where none came. */
  readonly status: number | null;
  constructor(message: string, { maybeApplied = false, status, cause }: ApiErrorOptions = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.maybeApplied = maybeApplied;
    this.status = status ?? null;
  }
}

/** The codes that the API document names, for a `switch` over the `code` of a RefusedError. */
export const ERROR_CODES = {
  /** A required argument is missing, or one is not among the allowed. */
  validation: 30,
  /** The market is empty or not available. */
  market: 31,
  /** Not a number, below the minimum or off its step, or more than the balance. */
  amount: 32,
  clientOrderId: 36,
  /** `Incorrect timestamp`: the time range of a hashrate. */
  timeRange: 422,
} as const;

/**
 * The API refused what was asked (400, 412, 422): market not available, timeout too short, not enough balance,
 * malformed payload. Nothing was carried out. `code` tells them apart, see `ERROR_CODES`.
 */
export class RefusedError extends ApiError {
  override readonly name = 'RefusedError';
  readonly code: number;
  /** Messages by parameter name. */
  readonly fields: Readonly<Record<string, readonly string[]>>;
  constructor(message: string, code: number, fields: RefusedError['fields'], status: number | null = null) {
    super(message, { status });
    this.code = code;
    this.fields = fields;
  }
}

/** A public endpoint refused what was asked: `success` false. It has no code; `params` are as the exchange sent them. */
export class PublicRefusedError extends ApiError {
  override readonly name = 'PublicRefusedError';
  readonly params: readonly unknown[];
  constructor(message: string, params: readonly unknown[], status: number | null = null) {
    super(message, { status });
    this.params = params;
  }
}

/**
 * The key, its permissions or the access token were not accepted (401, 403). Repeating it can lock the key out. With
 * `maybeApplied` it was no error object of the API but a page, perhaps of a gateway behind which it was carried out.
 */
export class UnauthorisedError extends ApiError {
  override readonly name = 'UnauthorisedError';
  override readonly status: number;
  constructor(message: string, status: number, options: ApiErrorOptions = {}) {
    super(message, options);
    this.status = status;
  }
}

/** Nothing is at this address (404): an endpoint that this exchange does not offer, or not the address of one. */
export class NotFoundError extends ApiError {
  override readonly name = 'NotFoundError';
}

/** The nonce was not greater than one before, or too far from the exchange's clock. */
export class NonceError extends ApiError {
  override readonly name = 'NonceError';
}

/**
 * Too many requests: the gateway turned it away (429), or the documented limit left no room for it in time and it was
 * not sent (status null). With `maybeApplied` the 429 was a page, as with an UnauthorisedError.
 */
export class ThrottledError extends ApiError {
  override readonly name = 'ThrottledError';
}

/** The exchange answered 5xx: out of order or in maintenance (503). What became of the request is unknown. */
export class ServerError extends ApiError {
  override readonly name = 'ServerError';
}

/** The connection could not be opened or was lost (DNS, TLS, reset), or the request was withdrawn. */
export class NetworkError extends ApiError {
  override readonly name = 'NetworkError';
  readonly reason: FailureReason;
  constructor(message: string, reason: FailureReason, options?: ApiErrorOptions) {
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

export interface Lookup {
  readonly clientOrderId?: string | undefined;
  readonly uniqueId?: string | undefined;
}

function advice({ clientOrderId, uniqueId }: Lookup): string {
  const quoted = tidy(JSON.stringify(uniqueId ?? clientOrderId ?? null));
  if (uniqueId !== undefined) return `look for unique_id ${quoted} in the withdrawals`;
  if (clientOrderId !== undefined) return `look for client_order_id ${quoted}`;
  return 'it has no client_order_id to look for, compare the balance and the order history';
}

/**
 * An order or a withdrawal of which nobody knows whether it was carried out: it has been sent, and no answer said what
 * became of it. It was not repeated and must not be before it has been looked up. `cause` says what went wrong.
 */
export class UnknownOutcomeError extends ApiError {
  override readonly name = 'UnknownOutcomeError';
  override readonly cause: ApiError;
  readonly operation: string;
  readonly clientOrderId: string | null;
  readonly uniqueId: string | null;
  constructor(operation: string, lookup: Lookup, cause: ApiError) {
    const message = `${operation} may have been carried out: ${cause.message}; ${advice(lookup)} before trying again`;
    super(message, { maybeApplied: true, status: cause.status });
    this.cause = cause;
    this.operation = operation;
    this.clientOrderId = lookup.clientOrderId ?? null;
    this.uniqueId = lookup.uniqueId ?? null;
  }
}

const DONE: ReadonlyMap<string, string> = new Map(Object.entries({ buy: 'bought', sell: 'sold' }));

/** An amount of a reply as a message shows it: any other text could be a secret that the exchange repeats. */
const shown = (amount: string) => (isUnreadable(amount) ? '(unreadable)' : amount);
const isUnreadable = (amount: string) => !/^\d{1,30}(\.\d{1,30})?$/.test(amount);

/**
 * An order was carried out, but not as it was asked for: with the other side, with more than the amount, or with the
 * amount counted in the other currency. `order` is the exchange's reply. Nothing is undone.
 */
export class OrderMismatchError extends ApiError {
  override readonly name = 'OrderMismatchError';
  readonly order: Order;
  constructor(order: Order, asked: StockMarketOrderRequest) {
    const [base = '', quote = ''] = asked.market.split('_');
    const done = DONE.get(order.side) ?? 'carried out, on neither side,';
    const unit = asked.side === 'buy' && asked.amountIn === 'quote' ? quote : base;
    const other = unit === base ? quote : base;
    const deal = `${shown(order.deal_stock)} ${base} for ${shown(order.deal_money)} ${quote}`;
    const wish = `${asked.side === 'buy' ? 'to buy for' : 'to sell'} ${asked.amount} ${unit}`;
    const isOfUnits =
      order.side === asked.side && ![order.deal_stock, order.deal_money, order.left].some(isUnreadable);
    const why = isOfUnits ? `; the exchange seems to count this amount in ${other}` : '';
    super(`the exchange ${done} ${deal}, asked was ${wish}${why}`, { maybeApplied: true, status: 200 });
    this.order = order;
  }
}

/** The key, the secret or the access token could not be read. Nothing was sent. */
export class CredentialError extends ApiError {
  override readonly name = 'CredentialError';
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

/** Everything that a call of the client rejects with; `name` tells them apart. */
export type ClientError =
  | ArgumentError
  | CredentialError
  | NetworkError
  | NonceError
  | NotFoundError
  | OrderMismatchError
  | ProtocolError
  | PublicRefusedError
  | RefusedError
  | ServerError
  | ThrottledError
  | TimeoutError
  | UnauthorisedError
  | UnknownOutcomeError;

/** True for what a call of the client rejects with; a `switch` over its `name` then knows the fields of each. */
export function isClientError(error: unknown): error is ClientError {
  return error instanceof ApiError || error instanceof ArgumentError;
}
