import { ORDER_TYPES, type OrderType } from '../core/outcome.ts';
import { decimal, formatDecimal, multiply } from './decimal.ts';
import { demoPrice } from './market-terms.ts';
import { DEMO_MARKETS } from './markets.ts';
import type { OrderNumbers } from './order-numbers.ts';

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
}

export interface RestingOrders {
  place(account: string, order: OrderRequest): RestingOrder;
  /** Removes and returns the orders of the market whose type is among `types` (null: all), oldest first. */
  cancel(account: string, market: string, types: readonly OrderType[] | null): readonly RestingOrder[];
  all(): readonly RestingOrder[];
}

/** Orders that wait in the book and are never filled. */
export function createRestingOrders(numbers: OrderNumbers): RestingOrders {
  const books = new Map<string, RestingOrder[]>();
  return {
    place(account, request) {
      const { market, type, side, amount, price } = request;
      const order = { id: numbers.next(), account, market, type, side, amount, price };
      const id = bookOf(account, market);
      const book = books.get(id);
      if (book === undefined) books.set(id, [order]);
      else book.push(order);
      return order;
    },
    cancel(account, market, types) {
      const id = bookOf(account, market);
      const book = books.get(id);
      if (book === undefined) return [];
      const isHit = (order: RestingOrder) => types === null || types.includes(order.type);
      const kept = book.filter((order) => !isHit(order));
      if (kept.length === 0) books.delete(id);
      else books.set(id, kept);
      return book.filter(isHit);
    },
    all: () => [...books.values()].flat().sort((a, b) => a.id - b.id),
  };
}

function bookOf(account: string, market: string): string {
  return `${account} ${market}`;
}

/** A buy and a sell order of each type that suits the market, for every demonstration market, around its price. */
export const DEMO_ORDERS: readonly OrderRequest[] = DEMO_MARKETS.flatMap((market) => {
  const types = ORDER_TYPES.filter((type) => (type === 'futures') === market.endsWith('_PERP'));
  const price = demoPrice(market);
  const times = (factor: string) => formatDecimal(multiply(price, decimal(factor)));
  return types.flatMap((type): OrderRequest[] => [
    { market, type, side: 'buy', amount: '0.5', price: times('0.9') },
    { market, type, side: 'sell', amount: '0.5', price: times('1.1') },
  ]);
});
