import { ORDER_TYPES, type OrderType, type ServerTimer } from '../core/events.ts';
import { type Decimal, decimal, formatDecimal } from './decimal.ts';

/** A currency at the exchange: what its asset status data says. Amounts are decimal strings. */
export interface Asset {
  readonly ticker: string;
  /** The API document ties withdrawals to this, too. */
  readonly canDeposit: boolean;
  /** Networks of a cryptocurrency, the default one first; none for fiat. */
  readonly networks: readonly string[];
  /** Without a default, a request must name its network. Default true. */
  readonly hasDefaultNetwork?: boolean;
  /** Who moves a fiat currency; none for cryptocurrencies. */
  readonly providers: readonly string[];
  /** Digits after the point of an amount that can be withdrawn. */
  readonly precision: number;
  readonly withdrawFee: string;
  readonly minDeposit: string;
  /** Kinds of deposit address, the default one first; none where there is only one. */
  readonly addressTypes?: readonly string[];
  readonly hasMemo?: boolean;
}

/** Amounts by currency as decimal strings; currencies of which there is nothing are left out. */
export type Amounts = Readonly<Record<string, string>>;

const SEGWIT = { addressTypes: ['bech32', 'p2sh-segwit'] };
type Coin = [balance: string, networks: string[], precision: number, fee: string, more?: Partial<Asset>];
const COINS: Readonly<Record<string, Coin>> = {
  BTC: ['10', ['BTC'], 8, '0.0004', SEGWIT],
  ETH: ['100', ['ERC20'], 8, '0.003'],
  USDT: ['1000000', ['ERC20', 'TRC20', 'OMNI'], 6, '3.2'],
  USDC: ['10000', ['ERC20', 'SOL'], 6, '2.5', { hasDefaultNetwork: false }],
  SOL: ['1000', ['SOL'], 8, '0.01'],
  XRP: ['100000', ['XRP'], 6, '0.25', { hasMemo: true }],
  LTC: ['1000', ['LTC'], 8, '0.001', SEGWIT],
  DBTC: ['10', ['DBTC'], 8, '0'],
  DUSDT: ['1000000', ['DUSDT'], 6, '0'],
  XMR: ['100', ['XMR'], 8, '0.0001', { canDeposit: false }],
  EUR: ['10000', [], 2, '1.5', { providers: ['VISAMASTER', 'SEPA'] }],
};

/** One for each rule: USDT has several networks, USDC no default one, XRP a memo, EUR is fiat, XMR has no deposits. */
export const DEMO_ASSETS: readonly Asset[] = Object.entries(COINS).map(([ticker, coin]) => {
  const [, networks, precision, withdrawFee, more] = coin;
  const costs = { precision, withdrawFee, minDeposit: withdrawFee };
  return { ticker, canDeposit: true, networks, providers: [], ...costs, ...more };
});

/** What an account begins with unless told otherwise. */
export const DEMO_BALANCES: Amounts = Object.fromEntries(
  Object.entries(COINS).map(([ticker, [balance]]) => [ticker, balance]),
);

/** The network that `given` means, or the default one where nothing is given; null for fiat, or with what is wrong. */
export function chooseNetwork({ ticker, networks, hasDefaultNetwork = true }: Asset, given: unknown) {
  const [first] = networks;
  const wanted = given ?? (hasDefaultNetwork ? first : null);
  const network = networks.find((known) => known === wanted) ?? null;
  if (first === undefined || network !== null) return { network, problem: null };
  const problem = given === undefined ? 'Cannot extract default network' : 'Unsupported network';
  return { network, problem: `${problem}. ${ticker} has: ${networks.join(', ')}.` };
}

export const isOrderType = (value: unknown): value is OrderType => ORDER_TYPES.some((type) => type === value);

/** A kill-switch timer. `startTime` and `cancellationTime` in whole Unix seconds, `dueMs` in Unix milliseconds. */
export interface KillSwitchTimer extends ServerTimer {
  readonly account: string;
  readonly types: readonly OrderType[] | null;
  readonly dueMs: number;
}

/** An order to place. `amount` in the base currency and `price` in the quote currency, both decimal strings. */
export interface OrderRequest {
  readonly market: string;
  readonly type: OrderType;
  readonly side: 'buy' | 'sell';
  readonly amount: string;
  readonly price: string;
}

export interface RestingOrder extends OrderRequest {
  readonly id: number;
  readonly account: string;
  /** When it came: the exchange's clock, Unix milliseconds. */
  readonly atMs: number;
  /** Placed through the API: it holds its money back and is filled when the price meets it. Others never are. */
  readonly placed: Pick<MarketOrder, 'clientOrderId' | 'stp' | 'postOnly'> | null;
}

