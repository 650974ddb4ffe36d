import {
  CODES,
  done,
  type Flaw,
  fieldOf,
  flaw,
  flawsAmong,
  marketFlaw,
  NO_MARKET,
  type Profile,
  readForm,
  refuseFields,
  refuseOrder,
  requiredFlaw,
  unless,
} from './answer.ts';
import { decimal, divideDown, fitsDigits, formatDecimal, multiply, readDecimal, stepOf } from './decimal.ts';
import {
  addRecord,
  balanceOf,
  FEES,
  isOrderType,
  MARKET,
  type MarketOrder,
  move,
  type RestingOrder,
  recordsOf,
} from './holdings.ts';
import { PLAIN_TERMS, type Terms } from './markets.ts';
import { addResting, availableOf, type Call, costOf, type ExchangeState, restingOf } from './state.ts';

/** Modes of self trade prevention in the document, and what the live exchange calls them. */
const STP_MODES: Readonly<Record<string, string>> = {
  no: 'no',
  cancel_both: 'cb',
  cancel_new: 'cn',
  cancel_old: 'co',
};

const SIDES = 'may hold only buy or sell.';
const LIVE_SIDES = "field should contain only 'buy' or 'sell' values.";

/** Reads the order of a request, or says what is wrong with its form. `stp` is as the profile's replies name it. */
function readOrder({ account, body, nowMs, profile, data }: Call, hasPrice: boolean) {
  const { market, side, stp } = body;
  const amount = readDecimal(body['amount']);
  const price = hasPrice ? readDecimal(body['price']) : 0n;
  const clientOrderId = fieldOf(body, 'client_order_id', profile);
  const isSide = side === 'buy' || side === 'sell';
  const flaws = flawsAmong([
    marketFlaw(market),
    requiredFlaw('side', side) ?? unless(isSide, 'side', SIDES, { live: LIVE_SIDES }),
    numberFlaw('amount', body['amount']),
    hasPrice ? numberFlaw('price', body['price']) : null,
    clientOrderIdFlaw(clientOrderId),
    stpFlaw(stp, profile),
    ...['ioc', 'postOnly'].map((flag) => unless(isFlag(body[flag]), flag, 'must be a boolean.')),
  ]);
  if (flaws.length > 0 || amount === null || price === null || !isSide) return { flaws };
  const mode = typeof stp === 'string' ? stp : 'no';
  const order: RestingOrder = {
    id: data.lastOrderId + 1,
    account,
    market: String(market),
    type: 'spot',
    side,
    amount: formatDecimal(amount),
    price: formatDecimal(price),
    atMs: nowMs,
    placed: {
      clientOrderId: typeof clientOrderId === 'string' ? clientOrderId : '',
      stp: profile === 'live' ? (STP_MODES[mode] ?? mode) : mode,
      postOnly: body['postOnly'] === true,
    },
  };
  return { order };
}

const isFlag = (value: unknown) => value === undefined || typeof value === 'boolean';

function numberFlaw(field: string, value: unknown): Flaw | null {
  const form = { ...OF_AMOUNT, live: 'field should be numeric string or number.' };
  const isNumber = readDecimal(value) !== null;
  return requiredFlaw(field, value) ?? unless(isNumber, field, 'must be a numeric string or number.', form);
}

/** An empty text stands for none given, as it does in the reply. */
function clientOrderIdFlaw(value: unknown): Flaw | null {
  const say = (problem: string, live: string) =>
    flaw('client_order_id', problem, { live, code: CODES.clientOrderId });
  if (value === undefined) return null;
  if (typeof value !== 'string') return say('must be a string.', 'field should be a string.');
  if (/^[\w.-]*$/.test(value)) return null;
  const allowed = 'letters, dashes, digits, dots and underscores';
  return say(`may contain only ${allowed}.`, `field should contain only ${allowed}.`);
}

/** The live exchange takes its own short names, too. */
function stpFlaw(stp: unknown, profile: Profile): Flaw | null {
  const names = Object.keys(STP_MODES);
  const allowed = profile === 'live' ? [...new Set([...Object.values(STP_MODES), ...names])] : names;
  const live = `may hold only ${allowed.join(', ')}.`;
  return unless(stp === undefined || allowed.some((value) => value === stp), 'stp', live, { live });
}

