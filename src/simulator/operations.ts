import {
  type Answer,
  done,
  type Profile,
  type Refusal,
  type Reply,
  reasonOf,
  refuse,
  renderAnswer,
} from './answer.ts';
import { syncKillSwitch } from './kill-switch.ts';
import {
  listAssets,
  listMarkets,
  readMainBalance,
  readTicker,
  readTickers,
  readTime,
  readTradeBalance,
} from './listings.ts';
import { createWithdrawal, giveAddress, listMyCodes } from './main-account.ts';
import { readHashrate, readMiningPool } from './mining.ts';
import { readHistory } from './orders.ts';
import {
  type Accepted,
  type AccessRules,
  checkBearerRequest,
  checkSignedRequest,
  objectIn,
} from './signed-request.ts';
import type {
  Call,
  CallRules,
  Data,
  ExchangeRequest,
  ExchangeState,
  Permission,
  RateLimit,
} from './state.ts';
import { cancelAllOrders, cancelOrder, fillAtOnce, listOpenOrders, placeLimitOrder } from './trading.ts';

/** One operation of the exchange. */
export interface Operation {
  readonly name: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /**
   * `signed`: the signed-request headers of the document, by a key with this permission. `bearer`: an OAuth 2.0 access
   * token. `none` also decides the shape of errors.
   */
  readonly auth:
    | { readonly kind: 'none' | 'bearer' }
    | { readonly kind: 'signed'; readonly permission: Permission };
  /** From the table "Limits" of the document; null where it shows none. */
  readonly limit: RateLimit | null;
  readonly run: (call: Call) => Answer;
}

type Run = Operation['run'];

function per10Seconds(requests: number): RateLimit {
  return { requests, windowMs: 10_000 };
}

function signed(name: string, path: string, permission: Permission, requests: number, run: Run): Operation {
  const auth = { kind: 'signed', permission } as const;
  return { name, method: 'POST', path: `/api/v4/${path}`, auth, limit: per10Seconds(requests), run };
}

function open(name: string, path: string, requests: number, run: Run): Operation {
  const limit = per10Seconds(requests);
  return { name, method: 'GET', path: `/api/${path}`, auth: { kind: 'none' }, limit, run };
}

/** The operations of the API document. */
export const OPERATIONS: readonly Operation[] = [
  signed('stock-market', 'order/stock_market', 'trade', 10_000, (call) => fillAtOnce(call, 'stock market')),
  {
    name: 'order-history',
    method: 'POST',
    path: '/api/v4/accounts/orders',
    auth: { kind: 'bearer' },
    limit: null,
    // The document shows no field of it; live: as that exchange's own history below.
    run: (call) => readHistory(call, call.state.profile === 'live'),
  },
  signed('withdraw-pay', 'main-account/withdraw-pay', 'withdraw', 1000, (call) =>
    createWithdrawal(call, 'on top'),
  ),
  signed('kill-switch', 'order/kill-switch', 'trade', 10_000, syncKillSwitch),
  signed('my-codes', 'main-account/codes/my', 'info', 1000, listMyCodes),
  signed('hashrate', 'mining/hashrate', 'info', 1000, readHashrate),
  signed('new-address', 'main-account/create-new-address', 'deposit', 1000, (call) =>
    giveAddress(call, 'new'),
  ),
  open('mining-pool', 'v4/public/mining-pool', 1000, readMiningPool),
  open('ping', 'v4/public/ping', 2000, () => done(['pong'])),
];

/**
 * What the API document does not have, and bots on libraries of the live exchange need beside it. The fields are those
 * of the live exchange, and so are the limits of trading; the others are the document's general limit.
 */
export const EXTRAS: readonly Operation[] = [
  open('markets', 'v4/public/markets', 2000, listMarkets),
  open('assets', 'v4/public/assets', 2000, listAssets),
  open('time', 'v4/public/time', 2000, readTime),
  open('ticker', 'v1/public/ticker', 2000, readTicker),
  open('tickers', 'v4/public/ticker', 2000, readTickers),
  signed('limit-order', 'order/new', 'trade', 10_000, (call) => placeLimitOrder(call, 'spot')),
  signed('collateral-order', 'order/collateral/limit', 'trade', 10_000, (call) =>
    placeLimitOrder(call, 'collateral'),
  ),
  signed('market-order', 'order/market', 'trade', 10_000, (call) => fillAtOnce(call, 'market')),
  signed('cancel-order', 'order/cancel', 'trade', 10_000, cancelOrder),
  signed('cancel-all', 'order/cancel/all', 'trade', 10_000, cancelAllOrders),
  signed('open-orders', 'orders', 'info', 1000, listOpenOrders),
  signed('trade-history', 'trade-account/order/history', 'info', 1000, (call) => readHistory(call, true)),
  signed('trade-balance', 'trade-account/balance', 'info', 1000, readTradeBalance),
  signed('main-balance', 'main-account/balance', 'info', 1000, readMainBalance),
  signed('withdraw', 'main-account/withdraw', 'withdraw', 1000, (call) => createWithdrawal(call, 'within')),
  signed('address', 'main-account/address', 'deposit', 1000, (call) => giveAddress(call, 'newest')),
];

const BY_PATH = new Map([...OPERATIONS, ...EXTRAS].map((operation) => [operation.path, operation]));

/** Bodies larger than this are refused with 413. */
export const MAX_BODY_BYTES = 64 * 1024;

/** What a request asks for, read without any check. */
export interface RequestTarget {
  /** Null where no operation has this path. */
  readonly operation: string | null;
  /** Null where the body names none. */
  readonly market: string | null;
  /** The API key that the request names; null where it names none. */
  readonly key: string | null;
}

