import { type Answer, done } from './answer.ts';
import type { Call } from './exchange-state.ts';
import { syncKillSwitch } from './kill-switch.ts';
import { readHashrate, readMiningPool } from './mining.ts';
import { listMyCodes } from './my-codes.ts';
import { createNewAddress } from './new-address.ts';
import { readOrderHistory } from './order-history.ts';
import type { Permission } from './permissions.ts';
import type { RateLimit } from './rate-window.ts';
import { createStockMarketOrder } from './stock-market.ts';
import { withdrawPay } from './withdraw-pay.ts';

/** One operation of the API document. */
export interface Operation {
  readonly name: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /**
   * `signed`: the signed-request headers of the document, by a key with this permission. `bearer`: an OAuth 2.0 access
   * token. `none` also decides the shape of errors.
   */
  readonly auth: { readonly kind: 'none' | 'bearer' } | SignedAuth;
  /** From the table "Limits" of the document; null where it shows none. */
  readonly limit: RateLimit | null;
  readonly run: (call: Call) => Answer;
}

interface SignedAuth {
  readonly kind: 'signed';
  readonly permission: Permission;
}

function per10Seconds(requests: number): RateLimit {
  return { requests, windowMs: 10_000 };
}

function signed(permission: Permission): SignedAuth {
  return { kind: 'signed', permission };
}

export const OPERATIONS: readonly Operation[] = [
  {
    name: 'stock-market',
    method: 'POST',
    path: '/api/v4/order/stock_market',
    auth: signed('trade'),
    limit: per10Seconds(10_000),
    run: createStockMarketOrder,
  },
  {
    name: 'order-history',
    method: 'POST',
    path: '/api/v4/accounts/orders',
    auth: { kind: 'bearer' },
    limit: null,
    run: readOrderHistory,
  },
  {
    name: 'withdraw-pay',
    method: 'POST',
    path: '/api/v4/main-account/withdraw-pay',
    auth: signed('withdraw'),
    limit: per10Seconds(1000),
    run: withdrawPay,
  },
  {
    name: 'kill-switch',
    method: 'POST',
    path: '/api/v4/order/kill-switch',
    auth: signed('trade'),
    limit: per10Seconds(10_000),
    run: syncKillSwitch,
  },
  {
    name: 'my-codes',
    method: 'POST',
    path: '/api/v4/main-account/codes/my',
    auth: signed('info'),
    limit: per10Seconds(1000),
    run: listMyCodes,
  },
  {
    name: 'hashrate',
    method: 'POST',
    path: '/api/v4/mining/hashrate',
    auth: signed('info'),
    limit: per10Seconds(1000),
    run: readHashrate,
  },
  {
    name: 'new-address',
    method: 'POST',
    path: '/api/v4/main-account/create-new-address',
    auth: signed('deposit'),
    limit: per10Seconds(1000),
    run: createNewAddress,
  },
  {
    name: 'mining-pool',
    method: 'GET',
    path: '/api/v4/public/mining-pool',
    auth: { kind: 'none' },
    limit: per10Seconds(1000),
    run: readMiningPool,
  },
  {
    name: 'ping',
    method: 'GET',
    path: '/api/v4/public/ping',
    auth: { kind: 'none' },
    limit: per10Seconds(2000),
    run: () => done(['pong']),
  },
];
