import type { Decoder } from './classify.ts';
import { OrderMismatchError } from './errors.ts';
import {
  AMOUNT_UNITS,
  type AmountUnit,
  type HashrateRequest,
  type NewAddressRequest,
  type Order,
  type StockMarketOrderRequest,
  type WithdrawPayRequest,
} from './schemas.ts';
import { breach, decoderOf } from './validate.ts';

// What holds between several arguments, or between arguments and reply. Each gives back what it has checked.

/** Currencies whose addresses come in types. */
const TYPED_ADDRESSES: readonly string[] = ['BTC', 'LTC'];

/** A `type` is of BTC and LTC only. */
export function checkAddressType(given: NewAddressRequest): NewAddressRequest {
  const { ticker, type } = given;
  if (type === undefined || TYPED_ADDRESSES.includes(ticker)) return given;
  const only = `only ${TYPED_ADDRESSES.join(' and ')} have address types`;
  throw breach('type', type, `left out for ${ticker}; ${only}`);
}

/** A fiat currency needs a provider, where the caller says that it is one. */
export function checkProvider(given: WithdrawPayRequest): WithdrawPayRequest {
  if (given.fiat !== true || given.provider !== undefined) return given;
  throw breach('provider', undefined, 'with fiat true a provider of the asset status');
}

/** A time range does not end before it begins. */
export function checkTimeRange(given: HashrateRequest): HashrateRequest {
  const { from, to } = given;
  if (from === undefined || to === undefined || from <= to) return given;
  throw breach('from', from, `from not after to, which is ${to}`);
}

/**
 * A buy names the unit of its amount: the request has no field for it, and the API document and the live exchange count
 * in different ones. A sell is counted in the base currency by both.
 */
export function checkUnit(given: StockMarketOrderRequest): StockMarketOrderRequest {
  const { side, amountIn } = given;
  if (side === 'buy' && amountIn === undefined) {
    throw breach(
      'amountIn',
      undefined,
      `${AMOUNT_UNITS.join(', ')}: what the exchange counts a buy's amount in`,
    );
  }
  if (side === 'sell' && (amountIn as AmountUnit | undefined) === 'quote') {
    throw breach('amountIn', amountIn, 'base: a sell is counted in the base currency');
  }
  return given;
}

/** Names of the document by how the exchange has been seen to write them. */
const ORDER_NAMES = {
  orderId: 'order_id',
  clientOrderId: 'client_order_id',
  dealMoney: 'deal_money',
  dealStock: 'deal_stock',
  dealFee: 'deal_fee',
} as const;

/** The order under the names of the document; the exchange's own stay beside them. */
function renamed(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const given = value as Readonly<Record<string, unknown>>;
  const added = Object.entries(ORDER_NAMES)
    .filter(([spelt, name]) => spelt in given && !(name in given))
    .map(([spelt, name]) => [name, given[spelt]]);
  return { ...given, ...Object.fromEntries(added) };
}

/** An order that answers what was asked: of the same market, and with the client order id that was given. */
export function named(asked: StockMarketOrderRequest): Decoder<Order> {
  const read = decoderOf<Order>('createStockMarketOrder');
  return (value) => {
    const order = read(renamed(value));
    if (!order.ok) return order;
    const { market, client_order_id } = order.value;
    if (market !== asked.market) return { ok: false, expected: `an order of market ${asked.market}` };
    if (asked.clientOrderId === undefined || client_order_id === asked.clientOrderId) return order;
    return { ok: false, expected: `an order with client_order_id ${asked.clientOrderId}` };
  };
}

/** An order may fill a little more than its amount, and another one a little less, by rounding to steps. */
const ROUNDING = 0.001;
const CLOSE = 0.01;
/** The other unit explains a reply better when its error is so many times smaller. */
const CLEARLY = 10;

/**
 * The order, when it is what was asked for. Throws an OrderMismatchError where the side is another one, where more than
 * the amount was filled, or where the amount was clearly counted in the other unit. An order that was filled in part is
 * none of these.
 */
export function checkFilled(asked: StockMarketOrderRequest, order: Order): Order {
  if (order.side !== asked.side) throw new OrderMismatchError(order, asked);
  const unit = asked.side === 'buy' ? asked.amountIn : 'base';
  const amount = Number(asked.amount);
  const [quote, base] = [Number(order.deal_money), Number(order.deal_stock)];
  const left = Number(order.left);
  const errorOf = (filled: number) => Math.abs(filled + left - amount) / amount;
  const [filled, other] = unit === 'quote' ? [quote, base] : [base, quote];
  const isTooMuch = filled > amount * (1 + ROUNDING);
  const isOtherUnit = errorOf(filled) > CLOSE && errorOf(other) * CLEARLY < errorOf(filled);
  if (isTooMuch || isOtherUnit) throw new OrderMismatchError(order, asked);
  return order;
}
