import { type Answer, done, type Refusal, type Reply, reasonOf, refuse, renderAnswer } from './answer.ts';
import { createJournal, type EventBody, type Target } from './event-log.ts';
import { syncKillSwitch } from './kill-switch.ts';
import { listAssets, listMarkets, readBalances, readTicker, readTickers } from './listings.ts';
import { createWithdrawal, giveAddress, listMyCodes } from './main-account.ts';
import { readHashrate, readMiningPool } from './mining.ts';
import {
  cancelAll,
  cancelOrder,
  fillAtOnce,
  listOpenOrders,
  placeLimitOrder,
  readHistory,
} from './orders.ts';
import { accept, checkBearerRequest, checkSignedRequest, objectIn } from './signed-request.ts';
import type { Call, ExchangeRequest, ExchangeState, Permission, RateLimit } from './state.ts';

export type Operation = ReturnType<typeof define>;

/** `auth`: the permission of the signing key, or `bearer` for an access token. `requests`: in 10 s; null: no limit. */
function define(
  name: string,
  path: string,
  auth: 'none' | 'bearer' | Permission,
  requests: number | null,
  run: (call: Call) => Answer,
) {
  const limit = requests === null ? null : { requests, windowMs: 10_000 };
  return { name, method: auth === 'none' ? 'GET' : 'POST', path: `/api/${path}`, auth, limit, run };
}

/** The operations of the API document. */
export const OPERATIONS: readonly Operation[] = [
  define('stock-market', 'v4/order/stock_market', 'trade', 10_000, fillAtOnce('stock market')),
  // The document shows no field of it; live: as that exchange's own history below.
  define('order-history', 'v4/accounts/orders', 'bearer', null, readHistory('of the profile')),
  define('withdraw-pay', 'v4/main-account/withdraw-pay', 'withdraw', 1000, createWithdrawal('on top')),
  define('kill-switch', 'v4/order/kill-switch', 'trade', 10_000, syncKillSwitch),
  define('my-codes', 'v4/main-account/codes/my', 'info', 1000, listMyCodes),
  define('hashrate', 'v4/mining/hashrate', 'info', 1000, readHashrate),
  define('new-address', 'v4/main-account/create-new-address', 'deposit', 1000, giveAddress('new')),
  define('mining-pool', 'v4/public/mining-pool', 'none', 1000, readMiningPool),
  define('ping', 'v4/public/ping', 'none', 2000, () => done(['pong'])),
];

/**
 * What the API document does not have, and bots on libraries of the live exchange need beside it. The fields are those
 * of the live exchange, and so are the limits of trading; the others are the document's general limit.
 */
export const EXTRAS: readonly Operation[] = [
  define('markets', 'v4/public/markets', 'none', 2000, listMarkets),
  define('assets', 'v4/public/assets', 'none', 2000, listAssets),
  define('time', 'v4/public/time', 'none', 2000, ({ nowMs }) => done({ time: Math.floor(nowMs / 1000) })),
  define('ticker', 'v1/public/ticker', 'none', 2000, readTicker),
  define('tickers', 'v4/public/ticker', 'none', 2000, readTickers),
  define('limit-order', 'v4/order/new', 'trade', 10_000, placeLimitOrder('spot')),
  define('collateral-order', 'v4/order/collateral/limit', 'trade', 10_000, placeLimitOrder('collateral')),
  define('market-order', 'v4/order/market', 'trade', 10_000, fillAtOnce('market')),
  define('cancel-order', 'v4/order/cancel', 'trade', 10_000, cancelOrder),
  define('cancel-all', 'v4/order/cancel/all', 'trade', 10_000, cancelAll),
  define('open-orders', 'v4/orders', 'info', 1000, listOpenOrders),
  define('trade-history', 'v4/trade-account/order/history', 'info', 1000, readHistory('grouped')),
  define('trade-balance', 'v4/trade-account/balance', 'info', 1000, readBalances('trade')),
  define('main-balance', 'v4/main-account/balance', 'info', 1000, readBalances('main')),
  define('withdraw', 'v4/main-account/withdraw', 'withdraw', 1000, createWithdrawal('within')),
  define('address', 'v4/main-account/address', 'deposit', 1000, giveAddress('newest')),
];

const BY_PATH = new Map([...OPERATIONS, ...EXTRAS].map((operation) => [operation.path, operation]));

export const MAX_BODY_BYTES = 64 * 1024;

/** What a request asks for, read without any check. */
export interface RequestTarget extends Target {
  /** The API key that the request names; null where it names none. */
  readonly key: string | null;
}

