import type { ServerTimer } from '../core/events.ts';
import type { Profile, Reply } from './answer.ts';
import { decimal, formatDecimal } from './decimal.ts';
import { createJournal, type EventBody, type EventLog } from './event-log.ts';
import {
  type Amounts,
  type Asset,
  allRecords,
  type Books,
  booksOf,
  createPurses,
  DEMO_ASSETS,
  DEMO_BALANCES,
  type DepositAddress,
  type MarketOrder,
  setBalance,
  type Withdrawal,
} from './holdings.ts';
import { fireDueTimers } from './kill-switch.ts';
import { createTerms, DEMO_MARKETS, isMarketName, type MarketTerms, PLAIN_TERMS } from './markets.ts';
import { createAnswerer, type RequestTarget, targetOf } from './operations.ts';
import type { AccessToken } from './signed-request.ts';
import {
  type ApiKey,
  addResting,
  type Data,
  type ExchangeRequest,
  type ExchangeState,
  type KillSwitchTimer,
  type OrderRequest,
  type RateLimit,
  type RestingOrder,
  type Rounding,
  restingOrders,
} from './state.ts';
import { fillMetOrders } from './trading.ts';

export type { ExchangeRequest } from './state.ts';

/** Keys, timers and orders belong to this account unless told otherwise. */
export const DEFAULT_ACCOUNT = 'main';

export const DEMO_KEY: ApiKey = { key: 'demo-key', secret: 'demo-secret', account: DEFAULT_ACCOUNT };

export const DEMO_TOKEN: AccessToken = { token: 'demo-token', account: DEFAULT_ACCOUNT };

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
  /** No timer fires before this moment, Unix milliseconds; null where none is armed. */
  nextFiringMs(): number | null;
  /** A key that is accepted from now on. Its account begins with `DEMO_BALANCES` where it is new. */
  addKey(key: ApiKey): void;
  hasKey(name: string): boolean;
  placeOrder(order: OrderRequest, nowMs: number, account?: string): RestingOrder;
  orders(): readonly RestingOrder[];
  timers(): readonly (ServerTimer & Pick<KillSwitchTimer, 'account' | 'dueMs'>)[];
  /** Every balance, and where all the money is. */
  books(): Books;
  /** Deposits or takes out what is missing or too much. Throws a RangeError where `amount` is no decimal string. */
  setBalance(account: string, currency: string, amount: string, nowMs: number): void;
  /** The prices at which market orders are filled, by market; those of other markets are 100. */
  prices(): Readonly<Record<string, string>>;
  /**
   * Sets a price and fills the limit orders that it meets. Throws a RangeError where `price` is no decimal string. A
   * market without a stock side is left alone.
   */
  setPrice(market: string, price: string, nowMs: number): void;
  /** The orders that were filled, of each account the oldest first. */
  marketOrders(): readonly MarketOrder[];
  withdrawals(): readonly Withdrawal[];
  /** The deposit addresses that were created. */
  addresses(): readonly DepositAddress[];
  /** Remembers everything but the log. Returns what brings it back. */
  save(): () => void;
}

/**
 * The exchange of the API document as a state machine: no clock, no I/O and no randomness of its own, so that it runs
 * on real and on virtual time alike, and equal inputs give equal bytes.
 */
export function createSimulatedExchange(options: ExchangeOptions = {}): SimulatedExchange {
  const { markets = 'any', limits = {}, checkSignatures = true } = options;
  const tokens = new Map((options.tokens ?? [DEMO_TOKEN]).map((token) => [token.token, token]));
  const listed = new Set(markets === 'any' ? [] : markets);
  const hasMarket = markets === 'any' ? isMarketName : (name: string) => listed.has(name);
  const state = createState(options, [...tokens.values()], hasMarket);
  const { profile, log } = state;
  const answer = createAnswerer(state, { profile, tokens, checkSignatures }, limits);
  return {
    profile,
    markets,
    hasMarket,
    hasStockSide: (name) => state.termsOf(name) !== null,
    get accounts() {
      const owners = [...state.data.keys.values(), ...tokens.values()];
      return [...new Set(owners.map(({ account }) => account))];
    },
    log,
    handle(request, nowMs, pretend, grantSeconds = null) {
      fireDueTimers(state, nowMs);
      return answer(request, nowMs, { apply: pretend === undefined, grantSeconds });
    },
    target: targetOf,
    advance: (nowMs) => fireDueTimers(state, nowMs),
    nextFiringMs: () => (state.data.timers.size === 0 ? null : state.data.soonestMs),
    ...controls(state),
  };
}

