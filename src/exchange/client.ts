import type { ServerTimer } from '../core/outcome.ts';
import {
  checkAccessToken,
  checkAddressType,
  checkArguments,
  checkBody,
  checkProvider,
  checkTimeRange,
} from './arguments.ts';
import { type Call, type CallOptions, createCaller } from './call.ts';
import { errorOfReason } from './errors.ts';
import { createAccess, type ExchangeOptions } from './exchange.ts';
import {
  createNewAddress,
  createStockMarketOrder,
  miningHashrate,
  miningPool,
  myCodes,
  type Operation,
  orderHistory,
  ping,
  syncKillSwitch,
  withdrawPay,
} from './operations.ts';
import {
  type Codes,
  type Decoder,
  type Hashrate,
  type MiningPool,
  type NewAddress,
  type OpenReply,
  type Order,
  orderDecoder,
  readCodes,
  readHashrate,
  readHistory,
  readMiningPool,
  readNewAddress,
  readPong,
  readWithdrawal,
} from './replies.ts';
import { classifyReply, classifyTimer } from './reply.ts';
import type {
  CodesRequest,
  HashrateRequest,
  KillSwitchRequest,
  NewAddressRequest,
  OrderHistoryRequest,
  StockMarketOrderRequest,
  WithdrawPayRequest,
} from './requests.ts';
import { createTurns } from './turns.ts';

export type { CallOptions, KillSwitchRequest };

export interface ClientOptions extends ExchangeOptions {
  /** Asked before every order history request: an OAuth 2.0 access token. No other operation uses it. */
  readonly accessToken?: (() => string) | undefined;
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
 * Everything that fails rejects with an ApiError of `errors.ts` within `timeoutMs`. A stale nonce is repeated with a new
 * one, a reading call whose connection was lost once over another connection, and nothing else. Orders and withdrawals
 * of which nobody knows what became reject with an UnknownOutcomeError.
 */
export interface Client {
  /** Places a market order. Give a `clientOrderId`: without one an order of unknown outcome can hardly be found. */
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
}

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
    throw errorOfReason('auth', `the access token could not be read: ${detail}`, {
      maybeApplied: false,
      cause,
    });
  }
  return checkAccessToken(token);
}

/** A call whose answer with success is read by `read`. */
function callOf<Arguments, T>(
  operation: Operation<Arguments>,
  given: Arguments,
  read: Decoder<T>,
): Call<Arguments, T> {
  return { operation, given, judge: (result, redact) => classifyReply(result, operation, read, redact) };
}

/** The client of the exchange for programs; the daemon uses `createExchange`. Throws where a base address is not allowed. */
export function createClient(options: ClientOptions): Client {
  const access = createAccess(options);
  const turns = createTurns(options.clock, options.budget);
  const call = createCaller(access, turns);
  const valueOf = async <Arguments, T>(what: Call<Arguments, T>, given: CallOptions): Promise<T> =>
    (await call(what, given)).value;

  return {
    async createStockMarketOrder(request, given = {}) {
      const order = checkArguments('createStockMarketOrder', request);
      const { clientOrderId } = order;
      const what = callOf(createStockMarketOrder, order, orderDecoder(order));
      return valueOf({ ...what, lookup: { clientOrderId } }, given);
    },
    async orderHistory(request = {}, given = {}) {
      const what = callOf(orderHistory, checkBody(request), readHistory);
      return valueOf({ ...what, bearer: tokenOf(given, options) }, given);
    },
    async withdrawPay(request, given = {}) {
      const withdrawal = checkArguments('withdrawPay', request);
      checkProvider(withdrawal);
      const { uniqueId } = withdrawal;
      return valueOf({ ...callOf(withdrawPay, withdrawal, readWithdrawal), lookup: { uniqueId } }, given);
    },
    async syncKillSwitch(request, given = {}) {
      const { market, timeoutSeconds, types = null } = checkArguments('syncKillSwitch', request);
      const timer = { market, timeoutSeconds, types };
      const judge: Call<unknown, ServerTimer | null>['judge'] = (result, redact) =>
        classifyTimer(result, timer, redact);
      return valueOf({ operation: syncKillSwitch, given: timer, judge }, given);
    },
    myCodes: async (request = {}, given = {}) =>
      valueOf(callOf(myCodes, checkArguments('myCodes', request), readCodes), given),
    async miningHashrate(request = {}, given = {}) {
      const range = checkArguments('miningHashrate', request);
      checkTimeRange(range);
      return valueOf(callOf(miningHashrate, range, readHashrate), given);
    },
    async createNewAddress(request, given = {}) {
      const wanted = checkArguments('createNewAddress', request);
      checkAddressType(wanted);
      return valueOf(callOf(createNewAddress, wanted, readNewAddress), given);
    },
    miningPool: async (given = {}) => valueOf(callOf(miningPool, null, readMiningPool), given),
    ping: async (given = {}) =>
      (await call({ ...callOf(ping, null, readPong), firstShare: PING_SHARE }, given)).latencyMs,
    async close() {
      turns.close();
      await access.close();
    },
  };
}
