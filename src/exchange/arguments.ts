import { ORDER_TYPES } from '../core/outcome.ts';
import { didYouMean } from '../util/nearest.ts';
import { tidy } from '../util/redact.ts';
import { LAST_SECOND } from './decode.ts';
import { ArgumentError } from './errors.ts';
import type { OperationName } from './operations.ts';
import { ADDRESS_TYPES, SELF_TRADE_MODES, SIDES, type WithdrawPayRequest } from './requests.ts';

/** What one argument of an operation may be. */
export interface ArgumentRule {
  readonly required: boolean;
  /** In words, for people. */
  readonly allowed: string;
  /** The place in the value that breaks the rule and what stands there, or null where the value keeps it. */
  readonly breach: (value: unknown, name: string) => string | null;
}

export type ArgumentRules = Readonly<Record<string, ArgumentRule>>;

function written(value: unknown): string {
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'number') return String(value);
  try {
    return JSON.stringify(value) ?? `a ${typeof value}`;
  } catch {
    return 'an object that cannot be written as JSON';
  }
}

/** `name is VALUE` on one short line, or `name is missing`. */
function found(name: string, value: unknown): string {
  return tidy(value === undefined ? `${name} is missing` : `${name} is ${written(value)}`);
}

function rule(allowed: string, fits: (value: unknown) => boolean, required = false): ArgumentRule {
  return { required, allowed, breach: (value, name) => (fits(value) ? null : found(name, value)) };
}

const required = (optional: ArgumentRule): ArgumentRule => ({ ...optional, required: true });

const matching = (allowed: string, pattern: RegExp): ArgumentRule =>
  rule(allowed, (value) => typeof value === 'string' && pattern.test(value));

const oneOf = (words: readonly string[], note = ''): ArgumentRule =>
  rule(`${words.join(', ')}${note}`, (value) => typeof value === 'string' && words.includes(value));

function wholeNumber(low: number, high: number, what = 'whole numbers'): ArgumentRule {
  const fits = (value: unknown) =>
    typeof value === 'number' && Number.isInteger(value) && value >= low && value <= high;
  return rule(`${what} ${low} to ${high}`, fits);
}

const text = matching('text that is not empty', /\S/);
const market = matching('BASE_QUOTE in capitals', /^[A-Z0-9]+_[A-Z0-9]+$/);
const ticker = matching('a currency ticker in capitals, such as BTC', /^[A-Z0-9]+$/);
const unixSeconds = wholeNumber(0, LAST_SECOND, 'Unix seconds, as whole numbers');

/** Numbers are taken where they print as decimals: `1e-7` and `1e+21` are no numeric strings to every exchange. */
const amount = rule(
  'a decimal number as text, such as "0.001"; or a number that prints without exponent',
  (value) => (typeof value === 'string' || typeof value === 'number') && /^\d+(\.\d+)?$/.test(String(value)),
  true,
);

const timeoutSeconds = rule(
  'whole seconds 5 to 600, or null to delete the timer',
  (value) =>
    value === null || (typeof value === 'number' && Number.isInteger(value) && value >= 5 && value <= 600),
  true,
);

const orderTypes: ArgumentRule = {
  required: false,
  allowed: `${ORDER_TYPES.join(', ')}; null for all`,
  breach(value, name) {
    if (value === null) return null;
    if (!Array.isArray(value) || value.length === 0) return found(name, value);
    const types: readonly unknown[] = value;
    const place = types.findIndex((type) => !ORDER_TYPES.some((known) => known === type));
    return place === -1 ? null : found(`${name}[${place}]`, types[place]);
  },
};

