import { decimal, formatDecimal } from './decimal.ts';
import { allRecords, booksOf, DEMO_BALANCES, type OrderRequest, setBalance } from './holdings.ts';
import { fireDueTimers } from './kill-switch.ts';
import { createAnswerer, targetOf } from './operations.ts';
import { fillMetOrders } from './orders.ts';
import {
  type ApiKey,
  addResting,
  createState,
  DEFAULT_ACCOUNT,
  type ExchangeOptions,
  type ExchangeRequest,
  type ExchangeState,
} from './state.ts';

export interface SimulatedExchange extends ReturnType<typeof createSimulatedExchange> {}

/**
 * The exchange of the API document as a state machine: no clock, no I/O and no randomness of its own, so that it runs
 * on real and on virtual time alike, and equal inputs give equal bytes.
 */
export function createSimulatedExchange(options: ExchangeOptions = {}) {
  const state = createState(options);
  const { profile, hasMarket, tokens, log } = state;
  const answer = createAnswerer(state);
  return {
    profile,
    markets: options.markets ?? ('any' as const),
    hasMarket,
    /** Market orders are possible on it. */
    hasStockSide: (name: string): boolean => state.termsOf(name) !== null,
    /** The accounts that a key or a token belongs to. */
    get accounts(): readonly string[] {
      const owners = [...state.data.keys.values(), ...tokens.values()];
      return [...new Set(owners.map(({ account }) => account))];
    },
    log,
    /**
     * Answers one request at the exchange's time `nowMs` (Unix milliseconds); timers that are due by then fire first.
     * With `pretend` the request is checked and answered as if it were carried out, but its operation changes nothing;
     * with `grantSeconds` timers are armed for that long, whatever was asked for. Never throws.
     */
    handle(request: ExchangeRequest, nowMs: number, pretend?: 'pretend', grantSeconds: number | null = null) {
      fireDueTimers(state, nowMs);
      return answer(request, { nowMs, isPretended: pretend !== undefined, grantSeconds });
    },
    /** What a fault can be matched against. */
    target: targetOf,
    /** Fires the timers that are due at `nowMs`, Unix milliseconds. */
    advance: (nowMs: number): void => fireDueTimers(state, nowMs),
    /** No timer fires before this moment, Unix milliseconds; null where none is armed. */
    nextFiringMs: (): number | null => (state.data.timers.size === 0 ? null : state.data.soonestMs),
    ...controls(state),
  };
}

function controls(state: ExchangeState) {
  const { log } = state;
  return {
    /** A key that is accepted from now on. Its account begins with `DEMO_BALANCES` where it is new. */
    addKey(key: ApiKey): void {
      const { keys, purses } = state.data;
      keys.set(key.key, key);
      if (purses.has(key.account)) return;
      for (const [currency, amount] of Object.entries(DEMO_BALANCES))
        setBalance(purses, key.account, currency, decimal(amount));
    },
    hasKey: (name: string): boolean => state.data.keys.has(name),
    placeOrder(order: OrderRequest, atMs: number, account = DEFAULT_ACCOUNT) {
      state.data.lastOrderId += 1;
      return addResting(state, { ...order, id: state.data.lastOrderId, account, atMs, placed: null });
    },
    orders: () => [...state.data.book.values()],
    timers: () => [...state.data.timers.values()],
    /** Every balance, and where all the money is. */
    books: () => booksOf(state.data.purses),
    /** Deposits or takes out what is missing or too much. Throws a RangeError where `amount` is no decimal string. */
    setBalance(account: string, currency: string, amount: string, nowMs: number): void {
      setBalance(state.data.purses, account, currency, decimal(amount));
      log.append({ kind: 'balance-set', account, currency, amount }, nowMs);
    },
    /** The prices at which market orders are filled, by market; those of other markets are 100. */
    prices: (): Readonly<Record<string, string>> =>
      Object.fromEntries(Array.from(state.data.prices, ([market, price]) => [market, formatDecimal(price)])),
    /**
     * Sets a price and fills the limit orders that it meets. Throws a RangeError where `price` is no decimal string above
     * 0. A market without a stock side is left alone.
     */
    setPrice(market: string, price: string, nowMs: number): void {
      const value = decimal(price);
      if (value <= 0n) throw new RangeError(`price of ${market}: found "${price}"; expected more than 0`);
      if (state.termsOf(market) !== null) state.data.prices.set(market, value);
      log.append({ kind: 'price-set', market, price }, nowMs);
      fillMetOrders(state, market, nowMs);
    },
    /** The orders that were filled, of each account the oldest first. */
    marketOrders: () => allRecords(state.data.orders).filter(({ status }) => status === 'FILLED'),
    withdrawals: () => allRecords(state.data.withdrawals),
    addresses: () => allRecords(state.data.addresses),
    /** Remembers everything but the log. Returns what brings it back. */
    save(): () => void {
      const saved = structuredClone(state.data);
      return () => {
        state.data = structuredClone(saved);
      };
    },
  };
}
