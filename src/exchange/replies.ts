import Type, { type TProperties } from 'typebox';
import Compile from 'typebox/compile';
import { decodeError, decodePublicError, isPong, LAST_SECOND } from './decode.ts';

/** What an answer with success was found to hold: the reply, or what it should have been instead. */
export type Decoded<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly expected: string };

/** Reads the JSON value of an answer with success; undefined where it was no JSON. Never throws. */
export type Decoder<T> = (value: unknown) => Decoded<T>;

/** A JSON object or list of which the document shows no fields. */
export type OpenReply = Readonly<Record<string, unknown>> | readonly unknown[];

/** A stock market order as the exchange reports it. What only describes it may be missing or null. */
export interface Order {
  readonly [field: string]: unknown;
  readonly order_id: number;
  /** Empty where none was given. */
  readonly client_order_id: string;
  readonly market: string;
  readonly side: string;
  readonly type: string;
  /** Unix seconds with a fraction. */
  readonly timestamp: number;
  /** Filled, in the quote currency. */
  readonly deal_money: string;
  /** Filled, in the base currency. */
  readonly deal_stock: string;
  readonly amount: string;
  readonly left: string;
  /** In the quote currency. */
  readonly deal_fee: string;
  readonly price?: string | null;
  readonly postOnly?: boolean | null;
  readonly ioc?: boolean | null;
  readonly status?: string | null;
  readonly stp?: string | null;
  /** Of collateral orders. */
  readonly positionSide?: string | null;
  readonly rpi?: boolean | null;
}

/** A code of the account. `code` is as good as money: keep it out of logs. */
export interface Code {
  readonly [field: string]: unknown;
  readonly amount: string;
  readonly code: string;
  /** Unix seconds. */
  readonly date: number;
  readonly status: string;
  readonly ticker: string;
  readonly external_id?: string | null;
}

export interface Codes {
  readonly [field: string]: unknown;
  readonly total: number;
  readonly data: readonly Code[];
  readonly limit: number;
  readonly offset: number;
}

export interface HashratePoint {
  readonly [field: string]: unknown;
  /** Unix seconds. */
  readonly timestamp: number;
  readonly hashrate: string;
}

export interface Hashrate {
  readonly [field: string]: unknown;
  readonly data: {
    readonly [field: string]: unknown;
    readonly account: string;
    readonly hashrate: readonly HashratePoint[];
  };
}

/** A new deposit address with its conditions, which may be missing or null. */
export interface NewAddress {
  readonly [field: string]: unknown;
  readonly account: {
    readonly [field: string]: unknown;
    readonly address: string;
    /** Of currencies that use one. A deposit without it is lost. */
    readonly memo?: string | null;
  };
  readonly required?: {
    readonly [field: string]: unknown;
    readonly fixedFee?: string | null;
    readonly flexFee?: {
      readonly [field: string]: unknown;
      readonly maxFee?: string | null;
      readonly minFee?: string | null;
      readonly percent?: string | null;
    } | null;
    readonly maxAmount?: string | null;
    readonly minAmount?: string | null;
  } | null;
}

export interface MiningPool {
  readonly [field: string]: unknown;
  readonly data: {
    readonly [field: string]: unknown;
    readonly connection_links: readonly string[];
    readonly location: string;
    readonly assets: readonly string[];
    readonly reward_schemes: readonly string[];
    readonly workers: number;
    /** In H. */
    readonly current_hash_rate: string;
    readonly last7days_hash_rate: readonly HashratePoint[];
    readonly blocks: readonly {
      readonly [field: string]: unknown;
      /** Unix seconds. */
      readonly block_found_at: number;
      readonly block_height: number;
    }[];
  };
}

/** Beyond these JSON has already been rounded, and an identifier would be somebody else's. */
const Seconds = Type.Integer({ minimum: 0, maximum: LAST_SECOND });
const Identifier = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const Count = Type.Integer({ minimum: 0 });
const Texts = Type.Array(Type.String());
const maybeText = () => Type.Optional(Type.Union([Type.String(), Type.Null()]));
const maybeFlag = () => Type.Optional(Type.Union([Type.Boolean(), Type.Null()]));
const maybeObject = <P extends TProperties>(properties: P) =>
  Type.Optional(Type.Union([Type.Object(properties), Type.Null()]));
const Points = Type.Array(Type.Object({ timestamp: Seconds, hashrate: Type.String() }));

const orderShape = Compile(
  Type.Object({
    order_id: Identifier,
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
    price: maybeText(),
    postOnly: maybeFlag(),
    ioc: maybeFlag(),
    status: maybeText(),
    stp: maybeText(),
    positionSide: maybeText(),
    rpi: maybeFlag(),
  }),
);

