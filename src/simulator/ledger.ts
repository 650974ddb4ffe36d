import { add, compare, type Decimal, decimal, formatDecimal, subtract, ZERO } from './decimal.ts';

/**
 * Where money can be. `market`: the other side of every trade, which may owe. `fees`: what the exchange earned.
 * `withdrawn`: what left. `outside`: where deposits come from; it owes what was ever paid in.
 */
export type Purse = { readonly account: string } | 'market' | 'fees' | 'withdrawn' | 'outside';

/** Amounts by currency as decimal strings; currencies of which there is nothing are left out. */
export type Amounts = Readonly<Record<string, string>>;

/** All the money there is: per currency, `accounts`, `market`, `fees` and `withdrawn` add up to `deposited`. */
export interface Books {
  readonly accounts: Readonly<Record<string, Amounts>>;
  readonly market: Amounts;
  readonly fees: Amounts;
  readonly withdrawn: Amounts;
  readonly deposited: Amounts;
}

export interface Ledger {
  balance(account: string, currency: string): Decimal;
  /** Takes `amount` out of one purse and puts it into another. */
  move(from: Purse, to: Purse, currency: string, amount: Decimal): void;
  /** Deposits or takes out what is missing or too much. */
  set(account: string, currency: string, amount: Decimal): void;
  books(): Books;
}

/** Money by purse and currency. It only ever moves, so that none comes or goes by mistake. */
export function createLedger(balances: Readonly<Record<string, Amounts>>): Ledger {
  const accounts = new Map<string, Map<string, Decimal>>();
  const others = {
    market: new Map<string, Decimal>(),
    fees: new Map<string, Decimal>(),
    withdrawn: new Map<string, Decimal>(),
    outside: new Map<string, Decimal>(),
  };

  function purseOf(purse: Purse): Map<string, Decimal> {
    if (typeof purse === 'string') return others[purse];
    const own = accounts.get(purse.account) ?? new Map<string, Decimal>();
    accounts.set(purse.account, own);
    return own;
  }

  const ledger: Ledger = {
    balance: (account, currency) => accounts.get(account)?.get(currency) ?? ZERO,
    move(from, to, currency, amount) {
      const source = purseOf(from);
      source.set(currency, subtract(source.get(currency) ?? ZERO, amount));
      const target = purseOf(to);
      target.set(currency, add(target.get(currency) ?? ZERO, amount));
    },
    set(account, currency, amount) {
      ledger.move('outside', { account }, currency, subtract(amount, ledger.balance(account, currency)));
    },
    books: () => ({
      accounts: Object.fromEntries(Array.from(accounts, ([name, own]) => [name, amountsOf(own)])),
      market: amountsOf(others.market),
      fees: amountsOf(others.fees),
      withdrawn: amountsOf(others.withdrawn),
      deposited: amountsOf(
        new Map(Array.from(others.outside, ([currency, owed]) => [currency, subtract(ZERO, owed)])),
      ),
    }),
  };
  for (const [account, amounts] of Object.entries(balances)) {
    for (const [currency, amount] of Object.entries(amounts)) ledger.set(account, currency, decimal(amount));
  }
  return ledger;
}

function amountsOf(purse: ReadonlyMap<string, Decimal>): Amounts {
  return Object.fromEntries(
    Array.from(purse)
      .filter(([, amount]) => compare(amount, ZERO) !== 0)
      .map(([currency, amount]) => [currency, formatDecimal(amount)]),
  );
}