/** At the live exchange an identifier is free again as soon as its order is no longer in the book. */
function repeatFlaw({ account, placed }: RestingOrder, { profile, data }: Call): Flaw | null {
  const clientOrderId = placed?.clientOrderId ?? '';
  const id = data.clientOrderIds.get(account)?.get(clientOrderId);
  const isGone = id !== undefined && data.orders.get(account)?.has(String(id)) === true;
  if (id === undefined || (isGone && profile === 'live')) return null;
  const message = 'This client_order_id is already used by the account.';
  return flaw('client_order_id', message, { code: CODES.clientOrderId });
}

/** A whole order, filled at its own price. */
function filledOf(state: ExchangeState, order: RestingOrder, nowMs: number): MarketOrder {
  const view = viewOf(state, order);
  const money = multiply(decimal(order.amount), decimal(order.price));
  const dealMoney = formatDecimal(money);
  const dealFee = formatDecimal(multiply(money, decimal(view.feeRate)));
  const deal = { left: '0', dealStock: order.amount, dealMoney, dealFee };
  return { ...view, ...deal, status: 'FILLED', endedAtMs: nowMs };
}

/** Moves the money of a filled order, and puts it into the history. */
function settle(order: MarketOrder, { data, log }: ExchangeState): void {
  const { account, orderId, market, side, dealStock, dealMoney, dealFee, price, endedAtMs } = order;
  const { purses, orders } = data;
  const [base = '', quote = ''] = market.split('_');
  const [buyer, seller] = side === 'buy' ? [account, MARKET] : [MARKET, account];
  move(purses, seller, buyer, base, decimal(dealStock));
  move(purses, buyer, seller, quote, decimal(dealMoney));
  move(purses, account, FEES, quote, decimal(dealFee));
  addRecord(orders, account, String(orderId), order);
  const deal = { dealStock, dealMoney, dealFee, price };
  log.append({ kind: 'order-filled', account, orderId, market, side, ...deal }, endedAtMs);
}

type Canceller = 'kill-switch' | 'request';

/** Takes an order out of the book, puts it into the log, and into the history if a bot placed it. */
export function cancel(state: ExchangeState, order: RestingOrder, by: Canceller, nowMs: number): MarketOrder {
  const { account, id: orderId, market, type, placed } = order;
  const ended: MarketOrder = { ...viewOf(state, order), status: 'CANCELED', endedAtMs: nowMs };
  state.data.book.delete(orderId);
  if (placed !== null) addRecord(state.data.orders, account, String(orderId), ended);
  state.log.append({ kind: 'order-cancelled', account, orderId, market, type, by }, nowMs);
  return ended;
}

/** Nothing of the order is filled. */
const UNFILLED = { status: 'OPEN', dealMoney: '0', dealStock: '0', dealFee: '0', ioc: false } as const;
/** What an order says of itself that nobody placed through the API. */
const UNPLACED = { clientOrderId: '', stp: 'no', postOnly: false };

function viewOf({ termsOf }: ExchangeState, order: RestingOrder): MarketOrder {
  const { id: orderId, account, market, side, amount, price, atMs } = order;
  const placed = order.placed ?? UNPLACED;
  const type = order.type === 'spot' ? 'limit' : 'margin limit';
  const feeRate = formatDecimal((termsOf(market) ?? PLAIN_TERMS).feeRate);
  const terms = { amount, left: amount, price, feeRate, atMs, endedAtMs: atMs };
  return { orderId, account, market, side, type, ...terms, ...UNFILLED, ...placed };
}

