import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { TSchema } from 'typebox';
import { didYouMean, nearestMarket, suggest } from '../util/nearest.ts';
import { describeValue, isRecord, tidy } from '../util/text.ts';
import { type Decoder, decodeError, decodePublicError } from './classify.ts';
import { ArgumentError, OrderMismatchError } from './errors.ts';
import type { OperationName } from './operations.ts';
import {
  AMOUNT_UNITS,
  type AmountUnit,
  ARGUMENTS,
  type HashrateRequest,
  type NewAddressRequest,
  type Order,
  REPLIES,
  type Reply,
  type StockMarketOrderRequest,
  type WithdrawPayRequest,
} from './schemas.ts';
import { secretFlaw } from './sign.ts';

const TYPED_ADDRESSES: readonly string[] = ['BTC', 'LTC'];

/** What holds between several arguments of an operation. Each throws an ArgumentError where it does not. */
const RULES: Partial<Record<OperationName, (given: never) => void>> = {
  /**
   * A buy names the unit of its amount: the request has no field for it, and the API document and the live exchange
   * count in different ones. A sell is counted in the base currency by both.
   */
  createStockMarketOrder({ side, amountIn }: StockMarketOrderRequest) {
    const units = `${AMOUNT_UNITS.join(', ')}: what the exchange counts a buy's amount in`;
    if (side === 'buy' && amountIn === undefined) throw breach('amountIn', undefined, units);
    if (side === 'sell' && (amountIn as AmountUnit | undefined) === 'quote')
      throw breach('amountIn', amountIn, 'base: a sell is counted in the base currency');
  },
  withdrawPay({ fiat, provider }: WithdrawPayRequest) {
    if (fiat === true && provider === undefined)
      throw breach('provider', undefined, 'with fiat true a provider of the asset status');
  },
  miningHashrate({ from, to }: HashrateRequest) {
    if (from !== undefined && to !== undefined && from > to)
      throw breach('from', from, `from not after to, which is ${to}`);
  },
  createNewAddress({ ticker, type }: NewAddressRequest) {
    const only = `only ${TYPED_ADDRESSES.join(' and ')} have address types`;
    if (type !== undefined && !TYPED_ADDRESSES.includes(ticker))
      throw breach('type', type, `left out for ${ticker}; ${only}`);
  },
};

/** Keeps what it has compiled. That is done when first asked: a program uses few of the operations. */
const ajv = new Ajv({ strict: true, allErrors: false });

/** The first error of a check that has failed; in a union, that of the branch that got furthest. */
function firstError({ errors }: ValidateFunction): ErrorObject {
  return (errors ?? []).reduce((best, next) =>
    next.instancePath.length > best.instancePath.length && next.instancePath.startsWith(best.instancePath)
      ? next
      : best,
  );
}