/** What each operation takes, in the order in which it is written. Order history takes any JSON object. */
export const ARGUMENTS = {
  createStockMarketOrder: {
    market: required(market),
    side: required(oneOf(SIDES)),
    amount,
    clientOrderId: matching('letters, digits, dashes, dots and underscores', /^[A-Za-z0-9._-]+$/),
    stp: oneOf(SELF_TRADE_MODES),
  },
  orderHistory: {},
  withdrawPay: {
    ticker: required(ticker),
    amount,
    address: required(text),
    uniqueId: required(text),
    provider: text,
    fiat: rule('true or false', (value) => typeof value === 'boolean'),
    network: text,
  },
  syncKillSwitch: { market: required(market), timeoutSeconds, types: orderTypes },
  myCodes: { limit: wholeNumber(1, 100), offset: wholeNumber(0, 10_000) },
  miningHashrate: {
    account: text,
    from: unixSeconds,
    to: unixSeconds,
    interval: matching('a number and a letter, such as 1h', /^[1-9]\d*[A-Za-z]$/),
  },
  createNewAddress: {
    ticker: required(ticker),
    network: text,
    type: oneOf(ADDRESS_TYPES, '; of BTC and LTC only'),
  },
  miningPool: {},
  ping: {},
} as const satisfies Record<OperationName, ArgumentRules>;

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function refuseUnknown(operation: string, name: string, names: readonly string[]): never {
  const shown = tidy(JSON.stringify(name));
  const hint = didYouMean(name, names);
  throw new ArgumentError(name, `${operation} has no argument ${shown}; allowed: ${names.join(', ')}${hint}`);
}

/**
 * Holds a request against the rules of its operation and gives back a copy, so that what was checked is what is sent.
 * An argument of the value undefined counts as left out. Throws an ArgumentError for the first breach.
 */
export function checkArguments<Request>(operation: OperationName, given: Request): Request {
  const rules: ArgumentRules = ARGUMENTS[operation];
  const names = Object.keys(rules);
  if (!isObject(given))
    throw new ArgumentError(
      'request',
      `${found('request', given)}; allowed: an object with ${names.join(', ')}`,
    );
  const copy: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    if (!Object.hasOwn(rules, name)) refuseUnknown(operation, name, names);
    copy[name] = Array.isArray(value) ? [...value] : value;
  }
  for (const [name, { required: needed, allowed, breach }] of Object.entries(rules)) {
    const value = copy[name];
    const breached = value === undefined && !needed ? null : breach(value, name);
    if (breached !== null) throw new ArgumentError(name, `${breached}; allowed: ${allowed}`);
  }
  // It has the request's own values, and each of them has passed.
  return copy as Request;
}

/** Currencies whose addresses come in types. */
const TYPED_ADDRESSES: readonly string[] = ['BTC', 'LTC'];

/** The rule that `type` is of BTC and LTC only. */
export function checkAddressType({
  ticker,
  type,
}: {
  readonly ticker: string;
  readonly type?: unknown;
}): void {
  if (type === undefined || TYPED_ADDRESSES.includes(ticker)) return;
  const allowed = `allowed: left out for ${ticker}; only ${TYPED_ADDRESSES.join(' and ')} have address types`;
  throw new ArgumentError('type', `${found('type', type)}; ${allowed}`);
}

/** The rule that a fiat currency needs a provider, where the caller says that it is one. */
export function checkProvider(given: Pick<WithdrawPayRequest, 'provider' | 'fiat'>): void {
  if (given.fiat !== true || given.provider !== undefined) return;
  const allowed = 'allowed: with fiat true a provider of the asset status';
  throw new ArgumentError('provider', `${found('provider', undefined)}; ${allowed}`);
}

/** The rule that a time range does not end before it begins. */
export function checkTimeRange({
  from,
  to,
}: {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}): void {
  if (from === undefined || to === undefined || from <= to) return;
  throw new ArgumentError('from', `from is ${from}, after to, which is ${to}; allowed: from not after to`);
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
  throw new ArgumentError(
    'request',
    `${found('request', body)}; allowed: an object that can be written as JSON`,
  );
}

/** An access token as it is; the message never repeats it. */
export function checkAccessToken(token: unknown): string {
  if (typeof token === 'string' && /^[\x21-\x7e]+$/.test(token)) return token;
  const what =
    token === undefined
      ? 'missing'
      : typeof token === 'string'
        ? `text of ${token.length} characters`
        : `a ${typeof token}`;
  const allowed =
    'allowed: an OAuth 2.0 access token of visible ASCII characters, given to the client or the call';
  throw new ArgumentError('accessToken', `accessToken is ${what}; ${allowed}`);
}
