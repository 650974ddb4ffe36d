import type { ServerTimer } from '../core/outcome.ts';
import type { Reply } from './answer.ts';
import { createAnswerer, createRoutes, type RequestTarget, targetOf } from './answering.ts';
import type { AccessToken } from './bearer-token.ts';
import { decimal, formatDecimal } from './decimal.ts';
import { createEventLog, type EventLog } from './event-log.ts';
import type { ExchangeRequest } from './exchange-request.ts';
import { type ExchangeState, fireDueTimers, type Profile, type Rounding } from './exchange-state.ts';
import {
  createHoldings,
  type DepositAddress,
  type HoldingsOptions,
  type MarketOrder,
  type Withdrawal,
} from './holdings.ts';
import type { Books } from './ledger.ts';
import { createMarketCheck, DEMO_MARKETS } from './markets.ts';
import { createNonceBook } from './nonce-book.ts';
import { createOrderNumbers } from './order-numbers.ts';
import type { RateLimit } from './rate-window.ts';
import { createRestingOrders, type OrderRequest, type RestingOrder } from './resting-orders.ts';
import type { ApiKey } from './signed-request.ts';
import { createTimerTable, type KillSwitchTimer } from './timer-table.ts';

export type { ExchangeRequest } from './exchange-request.ts';

/** Keys, timers and orders belong to this account unless told otherwise. */
export const DEFAULT_ACCOUNT = 'main';

export const DEMO_KEY: ApiKey = { key: 'demo-key', secret: 'demo-secret', account: DEFAULT_ACCOUNT };

export const DEMO_TOKEN: AccessToken = { token: 'demo-token', account: DEFAULT_ACCOUNT };

/** Amounts and prices are decimal strings. */
export interface ExchangeOptions extends HoldingsOptions {
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
}

export interface SimulatedExchange {
  readonly profile: Profile;
  readonly markets: readonly string[] | 'any';
  readonly hasMarket: (name: string) => boolean;
  /** Market orders are possible on it. */
  readonly hasStockSide: (name: string) => boolean;
  /** The accounts that a key or a token belongs to. */
  readonly accounts: readonly string[];
  readonly log: EventLog;
  /**
   * Answers one request at the exchange's time `nowMs` (Unix milliseconds); timers that are due by then fire first.
   * With `pretend` the request is checked and answered as if it were carried out, but its operation changes nothing;
   * with `grantSeconds` timers are armed for that long, whatever was asked for. Never throws.
   */
  handle(request: ExchangeRequest, nowMs: number, pretend?: 'pretend', grantSeconds?: number | null): Reply;
  /** What a fault can be matched against. */
  target(request: ExchangeRequest): RequestTarget;
  /** Fires the timers that are due at `nowMs`, Unix milliseconds. */
  advance(nowMs: number): void;
  /** Unix milliseconds of the next firing; null where no timer is armed. */
  nextFiringMs(): number | null;
  placeOrder(order: OrderRequest, nowMs: number, account?: string): RestingOrder;
  orders(): readonly RestingOrder[];
  timers(): readonly (ServerTimer & Pick<KillSwitchTimer, 'account' | 'dueMs'>)[];
  /** Every balance, and where all the money is. */
  books(): Books;
  /** Deposits or takes out what is missing or too much. Throws a RangeError where `amount` is no decimal string. */
  setBalance(account: string, currency: string, amount: string, nowMs: number): void;
  /** The prices at which market orders are filled, by market; those of other markets are 100. */
  prices(): Readonly<Record<string, string>>;
  /** Throws a RangeError where `price` is no decimal string. A market without a stock side is left alone. */
  setPrice(market: string, price: string, nowMs: number): void;
  /** The market orders that were filled, of each account the oldest first. */
  marketOrders(): readonly MarketOrder[];
  withdrawals(): readonly Withdrawal[];
  /** The deposit addresses that were created. */
  addresses(): readonly DepositAddress[];
}