export function targetOf(request: ExchangeRequest): RequestTarget {
  const operation = BY_PATH.get(pathOf(request));
  const body = operation?.method === 'POST' ? objectIn(bytesOf(request)) : queryOf(request);
  const market = body?.['market'];
  const key = request.headers['x-txc-apikey'];
  return {
    operation: operation?.name ?? null,
    // Repeated in logs only as far as any real name is long.
    market: typeof market === 'string' ? market.slice(0, 64) : null,
    key: typeof key === 'string' ? key : null,
  };
}

/** Every response is JSON in the document; the live exchange answers with nothing. */
const NOT_FOUND = refuse(404, 0, 'Not found.');

interface How extends Pick<Call, 'nowMs' | 'grantSeconds'> {
  /** Answered as if it were carried out; its operation changes nothing. */
  readonly isPretended: boolean;
}

/** The order of the checks: route, method, size, key or token, rate limit, and the operation's own. */
export function createAnswerer(state: ExchangeState) {
  function admit({ auth, path }: Operation, request: ExchangeRequest, body: Buffer, nowMs: number) {
    const { headers } = request;
    if (auth === 'none') return accept('', queryOf(request));
    if (auth === 'bearer') return checkBearerRequest({ headers, body }, state);
    return checkSignedRequest({ path, permission: auth, headers, body }, state, nowMs);
  }

  function decide(operation: Operation, request: ExchangeRequest, { isPretended, ...how }: How): Answer {
    const { method, name, run } = operation;
    const { nowMs } = how;
    if (request.method !== method) return refuse(405, 0, `Method not allowed. Allowed: ${method}.`);
    const bytes = bytesOf(request);
    if (bytes.length > MAX_BODY_BYTES)
      return refuse(413, 9, `Payload too large. Allowed: ${MAX_BODY_BYTES} bytes.`);
    const accepted = admit(operation, request, bytes, nowMs);
    if (accepted.kind === 'refused') return accepted;
    const { account, body } = accepted;
    const limit = state.limits[name] ?? operation.limit;
    if (limit !== null && !isWithin(limit, state, `${name} ${account}`, nowMs))
      return overLimit(limit, state);
    const copy = () => ({ ...state, data: structuredClone(state.data), log: createJournal<EventBody>(1) });
    return run({ ...(isPretended ? copy() : state), ...how, account, body });
  }

  return (request: ExchangeRequest, how: How): Reply => {
    const operation = BY_PATH.get(pathOf(request));
    const notFound: Refusal = state.profile === 'live' ? { ...NOT_FOUND, form: 'empty' } : NOT_FOUND;
    const answer = operation === undefined ? notFound : decide(operation, request, how);
    if (answer.kind === 'refused') {
      const { key: _key, ...target } = targetOf(request);
      const refused = { ...target, status: answer.status, code: answer.code, why: reasonOf(answer) };
      state.log.append({ kind: 'request-refused', ...refused }, how.nowMs);
    }
    const { headers, ...reply } = renderFor(request, answer);
    const allow = reply.status === 405 && { allow: operation?.method ?? '' };
    return { ...reply, headers: { ...headers, ...allow } };
  };
}

/** The reply to a request, whose error object has the shape of its operation. */
export function renderFor(request: ExchangeRequest, answer: Answer): Reply {
  const path = pathOf(request);
  const isPublic = BY_PATH.get(path)?.method === 'GET' || path.startsWith('/api/v4/public/');
  return renderAnswer(answer, isPublic ? 'public' : 'private');
}

function queryOf({ path }: ExchangeRequest): Call['body'] {
  return Object.fromEntries(new URLSearchParams(path.slice(path.indexOf('?') + 1)));
}

/**
 * A sliding window for each account; public operations have one for all. Says whether a request is within the limit,
 * and counts it if so; refused requests do not count. Entries from the future (the clock was set back) are forgotten.
 */
function isWithin(limit: RateLimit, { data }: ExchangeState, name: string, nowMs: number): boolean {
  const window = data.windows.get(name) ?? { accepted: [], oldest: 0 };
  data.windows.set(name, window);
  const first = window.accepted[window.oldest] ?? nowMs;
  const isFull = window.accepted.length >= limit.requests;
  if (isFull && first <= nowMs && nowMs - first < limit.windowMs) return false;
  window.accepted[window.oldest] = nowMs;
  window.oldest = (window.oldest + 1) % limit.requests;
  return true;
}

/** The document does not say how a limit is reported; at the live exchange the gateway answers with a page. */
function overLimit({ requests, windowMs }: RateLimit, { profile }: ExchangeState): Refusal {
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
