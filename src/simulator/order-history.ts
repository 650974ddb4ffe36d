import {
  type Answer,
  done,
  fieldOf,
  flawsAmong,
  integerFlaw,
  optionalTextFlaw,
  refuseFields,
} from './answer.ts';
import { type MarketOrder, recordsOf } from './holdings.ts';
import { historyRecord, orderReply } from './orders.ts';
import type { Call } from './state.ts';

const MAX_LIMIT = 100;
const MAX_OFFSET = 10_000;
const DEFAULT_LIMIT = 50;

/**
 * `POST /api/v4/accounts/orders`: the account's filled and cancelled orders, newest first. The document shows no field
 * of it. Here `limit`, `offset`, `market`, `client_order_id` and `order_id` may be given, and the reply has the form of
 * the list of codes with Orders in it. The live profile groups records by market, as the live exchange's own history.
 */
export function readOrderHistory(call: Call): Answer {
  return readHistory(call, call.state.profile === 'live');
}

/** `POST /api/v4/trade-account/order/history` of the live exchange: the same with a signature, grouped by market. */
export function readTradeHistory(call: Call): Answer {
  return readHistory(call, true);
}

function readHistory({ account, body, state }: Call, isGrouped: boolean): Answer {
  const { profile, data } = state;
  const { market, limit = DEFAULT_LIMIT, offset = 0 } = body;
  const clientOrderId = fieldOf(body, 'client_order_id', profile);
  const given = fieldOf(body, 'order_id', profile);
  // Libraries of the live exchange ask with the text that they were given.
  const orderId = isGrouped && typeof given === 'string' && /^\d{1,15}$/.test(given) ? Number(given) : given;
  const flaws = flawsAmong([
    integerFlaw('limit', limit, 1, MAX_LIMIT),
    integerFlaw('offset', offset, 0, MAX_OFFSET),
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