/** An Order of the API document; or as the live exchange spells it: with rates of fees, and without position side. */
function orderReply(order: MarketOrder, profile: Profile): Readonly<Record<string, unknown>> {
  const { orderId, clientOrderId, market, side, type, atMs, amount, left, feeRate, status, stp } = order;
  const { dealMoney, dealStock, dealFee, price, postOnly, ioc } = order;
  const timestamp = atMs / 1000;
  const flags = { postOnly, ioc, status, stp };
  if (profile === 'live') {
    const rates = { takerFee: feeRate, makerFee: feeRate, left, dealFee, feeAsset: quoteOf(market) };
    const deal = { dealMoney, dealStock, amount, ...rates, price: shownPrice(order) };
    return { orderId, clientOrderId, market, side, type, timestamp, ...deal, ...flags, rpi: false };
  }
  const names = { order_id: orderId, client_order_id: clientOrderId, market, side, type, timestamp };
  const deal = { deal_money: dealMoney, deal_stock: dealStock, amount, left, deal_fee: dealFee, price };
  return { ...names, ...deal, ...flags, positionSide: 'BOTH', rpi: false };
}

/** A record of the live exchange's history, which shows no price of a market order. */
function historyRecord(order: MarketOrder): Readonly<Record<string, unknown>> {
  const { orderId: id, clientOrderId, market, side, type, amount, status, postOnly, ioc } = order;
  const { dealMoney, dealStock, dealFee } = order;
  const times = { ctime: order.atMs / 1000, ftime: order.endedAtMs / 1000 };
  const deal = { dealFee, dealStock, dealMoney, postOnly, ioc, status, feeAsset: quoteOf(market) };
  return { amount, price: shownPrice(order), type, id, clientOrderId, side, ...times, ...deal, rpi: false };
}

const shownPrice = ({ type, price }: MarketOrder) => (type.endsWith('market') ? '0' : price);

const quoteOf = (market: string) => market.slice(market.indexOf('_') + 1);

const DEFAULT_LIMIT = 50;
const OF_AMOUNT = { code: CODES.amount };

/** Which orders a body asks for. */
function readAsked({ body, profile }: Call) {
  const clientOrderId = fieldOf(body, 'client_order_id', profile);
  return { market: body['market'], clientOrderId, orderId: fieldOf(body, 'order_id', profile) };
}

/** The orders that are asked for, newest first. Libraries of the live exchange send ids as text. */
function select(orders: readonly MarketOrder[], call: Call) {
  const { market, clientOrderId, orderId } = readAsked(call);
  return orders.toReversed().filter((order) => {
    const isOfMarket = market === undefined || order.market === market;
    const isNamed = clientOrderId === undefined || order.clientOrderId === clientOrderId;
    return isOfMarket && isNamed && (orderId === undefined || isId(order.orderId, orderId));
  });
}

const isId = (id: number, given: unknown) => given === id || given === String(id);

/** The account's ended orders, newest first: in the form of the list of codes or, as live, records grouped by market. */
export const readHistory = (form: 'grouped' | 'of the profile') => (call: Call) => {
  const { account, profile, data } = call;
  const isGrouped = form === 'grouped' || profile === 'live';
  const fields = readForm(call);
  const { limit, offset } = fields.page(DEFAULT_LIMIT);
  fields.optionalText('market');
  fields.optionalText('client_order_id');
  const { orderId } = readAsked(call);
  const isText = isGrouped && typeof orderId === 'string' && /^\d{1,15}$/.test(orderId);
  if (!isText) fields.integer('order_id', 1, Number.MAX_SAFE_INTEGER, 1);
  if (fields.flaws.length > 0) return refuseFields('form', fields.flaws, profile);
  const found = select(recordsOf(data.orders, account), call);
  const page = found.slice(offset, offset + limit);
  const replies = page.map((order) => orderReply(order, profile));
  if (!isGrouped) return done({ total: found.length, data: replies, limit, offset });
  const markets = Map.groupBy(page, (order) => order.market);
  return done(Object.fromEntries(Array.from(markets, ([name, own]) => [name, own.map(historyRecord)])));
};

/**
 * A market order, which fills at once or is refused. Buys are counted in the quote currency, and what is less than a
 * step of the base currency is left; but the live exchange counts `stock market` orders in the base currency.
 */