/** `name is VALUE; allowed: ...` on one short line, or `name is missing; ...`. */
export function breach(name: string, value: unknown, allowed: string): ArgumentError {
  const found = tidy(value === undefined ? `${name} is missing` : `${name} is ${describeValue(value)}`);
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

/** `; did you mean X?` where a text was probably meant to be one that is allowed, or an empty text. */
function hintFor(argument: string, value: unknown, { params }: ErrorObject): string {
  if (typeof value !== 'string') return '';
  if (argument === 'market') return suggest(nearestMarket(value));
  const { allowedValues = [] }: { readonly allowedValues?: readonly string[] } = params;
  return didYouMean(value, allowedValues);
}

/** Throws an ArgumentError where `given`, which `asked` names, is no object or has a value under another name than these. */
export function checkNames(of: string, asked: string, given: unknown, names: readonly string[]): void {
  if (!isRecord(given)) throw breach(asked, given, `an object with ${names.join(', ')}`);
  const unknown = Object.keys(given).find((name) => given[name] !== undefined && !names.includes(name));
  if (unknown === undefined) return;
  const sentence = `${of} has no argument ${tidy(JSON.stringify(unknown))}`;
  throw new ArgumentError(unknown, `${sentence}; allowed: ${names.join(', ')}${didYouMean(unknown, names)}`);
}

export interface Shape extends TSchema {
  readonly properties: Readonly<Record<string, TSchema & { readonly description?: string }>>;
}

/**
 * Holds an object against a schema whose properties say in their description what is allowed, and gives back a copy. A
 * property of the value undefined counts as left out. Throws an ArgumentError for the first breach.
 */
export function checkShape(of: string, asked: string, given: unknown, schema: Shape) {
  const names = Object.keys(schema.properties);
  checkNames(of, asked, given, names);
  const entries = Object.entries(given as object).filter(([, value]) => value !== undefined);
  const own = entries.map(([name, value]) => [name, Array.isArray(value) ? [...value] : value]);
  const copy: Record<string, unknown> = Object.fromEntries(own);
  const check = ajv.compile(schema);
  if (check(copy)) return copy;
  const error = firstError(check);
  const { argument, name, value } = placeOf(copy, error);
  const { description = names.join(', ') } = schema.properties[argument] ?? {};
  throw breach(name, value, `${description}${hintFor(argument, value, error)}`);
}

/** Holds a request against what its operation takes and gives back a copy, so that what was checked is what is sent. */
export function checkArguments<Request>(operation: OperationName, given: Request): Request {
  const copy = checkShape(operation, 'request', given, ARGUMENTS[operation] as TSchema as Shape);
  RULES[operation]?.(copy as never);
  return copy as Request;
}

/** A copy of a body that the caller alone makes up. Throws an ArgumentError where it is no JSON object. */
export function checkBody(body: unknown): Readonly<Record<string, unknown>> {
  let copy: unknown;
  try {
    copy = JSON.parse(JSON.stringify(body) ?? 'null') as unknown;
  } catch {
    copy = null;
  }
  if (isRecord(body) && isRecord(copy)) return copy;
  throw breach('request', body, 'an object that can be written as JSON');
}

const TOKENS = 'an OAuth 2.0 access token of visible ASCII characters, given to the client or the call';

/** An access token as it is; the message never repeats it. */
export function checkAccessToken(token: unknown): string {
  const flaw = secretFlaw(token);
  if (flaw === null) return token as string;
  throw new ArgumentError('accessToken', `accessToken is ${flaw}; allowed: ${TOKENS}`);
}

/** Replies of which the document shows no fields: only that they are no error object can be held against them. */
const OPEN: readonly OperationName[] = ['orderHistory', 'withdrawPay'];

/**
 * Reads a reply by its schema: the value as it came, with fields that the document does not know; or the first thing in
 * it that does not fit.
 */
export function decoderOf<Name extends OperationName>(operation: Name): Decoder<Reply<Name>> {
  const schema: TSchema & { readonly description?: string } = REPLIES[operation];
  const { description = 'a reply' } = schema;
  const check = ajv.compile(schema);
  return (value) => {
    if (OPEN.includes(operation) && (decodeError(value) ?? decodePublicError(value)) !== null)
      return { ok: false, expected: 'no error with this status' };
    if (check(value)) return { ok: true, value: value as Reply<Name> };
    const { instancePath, message } = firstError(check);
    const place = instancePath === '' ? 'it' : instancePath.slice(1).replaceAll('/', '.');
    // Of a union ajv tells what each branch would have wanted, which its description says better.
    const flaw = 'anyOf' in schema ? '' : ` (${place} ${message})`;
    return { ok: false, expected: `${description}${flaw}` };
  };
}

// Rules between arguments and reply.

/** Names of the document that the exchange has been seen to write in camelCase. */
const ORDER_NAMES = ['order_id', 'client_order_id', 'deal_money', 'deal_stock', 'deal_fee'];

/** The order under the names of the document; the exchange's own stay beside them. */
function renamed(given: unknown): unknown {
  if (!isRecord(given)) return given;
  const order = { ...given };
  for (const name of ORDER_NAMES) {
    const spelt = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    if (spelt in given && !(name in given)) order[name] = given[spelt];
  }
  return order;
}

/** An order that answers what was asked: of the same market, and with the client order id that was given. */
export function named(asked: StockMarketOrderRequest): Decoder<Order> {
  const read = decoderOf('createStockMarketOrder');
  return (value) => {
    const order = read(renamed(value));
    if (!order.ok) return order;
    const { market, client_order_id } = order.value;
    if (market !== asked.market) return { ok: false, expected: `an order of market ${asked.market}` };
    if (asked.clientOrderId === undefined || client_order_id === asked.clientOrderId) return order;
    return { ok: false, expected: `an order with client_order_id ${asked.clientOrderId}` };
  };
}

/** An order may fill a little more than its amount, and another one a little less, by rounding to steps. */
const ROUNDING = 0.001;
const CLOSE = 0.01;
/** The other unit explains a reply better when its error is so many times smaller. */
const CLEARLY = 10;

/**
 * The order, when it is what was asked for. Throws an OrderMismatchError where the side is another one, where more than
 * the amount was filled, where the amount was clearly counted in the other unit, or where no number says what was filled.
 * An order that was filled in part is none of these.
 */
export function checkFilled(asked: StockMarketOrderRequest, order: Order): Order {
  if (order.side !== asked.side) throw new OrderMismatchError(order, asked);
  const unit = asked.side === 'buy' ? asked.amountIn : 'base';
  const amount = Number(asked.amount);
  const [quote, base] = [Number(order.deal_money), Number(order.deal_stock)];
  const left = Number(order.left);
  const errorOf = (filled: number) => Math.abs(filled + left - amount) / amount;
  const [filled, other] = unit === 'quote' ? [quote, base] : [base, quote];
  const isTooMuch = filled > amount * (1 + ROUNDING);
  const isOtherUnit = errorOf(filled) > CLOSE && errorOf(other) * CLEARLY < errorOf(filled);
  const isUnreadable = Number.isNaN(quote + base + left);
  if (isTooMuch || isOtherUnit || isUnreadable) throw new OrderMismatchError(order, asked);
  return order;
}
