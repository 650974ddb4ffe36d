import {
  type Answer,
  CODES,
  done,
  type Flaw,
  fieldOf,
  flaw,
  flawsAmong,
  integerFlaw,
  optionalTextFlaw,
  refuseFields,
  refuseOrder,
} from './answer.ts';
import {
  compare,
  type Decimal,
  decimal,
  fitsScale,
  formatDecimal,
  multiply,
  stepOf,
  ZERO,
} from './decimal.ts';
import { addRecord, balanceOf, type MarketOrder } from './holdings.ts';
import type { Terms } from './markets.ts';
import {
  notNumeric,
  type OrderFields,
  orderReply,
  readAmount,
  readOrderFields,
  recordCancelled,
  repeatFlaw,
  requiredFlaw,
  settle,
  useClientOrderId,
  viewOf,
} from './orders.ts';
import {
  addResting,
  availableOf,
  type Call,
  costOf,
  type ExchangeState,
  type RestingOrder,
  restingOrders,
  takeResting,
} from './state.ts';
import { notAvailable, notEnough, sizeFlaw } from './stock-market.ts';

/**
 * `POST /api/v4/order/new` of the live exchange: an order that is filled at once where its price meets that of the
 * market, and rests in the book until then otherwise. It holds back what it will cost. `ioc` and `postOnly` are kept.
 */
export function createLimitOrder(call: Call): Answer {
  return placeLimitOrder(call, 'spot');
}

/** `POST /api/v4/order/collateral/limit`: rests until it is cancelled, for margin, or for futures at a `_PERP` market. */
export function createCollateralOrder(call: Call): Answer {
  const isFutures = typeof call.body['market'] === 'string' && call.body['market'].endsWith('_PERP');
  return placeLimitOrder(call, isFutures ? 'futures' : 'margin');
}

function placeLimitOrder(call: Call, type: RestingOrder['type']): Answer {
  const { account, body, nowMs, state } = call;
  const { profile, data } = state;
  const price = readAmount(body['price']);
  const fields = readOrderFields(body, profile, [
    requiredFlaw('price', body['price'], profile) ?? (price === null ? notNumeric('price', profile) : null),
  ]);
  if ('flaws' in fields || price === null) {
    return refuseOrder('form', 'flaws' in fields ? fields.flaws : [], profile);
  }
  const { market, side, amount, clientOrderId, stp } = fields;
  const [postOnly, ioc] = [body['postOnly'] === true, body['ioc'] === true];
  const placed = { clientOrderId, atMs: nowMs, stp, postOnly };
  const amounts = { amount: formatDecimal(amount), price: formatDecimal(price) };
  const order: RestingOrder = { id: data.lastOrderId + 1, account, market, type, side, ...amounts, placed };
  const terms = state.termsOf(market);
  const meets = type === 'spot' && terms !== null && isMet(side, price, terms.price);
  const flaws = innerFlaws(fields, order, postOnly && meets, call);
  if (flaws.length > 0) return refuseOrder('inner', flaws, profile);
  const view = { ...viewOf(state, order), ioc };
  if (call.apply) {
    data.lastOrderId = order.id;
    useClientOrderId(state, account, clientOrderId, order.id);
  }
  if (meets && terms !== null) {
    const filled = fill(state, { ...order, price: formatDecimal(terms.price) }, terms, nowMs, call.apply);
    return done(orderReply({ ...filled, ioc }, profile));
  }
  if (ioc) {
    const ended: MarketOrder = { ...view, status: 'CANCELED' };
    if (call.apply) addRecord(data.orders, account, String(order.id), ended);
    return done(orderReply(ended, profile));
  }
  if (call.apply) addResting(state, order, nowMs);
  return done(orderReply(view, profile));
}

function isMet(side: 'buy' | 'sell', price: Decimal, marketPrice: Decimal): boolean {
  return side === 'buy' ? compare(price, marketPrice) >= 0 : compare(price, marketPrice) <= 0;
}

/** Fills a whole order at its price. */
function fill(
  state: ExchangeState,
  order: RestingOrder,
  terms: Terms,
  nowMs: number,
  apply: boolean,
): MarketOrder {
  const [stock, price] = [decimal(order.amount), decimal(order.price)];
  const money = multiply(stock, price);
  const deal = { stock, money, fee: multiply(money, terms.feeRate) };
  const filled: MarketOrder = {
    ...viewOf(state, order),
    status: 'FILLED',
    endedAtMs: nowMs,
    left: '0',
    dealStock: order.amount,
    dealMoney: formatDecimal(money),
    dealFee: formatDecimal(deal.fee),
  };
  if (apply) settle(filled, deal, terms, state);
  return filled;
}

/** Fills the orders that a bot placed and that the market's price meets now, unless the money has gone meanwhile. */
export function fillMetOrders(state: ExchangeState, market: string, nowMs: number): void {
  const terms = state.termsOf(market);
  if (terms === null) return;
  for (const order of restingOrders(state)) {
    const { account, side, price, placed, type, id } = order;
    const isHit = order.market === market && placed !== null && type === 'spot';
    if (!isHit || !isMet(side, decimal(price), terms.price)) continue;
    const { currency, cost } = costOf(state, order);
    if (compare(balanceOf(state.data.purses, account, currency), cost) < 0) continue;
    takeResting(state, account, market, (one) => one.id === id);
    fill(state, order, terms, nowMs, true);
  }
}

