import { type Answer, CODES, done, type Flaw, flaw, flawsAmong, refuseOrder } from './answer.ts';
import {
  add,
  compare,
  divideDown,
  fitsScale,
  formatDecimal,
  multiply,
  stepOf,
  subtract,
  ZERO,
} from './decimal.ts';
import type { MarketOrder } from './holdings.ts';
import type { Terms } from './markets.ts';
import {
  type Deal,
  type OrderFields,
  orderReply,
  readOrderFields,
  repeatFlaw,
  settle,
  useClientOrderId,
} from './orders.ts';
import { availableOf, type Call } from './state.ts';

/**
 * `POST /api/v4/order/stock_market`: fills at once, at the market's price, or refuses. The document counts a buy in the
 * quote currency; what is less than a step of the base currency is left. The live exchange counts both sides in the
 * base currency.
 */
export function createStockMarketOrder(call: Call): Answer {
  return createOrder(call, 'stock market', call.state.profile === 'documented');
}

/** `POST /api/v4/order/market` of the live exchange: the same, and a buy is counted in the quote currency. */
export function createMarketOrder(call: Call): Answer {
  return createOrder(call, 'market', true);
}

function createOrder(call: Call, type: 'market' | 'stock market', countsMoney: boolean): Answer {
  const { account, nowMs, state } = call;
  const { profile, data } = state;
  const order = readOrderFields(call.body, profile);
  if ('flaws' in order) return refuseOrder('form', order.flaws, profile);
  const { market, side, clientOrderId, stp } = order;
  const inMoney = countsMoney && side === 'buy';
  const terms = state.termsOf(market);
  const flaws = terms === null ? [notAvailable()] : innerFlaws(order, terms, inMoney, call);
  if (terms === null || flaws.length > 0) return refuseOrder('inner', flaws, profile);
  const deal = strike(order, terms, inMoney);
  const filled: MarketOrder = {
    orderId: data.lastOrderId + 1,
    clientOrderId,
    account,
    market,
    side,
    type,
    status: 'FILLED',
    atMs: nowMs,
    endedAtMs: nowMs,
    amount: formatDecimal(order.amount),
    left: formatDecimal(inMoney ? subtract(order.amount, deal.money) : ZERO),
    dealMoney: formatDecimal(deal.money),
    dealStock: formatDecimal(deal.stock),
    dealFee: formatDecimal(deal.fee),
    price: formatDecimal(terms.price),
    feeRate: formatDecimal(terms.feeRate),
    stp,
    postOnly: false,
    ioc: false,
  };
  if (call.apply) {
    data.lastOrderId = filled.orderId;
    useClientOrderId(state, account, clientOrderId, filled.orderId);
    settle(filled, deal, terms, state);
  }
  return done(orderReply(filled, profile));
}

function strike({ amount }: OrderFields, { price, stockPrecision, feeRate }: Terms, inMoney: boolean): Deal {
  const stock = inMoney ? divideDown(amount, price, stockPrecision) : amount;
  const money = multiply(stock, price);
  return { stock, money, fee: multiply(money, feeRate) };
}

function innerFlaws(order: OrderFields, terms: Terms, inMoney: boolean, call: Call): readonly Flaw[] {
  return flawsAmong([
    sizeFlaw(order, terms, inMoney) ?? balanceFlaw(order, terms, inMoney, call),
    repeatFlaw(order, call),
  ]);
}

/** A buy in money must also be enough for one step of the base currency: an order that fills nothing is none. */
export function sizeFlaw(
  { amount }: Pick<OrderFields, 'amount'>,
  terms: Terms,
  inMoney: boolean,
): Flaw | null {
  const precision = inMoney ? terms.moneyPrecision : terms.stockPrecision;
  const oneStep = multiply(terms.price, stepOf(terms.stockPrecision));
  const smallestTotal = compare(terms.minTotal, oneStep) < 0 ? oneStep : terms.minTotal;
  const smallest = inMoney ? smallestTotal : terms.minAmount;
  const step = `Min amount step = ${formatDecimal(stepOf(precision))}`;
  if (compare(amount, smallest) < 0 || compare(amount, ZERO) <= 0) {
    const least = `Given amount is less than min amount ${formatDecimal(smallest)}`;
    return { ...flaw('amount', least, CODES.amount), messages: [least, step] };
  }
  return fitsScale(amount, precision) ? null : flaw('amount', step, CODES.amount);
}

/** The fee comes on top of a buy, in the quote currency. */
function balanceFlaw(order: OrderFields, terms: Terms, inMoney: boolean, call: Call): Flaw | null {
  const deal = strike(order, terms, inMoney);
  const [currency, cost] =
    order.side === 'buy' ? [terms.quote, add(deal.money, deal.fee)] : [terms.base, deal.stock];
  return compare(availableOf(call.state, call.account, currency), cost) >= 0 ? null : notEnough();
}

export function notEnough(): Flaw {
  return flaw('amount', 'Not enough balance.', CODES.amount);
}

export function notAvailable(): Flaw {
  return flaw('market', 'Market is not available.', CODES.market);
}
