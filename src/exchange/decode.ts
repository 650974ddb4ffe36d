import Type from 'typebox';
import Compile from 'typebox/compile';
import type { ServerTimer } from '../core/outcome.ts';

/** The last second of the year 9999: times in milliseconds or nanoseconds do not pass as Unix seconds. */
export const LAST_SECOND = 253_402_300_799;
export const Seconds = Type.Integer({ minimum: 0, maximum: LAST_SECOND });

const timerShape = Compile(
  Type.Object({
    market: Type.String(),
    startTime: Seconds,
    cancellationTime: Seconds,
    types: Type.Union([Type.Array(Type.String()), Type.Null()]),
  }),
);

const publicErrorShape = Compile(
  Type.Object({ success: Type.Literal(false), message: Type.String(), params: Type.Array(Type.Unknown()) }),
);

const errorShape = Compile(Type.Object({ code: Type.Integer(), message: Type.String() }));

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
  if (!timerShape.Check(value)) return null;
  const { market, startTime, cancellationTime, types } = value;
  return { market, startTime, cancellationTime, types };
}

/** The error object of a private endpoint, or null where the value is none. `errors` may be an object, `[]` or missing. */
export function decodeError(value: unknown): ApiErrorBody | null {
  if (!errorShape.Check(value)) return null;
  const errors: unknown = 'errors' in value ? value.errors : null;
  const named = typeof errors === 'object' && errors !== null ? Object.entries(errors) : [];
  const fields = named.map(([name, messages]: [string, unknown]): [string, string[]] => [
    name,
    (Array.isArray(messages) ? messages : [messages]).filter((text) => typeof text === 'string'),
  ]);
  return { code: value.code, message: value.message, fields: Object.fromEntries(fields) };
}

/** The error object of a public endpoint, or null where the value is none. */
export function decodePublicError(value: unknown): PublicErrorBody | null {
  return publicErrorShape.Check(value) ? { message: value.message, params: value.params } : null;
}

/** True for `["pong"]`, the answer of a ping. */
export function isPong(value: unknown): boolean {
  return Array.isArray(value) && value.length === 1 && value[0] === 'pong';
}
