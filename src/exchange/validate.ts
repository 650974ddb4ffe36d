import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { TSchema } from 'typebox';
import { didYouMean } from '../util/nearest.ts';
import { tidy } from '../util/redact.ts';
import { type Decoder, decodeError, decodePublicError } from './classify.ts';
import { ArgumentError } from './errors.ts';
import type { OperationName } from './operations.ts';
import { ARGUMENTS, REPLIES } from './schemas.ts';

const ajv = new Ajv({ strict: true, allErrors: false });
const compiled = new Map<TSchema, ValidateFunction>();

/** Compiles when first asked: a program uses few of the operations. */
function checkerOf(schema: TSchema): ValidateFunction {
  const check = compiled.get(schema) ?? ajv.compile(schema);
  compiled.set(schema, check);
  return check;
}

/** The first error, and of the branches of a union the one that got furthest. */
function firstError({ errors }: ValidateFunction): ErrorObject | undefined {
  return errors?.reduce((best, next) =>
    next.instancePath.length > best.instancePath.length && next.instancePath.startsWith(best.instancePath)
      ? next
      : best,
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function written(value: unknown): string {
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'number') return String(value);
  try {
    return JSON.stringify(value) ?? `a ${typeof value}`;
  } catch {
    return 'an object that cannot be written as JSON';
  }
}

/** `name is VALUE; allowed: ...` on one short line, or `name is missing; ...`. */
export function breach(name: string, value: unknown, allowed: string): ArgumentError {
  const found = tidy(value === undefined ? `${name} is missing` : `${name} is ${written(value)}`);
  const [argument = name] = name.split('[');
  return new ArgumentError(argument, `${found}; allowed: ${allowed}`);
}

/** The value at a path of ajv such as `/types/1`, with the name that people give the place: `types[1]`. */
function placeOf(given: unknown, { instancePath, keyword, params }: ErrorObject) {
  const missing = keyword === 'required' ? [String(params['missingProperty'])] : [];
  const steps = [...instancePath.split('/').slice(1), ...missing];
  const value = steps.reduce<unknown>((inside, step) => (inside as Record<string, unknown>)[step], given);
  const [argument = '', ...inner] = steps;
  return { argument, name: `${argument}${inner.map((step) => `[${step}]`).join('')}`, value };
}

/**
 * Holds a request against the schema of its operation and gives back a copy, so that what was checked is what is sent.
 * An argument of the value undefined counts as left out. Throws an ArgumentError for the first breach.
 */
export function checkArguments<Request>(operation: OperationName, given: Request): Request {
  const schema = ARGUMENTS[operation] as TSchema & {
    readonly properties: Readonly<Record<string, { readonly description: string }>>;
  };
  const names = Object.keys(schema.properties);
  if (!isObject(given)) throw breach('request', given, `an object with ${names.join(', ')}`);
  const entries = Object.entries(given).filter(([, value]) => value !== undefined);
  const copy = Object.fromEntries(
    entries.map(([name, value]) => [name, Array.isArray(value) ? [...value] : value]),
  );
  const unknown = Object.keys(copy).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    const sentence = `${operation} has no argument ${tidy(JSON.stringify(unknown))}`;
    const hint = didYouMean(unknown, names);
    throw new ArgumentError(unknown, `${sentence}; allowed: ${names.join(', ')}${hint}`);
  }
  const check = checkerOf(schema);
  if (check(copy)) return copy as Request;
  const error = firstError(check);
  if (error === undefined) throw breach('request', given, `an object with ${names.join(', ')}`);
  const { argument, name, value } = placeOf(copy, error);
  throw breach(name, value, schema.properties[argument]?.description ?? names.join(', '));
}

/** A copy of a body that the caller alone makes up. Throws an ArgumentError where it is no JSON object. */
export function checkBody(body: unknown): Readonly<Record<string, unknown>> {
  let copy: unknown;
  try {
    copy = JSON.parse(JSON.stringify(body) ?? 'null') as unknown;
  } catch {
    copy = null;
  }
  if (isObject(body) && isObject(copy)) return copy;
  throw breach('request', body, 'an object that can be written as JSON');
}

/** An access token as it is; the message never repeats it. */
export function checkAccessToken(token: unknown): string {
  if (typeof token === 'string' && /^[\x21-\x7e]+$/.test(token)) return token;
  const found =
    typeof token === 'string'
      ? `text of ${token.length} characters`
      : token === undefined
        ? 'missing'
        : `a ${typeof token}`;
  const allowed =
    'allowed: an OAuth 2.0 access token of visible ASCII characters, given to the client or the call';
  throw new ArgumentError('accessToken', `accessToken is ${found}; ${allowed}`);
}

/** Replies of which the document shows no fields: only that they are no error object can be held against them. */
const OPEN: readonly OperationName[] = ['orderHistory', 'withdrawPay'];

/**
 * Reads a reply by its schema: the value as it came, with fields that the document does not know; or the first thing in
 * it that does not fit.
 */
export function decoderOf<T>(operation: OperationName): Decoder<T> {
  const schema: TSchema & { readonly description?: string } = REPLIES[operation];
  const { description = 'a reply' } = schema;
  const check = checkerOf(schema);
  return (value) => {
    if (OPEN.includes(operation) && (decodeError(value) ?? decodePublicError(value)) !== null)
      return { ok: false, expected: 'no error with this status' };
    if (check(value)) return { ok: true, value: value as T };
    const error = firstError(check);
    const place = error?.instancePath.slice(1).replaceAll('/', '.') ?? '';
    const flaw =
      error === undefined || isUnion(schema) ? '' : ` (${place === '' ? 'it' : place} ${error.message})`;
    return { ok: false, expected: `${description}${flaw}` };
  };
}

/** Of a union ajv tells what each branch would have wanted, which its description says better. */
function isUnion(schema: TSchema): boolean {
  return 'anyOf' in schema;
}