const codesShape = Compile(
  Type.Object({
    total: Count,
    data: Type.Array(
      Type.Object({
        amount: Type.String(),
        code: Type.String(),
        date: Seconds,
        status: Type.String(),
        ticker: Type.String(),
        external_id: maybeText(),
      }),
    ),
    limit: Count,
    offset: Count,
  }),
);

const hashrateShape = Compile(
  Type.Object({ data: Type.Object({ account: Type.String(), hashrate: Points }) }),
);

const addressShape = Compile(
  Type.Object({
    account: Type.Object({ address: Type.String({ minLength: 1 }), memo: maybeText() }),
    required: maybeObject({
      fixedFee: maybeText(),
      flexFee: maybeObject({ maxFee: maybeText(), minFee: maybeText(), percent: maybeText() }),
      maxAmount: maybeText(),
      minAmount: maybeText(),
    }),
  }),
);

const poolShape = Compile(
  Type.Object({
    data: Type.Object({
      connection_links: Texts,
      location: Type.String(),
      assets: Texts,
      reward_schemes: Texts,
      workers: Count,
      current_hash_rate: Type.String(),
      last7days_hash_rate: Points,
      blocks: Type.Array(Type.Object({ block_found_at: Seconds, block_height: Count })),
    }),
  }),
);

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

interface Shape<T> {
  Check(value: unknown): value is T;
  Errors(value: unknown): readonly { readonly instancePath: string; readonly message: string }[];
}

/** The value as it came, with fields that the document does not know; or the first thing in it that does not fit. */
function fitting<T>(what: string, shape: Shape<T>): Decoder<T> {
  return (value) => {
    if (shape.Check(value)) return { ok: true, value };
    const [first] = shape.Errors(value);
    const place = first?.instancePath.slice(1).replaceAll('/', '.') ?? '';
    const flaw = first === undefined ? '' : ` (${place === '' ? 'it' : place} ${first.message})`;
    return { ok: false, expected: `${what}${flaw}` };
  };
}

const readAnyOrder: Decoder<Order> = fitting('an order', orderShape);

/** Names of the document by how the exchange has been seen to write them. */
const ORDER_NAMES = {
  orderId: 'order_id',
  clientOrderId: 'client_order_id',
  dealMoney: 'deal_money',
  dealStock: 'deal_stock',
  dealFee: 'deal_fee',
} as const;

/** The order under the names of the document; the exchange's own stay beside them. */
function named(value: unknown): unknown {
  if (!isObject(value)) return value;
  const added = Object.entries(ORDER_NAMES)
    .filter(([spelt, name]) => spelt in value && !(name in value))
    .map(([spelt, name]) => [name, value[spelt]]);
  return added.length === 0 ? value : { ...value, ...Object.fromEntries(added) };
}

/** An order that answers what was asked: of the same market, and with the client order id that was given. */
export function orderDecoder(asked: {
  readonly market: string;
  readonly clientOrderId?: string | undefined;
}): Decoder<Order> {
  return (value) => {
    const order = readAnyOrder(named(value));
    if (!order.ok) return order;
    const { market, client_order_id } = order.value;
    if (market !== asked.market) return { ok: false, expected: `an order of market ${asked.market}` };
    if (asked.clientOrderId === undefined || client_order_id === asked.clientOrderId) return order;
    return { ok: false, expected: `an order with client_order_id ${asked.clientOrderId}` };
  };
}

/** An answer that holds the API's error object says so, whatever its status and the fields that it may have. */
const isError = (value: unknown): boolean => decodeError(value) !== null || decodePublicError(value) !== null;

/** Any object. The exchange writes an empty one as an empty list in other places, so that counts as one. */
export const readHistory: Decoder<Readonly<Record<string, unknown>>> = (value) => {
  if (isError(value)) return { ok: false, expected: 'no error with this status' };
  if (isObject(value)) return { ok: true, value };
  if (Array.isArray(value) && value.length === 0) return { ok: true, value: {} };
  return { ok: false, expected: 'an object' };
};

/** Any object or list. */
export const readWithdrawal: Decoder<OpenReply> = (value) => {
  if (isError(value)) return { ok: false, expected: 'no error with this status' };
  if (isObject(value) || Array.isArray(value)) return { ok: true, value };
  return { ok: false, expected: 'an object or a list' };
};

export const readCodes: Decoder<Codes> = fitting('a list of codes', codesShape);
export const readHashrate: Decoder<Hashrate> = fitting('a hashrate', hashrateShape);
export const readNewAddress: Decoder<NewAddress> = fitting('a deposit address', addressShape);
export const readMiningPool: Decoder<MiningPool> = fitting('a mining pool overview', poolShape);

export const readPong: Decoder<true> = (value) =>
  isPong(value) ? { ok: true, value: true } : { ok: false, expected: '["pong"]' };
