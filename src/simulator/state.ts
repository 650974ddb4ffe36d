import { ORDER_TYPES } from '../core/events.ts';
import type { Profile } from './answer.ts';
import { type Decimal, decimal, formatDecimal, multiply } from './decimal.ts';
import type { EventLog } from './event-log.ts';
import {
  type Amounts,
  type Asset,
  balanceOf,
  type DepositAddress,
  type KillSwitchTimer,
  type MarketOrder,
  type OrderRequest,
  type Purses,
  type Records,
  type RestingOrder,
  type Withdrawal,
} from './holdings.ts';
import { DEMO_MARKETS, demoPrice, type MarketTerms, type Terms } from './markets.ts';

/** How the exchange makes whole seconds of its clock for `startTime`. */
export type Rounding = 'floor' | 'round' | 'ceil';

/** What an API key may be used for. The API document says that there are permissions and not what they are called. */
export const PERMISSIONS = ['info', 'trade', 'deposit', 'withdraw'] as const;
export type Permission = (typeof PERMISSIONS)[number];

/** A key that the exchange knows. Several keys may belong to one account and then share its timers and orders. */
export interface ApiKey {
  readonly key: string;
  readonly secret: string;
  readonly account: string;
  /** What it may be used for; default everything. */
  readonly permissions?: readonly Permission[];
}

/** An OAuth 2.0 access token that the exchange gave out, and whose account it opens. */
export interface AccessToken {
  readonly token: string;
  readonly account: string;
}

/** Header names in lower case, as Node gives them. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** One HTTP request. `path` may carry a query; header names are lower case. */
export interface ExchangeRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: string | Buffer;
}

/** A limit of the API document: so many requests in any stretch of `windowMs`. */
export interface RateLimit {
  readonly requests: number;
  readonly windowMs: number;
}

export interface KeyNonces {
  lastAccepted: bigint;
  /** Nonces used in a window, in order of use. */
  readonly used: Set<number>;
  /** Nonces that are no digits, in order of use. */
  readonly texts: Set<string>;
}

/** Everything that changes, as plain data, so that it can be copied and put back. */
export interface Data {
  readonly keys: Map<string, ApiKey>;
  readonly nonces: Map<string, KeyNonces>;
  /** The moments of accepted requests by operation and account, as a ring. */
  readonly windows: Map<string, { readonly accepted: number[]; oldest: number }>;
  /** By account and market; in the order of their first arming. */
  readonly timers: Map<string, KillSwitchTimer>;
  /** No timer fires before this, Unix milliseconds. */
  soonestMs: number;
  /** Resting orders by id, oldest first. */
  readonly book: Map<number, RestingOrder>;
  lastOrderId: number;
  lastAddress: number;
  readonly purses: Purses;
  /** By order id. */
  readonly orders: Records<MarketOrder>;
  /** Order ids by `client_order_id`. */
  readonly clientOrderIds: Records<number>;
  /** By `unique_id`. */
  readonly withdrawals: Records<Withdrawal>;
  /** By address. */
  readonly addresses: Records<DepositAddress>;
  /** At which market orders are filled, by market. */
  readonly prices: Map<string, Decimal>;
}

/** Amounts and prices are decimal strings. */
export interface ExchangeOptions {
  /** Default `documented`. */
  readonly profile?: Profile;
  /** Default: `demo-key` with `demo-secret`. */
  readonly keys?: readonly ApiKey[];
  /** Default: `demo-token`. */
  readonly tokens?: readonly AccessToken[];
  /** Default `any`: every name of the form BASE_QUOTE. */
  readonly markets?: readonly string[] | 'any';
  /** Default `floor`. */
  readonly startTimeRounding?: Rounding;
  /** How long after its cancellationTime a timer fires, milliseconds; default 0. */
  readonly cancellationDelayMs?: number;
  /** Limits by operation name in place of those of the document. */
  readonly limits?: Readonly<Record<string, RateLimit>>;
  /** Default true. False takes every signature of a known key for right, which halves the work of a long simulation. */
  readonly checkSignatures?: boolean;
  /** How many events the log keeps; default 100,000. */
  readonly eventCapacity?: number;
  /** Seed of codes, addresses and hashrates; default 1. */
  readonly seed?: number;
  /** What accounts begin with; default: `DEMO_BALANCES` for each account that has a key or a token. */
  readonly balances?: Readonly<Record<string, Amounts>>;
  /** Prices, minima and fees by market, in place of those of the demonstration. */
  readonly terms?: Readonly<Record<string, Partial<MarketTerms>>>;
  /** The currencies that can be withdrawn and deposited; default `DEMO_ASSETS`. */
  readonly assets?: readonly Asset[];
  /** How many codes each account created; default 42. */
  readonly codes?: number;
  /** Who may use `create-new-address`: everybody, or the listed accounts. Default nobody. */
  readonly newAddresses?: boolean | readonly string[];
}

