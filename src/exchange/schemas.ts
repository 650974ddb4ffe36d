import Type, { type Static, type TObject, type TProperties, type TSchema } from 'typebox';
import { ORDER_TYPES } from '../core/events.ts';
import { MARKET_PATTERN } from '../util/nearest.ts';
import { LAST_SECOND } from './classify.ts';
import type { OperationName } from './operations.ts';

/**
 * What each operation of the API document takes and answers: one schema for its arguments and one for its reply, from
 * which the types, the checks of `validate.ts` and the words of their messages are made. The daemon does not load this.
 */

export const SIDES = ['buy', 'sell'] as const;
export type Side = (typeof SIDES)[number];
/** `quote`: money to spend. `base`: stock to buy. */
export const AMOUNT_UNITS = ['quote', 'base'] as const;
export type AmountUnit = (typeof AMOUNT_UNITS)[number];
/** What happens where an order would meet another one of the same account. */
export const SELF_TRADE_MODES = ['no', 'cancel_both', 'cancel_new', 'cancel_old'] as const;
export type SelfTradeMode = (typeof SELF_TRADE_MODES)[number];
export const ADDRESS_TYPES = ['p2sh-segwit', 'bech32'] as const;
export type AddressType = (typeof ADDRESS_TYPES)[number];

// The description of an argument is what messages name as allowed.

const oneOf = <const Values extends string[]>(values: readonly [...Values], note = '') =>
  Type.Enum(values, { description: `${values.join(', ')}${note}` });
const matching = (description: string, pattern: string) => Type.String({ description, pattern });
const wholeNumber = (minimum: number, maximum: number, what = 'whole numbers') =>
  Type.Integer({ minimum, maximum, description: `${what} ${minimum} to ${maximum}` });
/** An argument that this API does not know is refused: it would be one that the exchange ignores. */
const request = <P extends TProperties>(properties: P) =>
  Type.Object(properties, { additionalProperties: false });

const text = matching('text that is not empty', '\\S');
const market = matching('BASE_QUOTE in capitals', MARKET_PATTERN);
const ticker = matching('a currency ticker in capitals, such as BTC', '^[A-Z0-9]+$');
const unixSeconds = wholeNumber(0, LAST_SECOND, 'Unix seconds, as whole numbers');
/** Numbers are taken where they print as decimals: `1e-7` and `1e+21` are no numeric strings to every exchange. */
const amount = Type.Union(
  [
    Type.String({ pattern: '^(?=.*[1-9])\\d+(\\.\\d+)?$' }),
    Type.Number({ minimum: 1e-6, exclusiveMaximum: 1e21 }),
  ],
  {
    description:
      'a decimal number above 0 as text, such as "0.001"; or as a number that prints without exponent',
  },
);

export const ARGUMENTS = {
  createStockMarketOrder: request({
    market,
    side: oneOf(SIDES),
    amount,
    amountIn: Type.Optional(oneOf(AMOUNT_UNITS)),
    clientOrderId: Type.Optional(
      matching('letters, digits, dashes, dots and underscores', '^[A-Za-z0-9._-]+$'),
    ),
    stp: Type.Optional(oneOf(SELF_TRADE_MODES)),
  }),
  orderHistory: Type.Record(Type.String(), Type.Unknown()),
  withdrawPay: request({
    ticker,
    amount,
    address: text,
    uniqueId: text,
    provider: Type.Optional(text),
    fiat: Type.Optional(Type.Boolean({ description: 'true or false' })),
    network: Type.Optional(text),
  }),
  syncKillSwitch: request({
    market,
    timeoutSeconds: Type.Union([Type.Integer({ minimum: 5, maximum: 600 }), Type.Null()], {
      description: 'whole seconds 5 to 600, or null to delete the timer',
    }),
    types: Type.Optional(
      Type.Union([Type.Array(Type.Enum(ORDER_TYPES), { minItems: 1 }), Type.Null()], {
        description: `${ORDER_TYPES.join(', ')} in a list; or null for all`,
      }),
    ),
  }),
  myCodes: request({
    limit: Type.Optional(wholeNumber(1, 100)),
    offset: Type.Optional(wholeNumber(0, 10_000)),
  }),
  miningHashrate: request({
    account: Type.Optional(text),
    from: Type.Optional(unixSeconds),
    to: Type.Optional(unixSeconds),
    interval: Type.Optional(matching('a number and a letter, such as 1h', '^[1-9]\\d*[A-Za-z]$')),
  }),
  createNewAddress: request({
    ticker,
    network: Type.Optional(text),
    type: Type.Optional(oneOf(ADDRESS_TYPES, '; of BTC and LTC only')),
  }),
  miningPool: request({}),
  ping: request({}),
} as const satisfies Record<OperationName, TSchema>;

// A field that only describes a thing may be missing or null in a reply; one that identifies or counts it may not.

const seconds = Type.Integer({ minimum: 0, maximum: LAST_SECOND });
/** Beyond this JSON has already been rounded, and an identifier would be somebody else's. */
const identifier = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const count = Type.Integer({ minimum: 0 });
const texts = Type.Array(Type.String());
const maybe = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));
const maybeText = maybe(Type.String());
const maybeFlag = maybe(Type.Boolean());
const reply = <P extends TProperties>(description: string, properties: P): TObject<P> =>
  Type.Object(properties, { description });

const point = Type.Object({ timestamp: seconds, hashrate: Type.String() });
const code = Type.Object({
  amount: Type.String(),
  code: Type.String(),
  date: seconds,
  status: Type.String(),
  ticker: Type.String(),
  external_id: maybeText,
});

