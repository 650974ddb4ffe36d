import type { SyncRequest } from '../ports.ts';
import type { StockMarketOrderRequest, WithdrawPayRequest } from './schemas.ts';

/** A documented limit: at most `requests` in any `windowMs`. */
export interface Limit {
  readonly requests: number;
  readonly windowMs: number;
}

/** One operation of the API document: everything that is needed to send its fields. */
export interface Operation {
  readonly name: string;
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
}

/** Fields of a body in the order in which they are written; undefined ones are not. */
export type Fields = Readonly<Record<string, unknown>>;

const LIMIT_OF_MOST: Limit = { requests: 1_000, windowMs: 10_000 };
const SIGNED = { method: 'POST', authentication: 'signed', limit: LIMIT_OF_MOST } as const;
const OF_ORDERS = { ...SIGNED, limit: { requests: 10_000, windowMs: 10_000 } } as const;
const BEARER = { method: 'POST', authentication: 'bearer' } as const;
const PUBLIC = { method: 'GET', authentication: 'none', effect: 'reads' } as const;
/** For answers with lists, whose length the document leaves open. */
const LISTS = { effect: 'reads', maxReplyBytes: 1_048_576 } as const;

function named<const Operations extends Record<string, Omit<Operation, 'name'>>>(operations: Operations) {
  const entries = Object.entries(operations).map(([name, operation]) => [name, { name, ...operation }]);
  return Object.fromEntries(entries) as {
    readonly [Name in keyof Operations]: { readonly name: Name } & Operations[Name];
  };
}

/** The nine operations in the order of the document, by the name of the client's method. */
export const OPERATIONS = named({
  createStockMarketOrder: { ...OF_ORDERS, path: '/api/v4/order/stock_market', effect: 'moves-money' },
  /** Fields of the body and its limit are not shown in the document. */
  orderHistory: { ...LISTS, ...BEARER, path: '/api/v4/accounts/orders', limit: null },
  withdrawPay: { ...SIGNED, path: '/api/v4/main-account/withdraw-pay', effect: 'moves-money' },
  syncKillSwitch: { ...OF_ORDERS, path: '/api/v4/order/kill-switch', effect: 'changes' },
  myCodes: { ...SIGNED, ...LISTS, path: '/api/v4/main-account/codes/my' },
  miningHashrate: { ...SIGNED, ...LISTS, path: '/api/v4/mining/hashrate' },
  createNewAddress: { ...SIGNED, path: '/api/v4/main-account/create-new-address', effect: 'changes' },
  miningPool: { ...PUBLIC, ...LISTS, path: '/api/v4/public/mining-pool', limit: LIMIT_OF_MOST },
  /** Answers `["pong"]`. Its limit is that of public endpoints in general. */
  ping: { ...PUBLIC, path: '/api/v4/public/ping', limit: { requests: 2_000, windowMs: 10_000 } },
});

export type OperationName = keyof typeof OPERATIONS;
export const { syncKillSwitch, ping } = OPERATIONS;

export type KillSwitchArguments = Pick<SyncRequest, 'market' | 'timeoutSeconds' | 'types'>;

/** A delete does not send types: it removes the timer of the market. */
export function timerFields({ market, timeoutSeconds, types }: KillSwitchArguments): Fields {
  if (timeoutSeconds === null) return { market, timeout: null };
  return { market, timeout: String(timeoutSeconds), types };
}

/** Bodies that are not the arguments as they are. `amountIn` and `fiat` are not sent. */
const BODIES: Partial<Record<OperationName, (given: never) => Fields>> = {
  createStockMarketOrder: ({ market, side, amount, clientOrderId, stp }: StockMarketOrderRequest) => {
    return { market, side, amount: String(amount), client_order_id: clientOrderId, stp };
  },
  withdrawPay: ({ ticker, amount, address, uniqueId, provider, network }: WithdrawPayRequest) => {
    return { ticker, amount: String(amount), address, unique_id: uniqueId, provider, network };
  },
  syncKillSwitch: timerFields,
};

/** The body of a request but for `request` and `nonce`, under the names of the document. */
export function fieldsOf(operation: OperationName, given: object): Fields {
  return BODIES[operation]?.(given as never) ?? { ...given };
}