function createState(
  options: ExchangeOptions,
  tokens: readonly AccessToken[],
  hasMarket: (name: string) => boolean,
): ExchangeState {
  const { markets = 'any', newAddresses = false, keys = [DEMO_KEY] } = options;
  const named = createTerms(hasMarket, options.terms);
  const demo = [...keys, ...tokens].map(({ account }) => [account, DEMO_BALANCES] as const);
  const data: Data = {
    keys: new Map(keys.map((key) => [key.key, key])),
    nonces: new Map(),
    windows: new Map(),
    timers: new Map(),
    soonestMs: Number.POSITIVE_INFINITY,
    books: new Map(),
    lastOrderId: 0,
    lastAddress: 0,
    purses: createPurses(options.balances ?? Object.fromEntries(demo)),
    orders: new Map(),
    clientOrderIds: new Map(),
    withdrawals: new Map(),
    addresses: new Map(),
    prices: new Map(Array.from(named, ([market, { price }]) => [market, price])),
  };
  const anyMarkets = [...new Set([...DEMO_MARKETS, ...Object.keys(options.terms ?? {})])].filter(hasMarket);
  const state: ExchangeState = {
    profile: options.profile ?? 'documented',
    startTimeRounding: options.startTimeRounding ?? 'floor',
    cancellationDelayMs: options.cancellationDelayMs ?? 0,
    hasMarket,
    listedMarkets: markets === 'any' ? anyMarkets : markets,
    termsOf(market) {
      if (!hasMarket(market) || market.endsWith('_PERP')) return null;
      const terms = named.get(market) ?? PLAIN_TERMS;
      return { ...terms, price: state.data.prices.get(market) ?? terms.price };
    },
    assets: new Map((options.assets ?? DEMO_ASSETS).map((asset) => [asset.ticker, asset])),
    seed: options.seed ?? 1,
    codes: options.codes ?? 42,
    mayCreateAddresses: (account) =>
      typeof newAddresses === 'boolean' ? newAddresses : newAddresses.includes(account),
    log: createJournal<EventBody>(options.eventCapacity ?? 100_000),
    data,
  };
  return state;
}

/** What people and tests look at and set. */
function controls(state: ExchangeState) {
  const { log } = state;
  return {
    addKey(key) {
      const { keys, purses } = state.data;
      keys.set(key.key, key);
      if (purses.has(key.account)) return;
      for (const [currency, amount] of Object.entries(DEMO_BALANCES)) {
        setBalance(purses, key.account, currency, decimal(amount));
      }
    },
    hasKey: (name) => state.data.keys.has(name),
    placeOrder({ market, type, side, amount, price }, nowMs, account = DEFAULT_ACCOUNT) {
      state.data.lastOrderId += 1;
      const id = state.data.lastOrderId;
      const order = { id, account, market, type, side, amount, price, placed: null };
      addResting(state, order, nowMs);
      return order;
    },
    orders: () => restingOrders(state),
    timers: () => [...state.data.timers.values()],
    books: () => booksOf(state.data.purses),
    setBalance(account, currency, amount, nowMs) {
      setBalance(state.data.purses, account, currency, decimal(amount));
      log.append({ kind: 'balance-set', account, currency, amount }, nowMs);
    },
    prices: () =>
      Object.fromEntries(Array.from(state.data.prices, ([market, price]) => [market, formatDecimal(price)])),
    setPrice(market, price, nowMs) {
      const value = decimal(price);
      if (state.termsOf(market) !== null) state.data.prices.set(market, value);
      log.append({ kind: 'price-set', market, price }, nowMs);
      fillMetOrders(state, market, nowMs);
    },
    marketOrders: () => allRecords(state.data.orders).filter(({ status }) => status === 'FILLED'),
    withdrawals: () => allRecords(state.data.withdrawals),
    addresses: () => allRecords(state.data.addresses),
    save() {
      const saved = structuredClone(state.data);
      return () => {
        state.data = structuredClone(saved);
      };
    },
  } satisfies Partial<SimulatedExchange>;
}