export function targetOf(request: ExchangeRequest): RequestTarget {
  const operation = BY_PATH.get(pathOf(request));
  const body = operation?.method === 'POST' ? objectIn(bytesOf(request)) : null;
  const key = request.headers['x-txc-apikey'];
  return {
    operation: operation?.name ?? null,
    market: marketOf(body),
    key: typeof key === 'string' ? key : null,
  };
}

/** Answers one request at the exchange's time; `how` may change what its operation does. */
export type Answerer = (request: ExchangeRequest, nowMs: number, how: CallRules) => Reply;

interface Decision {
  readonly answer: Answer;
  /** The fields of the body, as far as they were read. */
  readonly body: Accepted['body'] | null;
}

/** Every response is JSON in the document; the live exchange answers with nothing. */
const NOT_FOUND = refuse(404, 0, 'Not found.');

/**
 * The order of the checks: route, method, size, key or token, rate limit, and the operation's own. `limits` by operation
 * name take the place of those of the document.
 */
export function createAnswerer(
  state: ExchangeState,
  rules: AccessRules,
  limits: Readonly<Record<string, RateLimit>>,
): Answerer {
  function decide(operation: Operation, request: ExchangeRequest, nowMs: number, how: CallRules): Decision {
    const { method, name, run } = operation;
    const bytes = bytesOf(request);
    if (request.method !== method) {
      return { answer: refuse(405, 0, `Method not allowed. Allowed: ${method}.`), body: null };
    }
    if (bytes.length > MAX_BODY_BYTES) {
      return { answer: refuse(413, 9, `Payload too large. Allowed: ${MAX_BODY_BYTES} bytes.`), body: null };
    }
    const accepted = admit(operation, request, bytes, rules, state.data, nowMs);
    if (accepted.kind === 'refused') return { answer: accepted, body: objectIn(bytes) };
    const { account, body } = accepted;
    const limit = limits[name] ?? operation.limit;
    if (limit !== null && !isWithin(limit, state.data.windows, `${name} ${account}`, nowMs)) {
      return { answer: overLimit(limit, state.profile), body };
    }
    return { answer: run({ account, body, nowMs, ...how, state }), body };
  }

  return (request, nowMs, how) => {
    const operation = BY_PATH.get(pathOf(request));
    const notFound: Refusal = state.profile === 'live' ? { ...NOT_FOUND, form: 'empty' } : NOT_FOUND;
    const { answer, body } =
      operation === undefined ? { answer: notFound, body: null } : decide(operation, request, nowMs, how);
    if (answer.kind === 'refused') {
      const { status, code } = answer;
      const name = operation?.name ?? null;
      const why = reasonOf(answer);
      const market = marketOf(body);
      state.log.append({ kind: 'request-refused', operation: name, market, status, code, why }, nowMs);
    }
    const isPublic =
      operation === undefined
        ? pathOf(request).startsWith('/api/v4/public/')
        : operation.auth.kind === 'none';
    return renderAnswer(answer, isPublic ? 'public' : 'private');
  };
}

function admit(
  { auth, path }: Operation,
  request: ExchangeRequest,
  body: Buffer,
  rules: AccessRules,
  data: Data,
  nowMs: number,
): Accepted | Refusal {
  const { headers } = request;
  switch (auth.kind) {
    case 'signed':
      return checkSignedRequest({ path, permission: auth.permission, headers, body }, rules, data, nowMs);
    case 'bearer':
      return checkBearerRequest({ headers, body }, rules);
    case 'none': {
      const query = request.path.slice(request.path.indexOf('?') + 1);
      return { kind: 'accepted', account: '', body: Object.fromEntries(new URLSearchParams(query)) };
    }
  }
}

/**
 * A sliding window for each account; public operations have one for all. Says whether a request is within the limit,
 * and counts it if so; refused requests do not count. Entries from the future (the clock was set back) are forgotten.
 */
function isWithin(limit: RateLimit, windows: Data['windows'], name: string, nowMs: number): boolean {
  const window = windows.get(name) ?? { accepted: [], oldest: 0 };
  windows.set(name, window);
  const first = window.accepted[window.oldest];
  const isFull = window.accepted.length === limit.requests && first !== undefined;
  if (isFull && first <= nowMs && nowMs - first < limit.windowMs) return false;
  window.accepted[window.oldest] = nowMs;
  window.oldest = (window.oldest + 1) % limit.requests;
  return true;
}

/** The document does not say how a limit is reported; at the live exchange the gateway answers with a page. */
function overLimit({ requests, windowMs }: RateLimit, profile: Profile): Refusal {
  if (profile === 'live') return { ...refuse(429, 0, 'Too Many Requests'), form: 'html' };
  return refuse(429, 0, `Rate limit exceeded: ${requests} requests per ${windowMs / 1000} seconds.`);
}

/** The path without its query, and without the address that RFC 9112 allows before it. */
function pathOf({ path }: ExchangeRequest): string {
  const start = /^https?:\/\/[^/?]*/i.exec(path)?.[0].length ?? 0;
  const query = path.indexOf('?', start);
  return path.slice(start, query === -1 ? undefined : query);
}

function bytesOf({ body }: ExchangeRequest): Buffer {
  return typeof body === 'string' ? Buffer.from(body, 'utf8') : body;
}

/** A market name is repeated in the log only as far as any real name is long. */
function marketOf(body: Accepted['body'] | null): string | null {
  const market = body?.['market'];
  return typeof market === 'string' ? market.slice(0, 64) : null;
}