function innerFlaws(
  fields: OrderFields,
  order: RestingOrder,
  isRefusedAsMet: boolean,
  call: Call,
): readonly Flaw[] {
  const { state, account } = call;
  const terms = state.termsOf(order.market);
  if (terms === null) {
    return order.type === 'futures' && state.hasMarket(order.market)
      ? flawsAmong([repeatFlaw(fields, call)])
      : [notAvailable()];
  }
  const { currency, cost } = costOf(state, order);
  const isDear = order.type === 'spot' && compare(availableOf(state, account, currency), cost) < 0;
  return flawsAmong([
    sizeFlaw(fields, terms, false) ?? totalFlaw(order, terms) ?? (isDear ? notEnough() : null),
    isRefusedAsMet ? flaw('postOnly', 'A post-only order may not be filled at once.') : null,
    repeatFlaw(fields, call),
  ]);
}

function totalFlaw({ amount, price }: RestingOrder, { moneyPrecision, minTotal }: Terms): Flaw | null {
  const value = decimal(price);
  if (compare(value, ZERO) <= 0) return flaw('price', 'Price must be greater than 0.', CODES.amount);
  if (!fitsScale(value, moneyPrecision)) {
    return flaw('price', `Min price step = ${formatDecimal(stepOf(moneyPrecision))}`, CODES.amount);
  }
  if (compare(multiply(decimal(amount), value), minTotal) >= 0) return null;
  return flaw('total', `Total is less than ${formatDecimal(minTotal)}`, CODES.amount);
}

/** `POST /api/v4/orders`: the account's orders in the book, newest first. */
export function listOpenOrders({ account, body, state }: Call): Answer {
  const { profile } = state;
  const { market, limit = 50, offset = 0 } = body;
  const orderId = fieldOf(body, 'order_id', profile);
  const clientOrderId = fieldOf(body, 'client_order_id', profile);
  const flaws = flawsAmong([
    optionalTextFlaw('market', market),
    integerFlaw('limit', limit, 1, 100),
    integerFlaw('offset', offset, 0, 10_000),
  ]);
  if (flaws.length > 0) return refuseFields('form', flaws, profile);
  const found = restingOrders(state)
    .filter(
      (order) =>
        order.account === account &&
        (market === undefined || order.market === market) &&
        (orderId === undefined || isId(order.id, orderId)) &&
        (clientOrderId === undefined || order.placed?.clientOrderId === clientOrderId),
    )
    .toReversed();
  const page = found.slice(Number(offset), Number(offset) + Number(limit));
  return done(page.map((order) => orderReply(viewOf(state, order), profile)));
}

/** Libraries of the live exchange send the number or its text. */
function isId(id: number, given: unknown): boolean {
  return given === id || given === String(id);
}

/** `POST /api/v4/order/cancel`: takes one order out of the book, by its id or its client's. */
export function cancelOrder({ account, body, state, nowMs, apply }: Call): Answer {
  const { profile } = state;
  const { market } = body;
  const orderId = fieldOf(body, 'order_id', profile);
  const clientOrderId = fieldOf(body, 'client_order_id', profile);
  const missing = flawsAmong([
    requiredFlaw('market', market, profile),
    orderId === undefined && clientOrderId === undefined ? requiredFlaw('order_id', null, profile) : null,
  ]);
  if (missing.length > 0) return refuseFields('form', missing, profile);
  const isHit = (order: RestingOrder) =>
    order.account === account &&
    order.market === market &&
    (orderId === undefined ? order.placed?.clientOrderId === clientOrderId : isId(order.id, orderId));
  const order = restingOrders(state).find(isHit);
  if (order === undefined) {
    return refuseFields(
      'inner',
      [{ ...flaw('order_id', 'Unexecuted order was not found.'), liveCode: 2 }],
      profile,
    );
  }
  if (apply) cancel(state, [order], nowMs);
  return done(orderReply({ ...viewOf(state, order), status: 'CANCELED' }, profile));
}

/** `POST /api/v4/order/cancel/all`: empties the account's books, of one market or of some types where it says so. */
export function cancelAllOrders({ account, body, state, nowMs, apply }: Call): Answer {
  const { market, type } = body;
  const wrong = optionalTextFlaw('market', market);
  if (wrong !== null) return refuseFields('form', [wrong], state.profile);
  const hit = restingOrders(state).filter(
    (order) =>
      order.account === account &&
      (market === undefined || order.market === market) &&
      (!Array.isArray(type) || type.length === 0 || type.includes(order.type)),
  );
  if (apply) cancel(state, hit, nowMs);
  return done([]);
}

function cancel(state: ExchangeState, orders: readonly RestingOrder[], nowMs: number): void {
  for (const order of orders) {
    takeResting(state, order.account, order.market, ({ id }) => id === order.id);
    recordCancelled(state, order, 'request', nowMs);
  }
}