/**
 * The exchange of the API document as a state machine: no clock, no I/O and no randomness of its own, so that it runs
 * on real and on virtual time alike, and equal inputs give equal bytes.
 */
export function createSimulatedExchange(options: ExchangeOptions = {}): SimulatedExchange {
  const markets = options.markets ?? 'any';
  const keys = new Map((options.keys ?? [DEMO_KEY]).map((key) => [key.key, key]));
  const tokens = new Map((options.tokens ?? [DEMO_TOKEN]).map((token) => [token.token, token]));
  const hasMarket = createMarketCheck(markets);
  const numbers = createOrderNumbers();
  const accounts = [...new Set([...keys.values(), ...tokens.values()].map(({ account }) => account))];
  const state: ExchangeState = {
    profile: options.profile ?? 'documented',
    startTimeRounding: options.startTimeRounding ?? 'floor',
    cancellationDelayMs: options.cancellationDelayMs ?? 0,
    hasMarket,
    listedMarkets: markets === 'any' ? namedMarkets(options.terms).filter(hasMarket) : markets,
    timers: createTimerTable(),
    orders: createRestingOrders(numbers),
    numbers,
    holdings: createHoldings(options, accounts, hasMarket),
    log: createEventLog(options.eventCapacity ?? 100_000),
  };
  const routes = createRoutes(options.limits ?? {});
  const checkSignatures = options.checkSignatures ?? true;
  const { profile } = state;
  const nonces = createNonceBook(profile);
  const answer = createAnswerer(state, routes, { profile, keys, tokens, nonces, checkSignatures });
  return {
    profile: state.profile,
    markets,
    hasMarket,
    hasStockSide: (name) => state.holdings.markets.terms(name) !== null,
    accounts,
    log: state.log,
    handle(request, nowMs, pretend, grantSeconds = null) {
      fireDueTimers(state, nowMs);
      return answer(request, nowMs, { apply: pretend === undefined, grantSeconds });
    },
    target: (request) => targetOf(request, routes),
    advance: (nowMs) => fireDueTimers(state, nowMs),
    nextFiringMs: () => state.timers.nextDueMs(),
    placeOrder(request, nowMs, account = DEFAULT_ACCOUNT) {
      const order = state.orders.place(account, request);
      const { id: orderId, market, type, side, amount, price } = order;
      state.log.append({ kind: 'order-placed', account, orderId, market, type, side, amount, price }, nowMs);
      return order;
    },
    orders: () => state.orders.all(),
    timers: () => state.timers.all(),
    ...overview(state),
  };
}

/** Where any market is there: those of the demonstration and those with terms of their own. */
function namedMarkets(terms: ExchangeOptions['terms'] = {}): readonly string[] {
  return [...new Set([...DEMO_MARKETS, ...Object.keys(terms)])];
}

type Overview = Pick<
  SimulatedExchange,
  'books' | 'setBalance' | 'prices' | 'setPrice' | 'marketOrders' | 'withdrawals' | 'addresses'
>;

/** Money from the outside: what people and tests look at and set. */
function overview({ holdings, log }: ExchangeState): Overview {
  const { ledger, markets, orders, withdrawals, addresses } = holdings;
  return {
    books: () => ledger.books(),
    setBalance(account, currency, amount, nowMs) {
      ledger.set(account, currency, decimal(amount));
      log.append({ kind: 'balance-set', account, currency, amount }, nowMs);
    },
    prices: () =>
      Object.fromEntries(Array.from(markets.prices(), ([market, price]) => [market, formatDecimal(price)])),
    setPrice(market, price, nowMs) {
      markets.setPrice(market, decimal(price));
      log.append({ kind: 'price-set', market, price }, nowMs);
    },
    marketOrders: () => orders.all(),
    withdrawals: () => withdrawals.all(),
    addresses: () => addresses.all(),
  };
}
