import {
  type Answer,
  CODES,
  done,
  type Flaw,
  fieldOf,
  flaw,
  flawOf,
  flawsAmong,
  integerFlaw,
  optionalTextFlaw,
  type Profile,
  pageFlaws,
  refuseFields,
} from './answer.ts';
import { type Decimal, decimal, decimalOfNumber, formatDecimal, multiply, parseDecimal } from './decimal.ts';
import { addRecord, FEES, MARKET, type MarketOrder, move, recordsOf } from './holdings.ts';
import { PLAIN_TERMS } from './markets.ts';
import type { Call, ExchangeState, RestingOrder } from './state.ts';

/** Modes of self trade prevention in the document, and what the live exchange calls them. */
const STP_MODES: Readonly<Record<string, string>> = {
  no: 'no',
  cancel_both: 'cb',
  cancel_new: 'cn',
  cancel_old: 'co',
};

/** What `stp` may hold. The live exchange takes its own short names, too. */
function stpValues(profile: Profile): readonly string[] {
  const names = Object.keys(STP_MODES);
  return profile === 'live' ? [...new Set([...Object.values(STP_MODES), ...names])] : names;
}

/** The fields that a market order and a limit order share. */
export interface OrderFields {
  readonly market: string;
  readonly side: 'buy' | 'sell';
  readonly amount: Decimal;
  readonly clientOrderId: string;
  /** As the profile's replies name it. */
  readonly stp: string;
}

/** Reads the fields that all orders share, or says what is wrong with their form. `more` flaws come on top. */
export function readOrderFields(
  body: Call['body'],
  profile: Profile,
  more: readonly (Flaw | null)[] = [],
): OrderFields | { readonly flaws: readonly Flaw[] } {
  const { market, side, stp } = body;
  const amount = readAmount(body['amount']);
  const clientOrderId = fieldOf(body, 'client_order_id', profile);
  const flaws = flawsAmong([
    requiredFlaw('market', market, profile) ?? marketFormFlaw(market, profile),
    requiredFlaw('side', side, profile) ?? sideFlaw(side, profile),
    numberFlaw('amount', body['amount'], profile),
    ...more,
    clientOrderIdFlaw(clientOrderId, profile),
    stpFlaw(stp, profile),
  ]);
  if (flaws.length > 0 || amount === null) return { flaws };
  const mode = typeof stp === 'string' ? stp : 'no';
  return {
    market: String(market),
    side: side === 'buy' ? 'buy' : 'sell',
    amount,
    clientOrderId: typeof clientOrderId === 'string' ? clientOrderId : '',
    stp: profile === 'live' ? (STP_MODES[mode] ?? mode) : mode,
  };
}

export function readAmount(value: unknown): Decimal | null {
  if (typeof value === 'number') return decimalOfNumber(value);
  return typeof value === 'string' ? parseDecimal(value) : null;
}

export function requiredFlaw(field: string, value: unknown, profile: Profile): Flaw | null {
  if (value !== undefined && value !== null) return null;
  return flawOf(profile, field, 'field is required.');
}

function marketFormFlaw(market: unknown, profile: Profile): Flaw | null {
  if (typeof market !== 'string') return flaw('market', 'Market must be a string.', CODES.market);
  if (market !== '') return null;
  const isLive = profile === 'live';
  const message = isLive ? 'Market field should not be empty string.' : 'Market must not be an empty string.';
  return flaw('market', message, CODES.market);
}

function sideFlaw(side: unknown, profile: Profile): Flaw | null {
  if (side === 'buy' || side === 'sell') return null;
  const live = "field should contain only 'buy' or 'sell' values.";
  return flawOf(profile, 'side', 'may hold only buy or sell.', { live });
}

