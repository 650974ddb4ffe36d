import { type Answer, done } from './answer.ts';
import type { Call } from './exchange-state.ts';
import type { MarketOrder } from './holdings.ts';
import { historyRecord, orderReply } from './order-reply.ts';
import { fieldOf, flawsAmong, integerFlaw, optionalTextFlaw, refuseFields } from './wording.ts';

const MAX_LIMIT = 100;
const MAX_OFFSET = 10_000;
const DEFAULT_LIMIT = 50;

/**
 * `POST /api/v4/accounts/orders`: the account's filled orders, newest first. The document shows no field of it. Here
 * `limit`, `offset`, `market`, `client_order_id` and `order_id` may be given, and the reply has the form of the list of
 * codes with Orders in it. The live profile groups records by market, as the live exchange's own history does.
 */
export function readOrderHistory(call: Call): Answer {
  const { account, body, state } = call;
  const { profile, holdings } = state;
  const { market, limit = DEFAULT_LIMIT, offset = 0 } = body;
  const clientOrderId = fieldOf(body, 'client_order_id', profile);
  const orderId = fieldOf(body, 'order_id', profile);
  const flaws = flawsAmong([
    integerFlaw('limit', limit, 1, MAX_LIMIT),
    integerFlaw('offset', offset, 0, MAX_OFFSET),
    optionalTextFlaw('market', market),
    optionalTextFlaw('client_order_id', clientOrderId),
    integerFlaw('order_id', orderId, 1, Number.MAX_SAFE_INTEGER),
  ]);
  if (flaws.length > 0) return refuseFields('form', flaws, profile);
  const found = holdings.orders
    .of(account)
    .filter(
      (order) =>
        (market === undefined || order.market === market) &&
        (clientOrderId === undefined || order.clientOrderId === clientOrderId) &&
        (orderId === undefined || order.orderId === orderId),
    )
    .toReversed();
  const page = found.slice(Number(offset), Number(offset) + Number(limit));
  if (profile === 'live') return done(byMarket(page));
  return done({ total: found.length, data: page.map((order) => orderReply(order, profile)), limit, offset });
}

function byMarket(orders: readonly MarketOrder[]): Readonly<Record<string, readonly unknown[]>> {
  const markets = Map.groupBy(orders, (order) => order.market);
  return Object.fromEntries(Array.from(markets, ([market, own]) => [market, own.map(historyRecord)]));
}
