import type { ServerTimer } from '../core/events.ts';
import { type Call, type CallOptions, checkTimeout, createCaller } from './call.ts';
import { classifyReply, classifyTimer, type Decoder } from './classify.ts';
import { CredentialError } from './errors.ts';
import { CONNECTIONS, createAccess, type ExchangeOptions } from './exchange.ts';
import { createLimits } from './limits.ts';
import {
  createNewAddress,
  createStockMarketOrder,
  type Limit,
  miningHashrate,
  miningPool,
  myCodes,
  type Operation,
  orderHistory,
  ping,
  syncKillSwitch,
  withdrawPay,
} from './operations.ts';
import type {
  Codes,
  CodesRequest,
  Hashrate,
  HashrateRequest,
  KillSwitchRequest,
  MiningPool,
  NewAddress,
  NewAddressRequest,
  OpenReply,
  Order,
  OrderHistoryRequest,
  StockMarketOrderRequest,
  WithdrawPayRequest,
} from './schemas.ts';
import {
  checkAccessToken,
  checkAddressType,
  checkArguments,
  checkBody,
  checkFilled,
  checkProvider,
  checkTimeRange,
  checkUnit,
  decoderOf,
  named,
} from './validate.ts';

export type { CallOptions, KillSwitchRequest };

export interface ClientOptions extends ExchangeOptions {
  /** Asked before every order history request: an OAuth 2.0 access token. No other operation uses it. */
  readonly accessToken?: (() => string) | undefined;
  /** Milliseconds for a call that names none; 10 000 where it is not given. */
  readonly timeoutMs?: number | undefined;
  /** The part of the kill-switch's documented limit that may be used; the whole limit where it is not given. */
  readonly budget?: Limit | undefined;
}

export interface OrderHistoryOptions extends CallOptions {
  /** Instead of the client's own. */
  readonly accessToken?: string | undefined;
}

/**
 * The nine operations of the API document with promises.
 *
 * What is given is written in camelCase and checked before anything is sent: an ArgumentError names the argument, what
 * was found and what is allowed. What comes back is the exchange's own reply with the names of the document
 * (`order_id`, `deal_money`), nothing renamed, rounded or left out: amounts are text, times are Unix seconds, and fields
 * that the document does not know are still there. What it leaves open is `unknown`. Only a kill-switch timer is reduced
 * to its four fields.
 *
 * Everything that fails rejects with a `ClientError` of `errors.ts` within `timeoutMs`. Reading calls are repeated after a
 * lost connection, a 5xx or a stale nonce, with growing waits and within their time; a timer and an address after a
 * stale nonce. Orders and withdrawals are sent once, whatever comes back. Where nobody knows what became of them they
 * reject with an UnknownOutcomeError.
 *
 * With nonces that increase, signed requests go one after the other: a call waits for those before it.
 */