/** What each operation answers with success, under the names of the document. Further fields are allowed and kept. */
export const REPLIES = {
  createStockMarketOrder: reply('an order', {
    order_id: identifier,
    client_order_id: Type.String(),
    market: Type.String(),
    side: Type.String(),
    type: Type.String(),
    timestamp: Type.Number({ minimum: 0 }),
    deal_money: Type.String(),
    deal_stock: Type.String(),
    amount: Type.String(),
    left: Type.String(),
    deal_fee: Type.String(),
    price: maybeText,
    postOnly: maybeFlag,
    ioc: maybeFlag,
    status: maybeText,
    stp: maybeText,
    positionSide: maybeText,
    rpi: maybeFlag,
  }),
  orderHistory: Type.Record(Type.String(), Type.Unknown(), { description: 'an object' }),
  withdrawPay: Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Array(Type.Unknown())], {
    description: 'an object or a list',
  }),
  /** A delete is confirmed by an empty list, or by the timer that was deleted. */
  syncKillSwitch: Type.Union(
    [
      Type.Object({
        market: Type.String(),
        startTime: seconds,
        cancellationTime: seconds,
        types: Type.Union([texts, Type.Null()]),
      }),
      Type.Array(Type.Unknown(), { maxItems: 0 }),
    ],
    { description: 'a timer or []' },
  ),
  myCodes: reply('a list of codes', { total: count, data: Type.Array(code), limit: count, offset: count }),
  miningHashrate: reply('a hashrate', {
    data: Type.Object({ account: Type.String(), hashrate: Type.Array(point) }),
  }),
  createNewAddress: reply('a deposit address', {
    account: Type.Object({ address: Type.String({ minLength: 1 }), memo: maybeText }),
    required: maybe(
      Type.Object({
        fixedFee: maybeText,
        flexFee: maybe(Type.Object({ maxFee: maybeText, minFee: maybeText, percent: maybeText })),
        maxAmount: maybeText,
        minAmount: maybeText,
      }),
    ),
  }),
  miningPool: reply('a mining pool overview', {
    data: Type.Object({
      connection_links: texts,
      location: Type.String(),
      assets: texts,
      reward_schemes: texts,
      workers: count,
      current_hash_rate: Type.String(),
      last7days_hash_rate: Type.Array(point),
      blocks: Type.Array(Type.Object({ block_found_at: seconds, block_height: count })),
    }),
  }),
  ping: Type.Array(Type.Literal('pong'), { minItems: 1, maxItems: 1, description: '["pong"]' }),
} as const satisfies Record<OperationName, TSchema>;

/** Arguments and replies are read only; an optional argument may also be there as undefined. */
type Fixed<T> = T extends readonly (infer Item)[]
  ? readonly Fixed<Item>[]
  : T extends object
    ? { readonly [K in keyof T]: Fixed<T[K]> }
    : T;
type Given<T> = {
  readonly [K in keyof T]: Fixed<T[K]> | (Record<never, never> extends Pick<T, K> ? undefined : never);
};
type Arguments<Name extends keyof typeof ARGUMENTS> = Given<Static<(typeof ARGUMENTS)[Name]>>;
export type Reply<Name extends keyof typeof REPLIES> = Fixed<Static<(typeof REPLIES)[Name]>>;

/**
 * An order at the market price. A sell counts its amount in the base currency. A buy must say how the exchange counts
 * its amount: the API document counts in the quote currency, the live exchange in the base currency, and the request
 * has no field for it. Give a unique `clientOrderId`: an order of unknown outcome is found by it. Write the amount as
 * text: a number has been rounded to binary before anybody sees it.
 */
export type StockMarketOrderRequest = Omit<Arguments<'createStockMarketOrder'>, 'side' | 'amountIn'> &
  (
    | { readonly side: 'buy'; readonly amountIn: AmountUnit }
    | { readonly side: 'sell'; readonly amountIn?: 'base' | undefined }
  );
/** The body of the order history request, sent as it is. The document does not show its fields. */
export type OrderHistoryRequest = Readonly<Record<string, unknown>>;
/**
 * `amount` is what the receiver gets, the fee comes on top. `uniqueId` is new for every withdrawal. `fiat` is not sent:
 * only the exchange knows which currencies are fiat; with true here a withdrawal without `provider` is not sent either.
 */
export type WithdrawPayRequest = Arguments<'withdrawPay'>;
/** `types` null or left out means all order types. */
export type KillSwitchRequest = Arguments<'syncKillSwitch'>;
export type CodesRequest = Arguments<'myCodes'>;
/** Unix seconds, `from` not after `to`. What is left out is not sent. */
export type HashrateRequest = Arguments<'miningHashrate'>;
export type NewAddressRequest = Arguments<'createNewAddress'>;

/** Amounts are text: `deal_money` and `deal_fee` in the quote currency, `deal_stock` in the base currency. */
export type Order = Reply<'createStockMarketOrder'>;
/** A JSON object or list of which the document shows no fields. */
export type OpenReply = Readonly<Record<string, unknown>> | readonly unknown[];
/** A code of the account. `code` is as good as money: keep it out of logs. */
export type Code = Fixed<Static<typeof code>>;
export type Codes = Reply<'myCodes'>;
export type HashratePoint = Fixed<Static<typeof point>>;
export type Hashrate = Reply<'miningHashrate'>;
/** The fees and bounds of deposits are amounts as text. */
export type NewAddress = Reply<'createNewAddress'>;
/** Hash rates in H, times in Unix seconds. */
export type MiningPool = Reply<'miningPool'>;
