import {
  type Answer,
  CODES,
  done,
  type Flaw,
  fieldOf,
  flaw,
  flawsAmong,
  optionalTextFlaw,
  pageFlaws,
  refuseFields,
  refuseOrder,
} from './answer.ts';
import { type Decimal, decimal, divideDown, fitsDigits, formatDecimal, multiply, stepOf } from './decimal.ts';
import { addRecord, balanceOf, type MarketOrder } from './holdings.ts';
import type { Terms } from './markets.ts';
import {
  filledOf,
  numberFlaw,
  type OrderFields,
  orderReply,
  readAmount,
  readOrderFields,
  recordCancelled,
  repeatFlaw,
  requiredFlaw,
  settle,
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

/**
 * A market order: fills at once, at the market's price, or refuses. Buys are counted in the quote currency, and what is
 * less than a step of the base currency is left; but the live exchange counts `stock market` orders in the base currency.
 */
export function fillAtOnce(call: Call, type: 'market' | 'stock market'): Answer {
  const { nowMs, state } = call;
  const { profile } = state;
  const fields = readOrderFields(call.body, profile);
  if ('flaws' in fields) return refuseOrder('form', fields.flaws, profile);
  const { market, side, amount } = fields;
  const terms = state.termsOf(market);
  if (terms === null) return refuseOrder('inner', [notAvailable()], profile);
  const inMoney = side === 'buy' && (type === 'market' || profile === 'documented');
  const stock = inMoney ? divideDown(amount, terms.price, terms.stockPrecision) : amount;
  const order = orderOf(call, fields, 'spot', stock, terms.price);
  const flaws = flawsAmong([
    sizeFlaw(amount, terms, inMoney) ?? balanceFlaw(order, state),
    repeatFlaw(fields, call),
  ]);
  if (flaws.length > 0) return refuseOrder('inner', flaws, profile);
  const deal = filledOf(state, order, nowMs);
  const left = formatDecimal(inMoney ? amount - decimal(deal.dealMoney) : 0n);
  const filled = { ...deal, type, amount: formatDecimal(amount), left, postOnly: false };
  if (call.apply) {
    takeId(order, state);
    settle(filled, state);
  }
  return done(orderReply(filled, profile));
}

/**
 * A limit order. On the spot market it is filled at once where its price meets that of the market, rests in the book
 * until then otherwise, and holds back what it will cost. A collateral order, for margin, or for futures at a `_PERP`
 * market, rests until it is cancelled. `ioc` and `postOnly` are kept.
 */
export function placeLimitOrder(call: Call, book: 'spot' | 'collateral'): Answer {
  const { account, body, nowMs, state } = call;
  const { profile, data } = state;
  const price = readAmount(body['price']);
  const fields = readOrderFields(body, profile, [numberFlaw('price', body['price'], profile)]);
  if ('flaws' in fields || price === null) {
    return refuseOrder('form', 'flaws' in fields ? fields.flaws : [], profile);
  }
  const isFutures = fields.market.endsWith('_PERP');
  const type = book === 'spot' ? 'spot' : isFutures ? 'futures' : 'margin';
  const order = orderOf(call, fields, type, fields.amount, price);
  const terms = state.termsOf(order.market);
  const meets = type === 'spot' && terms !== null && isMet(fields.side, price, terms.price);
  const flaws = innerFlaws(fields, order, meets, call);
  if (flaws.length > 0) return refuseOrder('inner', flaws, profile);
  const ioc = body['ioc'] === true;
  const view = { ...viewOf(state, order), ioc };
  if (call.apply) takeId(order, state);
  if (meets) {
    const filled = filledOf(state, { ...order, price: formatDecimal(terms.price) }, nowMs);
    if (call.apply) settle(filled, state);
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

function orderOf(
  { account, body, nowMs, state }: Call,
  { market, side, clientOrderId, stp }: OrderFields,
  type: RestingOrder['type'],
  amount: Decimal,
  price: Decimal,
): RestingOrder {
  const placed = { clientOrderId, atMs: nowMs, stp, postOnly: body['postOnly'] === true };
  const amounts = { amount: formatDecimal(amount), price: formatDecimal(price) };
  return { id: state.data.lastOrderId + 1, account, market, type, side, ...amounts, placed };
}

/** Remembers that the id of an order, and its `client_order_id`, are used. */
function takeId({ id, account, placed }: RestingOrder, { data }: ExchangeState): void {
  data.lastOrderId = id;
  const name = placed?.clientOrderId ?? '';
  if (name !== '') addRecord(data.clientOrderIds, account, name, id);
}

function isMet(side: 'buy' | 'sell', price: Decimal, marketPrice: Decimal): boolean {
  return side === 'buy' ? price >= marketPrice : price <= marketPrice;
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
    if (balanceOf(state.data.purses, account, currency) < cost) continue;
    takeResting(state, account, market, (one) => one.id === id);
    settle(filledOf(state, order, nowMs), state);
  }
}

function innerFlaws(fields: OrderFields, order: RestingOrder, meets: boolean, call: Call): readonly Flaw[] {
  const { state } = call;
  const terms = state.termsOf(order.market);
  if (terms === null) {
    return order.type === 'futures' && state.hasMarket(order.market)
      ? flawsAmong([repeatFlaw(fields, call)])
      : [notAvailable()];
  }
  const isRefusedAsMet = meets && order.placed?.postOnly === true;
  return flawsAmong([
    sizeFlaw(fields.amount, terms, false) ??
      totalFlaw(order, terms) ??
      (order.type === 'spot' ? balanceFlaw(order, state) : null),
    isRefusedAsMet ? flaw('postOnly', 'A post-only order may not be filled at once.') : null,
    repeatFlaw(fields, call),
  ]);
}

/** A buy in money must also be enough for one step of the base currency: an order that fills nothing is none. */
function sizeFlaw(amount: Decimal, terms: Terms, inMoney: boolean): Flaw | null {
  const precision = inMoney ? terms.moneyPrecision : terms.stockPrecision;
  const oneStep = multiply(terms.price, stepOf(terms.stockPrecision));
  const smallestTotal = terms.minTotal < oneStep ? oneStep : terms.minTotal;
  const smallest = inMoney ? smallestTotal : terms.minAmount;
  const step = `Min amount step = ${formatDecimal(stepOf(precision))}`;
  if (amount < smallest || amount <= 0n) {
    const least = `Given amount is less than min amount ${formatDecimal(smallest)}`;
    return { ...flaw('amount', least, CODES.amount), messages: [least, step] };
  }
  return fitsDigits(amount, precision) ? null : flaw('amount', step, CODES.amount);
}

function totalFlaw({ amount, price }: RestingOrder, { moneyPrecision, minTotal }: Terms): Flaw | null {
  const value = decimal(price);
  if (value <= 0n) return flaw('price', 'Price must be greater than 0.', CODES.amount);
  if (!fitsDigits(value, moneyPrecision)) {
    return flaw('price', `Min price step = ${formatDecimal(stepOf(moneyPrecision))}`, CODES.amount);
  }
  if (multiply(decimal(amount), value) >= minTotal) return null;
  return flaw('total', `Total is less than ${formatDecimal(minTotal)}`, CODES.amount);
}

/** The fee comes on top of a buy, in the quote currency. */
function balanceFlaw(order: RestingOrder, state: ExchangeState): Flaw | null {
  const { currency, cost } = costOf(state, order);
  if (availableOf(state, order.account, currency) >= cost) return null;
  return flaw('amount', 'Not enough balance.', CODES.amount);
}

function notAvailable(): Flaw {
  return flaw('market', 'Market is not available.', CODES.market);
}

/** `POST /api/v4/orders`: the account's orders in the book, newest first. */
export function listOpenOrders({ account, body, state }: Call): Answer {
  const { profile } = state;
  const { market, limit = 50, offset = 0 } = body;
  const orderId = fieldOf(body, 'order_id', profile);
  const clientOrderId = fieldOf(body, 'client_order_id', profile);
  const flaws = flawsAmong([optionalTextFlaw('market', market), ...pageFlaws(limit, offset)]);
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
