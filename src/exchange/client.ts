import type { ServerTimer } from '../core/events.ts';
import { type Call, type CallOptions, checkOptions, checkTimeout, createCaller } from './call.ts';
import { classifyReply, classifyTimer, type Decoder } from './classify.ts';
import { CredentialError } from './errors.ts';
import { createAccess, type ExchangeOptions, FIRST_SHARE } from './exchange.ts';
import { createLimits } from './limits.ts';
import { fieldsOf, type Limit, OPERATIONS, type OperationName, syncKillSwitch } from './operations.ts';
import type * as api from './schemas.ts';
import type { Reply } from './schemas.ts';
import { CONNECTIONS } from './transport.ts';
import { checkAccessToken, checkArguments, checkBody, checkFilled, decoderOf, named } from './validate.ts';

export type { CallOptions };

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
 * The nine operations of the API document. What is given is checked before anything is sent. What comes back is the
 * exchange's own reply under the names of the document, with fields that the document does not know; only a kill-switch
 * timer is reduced to its four fields.
 *
 * Everything that fails rejects with a `ClientError` within `timeoutMs`. Reading calls are repeated after a lost
 * connection, a 5xx or a stale nonce; a timer and an address after a stale nonce; orders and withdrawals never.
 *
 * With nonces that increase, signed requests go one after the other: a call waits for those before it.
 */
export interface Client {
  /**
   * Places a market order. A buy names the unit that the exchange counts its amount in. An order that was carried out
   * otherwise than it was asked for rejects with an OrderMismatchError.
   */
  createStockMarketOrder(request: api.StockMarketOrderRequest, options?: CallOptions): Promise<api.Order>;
  /** The body is sent, and the answer given back, as it is: the document shows the fields of neither. */
  orderHistory(
    request?: api.OrderHistoryRequest,
    options?: OrderHistoryOptions,
  ): Promise<Readonly<Record<string, unknown>>>;
  /** Starts a withdrawal; the fee comes on top of the amount. The fields of the answer are not shown in the document. */
  withdrawPay(request: api.WithdrawPayRequest, options?: CallOptions): Promise<api.OpenReply>;
  /** Arms or updates the timer of a market and gives it back; deletes it for a null timeout and gives back null. */
  syncKillSwitch(request: api.KillSwitchRequest, options?: CallOptions): Promise<ServerTimer | null>;
  myCodes(request?: api.CodesRequest, options?: CallOptions): Promise<api.Codes>;
  /** A range that the exchange does not take rejects with a RefusedError of code `ERROR_CODES.timeRange`. */
  miningHashrate(request?: api.HashrateRequest, options?: CallOptions): Promise<api.Hashrate>;
  /** Makes a new deposit address with every call. The exchange's support must have enabled it for the account. */
  createNewAddress(request: api.NewAddressRequest, options?: CallOptions): Promise<api.NewAddress>;
  miningPool(options?: CallOptions): Promise<api.MiningPool>;
  /** Milliseconds that the answer took. */
  ping(options?: CallOptions): Promise<number>;
  /** Ends what is in flight; calls afterwards reject. */
  close(): Promise<void>;
  /** `close`, at the end of a block with `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

const TIMEOUT_MS = 10_000;

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

/** Calls with checked arguments. What answers them is read by the schema where no other reader is given. */
function createAsk(call: ReturnType<typeof createCaller>) {
  return <Name extends OperationName>(
    name: Name,
    checked: object,
    options: CallOptions,
    { read = decoderOf(name), ...more }: Partial<Call<Reply<Name>>> & { read?: Decoder<Reply<Name>> } = {},
  ) => {
    const operation = OPERATIONS[name];
    const judge: Call<Reply<Name>>['judge'] = (result, redact) =>
      classifyReply(result, operation, read, redact);
    return call({ operation, fields: fieldsOf(name, checked), judge, ...more }, options);
  };
}

/** The client of the exchange for programs; the daemon uses `createExchange`. Throws where a base address is not allowed. */
export function createClient(given: ClientOptions): Client {
  const { clock, nonce, budget, connections = CONNECTIONS } = given;
  const timeoutMs = checkTimeout(given.timeoutMs ?? TIMEOUT_MS);
  checkOptions(given);
  const access = createAccess(given);
  const limits = createLimits({ clock, nonce, budget, concurrent: connections });
  const call = createCaller(access, limits, timeoutMs);
  const ask = createAsk(call);

  async function close(): Promise<void> {
    limits.close();
    await access.close();
  }

  return {
    async createStockMarketOrder(request, options = {}) {
      const order = checkArguments('createStockMarketOrder', request);
      const { clientOrderId } = order;
      const more = { read: named(order), lookup: { clientOrderId } };
      return checkFilled(order, (await ask('createStockMarketOrder', order, options, more)).value);
    },
    async orderHistory(request = {}, options = {}) {
      const asObject = decoderOf('orderHistory');
      // The exchange writes an empty object as an empty list in other places, so that it counts as one.
      const read: typeof asObject = (value) =>
        asObject(Array.isArray(value) && value.length === 0 ? {} : value);
      const body = checkBody(request);
      return (await ask('orderHistory', body, options, { read, bearer: tokenOf(options, given) })).value;
    },
    async withdrawPay(request, options = {}) {
      const withdrawal = checkArguments('withdrawPay', request);
      const { uniqueId } = withdrawal;
      return (await ask('withdrawPay', withdrawal, options, { lookup: { uniqueId } })).value;
    },
    async syncKillSwitch(request, options = {}) {
      const asked = checkArguments('syncKillSwitch', request);
      const timer = { ...asked, types: asked.types ?? null };
      const fields = fieldsOf('syncKillSwitch', timer);
      const judge: Call<ServerTimer | null>['judge'] = (result, redact) =>
        classifyTimer(result, timer, redact);
      return (await call({ operation: syncKillSwitch, fields, judge }, options)).value;
    },
    myCodes: async (request = {}, options = {}) =>
      (await ask('myCodes', checkArguments('myCodes', request), options)).value,
    miningHashrate: async (request = {}, options = {}) =>
      (await ask('miningHashrate', checkArguments('miningHashrate', request), options)).value,
    createNewAddress: async (request, options = {}) =>
      (await ask('createNewAddress', checkArguments('createNewAddress', request), options)).value,
    miningPool: async (options = {}) => (await ask('miningPool', {}, options)).value,
    ping: async (options = {}) => (await ask('ping', {}, options, { firstShare: FIRST_SHARE })).latencyMs,
    close,
    [Symbol.asyncDispose]: close,
  };
}
