import type { OrderType } from '../core/outcome.ts';
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

/** For answers with lists, whose length the document leaves open. */
const LIST_BYTES = 1_048_576;
const LIMIT_OF_ORDERS: Limit = { requests: 10_000, windowMs: 10_000 };
const LIMIT_OF_MOST: Limit = { requests: 1_000, windowMs: 10_000 };

export interface KillSwitchArguments {
  readonly market: string;
  /** Whole seconds 5 to 600, or null to delete the timer. */
  readonly timeoutSeconds: number | null;
  /** Null means all order types. A delete does not send them: it removes the timer of the market. */
  readonly types: readonly OrderType[] | null;
}

/** `POST /api/v4/order/kill-switch`: creates, updates or deletes the timer of a market. */
export const syncKillSwitch: Operation<KillSwitchArguments> & { readonly limit: Limit } = {
  name: 'syncKillSwitch',
  method: 'POST',
  path: '/api/v4/order/kill-switch',
  authentication: 'signed',
  effect: 'changes',
  limit: LIMIT_OF_ORDERS,
  fields: ({ market, timeoutSeconds, types }) =>
    timeoutSeconds === null ? { market, timeout: null } : { market, timeout: String(timeoutSeconds), types },
};

/** `POST /api/v4/order/stock_market`: places a market order. */
export const createStockMarketOrder: Operation<StockMarketOrderRequest> = {
  name: 'createStockMarketOrder',
  method: 'POST',
  path: '/api/v4/order/stock_market',
  authentication: 'signed',
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

/** `POST /api/v4/accounts/orders`: order history. Fields of the body and its limit are not shown in the document. */
export const orderHistory: Operation<OrderHistoryRequest> = {
  name: 'orderHistory',
  method: 'POST',
  path: '/api/v4/accounts/orders',
  authentication: 'bearer',
  effect: 'reads',
  limit: null,
  maxReplyBytes: LIST_BYTES,
  fields: (given) => given,
};

/** `POST /api/v4/main-account/withdraw-pay`: a withdrawal with the fee on top of the amount. */
export const withdrawPay: Operation<WithdrawPayRequest> = {
  name: 'withdrawPay',
  method: 'POST',
  path: '/api/v4/main-account/withdraw-pay',
  authentication: 'signed',
  effect: 'moves-money',
  limit: LIMIT_OF_MOST,
  fields: ({ ticker, amount, address, uniqueId, provider, network }) => ({
    ticker,
    amount: String(amount),
    address,
    unique_id: uniqueId,
    provider,
    network,
  }),
};

/** `POST /api/v4/main-account/codes/my`: the codes that the account has created. */
export const myCodes: Operation<CodesRequest> = {
  name: 'myCodes',
  method: 'POST',
  path: '/api/v4/main-account/codes/my',
  authentication: 'signed',
  effect: 'reads',
  limit: LIMIT_OF_MOST,
  maxReplyBytes: LIST_BYTES,
  fields: (given) => ({ ...given }),
};

/** `POST /api/v4/mining/hashrate`: the hashrate of a mining account over time. */
export const miningHashrate: Operation<HashrateRequest> = {
  name: 'miningHashrate',
  method: 'POST',
  path: '/api/v4/mining/hashrate',
  authentication: 'signed',
  effect: 'reads',
  limit: LIMIT_OF_MOST,
  maxReplyBytes: LIST_BYTES,
  fields: (given) => ({ ...given }),
};

/** `POST /api/v4/main-account/create-new-address`: a new deposit address. Support must have enabled it. */
export const createNewAddress: Operation<NewAddressRequest> = {
  name: 'createNewAddress',
  method: 'POST',
  path: '/api/v4/main-account/create-new-address',
  authentication: 'signed',
  effect: 'changes',
  limit: LIMIT_OF_MOST,
  fields: (given) => ({ ...given }),
};

/** `GET /api/v4/public/mining-pool`: the state of the mining pool. */
export const miningPool: Operation<null> = {
  name: 'miningPool',
  method: 'GET',
  path: '/api/v4/public/mining-pool',
  authentication: 'none',
  effect: 'reads',
  limit: LIMIT_OF_MOST,
  maxReplyBytes: LIST_BYTES,
  fields: () => ({}),
};

/** `GET /api/v4/public/ping`: answers `["pong"]`. Limit: that of public endpoints in general. */
export const ping: Operation<null> = {
  name: 'ping',
  method: 'GET',
  path: '/api/v4/public/ping',
  authentication: 'none',
  effect: 'reads',
  limit: { requests: 2_000, windowMs: 10_000 },
  fields: () => ({}),
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