type Given =
  | 'profile'
  | 'startTimeRounding'
  | 'cancellationDelayMs'
  | 'limits'
  | 'checkSignatures'
  | 'seed'
  | 'codes';

/** What operations read and change. */
export interface ExchangeState extends Required<Pick<ExchangeOptions, Given>> {
  readonly tokens: ReadonlyMap<string, AccessToken>;
  readonly hasMarket: (name: string) => boolean;
  /** Those that the listing of markets names; there may be more. */
  readonly listedMarkets: readonly string[];
  /** Null where the market does not exist, or has no stock side: futures end with `_PERP`. */
  readonly termsOf: (market: string) => Terms | null;
  readonly assets: ReadonlyMap<string, Asset>;
  readonly mayCreateAddresses: (account: string) => boolean;
  readonly log: EventLog;
  data: Data;
}

/** One request that passed every check but those of its operation, with the exchange as it finds it. */
export interface Call extends ExchangeState {
  /** Empty for public operations. */
  readonly account: string;
  /** The JSON of the body, or the query of a GET. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The exchange's clock, Unix milliseconds. */
  readonly nowMs: number;
  /** Timers are armed for this many seconds; null: as asked for. */
  readonly grantSeconds: number | null;
}

export function addResting({ data, log }: ExchangeState, order: RestingOrder, nowMs: number): void {
  const { account, market, id: orderId, type, side, amount, price } = order;
  data.book.set(orderId, order);
  log.append({ kind: 'order-placed', account, orderId, market, type, side, amount, price }, nowMs);
}

/** What an order of the spot market takes out of the balance when it is filled: a buy with its fee. */
export function costOf(
  { termsOf }: ExchangeState,
  { market, side, amount, price }: Pick<OrderRequest, 'market' | 'side' | 'amount' | 'price'>,
): { readonly currency: string; readonly cost: Decimal } {
  const [base = '', quote = ''] = market.split('_');
  const stock = decimal(amount);
  if (side === 'sell') return { currency: base, cost: stock };
  const money = multiply(stock, decimal(price));
  return { currency: quote, cost: money + multiply(money, termsOf(market)?.feeRate ?? 0n) };
}

/** The account's orders in the book, oldest first; those of one market where it is given. */
export function restingOf({ data }: ExchangeState, account: string, market?: unknown): RestingOrder[] {
  return [...data.book.values()].filter(
    (order) => order.account === account && (market === undefined || order.market === market),
  );
}

/** What the account's resting orders hold back of a currency. */
export function frozenOf(state: ExchangeState, account: string, currency: string): Decimal {
  const held = restingOf(state, account)
    .filter(({ placed, type }) => placed !== null && type === 'spot')
    .map((order) => costOf(state, order));
  return held.filter((one) => one.currency === currency).reduce((sum, { cost }) => sum + cost, 0n);
}

export function availableOf(state: ExchangeState, account: string, currency: string): Decimal {
  return balanceOf(state.data.purses, account, currency) - frozenOf(state, account, currency);
}

/** A buy and a sell order of each type that suits the market, for every demonstration market, around its price. */
export const DEMO_ORDERS: readonly OrderRequest[] = DEMO_MARKETS.flatMap((market) => {
  const types = ORDER_TYPES.filter((type) => (type === 'futures') === market.endsWith('_PERP'));
  const times = (factor: string) => formatDecimal(multiply(demoPrice(market), decimal(factor)));
  return types.flatMap((type): OrderRequest[] => [
    { market, type, side: 'buy', amount: '0.5', price: times('0.9') },
    { market, type, side: 'sell', amount: '0.5', price: times('1.1') },
  ]);
});
