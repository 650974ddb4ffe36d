import { type Answer, done, type Refusal } from './answer.ts';
import {
  add,
  compare,
  type Decimal,
  decimalOfNumber,
  divideDown,
  fitsScale,
  formatDecimal,
  multiply,
  parseDecimal,
  stepOf,
  subtract,
  ZERO,
} from './decimal.ts';
import type { Call, ExchangeState, Profile } from './exchange-state.ts';
import type { MarketOrder } from './holdings.ts';
import type { Terms } from './market-terms.ts';
import { orderReply, readStp, stpValues } from './order-reply.ts';
import {
  AMOUNT_VALIDATION,
  CLIENT_ID_VALIDATION,
  DEFAULT_VALIDATION,
  type Flaw,
  fieldOf,
  flawsAmong,
  inFull,
  MARKET_VALIDATION,
  refuseOrder,
} from './wording.ts';

interface Order {
  readonly kind: 'order';
  readonly market: string;
  readonly side: 'buy' | 'sell';
  readonly amount: Decimal;
  readonly clientOrderId: string;
  readonly stp: string;
}

/** What an order comes to at the market's price. Money in the quote currency. */
interface Deal {
  readonly stock: Decimal;
  readonly money: Decimal;
  readonly fee: Decimal;
  readonly left: Decimal;
}

/** `POST /api/v4/order/stock_market`: fills at once, at the market's price, or refuses. */
export function createStockMarketOrder(call: Call): Answer {
  const { account, nowMs, state } = call;
  const { profile, holdings } = state;
  const order = readOrder(call.body, profile);
  if (order.kind === 'refused') return order;
  const terms = holdings.markets.terms(order.market);
  const flaws = terms === null ? [notAvailable()] : innerFlaws(order, terms, account, state);
  if (terms === null || flaws.length > 0) return refuseOrder('inner', flaws, profile);
  const deal = strike(order, terms, profile);
  const { market, side, clientOrderId, stp } = order;
  const filled: MarketOrder = {
    orderId: call.apply ? state.numbers.next() : state.numbers.upcoming(),
    clientOrderId,
    account,
    market,
    side,
    atMs: nowMs,
    amount: formatDecimal(order.amount),
    left: formatDecimal(deal.left),
    dealMoney: formatDecimal(deal.money),
    dealStock: formatDecimal(deal.stock),
    dealFee: formatDecimal(deal.fee),
    price: formatDecimal(terms.price),
    feeRate: formatDecimal(terms.feeRate),
    stp,
  };
  if (call.apply) settle(filled, deal, terms, state);
  return done(orderReply(filled, profile));
}

function settle(filled: MarketOrder, deal: Deal, { base, quote }: Terms, state: ExchangeState): void {
  const { account, orderId, market, side, dealStock, dealMoney, dealFee, price, clientOrderId, atMs } =
    filled;
  const { ledger, orders, namedOrders } = state.holdings;
  const [buyer, seller] =
    side === 'buy' ? ([{ account }, 'market'] as const) : (['market', { account }] as const);
  ledger.move(seller, buyer, base, deal.stock);
  ledger.move(buyer, seller, quote, deal.money);
  ledger.move({ account }, 'fees', quote, deal.fee);
  orders.add(account, String(orderId), filled);
  if (clientOrderId !== '') namedOrders.add(account, clientOrderId, filled);
  state.log.append(
    { kind: 'order-filled', account, orderId, market, side, dealStock, dealMoney, dealFee, price },
    atMs,
  );
}

/**
 * The document counts a buy in the quote currency; what is less than a step of the base currency is left. The live
 * exchange counts both sides in the base currency.
 */
function strike({ side, amount }: Order, { price, stockPrecision, feeRate }: Terms, profile: Profile): Deal {
  const inMoney = isInMoney(side, profile);
  const stock = inMoney ? divideDown(amount, price, stockPrecision) : amount;
  const money = multiply(stock, price);
  return { stock, money, fee: multiply(money, feeRate), left: inMoney ? subtract(amount, money) : ZERO };
}

function isInMoney(side: Order['side'], profile: Profile): boolean {
  return side === 'buy' && profile === 'documented';
}

function innerFlaws(order: Order, terms: Terms, account: string, state: ExchangeState): readonly Flaw[] {
  return flawsAmong([
    sizeFlaw(order, terms, state.profile) ?? balanceFlaw(order, terms, account, state),
    repeatFlaw(order, account, state),
  ]);
}

/** A buy in money must also be enough for one step of the base currency: an order that fills nothing is none. */
function sizeFlaw({ side, amount }: Order, terms: Terms, profile: Profile): Flaw | null {
  const inMoney = isInMoney(side, profile);
  const precision = inMoney ? terms.moneyPrecision : terms.stockPrecision;
  const oneStep = multiply(terms.price, stepOf(terms.stockPrecision));
  const smallestTotal = compare(terms.minTotal, oneStep) < 0 ? oneStep : terms.minTotal;
  const smallest = inMoney ? smallestTotal : terms.minAmount;
  const step = `Min amount step = ${formatDecimal(stepOf(precision))}`;
  if (compare(amount, smallest) < 0 || compare(amount, ZERO) <= 0) {
    return amountFlaw([`Given amount is less than min amount ${formatDecimal(smallest)}`, step]);
  }
  return fitsScale(amount, precision) ? null : amountFlaw([step]);
}

