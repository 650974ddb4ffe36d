import { MARKET_PATTERN } from '../util/nearest.ts';
import { type Decimal, decimal } from './decimal.ts';

const FORM = new RegExp(MARKET_PATTERN);

/** The name has the form `<BASE>_<QUOTE>` in capital letters and digits. */
export const isMarketName = (name: string): boolean => FORM.test(name);

/** On what terms market orders of a market are filled. Amounts and prices are decimal strings. */
export interface MarketTerms {
  /** What one unit of the base currency costs, in the quote currency. */
  readonly price: string;
  /** The smallest amount of the base currency. */
  readonly minAmount: string;
  /** The smallest amount of the quote currency. */
  readonly minTotal: string;
  /** Digits after the point of amounts in the base currency: the minimum amount step. */
  readonly stockPrecision: number;
  /** The same of amounts in the quote currency. */
  readonly moneyPrecision: number;
  /** The share of the deal that the exchange takes, in the quote currency. */
  readonly feeRate: string;
}

export type Terms = ReturnType<typeof readTerms>;

function readTerms(terms: MarketTerms) {
  const { price, minAmount, minTotal, feeRate } = terms;
  const amounts = { price: decimal(price), minAmount: decimal(minAmount), minTotal: decimal(minTotal) };
  return { ...terms, ...amounts, feeRate: decimal(feeRate) };
}

const PLAIN: MarketTerms = {
  price: '100',
  minAmount: '0.001',
  minTotal: '5',
  stockPrecision: 6,
  moneyPrecision: 2,
  feeRate: '0.001',
};
/** The terms of a market that has none of its own. */
export const PLAIN_TERMS: Terms = readTerms(PLAIN);

const DEMO_PRICES: Readonly<Record<string, Partial<MarketTerms>>> = {
  BTC_USDT: { price: '60000', minAmount: '0.0001' },
  ETH_USDT: { price: '2500' },
  SOL_USDT: { price: '150', minAmount: '0.01' },
  XRP_USDT: { price: '0.5', minAmount: '10', stockPrecision: 2, moneyPrecision: 4 },
  LTC_USDT: { price: '80', minAmount: '0.01' },
  ETH_BTC: { price: '0.04', minTotal: '0.0001', moneyPrecision: 8 },
  DBTC_DUSDT: { price: '60000', minAmount: '0.0001' },
};

/** Markets that the demonstration has orders in and that the pages name. */
export const DEMO_MARKETS = [...Object.keys(DEMO_PRICES), 'BTC_PERP', 'ETH_PERP'];

/** The price around which the orders of the demonstration rest; futures have that of their plain market. */
export function demoPrice(market: string): Decimal {
  return decimal(DEMO_PRICES[market.replace('_PERP', '_USDT')]?.price ?? PLAIN.price);
}

/** `given` adds to the terms of the demonstration. Throws a RangeError where it has no decimal, or no price above 0. */
export function createTerms(
  hasMarket: (name: string) => boolean,
  given: Readonly<Record<string, Partial<MarketTerms>>>,
): ReadonlyMap<string, Terms> {
  const named = new Map<string, Terms>();
  for (const [market, own] of Object.entries({ ...DEMO_PRICES, ...given })) {
    if (!hasMarket(market)) continue;
    const terms = { ...PLAIN, ...DEMO_PRICES[market], ...own };
    if (decimal(terms.price) <= 0n)
      throw new RangeError(`price of ${market}: found "${terms.price}"; expected more than 0`);
    named.set(market, readTerms(terms));
  }
  return named;
}
