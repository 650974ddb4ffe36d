import { ORDER_TYPES } from '../core/events.ts';
import type { Profile } from './answer.ts';
import { type Decimal, decimal, formatDecimal, multiply } from './decimal.ts';
import { createJournal, type EventBody } from './event-log.ts';
import {
  type Amounts,
  type Asset,
  balanceOf,
  createPurses,
  DEMO_ASSETS,
  DEMO_BALANCES,
  type DepositAddress,
  type KillSwitchTimer,
  type MarketOrder,
  type OrderRequest,
  type Records,
  type RestingOrder,
  type Withdrawal,
} from './holdings.ts';
import {
  createTerms,
  DEMO_MARKETS,
  demoPrice,
  isMarketName,
  type MarketTerms,
  PLAIN_TERMS,
} from './markets.ts';

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

/** Keys, timers and orders belong to this account unless told otherwise. */
export const DEFAULT_ACCOUNT = 'main';

export const DEMO_KEY: ApiKey = { key: 'demo-key', secret: 'demo-secret', account: DEFAULT_ACCOUNT };

export const DEMO_TOKEN: AccessToken = { token: 'demo-token', account: DEFAULT_ACCOUNT };

export const createNonces = () => ({
  lastAccepted: -1n,
  /** Those used in a window, in order of use. */
  used: new Set<number>(),
  /** Those that are no digits, in order of use. */
  texts: new Set<string>(),
});

/** What operations read and change. */
export type ExchangeState = ReturnType<typeof createState>;

export function createState(options: ExchangeOptions) {
  const { markets = 'any', keys = [DEMO_KEY], tokens = [DEMO_TOKEN], newAddresses = false } = options;
  const { profile = 'documented', startTimeRounding = 'floor', cancellationDelayMs = 0 } = options;
  const { seed = 1, codes = 42, limits = {}, checkSignatures = true } = options;
  const { assets = DEMO_ASSETS, eventCapacity = 100_000, terms = {} } = options;
  const listed = new Set(markets === 'any' ? [] : markets);
  const hasMarket = markets === 'any' ? isMarketName : (name: string) => listed.has(name);
  const named = createTerms(hasMarket, terms);
  const anyMarkets = new Set([...DEMO_MARKETS, ...Object.keys(terms)].filter(hasMarket));
  const demo = [...keys, ...tokens].map(({ account }) => [account, DEMO_BALANCES] as const);
  /** Everything that changes, as plain data, so that it can be copied and put back. */
  const data = {
    keys: new Map(keys.map((key) => [key.key, key])),
    nonces: new Map<string, ReturnType<typeof createNonces>>(),
    /** The moments of accepted requests by operation and account, as a ring. */
    windows: new Map<string, { readonly accepted: number[]; oldest: number }>(),
    /** By account and market; in the order of their first arming. */
    timers: new Map<string, KillSwitchTimer>(),
    /** No timer fires before this, Unix milliseconds. */
    soonestMs: Number.POSITIVE_INFINITY,
    /** Resting orders by id, oldest first. */
    book: new Map<number, RestingOrder>(),
    lastOrderId: 0,
    lastAddress: 0,
    purses: createPurses(options.balances ?? Object.fromEntries(demo)),
    orders: new Map() as Records<MarketOrder>,
    /** Order ids by `client_order_id`. */
    clientOrderIds: new Map() as Records<number>,
    withdrawals: new Map() as Records<Withdrawal>,
    addresses: new Map() as Records<DepositAddress>,
    /** At which market orders are filled, by market. */
    prices: new Map(Array.from(named, ([market, { price }]) => [market, price])),
  };
  const given = { profile, startTimeRounding, cancellationDelayMs, seed, codes, limits, checkSignatures };
  const state = {
    ...given,
    data,
    tokens: new Map(tokens.map((token) => [token.token, token])),
    hasMarket,
    /** Those that the listing of markets names; there may be more. */
    listedMarkets: [...(markets === 'any' ? anyMarkets : listed)],
    /** Null where the market does not exist, or has no stock side: futures end with `_PERP`. */
    termsOf: (market: string) => {
      if (!hasMarket(market) || market.endsWith('_PERP')) return null;
      const own = named.get(market) ?? PLAIN_TERMS;
      return { ...own, price: state.data.prices.get(market) ?? own.price };
    },
    assets: new Map(assets.map((asset) => [asset.ticker, asset])),
    mayCreateAddresses: (account: string): boolean =>
      typeof newAddresses === 'boolean' ? newAddresses : newAddresses.includes(account),
    log: createJournal<EventBody>(eventCapacity),
  };
  return state;
}

/** One request that passed every check but those of its operation, with the exchange as it finds it. */
export interface Call extends ExchangeState {
  readonly account: string;
  /** The JSON of the body, or the query of a GET. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly nowMs: number;
  /** Timers are armed for this many seconds; null: as asked for. */
  readonly grantSeconds: number | null;
}

export function addResting({ data, log }: ExchangeState, order: RestingOrder): RestingOrder {
  const { account, market, id: orderId, type, side, amount, price, atMs } = order;
  data.book.set(orderId, order);
  log.append({ kind: 'order-placed', account, orderId, market, type, side, amount, price }, atMs);
  return order;
}

/** What an order of the spot market takes out of the balance when it is filled: a buy with its fee. */
export function costOf({ termsOf }: ExchangeState, { market, side, amount, price }: OrderRequest) {
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
