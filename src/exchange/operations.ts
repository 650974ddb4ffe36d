import type { OrderType } from '../core/events.ts';
import type {
  CodesRequest,
  HashrateRequest,
  NewAddressRequest,
  OrderHistoryRequest,
  StockMarketOrderRequest,
  WithdrawPayRequest,
} from './schemas.ts';

/** A documented limit: at most `requests` in any `windowMs`. */
export interface Limit {
  readonly requests: number;
  readonly windowMs: number;
}

/** One operation of the API document: everything that is needed to send it. */
export interface Operation<Arguments> {
  readonly name: OperationName;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /**
   * `signed`: key, payload and signature headers, and a body with `request` and `nonce`. `bearer`: an OAuth 2.0 access
   * token, and a body that is the caller's alone.
   */
  readonly authentication: 'signed' | 'bearer' | 'none';
  /** What carrying it out twice would do: nothing, some harm at most, or cost money. */
  readonly effect: 'reads' | 'changes' | 'moves-money';
  /** Null where the document shows none. */
  readonly limit: Limit | null;
  /** The most of an answer that is read; 64 KiB where it is not given. */
  readonly maxReplyBytes?: number;
  /** Fields of the body after `request` and `nonce`, in the order in which they are written; undefined ones are not. */
  readonly fields: (given: Arguments) => Readonly<Record<string, unknown>>;
}

const LIMIT_OF_ORDERS: Limit = { requests: 10_000, windowMs: 10_000 };
const LIMIT_OF_MOST: Limit = { requests: 1_000, windowMs: 10_000 };
const SIGNED = { method: 'POST', authentication: 'signed', limit: LIMIT_OF_MOST } as const;
const PUBLIC = { method: 'GET', authentication: 'none', effect: 'reads', fields: () => ({}) } as const;
/** For answers with lists, whose length the document leaves open. */
const LISTS = { effect: 'reads', maxReplyBytes: 1_048_576 } as const;

export interface KillSwitchArguments {
  readonly market: string;
  /** Whole seconds 5 to 600, or null to delete the timer. */
  readonly timeoutSeconds: number | null;
  /** Null means all order types. A delete does not send them: it removes the timer of the market. */
  readonly types: readonly OrderType[] | null;
}

/** Creates, updates or deletes the timer of a market. */
export const syncKillSwitch: Operation<KillSwitchArguments> & { readonly limit: Limit } = {
  ...SIGNED,
  name: 'syncKillSwitch',
  path: '/api/v4/order/kill-switch',
  effect: 'changes',
  limit: LIMIT_OF_ORDERS,
  fields: ({ market, timeoutSeconds, types }) =>
    timeoutSeconds === null ? { market, timeout: null } : { market, timeout: String(timeoutSeconds), types },
};

/** Places a market order. */
export const createStockMarketOrder: Operation<StockMarketOrderRequest> = {
  ...SIGNED,
  name: 'createStockMarketOrder',
  path: '/api/v4/order/stock_market',
  effect: 'moves-money',
  limit: LIMIT_OF_ORDERS,
  fields: ({ market, side, amount, clientOrderId, stp }) => ({
    market,
    side,
    amount: String(amount),
    client_order_id: clientOrderId,
    stp,
  }),
};

/** Fields of the body and its limit are not shown in the document. */
export const orderHistory: Operation<OrderHistoryRequest> = {
  ...LISTS,
  name: 'orderHistory',
  method: 'POST',
  path: '/api/v4/accounts/orders',
  authentication: 'bearer',
  limit: null,
  fields: (given) => given,
};

/** A withdrawal with the fee on top of the amount. */
export const withdrawPay: Operation<WithdrawPayRequest> = {
  ...SIGNED,
  name: 'withdrawPay',
  path: '/api/v4/main-account/withdraw-pay',
  effect: 'moves-money',
  fields: ({ ticker, amount, address, uniqueId, provider, network }) => ({
    ticker,
    amount: String(amount),
    address,
    unique_id: uniqueId,
    provider,
    network,
  }),
};

/** The codes that the account has created. */
export const myCodes: Operation<CodesRequest> = {
  ...SIGNED,
  ...LISTS,
  name: 'myCodes',
  path: '/api/v4/main-account/codes/my',
  fields: (given) => ({ ...given }),
};

/** The hashrate of a mining account over time. */
export const miningHashrate: Operation<HashrateRequest> = {
  ...SIGNED,
  ...LISTS,
  name: 'miningHashrate',
  path: '/api/v4/mining/hashrate',
  fields: (given) => ({ ...given }),
};

/** A new deposit address. Support must have enabled it. */
export const createNewAddress: Operation<NewAddressRequest> = {
  ...SIGNED,
  name: 'createNewAddress',
  path: '/api/v4/main-account/create-new-address',
  effect: 'changes',
  fields: (given) => ({ ...given }),
};

/** The state of the mining pool. */
export const miningPool: Operation<null> = {
  ...PUBLIC,
  ...LISTS,
  name: 'miningPool',
  path: '/api/v4/public/mining-pool',
  limit: LIMIT_OF_MOST,
};

/** Answers `["pong"]`. Its limit is that of public endpoints in general. */
export const ping: Operation<null> = {
  ...PUBLIC,
  name: 'ping',
  path: '/api/v4/public/ping',
  limit: { requests: 2_000, windowMs: 10_000 },
};

/** The nine operations in the order of the document, by the name of the client's method. */
export const OPERATIONS = {
  createStockMarketOrder,
  orderHistory,
  withdrawPay,
  syncKillSwitch,
  myCodes,
  miningHashrate,
  createNewAddress,
  miningPool,
  ping,
} as const;

export type OperationName = keyof typeof OPERATIONS;
