import { ORDER_TYPES } from '../core/outcome.ts';
import type { OrderRequest } from './resting-orders.ts';

const DECIMAL = /^\d+(\.\d+)?$/;
const MAX_COUNT = 100_000;

/** The orders that a text from outside asks for, or a sentence that says what is wrong with it. */
export type ParsedOrders =
  | { readonly ok: true; readonly orders: readonly OrderRequest[] }
  | { readonly ok: false; readonly problem: string };

/**
 * Reads one order or an array of orders: `market`, `type`, `side`, `amount`, `price` and optionally `count` (that many
 * equal orders). `amount` and `price` may be numbers and default to 1.
 */
export function parseOrders(input: unknown, hasMarket: (name: string) => boolean): ParsedOrders {
  const orders: OrderRequest[] = [];
  const items: readonly unknown[] = Array.isArray(input) ? input : [input];
  for (const [index, item] of items.entries()) {
    const place = Array.isArray(input) ? `order ${index + 1}` : 'order';
    const problem = readOrder(item, hasMarket, orders);
    if (problem !== null) return { ok: false, problem: `${place}: ${problem}` };
    if (orders.length > MAX_COUNT) {
      return { ok: false, problem: `more than ${MAX_COUNT} orders at a time` };
    }
  }
  return { ok: true, orders };
}

const ORDER_FIELDS = ['market', 'type', 'side', 'amount', 'price', 'count'];

function readOrder(item: unknown, hasMarket: (name: string) => boolean, into: OrderRequest[]): string | null {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) {
    return 'expected an object with market, type, side, amount, price and optionally count';
  }
  const order: Readonly<Record<string, unknown>> = { ...item };
  const unknown = Object.keys(order).find((name) => !ORDER_FIELDS.includes(name));
  if (unknown !== undefined) return `unknown field "${unknown}"; allowed: ${ORDER_FIELDS.join(', ')}`;
  const { market, side, count = 1 } = order;
  if (typeof market !== 'string' || !hasMarket(market)) {
    return `market is ${quote(market)}; expected an available market such as BTC_USDT`;
  }
  const type = ORDER_TYPES.find((known) => known === order['type']);
  if (type === undefined) return `type is ${quote(order['type'])}; allowed: ${ORDER_TYPES.join(', ')}`;
  if (side !== 'buy' && side !== 'sell') return `side is ${quote(side)}; allowed: buy, sell`;
  const amount = readDecimal(order['amount']);
  const price = readDecimal(order['price']);
  if (amount === null) return `amount is ${quote(order['amount'])}; expected a decimal such as "0.5"`;
  if (price === null) return `price is ${quote(order['price'])}; expected a decimal such as "0.5"`;
  if (typeof count !== 'number' || !Number.isInteger(count) || count < 1 || count > MAX_COUNT) {
    return `count is ${quote(count)}; expected a whole number from 1 to ${MAX_COUNT}`;
  }
  for (let placed = 0; placed < count; placed += 1) into.push({ market, type, side, amount, price });
  return null;
}

function readDecimal(value: unknown = '1'): string | null {
  const text = typeof value === 'number' ? String(value) : value;
  return typeof text === 'string' && DECIMAL.test(text) ? text : null;
}

function quote(value: unknown): string {
  return value === undefined ? 'missing' : JSON.stringify(value);
}