export const fillAtOnce = (type: 'market' | 'stock market') => (call: Call) => {
  const { nowMs, profile } = call;
  const read = readOrder(call, false);
  if ('flaws' in read) return refuseOrder('form', read.flaws, profile);
  const { market, side } = read.order;
  const amount = decimal(read.order.amount);
  const terms = call.termsOf(market);
  if (terms === null) return refuseOrder('inner', [NO_MARKET], profile);
  const inMoney = side === 'buy' && (type === 'market' || profile === 'documented');
  const stock = inMoney ? divideDown(amount, terms.price, terms.stockPrecision) : amount;
  const order = { ...read.order, amount: formatDecimal(stock), price: formatDecimal(terms.price) };
  const flaws = flawsAmong([
    sizeFlaw(read.order, terms, inMoney) ?? balanceFlaw(order, call),
    repeatFlaw(order, call),
  ]);
  if (flaws.length > 0) return refuseOrder('inner', flaws, profile);
  const deal = filledOf(call, order, nowMs);
  const left = formatDecimal(inMoney ? amount - decimal(deal.dealMoney) : 0n);
  const filled = { ...deal, type, amount: read.order.amount, left, postOnly: false };
  takeId(order, call);
  settle(filled, call);
  return done(orderReply(filled, profile));
};

/**
 * A limit order. On the spot market it holds back what it will cost, and is filled as soon as its price meets that of the
 * market. A collateral order, for margin, or for futures at a `_PERP` market, rests until it is cancelled.
 */
export const placeLimitOrder = (book: 'spot' | 'collateral') => (call: Call) => {
  const { account, body, nowMs, profile, data } = call;
  const read = readOrder(call, true);
  if ('flaws' in read) return refuseOrder('form', read.flaws, profile);
  const collateral = read.order.market.endsWith('_PERP') ? 'futures' : 'margin';
  const order: RestingOrder = { ...read.order, type: book === 'spot' ? 'spot' : collateral };
  const terms = call.termsOf(order.market);
  const meets = order.type === 'spot' && terms !== null && isMet(order, terms);
  const flaws = innerFlaws(order, meets, call);
  if (flaws.length > 0) return refuseOrder('inner', flaws, profile);
  const ioc = body['ioc'] === true;
  takeId(order, call);
  if (meets) {
    const filled = filledOf(call, { ...order, price: formatDecimal(terms.price) }, nowMs);
    settle(filled, call);
    return done(orderReply({ ...filled, ioc }, profile));
  }
  const view: MarketOrder = { ...viewOf(call, order), ioc, status: ioc ? 'CANCELED' : 'OPEN' };
  if (ioc) addRecord(data.orders, account, String(order.id), view);
  else addResting(call, order);
  return done(orderReply(view, profile));
};

function takeId({ id, account, placed }: RestingOrder, { data }: ExchangeState): void {
  data.lastOrderId = id;
  const name = placed?.clientOrderId ?? '';
  if (name !== '') addRecord(data.clientOrderIds, account, name, id);
}

const isMet = ({ side, price }: RestingOrder, terms: Terms) =>
  side === 'buy' ? decimal(price) >= terms.price : decimal(price) <= terms.price;

/** Fills the orders that a bot placed and that the market's price meets now, unless the money has gone meanwhile. */
export function fillMetOrders(state: ExchangeState, market: string, nowMs: number): void {
  const terms = state.termsOf(market);
  if (terms === null) return;
  for (const order of state.data.book.values()) {
    const { account, placed, type, id } = order;
    const isHit = order.market === market && placed !== null && type === 'spot';
    if (!isHit || !isMet(order, terms)) continue;
    const { currency, cost } = costOf(state, order);
    if (balanceOf(state.data.purses, account, currency) < cost) continue;
    state.data.book.delete(id);
    settle(filledOf(state, order, nowMs), state);
  }
}

function innerFlaws(order: RestingOrder, meets: boolean, call: Call): readonly Flaw[] {
  const isFutures = order.type === 'futures' && call.hasMarket(order.market);
  const terms = call.termsOf(order.market) ?? (isFutures ? PLAIN_TERMS : null);
  if (terms === null) return [NO_MARKET];
  const sizes = sizeFlaw(order, terms, false) ?? totalFlaw(order, terms);
  return flawsAmong([
    sizes ?? (order.type === 'spot' ? balanceFlaw(order, call) : null),
    unless(!meets || !order.placed?.postOnly, 'postOnly', 'A post-only order may not be filled at once.'),
    repeatFlaw(order, call),
  ]);
}

