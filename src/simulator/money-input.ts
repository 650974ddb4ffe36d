import { compare, parseDecimal, ZERO } from './decimal.ts';

/** A balance to set; `amount` as a decimal string. */
export interface BalanceOrder {
  readonly account: string;
  readonly currency: string;
  readonly amount: string;
}

/** The price of a market to set; `price` as a decimal string. */
export interface PriceOrder {
  readonly market: string;
  readonly price: string;
}

/** What a text from outside asks for, or a sentence that says what is wrong with it. */
export type ParsedMoney<T> =
  | { readonly ok: true; readonly items: readonly T[] }
  | { readonly ok: false; readonly problem: string };

/** Longer amounts are a mistake. */
const MAX_DIGITS = 60;
const CURRENCY = /^[A-Z0-9]{1,20}$/;

type Fields = Readonly<Record<string, unknown>>;
type Read<T> = (fields: Fields) => T | string;

/** Reads one balance or an array of them: `currency`, `amount` and optionally `account`, which is `main` otherwise. */
export function parseBalances(
  input: unknown,
  accounts: readonly string[],
  mainAccount: string,
): ParsedMoney<BalanceOrder> {
  return parseEach(input, 'balance', ['account', 'currency', 'amount'], (fields) => {
    const { account = mainAccount, currency } = fields;
    const known = accounts.find((name) => name === account);
    if (known === undefined) return `account is ${quote(account)}; allowed: ${accounts.join(', ')}`;
    if (typeof currency !== 'string' || !CURRENCY.test(currency)) {
      return `currency is ${quote(currency)}; expected a ticker such as BTC`;
    }
    const amount = readAmount(fields['amount']);
    if (amount === null) {
      return `amount is ${quote(fields['amount'])}; expected a decimal of at least 0, such as "0.5"`;
    }
    return { account: known, currency, amount };
  });
}

/** Reads one price or an array of them: `market`, which must have a stock side, and `price`. */
export function parsePrices(
  input: unknown,
  hasStockSide: (market: string) => boolean,
): ParsedMoney<PriceOrder> {
  return parseEach(input, 'price', ['market', 'price'], ({ market, price: given }) => {
    if (typeof market !== 'string' || !hasStockSide(market)) {
      return `market is ${quote(market)}; expected an available spot market such as BTC_USDT`;
    }
    const price = readAmount(given);
    if (price === null || compare(parseDecimal(price) ?? ZERO, ZERO) === 0) {
      return `price is ${quote(given)}; expected a decimal above 0, such as "0.5"`;
    }
    return { market, price };
  });
}

function parseEach<T>(
  input: unknown,
  name: string,
  allowed: readonly string[],
  read: Read<T>,
): ParsedMoney<T> {
  const items: T[] = [];
  const given: readonly unknown[] = Array.isArray(input) ? input : [input];
  for (const [index, item] of given.entries()) {
    const place = Array.isArray(input) ? `${name} ${index + 1}` : name;
    const found = readFields(item, allowed);
    const result = typeof found === 'string' ? found : read(found);
    if (typeof result === 'string') return { ok: false, problem: `${place}: ${result}` };
    items.push(result);
  }
  return { ok: true, items };
}

function readFields(item: unknown, allowed: readonly string[]): Fields | string {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) {
    return `expected an object with ${allowed.join(', ')}`;
  }
  const unknown = Object.keys(item).find((name) => !allowed.includes(name));
  return unknown === undefined ? { ...item } : `unknown field "${unknown}"; allowed: ${allowed.join(', ')}`;
}

function readAmount(value: unknown): string | null {
  const text = typeof value === 'number' ? String(value) : value;
  const isAmount =
    typeof text === 'string' &&
    text.length <= MAX_DIGITS &&
    !text.startsWith('-') &&
    parseDecimal(text) !== null;
  return isAmount ? text : null;
}

function quote(value: unknown): string {
  return value === undefined ? 'missing' : JSON.stringify(value);
}
