import type { ServerTimer } from '../core/outcome.ts';

/** The last second of the year 9999: times in milliseconds or nanoseconds do not pass as Unix seconds. */
export const LAST_SECOND = 253_402_300_799;

// Written by hand: a schema compiler would be a third of what the daemon loads at its start, for these few fields.

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isSecond(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= LAST_SECOND;
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((text) => typeof text === 'string');
}

/** The error object of private endpoints. */
export interface ApiErrorBody {
  readonly code: number;
  readonly message: string;
  /** Messages by parameter name; empty where the exchange gave none. */
  readonly fields: Readonly<Record<string, readonly string[]>>;
}

/** The error object of public endpoints. */
export interface PublicErrorBody {
  readonly message: string;
  readonly params: readonly unknown[];
}

/** The value of a JSON body, or undefined where it is not JSON. */
export function parseBody(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}

/**
 * A kill-switch timer, or null where the value is none. Fields beyond the documented ones are left out. Whether its
 * times make sense is for the core to judge: the exchange's own example has both times equal.
 */
export function decodeTimer(value: unknown): ServerTimer | null {
  if (!isFields(value)) return null;
  const { market, startTime, cancellationTime, types } = value;
  if (typeof market !== 'string' || !isSecond(startTime) || !isSecond(cancellationTime)) return null;
  return types === null || isTexts(types) ? { market, startTime, cancellationTime, types } : null;
}

/** The error object of a private endpoint, or null where the value is none. `errors` may be an object, `[]` or missing. */
export function decodeError(value: unknown): ApiErrorBody | null {
  if (!isFields(value) || !Number.isInteger(value['code']) || typeof value['message'] !== 'string')
    return null;
  const { errors } = value;
  const named = typeof errors === 'object' && errors !== null ? Object.entries(errors) : [];
  const fields = named.map(([name, messages]: [string, unknown]): [string, string[]] => [
    name,
    (Array.isArray(messages) ? messages : [messages]).filter((text) => typeof text === 'string'),
  ]);
  return { code: value['code'] as number, message: value['message'], fields: Object.fromEntries(fields) };
}

/** The error object of a public endpoint, or null where the value is none. */
export function decodePublicError(value: unknown): PublicErrorBody | null {
  if (!isFields(value)) return null;
  const { success, message, params } = value;
  return success === false && typeof message === 'string' && Array.isArray(params)
    ? { message, params }
    : null;
}

/** True for `["pong"]`, the answer of a ping. */
export function isPong(value: unknown): boolean {
  return Array.isArray(value) && value.length === 1 && value[0] === 'pong';
}