export interface Client {
  /**
   * Places a market order. A buy names the unit that the exchange counts its amount in. An order that was carried out
   * otherwise than it was asked for rejects with an OrderMismatchError.
   */
  createStockMarketOrder(request: StockMarketOrderRequest, options?: CallOptions): Promise<Order>;
  /** The body is sent, and the answer given back, as it is: the document shows the fields of neither. */
  orderHistory(
    request?: OrderHistoryRequest,
    options?: OrderHistoryOptions,
  ): Promise<Readonly<Record<string, unknown>>>;
  /** Starts a withdrawal; the fee comes on top of the amount. The fields of the answer are not shown in the document. */
  withdrawPay(request: WithdrawPayRequest, options?: CallOptions): Promise<OpenReply>;
  /** Arms or updates the timer of a market and gives it back; deletes it for a null timeout and gives back null. */
  syncKillSwitch(request: KillSwitchRequest, options?: CallOptions): Promise<ServerTimer | null>;
  myCodes(request?: CodesRequest, options?: CallOptions): Promise<Codes>;
  /** A range that the exchange does not take rejects with a RefusedError of code `ERROR_CODES.timeRange`. */
  miningHashrate(request?: HashrateRequest, options?: CallOptions): Promise<Hashrate>;
  /** Makes a new deposit address with every call. The exchange's support must have enabled it for the account. */
  createNewAddress(request: NewAddressRequest, options?: CallOptions): Promise<NewAddress>;
  miningPool(options?: CallOptions): Promise<MiningPool>;
  /** Milliseconds that the answer took. */
  ping(options?: CallOptions): Promise<number>;
  /** Ends what is in flight; calls afterwards reject. */
  close(): Promise<void>;
  /** `close`, at the end of a block with `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

const TIMEOUT_MS = 10_000;

/** The first attempt of a ping may use half of the time, so that a second one on a fresh connection still fits. */
const PING_SHARE = 0.5;

/** The access token of the call, or of the client. */
function tokenOf(call: OrderHistoryOptions, client: ClientOptions): string {
  if (call.accessToken !== undefined) return checkAccessToken(call.accessToken);
  let token: string | undefined;
  try {
    token = client.accessToken?.();
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : 'unknown error';
    throw new CredentialError(`the access token could not be read: ${detail}`, { cause });
  }
  return checkAccessToken(token);
}

/** A call whose answer with success is read by `read`; by the schema of the operation where it is not given. */
function callOf<Arguments, T>(
  operation: Operation<Arguments>,
  given: Arguments,
  read: Decoder<T> = decoderOf<T>(operation.name),
): Call<Arguments, T> {
  return { operation, given, judge: (result, redact) => classifyReply(result, operation, read, redact) };
}

/** The client of the exchange for programs; the daemon uses `createExchange`. Throws where a base address is not allowed. */
export function createClient(options: ClientOptions): Client {
  const { clock, nonce, budget, connections = CONNECTIONS } = options;
  const timeoutMs = checkTimeout(options.timeoutMs ?? TIMEOUT_MS);
  const access = createAccess(options);
  const limits = createLimits({ clock, nonce, budget, concurrent: connections });
  const call = createCaller(access, limits, timeoutMs);
  const valueOf = async <Arguments, T>(what: Call<Arguments, T>, given: CallOptions): Promise<T> =>
    (await call(what, given)).value;

  async function close(): Promise<void> {
    limits.close();
    await access.close();
  }

  return {
    async createStockMarketOrder(request, given = {}) {
      const order = checkUnit(checkArguments('createStockMarketOrder', request));
      const { clientOrderId } = order;
      const what = callOf<typeof order, Order>(createStockMarketOrder, order, named(order));
      return checkFilled(order, await valueOf({ ...what, lookup: { clientOrderId } }, given));
    },
    async orderHistory(request = {}, given = {}) {
      const read = decoderOf<Readonly<Record<string, unknown>>>('orderHistory');
      // The exchange writes an empty object as an empty list in other places, so that it counts as one.
      const orEmpty: typeof read = (value) => read(Array.isArray(value) && value.length === 0 ? {} : value);
      const what = callOf(orderHistory, checkBody(request), orEmpty);
      return valueOf({ ...what, bearer: tokenOf(given, options) }, given);
    },
    async withdrawPay(request, given = {}) {
      const withdrawal = checkProvider(checkArguments('withdrawPay', request));
      const what = callOf<typeof withdrawal, OpenReply>(withdrawPay, withdrawal);
      return valueOf({ ...what, lookup: { uniqueId: withdrawal.uniqueId } }, given);
    },
    async syncKillSwitch(request, given = {}) {
      const { market, timeoutSeconds, types = null } = checkArguments('syncKillSwitch', request);
      const timer = { market, timeoutSeconds, types };
      const judge: Call<unknown, ServerTimer | null>['judge'] = (result, redact) =>
        classifyTimer(result, timer, redact);
      return valueOf({ operation: syncKillSwitch, given: timer, judge }, given);
    },
    myCodes: async (request = {}, given = {}) =>
      valueOf(callOf<CodesRequest, Codes>(myCodes, checkArguments('myCodes', request)), given),
    async miningHashrate(request = {}, given = {}) {
      const range = checkTimeRange(checkArguments('miningHashrate', request));
      return valueOf(callOf<HashrateRequest, Hashrate>(miningHashrate, range), given);
    },
    async createNewAddress(request, given = {}) {
      const wanted = checkAddressType(checkArguments('createNewAddress', request));
      return valueOf(callOf<NewAddressRequest, NewAddress>(createNewAddress, wanted), given);
    },
    miningPool: async (given = {}) => valueOf(callOf<null, MiningPool>(miningPool, null), given),
    ping: async (given = {}) =>
      (await call({ ...callOf<null, unknown>(ping, null), firstShare: PING_SHARE }, given)).latencyMs,
    close,
    [Symbol.asyncDispose]: close,
  };
}