/** The fee comes on top of a buy, in the quote currency. */
function balanceFlaw(order: Order, terms: Terms, account: string, state: ExchangeState): Flaw | null {
  const { ledger } = state.holdings;
  const deal = strike(order, terms, state.profile);
  const isEnough =
    order.side === 'buy'
      ? compare(ledger.balance(account, terms.quote), add(deal.money, deal.fee)) >= 0
      : compare(ledger.balance(account, terms.base), deal.stock) >= 0;
  return isEnough ? null : amountFlaw(['Not enough balance.']);
}

/** At the live exchange an identifier is free again as soon as its order is filled, which here is at once. */
function repeatFlaw({ clientOrderId }: Order, account: string, state: ExchangeState): Flaw | null {
  if (state.profile === 'live' || clientOrderId === '') return null;
  if (state.holdings.namedOrders.find(account, clientOrderId) === undefined) return null;
  const messages = ['This client_order_id is already used by the account.'];
  return { field: 'client_order_id', code: CLIENT_ID_VALIDATION, messages };
}

function readOrder(body: Call['body'], profile: Profile): Order | Refusal {
  const { market, side, stp } = body;
  const amount = readAmount(body['amount']);
  const clientOrderId = fieldOf(body, 'client_order_id', profile);
  const flaws = flawsAmong([
    requiredFlaw('market', market, profile) ?? marketFormFlaw(market, profile),
    requiredFlaw('side', side, profile) ?? sideFlaw(side, profile),
    requiredFlaw('amount', body['amount'], profile) ?? (amount === null ? notNumeric(profile) : null),
    clientOrderIdFlaw(clientOrderId, profile),
    stpFlaw(stp, profile),
  ]);
  if (flaws.length > 0 || amount === null) return refuseOrder('form', flaws, profile);
  return {
    kind: 'order',
    market: String(market),
    side: side === 'buy' ? 'buy' : 'sell',
    amount,
    clientOrderId: typeof clientOrderId === 'string' ? clientOrderId : '',
    stp: readStp(stp, profile) ?? 'no',
  };
}

function readAmount(value: unknown): Decimal | null {
  if (typeof value === 'number') return decimalOfNumber(value);
  return typeof value === 'string' ? parseDecimal(value) : null;
}

function requiredFlaw(field: string, value: unknown, profile: Profile): Flaw | null {
  if (value !== undefined && value !== null) return null;
  return { field, code: DEFAULT_VALIDATION, messages: [inFull(field, 'field is required.', profile)] };
}

function marketFormFlaw(market: unknown, profile: Profile): Flaw | null {
  if (typeof market !== 'string') return marketFlaw('Market must be a string.');
  if (market !== '') return null;
  return marketFlaw(
    profile === 'live' ? 'Market field should not be empty string.' : 'Market must not be an empty string.',
  );
}

function notAvailable(): Flaw {
  return marketFlaw('Market is not available.');
}

function marketFlaw(message: string): Flaw {
  return { field: 'market', code: MARKET_VALIDATION, messages: [message] };
}

function sideFlaw(side: unknown, profile: Profile): Flaw | null {
  if (side === 'buy' || side === 'sell') return null;
  const problem =
    profile === 'live' ? "field should contain only 'buy' or 'sell' values." : 'may hold only buy or sell.';
  return { field: 'side', code: DEFAULT_VALIDATION, messages: [inFull('side', problem, profile)] };
}

function notNumeric(profile: Profile): Flaw {
  const problem =
    profile === 'live' ? 'field should be numeric string or number.' : 'must be a numeric string or number.';
  return amountFlaw([inFull('amount', problem, profile)]);
}

function amountFlaw(messages: readonly string[]): Flaw {
  return { field: 'amount', code: AMOUNT_VALIDATION, messages };
}

/** An empty text stands for none given, as it does in the reply. */
function clientOrderIdFlaw(value: unknown, profile: Profile): Flaw | null {
  const problem = clientOrderIdProblem(value, profile);
  if (problem === null) return null;
  const messages = [inFull('client_order_id', problem, profile)];
  return { field: 'client_order_id', code: CLIENT_ID_VALIDATION, messages };
}

function clientOrderIdProblem(value: unknown, profile: Profile): string | null {
  if (value === undefined) return null;
  if (typeof value !== 'string')
    return profile === 'live' ? 'field should be a string.' : 'must be a string.';
  if (/^[\w.-]*$/.test(value)) return null;
  const allowed = 'letters, dashes, digits, dots and underscores';
  return profile === 'live' ? `field should contain only ${allowed}.` : `may contain only ${allowed}.`;
}

function stpFlaw(stp: unknown, profile: Profile): Flaw | null {
  if (stp === undefined || readStp(stp, profile) !== null) return null;
  const messages = [inFull('stp', `may hold only ${stpValues(profile).join(', ')}.`, profile)];
  return { field: 'stp', code: DEFAULT_VALIDATION, messages };
}