/** A buy in money must also be enough for one step of the base currency: an order that fills nothing is none. */
function sizeFlaw(order: RestingOrder, terms: Terms, inMoney: boolean): Flaw | null {
  const amount = decimal(order.amount);
  const precision = inMoney ? terms.moneyPrecision : terms.stockPrecision;
  const oneStep = multiply(terms.price, stepOf(terms.stockPrecision));
  const smallestTotal = terms.minTotal < oneStep ? oneStep : terms.minTotal;
  const smallest = inMoney ? smallestTotal : terms.minAmount;
  const step = `Min amount step = ${formatDecimal(stepOf(precision))}`;
  if (amount < smallest || amount <= 0n) {
    const least = `Given amount is less than min amount ${formatDecimal(smallest)}`;
    return flaw('amount', least, { ...OF_AMOUNT, messages: [least, step] });
  }
  return unless(fitsDigits(amount, precision), 'amount', step, OF_AMOUNT);
}

function totalFlaw({ amount, price }: RestingOrder, { moneyPrecision, minTotal }: Terms): Flaw | null {
  const value = decimal(price);
  const total = multiply(decimal(amount), value);
  const step = `Min price step = ${formatDecimal(stepOf(moneyPrecision))}`;
  return (
    unless(value > 0n, 'price', 'Price must be greater than 0.', OF_AMOUNT) ??
    unless(fitsDigits(value, moneyPrecision), 'price', step, OF_AMOUNT) ??
    unless(total >= minTotal, 'total', `Total is less than ${formatDecimal(minTotal)}`, OF_AMOUNT)
  );
}

/** The fee comes on top of a buy, in the quote currency. */
function balanceFlaw(order: RestingOrder, state: ExchangeState): Flaw | null {
  const { currency, cost } = costOf(state, order);
  const isEnough = availableOf(state, order.account, currency) >= cost;
  return unless(isEnough, 'amount', 'Not enough balance.', OF_AMOUNT);
}

/** `POST /api/v4/orders`: the account's orders in the book, newest first. */
export function listOpenOrders(call: Call) {
  const { account, profile } = call;
  const form = readForm(call);
  form.optionalText('market');
  const { limit, offset } = form.page(DEFAULT_LIMIT);
  if (form.flaws.length > 0) return refuseFields('form', form.flaws, profile);
  const views = restingOf(call, account).map((order) => viewOf(call, order));
  const page = select(views, call).slice(offset, offset + limit);
  return done(page.map((order) => orderReply(order, profile)));
}

/** `POST /api/v4/order/cancel`: takes one order out of the book, by its id or its client's. */
export function cancelOrder(call: Call) {
  const { account, profile, nowMs } = call;
  const { market, orderId, clientOrderId } = readAsked(call);
  const missing = flawsAmong([
    requiredFlaw('market', market),
    orderId === undefined && (clientOrderId ?? '') === '' ? requiredFlaw('order_id', null) : null,
  ]);
  if (missing.length > 0) return refuseFields('form', missing, profile);
  const order = restingOf(call, account, market).find(({ id, placed }) =>
    orderId === undefined ? placed?.clientOrderId === clientOrderId : isId(id, orderId),
  );
  if (order === undefined) {
    const unknown = flaw('order_id', 'Unexecuted order was not found.', { liveCode: 2 });
    return refuseFields('inner', [unknown], profile);
  }
  return done(orderReply(cancel(call, order, 'request', nowMs), profile));
}

/** `POST /api/v4/order/cancel/all`: empties the account's books, of one market or of some types where it says so. */
export function cancelAll(call: Call) {
  const { account, body, nowMs, profile } = call;
  const types = body['type'] ?? [];
  const isOfTypes = Array.isArray(types) && types.every(isOrderType);
  const form = readForm(call);
  form.optionalText('market');
  if (!isOfTypes) form.flaws.push(flaw('type', 'must be an array of order types.'));
  if (!isOfTypes || form.flaws.length > 0) return refuseFields('form', form.flaws, profile);
  for (const order of restingOf(call, account, body['market']))
    if (types.length === 0 || types.includes(order.type)) cancel(call, order, 'request', nowMs);
  return done([]);
}
