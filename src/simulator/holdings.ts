import { type Asset, DEMO_ASSETS, DEMO_BALANCES } from './assets.ts';
import { type Code, createCodeBook } from './codes.ts';
import { type Amounts, createLedger, type Ledger } from './ledger.ts';
import { createMarketBook, type MarketBook, type MarketTerms } from './market-terms.ts';
import { createRecords, type Records } from './records.ts';

/** An order of `order/stock_market`, filled when it was placed. Amounts and prices are decimal strings. */
export interface MarketOrder {
  readonly orderId: number;
  /** Empty where none was given. */
  readonly clientOrderId: string;
  readonly account: string;
  readonly market: string;
  readonly side: 'buy' | 'sell';
  /** The exchange's clock, Unix milliseconds. */
  readonly atMs: number;
  readonly amount: string;
  /** What the amount was too small for: less than one step of the base currency. */
  readonly left: string;
  readonly dealMoney: string;
  readonly dealStock: string;
  readonly dealFee: string;
  readonly price: string;
  /** The share of the deal that the exchange took. */
  readonly feeRate: string;
  readonly stp: string;
}

export interface Withdrawal {
  readonly uniqueId: string;
  readonly account: string;
  readonly ticker: string;
  /** What the receiver gets; the fee was taken on top. */
  readonly amount: string;
  readonly fee: string;
  readonly address: string;
  /** Null for fiat. */
  readonly network: string | null;
  /** Null for cryptocurrencies. */
  readonly provider: string | null;
  readonly atMs: number;
}

export interface DepositAddress {
  readonly account: string;
  readonly ticker: string;
  readonly network: string;
  /** Null where the currency has one kind only. */
  readonly type: string | null;
  readonly address: string;
  /** Null where the currency has no memos. */
  readonly memo: string | null;
}

export interface HoldingsOptions {
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

/** Money, and what was done with it. */
export interface Holdings {
  readonly seed: number;
  readonly ledger: Ledger;
  readonly markets: MarketBook;
  readonly assets: ReadonlyMap<string, Asset>;
  readonly codesOf: (account: string) => readonly Code[];
  readonly mayCreateAddresses: (account: string) => boolean;
  /** By order id. */
  readonly orders: Records<MarketOrder>;
  /** Those that have one, by `client_order_id`. */
  readonly namedOrders: Records<MarketOrder>;
  /** By `unique_id`. */
  readonly withdrawals: Records<Withdrawal>;
  /** By address. */
  readonly addresses: Records<DepositAddress>;
}

/** Records of each kind that are kept of each account. */
const CAPACITY = 100_000;

/** Throws a RangeError where an amount or a price of the options is no decimal. */
export function createHoldings(
  options: HoldingsOptions,
  accounts: readonly string[],
  hasMarket: (name: string) => boolean,
): Holdings {
  const { newAddresses = false } = options;
  const everybody = Object.fromEntries(accounts.map((account) => [account, DEMO_BALANCES]));
  return {
    seed: options.seed ?? 1,
    ledger: createLedger(options.balances ?? everybody),
    markets: createMarketBook(hasMarket, options.terms),
    assets: new Map((options.assets ?? DEMO_ASSETS).map((asset) => [asset.ticker, asset])),
    codesOf: createCodeBook(options.seed ?? 1, options.codes ?? 42),
    mayCreateAddresses: (account) =>
      typeof newAddresses === 'boolean' ? newAddresses : newAddresses.includes(account),
    orders: createRecords(CAPACITY),
    namedOrders: createRecords(CAPACITY),
    withdrawals: createRecords(CAPACITY),
    addresses: createRecords(CAPACITY),
  };
}