/** An order that is no longer in the book. Amounts and prices are decimal strings. */
export interface MarketOrder {
  readonly orderId: number;
  /** Empty where none was given. */
  readonly clientOrderId: string;
  readonly account: string;
  readonly market: string;
  readonly side: 'buy' | 'sell';
  readonly type: 'stock market' | 'market' | 'limit' | 'margin limit';
  readonly status: 'OPEN' | 'FILLED' | 'CANCELED';
  /** When it came, and when it was filled or cancelled: the exchange's clock, Unix milliseconds. */
  readonly atMs: number;
  readonly endedAtMs: number;
  readonly amount: string;
  /** What was not filled: of a market order less than one step of the base currency. */
  readonly left: string;
  readonly dealMoney: string;
  readonly dealStock: string;
  readonly dealFee: string;
  readonly price: string;
  /** The share of the deal that the exchange takes. */
  readonly feeRate: string;
  readonly stp: string;
  readonly postOnly: boolean;
  readonly ioc: boolean;
}

export interface Withdrawal {
  readonly uniqueId: string;
  readonly account: string;
  readonly ticker: string;
  /** What the receiver gets. */
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

/** What accounts did: by account, then by a name that finds the record again, oldest first. */
export type Records<T> = Map<string, Map<string, T>>;

/** Records of each kind that are kept of each account. The name of a forgotten one may be used anew. */
const CAPACITY = 100_000;

export function addRecord<T>(records: Records<T>, account: string, name: string, record: T): void {
  const own = records.get(account) ?? new Map<string, T>();
  records.set(account, own.set(name, record));
  if (own.size > CAPACITY) own.delete(own.keys().next().value ?? name);
}

export function recordsOf<T>(records: Records<T>, account: string): readonly T[] {
  return [...(records.get(account)?.values() ?? [])];
}

export function allRecords<T>(records: Records<T>): readonly T[] {
  return [...records.values()].flatMap((own) => [...own.values()]);
}

/**
 * Where money can be, beside the accounts by their names. MARKET: the other side of every trade, which may owe. FEES:
 * what the exchange earned. WITHDRAWN: what left. OUTSIDE: where deposits come from; it owes what was ever paid in.
 */
export const [MARKET, FEES, WITHDRAWN, OUTSIDE] = [' market', ' fees', ' withdrawn', ' outside'] as const;

/** Money by purse and currency. It only ever moves, so that none comes or goes by mistake. */
export type Purses = Map<string, Map<string, Decimal>>;

/** All the money there is: per currency, `accounts`, `market`, `fees` and `withdrawn` add up to `deposited`. */
export interface Books {
  readonly accounts: Readonly<Record<string, Amounts>>;
  readonly market: Amounts;
  readonly fees: Amounts;
  readonly withdrawn: Amounts;
  readonly deposited: Amounts;
}

export function balanceOf(purses: Purses, purse: string, currency: string): Decimal {
  return purses.get(purse)?.get(currency) ?? 0n;
}

export function move(purses: Purses, from: string, to: string, currency: string, amount: Decimal): void {
  const add = (purse: string, change: Decimal) => {
    const own = purses.get(purse) ?? new Map<string, Decimal>();
    purses.set(purse, own.set(currency, (own.get(currency) ?? 0n) + change));
  };
  add(from, -amount);
  add(to, amount);
}

/** Deposits or takes out what is missing or too much. */
export function setBalance(purses: Purses, account: string, currency: string, amount: Decimal): void {
  move(purses, OUTSIDE, account, currency, amount - balanceOf(purses, account, currency));
}

/** Throws a RangeError where an amount is no decimal. */
export function createPurses(balances: Readonly<Record<string, Amounts>>): Purses {
  const purses: Purses = new Map();
  for (const [account, amounts] of Object.entries(balances))
    for (const [currency, amount] of Object.entries(amounts))
      setBalance(purses, account, currency, decimal(amount));
  return purses;
}

export function booksOf(purses: Purses): Books {
  const amountsOf = (purse: string, sign = 1n): Amounts =>
    Object.fromEntries(
      [...(purses.get(purse) ?? [])]
        .filter(([, amount]) => amount !== 0n)
        .map(([currency, amount]) => [currency, formatDecimal(sign * amount)]),
    );
  const accounts = [...purses.keys()].filter((purse) => !purse.startsWith(' '));
  return {
    accounts: Object.fromEntries(accounts.map((account) => [account, amountsOf(account)])),
    market: amountsOf(MARKET),
    fees: amountsOf(FEES),
    withdrawn: amountsOf(WITHDRAWN),
    deposited: amountsOf(OUTSIDE, -1n),
  };
}