/** What is wrong with the form of an amount or a price; null where nothing is. */
export function numberFlaw(field: string, value: unknown, profile: Profile): Flaw | null {
  const missing = requiredFlaw(field, value, profile);
  if (missing !== null || readAmount(value) !== null) return missing;
  const live = 'field should be numeric string or number.';
  return flawOf(profile, field, 'must be a numeric string or number.', { live, code: CODES.amount });
}

/** An empty text stands for none given, as it does in the reply. */
function clientOrderIdFlaw(value: unknown, profile: Profile): Flaw | null {
  const say = (problem: string, live: string) =>
    flawOf(profile, 'client_order_id', problem, { live, code: CODES.clientOrderId });
  if (value === undefined) return null;
  if (typeof value !== 'string') return say('must be a string.', 'field should be a string.');
  if (/^[\w.-]*$/.test(value)) return null;
  const allowed = 'letters, dashes, digits, dots and underscores';
  return say(`may contain only ${allowed}.`, `field should contain only ${allowed}.`);
}

function stpFlaw(stp: unknown, profile: Profile): Flaw | null {
  if (stp === undefined || stpValues(profile).some((value) => value === stp)) return null;
  return flawOf(profile, 'stp', `may hold only ${stpValues(profile).join(', ')}.`);
}

/** At the live exchange an identifier is free again as soon as its order is no longer in the book. */
export function repeatFlaw({ clientOrderId }: OrderFields, { account, state }: Call): Flaw | null {
  if (clientOrderId === '') return null;
  const id = state.data.clientOrderIds.get(account)?.get(clientOrderId);
  const isGone = id !== undefined && state.data.orders.get(account)?.has(String(id)) === true;
  if (id === undefined || (isGone && state.profile === 'live')) return null;
  const message = 'This client_order_id is already used by the account.';
  return flaw('client_order_id', message, CODES.clientOrderId);
}

/** A whole order, filled at its own price. */
export function filledOf(state: ExchangeState, order: RestingOrder, nowMs: number): MarketOrder {
  const view = viewOf(state, order);
  const money = multiply(decimal(order.amount), decimal(order.price));
  const dealMoney = formatDecimal(money);
  const dealFee = formatDecimal(multiply(money, decimal(view.feeRate)));
  const deal = { left: '0', dealStock: order.amount, dealMoney, dealFee };
  return { ...view, ...deal, status: 'FILLED', endedAtMs: nowMs };
}

