import type { Profile } from './exchange-state.ts';
import type { MarketOrder } from './holdings.ts';

/** Modes of self trade prevention in the document, and what the live exchange calls them. */
const STP_MODES: Readonly<Record<string, string>> = {
  no: 'no',
  cancel_both: 'cb',
  cancel_new: 'cn',
  cancel_old: 'co',
};

/** What `stp` may hold. The live exchange takes its own short names, too. */
export function stpValues(profile: Profile): readonly string[] {
  const names = Object.keys(STP_MODES);
  return profile === 'live' ? [...new Set([...Object.values(STP_MODES), ...names])] : names;
}

/** The mode as the profile's replies name it; null where `stp` holds none. */
export function readStp(stp: unknown, profile: Profile): string | null {
  const given = stpValues(profile).find((value) => value === stp);
  if (given === undefined || profile === 'documented') return given ?? null;
  return STP_MODES[given] ?? given;
}

/**
 * An Order of the API document, or as the live exchange spells it and its libraries read it: with rates of fees, the
 * price 0 of a market order, and no position side, which orders on the spot market do not have there. The document
 * shows no values for `type` and `positionSide`.
 */
export function orderReply(order: MarketOrder, profile: Profile): Readonly<Record<string, unknown>> {
  const {
    orderId,
    clientOrderId,
    market,
    side,
    atMs,
    amount,
    left,
    dealMoney,
    dealStock,
    dealFee,
    price,
    feeRate,
    stp,
  } = order;
  const timestamp = atMs / 1000;
  const type = 'stock market';
  const flags = { postOnly: false, ioc: false, status: 'FILLED', stp };
  if (profile === 'live') {
    const rates = { takerFee: feeRate, makerFee: feeRate };
    const deal = { dealMoney, dealStock, amount, ...rates, left, dealFee, feeAsset: quoteOf(market) };
    return {
      orderId,
      clientOrderId,
      market,
      side,
      type,
      timestamp,
      ...deal,
      price: '0',
      ...flags,
      rpi: false,
    };
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
export function historyRecord(order: MarketOrder): Readonly<Record<string, unknown>> {
  const { orderId, clientOrderId, market, side, atMs, amount, dealMoney, dealStock, dealFee } = order;
  const seconds = atMs / 1000;
  return {
    amount,
    price: '0',
    type: 'stock market',
    id: orderId,
    clientOrderId,
    side,
    ctime: seconds,
    ftime: seconds,
    dealFee,
    dealStock,
    dealMoney,
    postOnly: false,
    ioc: false,
    status: 'FILLED',
    feeAsset: quoteOf(market),
    rpi: false,
  };
}

function quoteOf(market: string): string {
  return market.slice(market.indexOf('_') + 1);
}