/** Moves the money of a filled order, and puts it into the history. */
export function settle(order: MarketOrder, { data, log }: ExchangeState): void {
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

/** Puts an order that left the book without being filled into the log, and into the history if a bot placed it. */
export function recordCancelled(
  state: ExchangeState,
  order: RestingOrder,
  by: 'kill-switch' | 'request',
  nowMs: number,
): void {
  const { account, id: orderId, market, type, placed } = order;
  if (placed !== null) {
    const ended: MarketOrder = { ...viewOf(state, order), status: 'CANCELED', endedAtMs: nowMs };
    addRecord(state.data.orders, account, String(orderId), ended);
  }
  state.log.append({ kind: 'order-cancelled', account, orderId, market, type, by }, nowMs);
}

/** A resting order as replies show it. */
export function viewOf(state: ExchangeState, order: RestingOrder): MarketOrder {
  const { id: orderId, account, market, type, side, amount, price, placed } = order;
  const { clientOrderId = '', atMs = 0, stp = 'no', postOnly = false } = placed ?? {};
  return {
    orderId,
    clientOrderId,
    account,
    market,
    side,
    type: type === 'spot' ? 'limit' : 'margin limit',
    status: 'OPEN',
    atMs,
    endedAtMs: atMs,
    amount,
    left: amount,
    dealMoney: '0',
    dealStock: '0',
    dealFee: '0',
    price,
    feeRate: formatDecimal((state.termsOf(market) ?? PLAIN_TERMS).feeRate),
    stp,
    postOnly,
    ioc: false,
  };
}

/**
 * An Order of the API document, or as the live exchange spells it and its libraries read it: with rates of fees, the
 * price 0 of a market order, and no position side, which orders on the spot market do not have there. The document
 * shows no values for `type` and `positionSide`.
 */
export function orderReply(order: MarketOrder, profile: Profile): Readonly<Record<string, unknown>> {
  const { orderId, clientOrderId, market, side, type, atMs, amount, left, feeRate, status, stp } = order;
  const { dealMoney, dealStock, dealFee, price, postOnly, ioc } = order;
  const timestamp = atMs / 1000;
  const flags = { postOnly, ioc, status, stp };
  if (profile === 'live') {
    const rates = { takerFee: feeRate, makerFee: feeRate, left, dealFee, feeAsset: quoteOf(market) };
    const deal = { dealMoney, dealStock, amount, ...rates, price: shownPrice(order) };
    return { orderId, clientOrderId, market, side, type, timestamp, ...deal, ...flags, rpi: false };
  }
  return {
    order_id: orderId,
    client_order_id: clientOrderId,
    market,
    side,
    type,
    timestamp,
    deal_money: dealMoney,
    deal_stock: dealStock,
    amount,
    left,
    deal_fee: dealFee,
    price,
    ...flags,
    positionSide: 'BOTH',
    rpi: false,
  };
}

/** A record of the live exchange's history, which shows no price of a market order. */
function historyRecord(order: MarketOrder): Readonly<Record<string, unknown>> {
  const { orderId: id, clientOrderId, market, side, type, amount, status, postOnly, ioc } = order;
  const { dealMoney, dealStock, dealFee } = order;
  const times = { ctime: order.atMs / 1000, ftime: order.endedAtMs / 1000 };
  const deal = { dealFee, dealStock, dealMoney, postOnly, ioc, status, feeAsset: quoteOf(market) };
  return { amount, price: shownPrice(order), type, id, clientOrderId, side, ...times, ...deal, rpi: false };
}

function shownPrice({ type, price }: MarketOrder): string {
  return type.endsWith('market') ? '0' : price;
}

function quoteOf(market: string): string {
  return market.slice(market.indexOf('_') + 1);
}

const DEFAULT_LIMIT = 50;

/**
 * The account's filled and cancelled orders, newest first: an answer of the form of the list of codes with Orders in it
 * or, as at the live exchange, records grouped by market.
 */
export function readHistory({ account, body, state }: Call, isGrouped: boolean): Answer {
  const { profile, data } = state;
  const { market, limit = DEFAULT_LIMIT, offset = 0 } = body;
  const clientOrderId = fieldOf(body, 'client_order_id', profile);
  const given = fieldOf(body, 'order_id', profile);
  // Libraries of the live exchange ask with the text that they were given.
  const orderId = isGrouped && typeof given === 'string' && /^\d{1,15}$/.test(given) ? Number(given) : given;
  const flaws = flawsAmong([
    ...pageFlaws(limit, offset),
    optionalTextFlaw('market', market),
    optionalTextFlaw('client_order_id', clientOrderId),
    integerFlaw('order_id', orderId, 1, Number.MAX_SAFE_INTEGER),
  ]);
  if (flaws.length > 0) return refuseFields('form', flaws, profile);
  const found = recordsOf(data.orders, account)
    .filter(
      (order) =>
        (market === undefined || order.market === market) &&
        (clientOrderId === undefined || order.clientOrderId === clientOrderId) &&
        (orderId === undefined || order.orderId === orderId),
    )
    .toReversed();
  const page = found.slice(Number(offset), Number(offset) + Number(limit));
  if (isGrouped) return done(byMarket(page));
  return done({ total: found.length, data: page.map((order) => orderReply(order, profile)), limit, offset });
}

function byMarket(orders: readonly MarketOrder[]): Readonly<Record<string, readonly unknown[]>> {
  const markets = Map.groupBy(orders, (order) => order.market);
  return Object.fromEntries(Array.from(markets, ([market, own]) => [market, own.map(historyRecord)]));
}
