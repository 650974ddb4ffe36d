/**
 * What `import ... from 'killswitchd'` gives: the client of the nine operations, for programs of other people. The
 * package has one entry file per export, because what stands inside may move and a user's imports may not; nothing in
 * here imports it.
 */
import { createSystemClock } from '../clock.ts';
import {
  type Client,
  createClient as createWith,
  type ClientOptions as Options,
} from '../exchange/client.ts';

export interface ClientOptions extends Omit<Options, 'clock' | 'nonce' | 'transport'> {
  /** Default `increasing`: each request waits for the one before it. `window`: many at a time. */
  readonly nonce?: Options['nonce'];
  /** Default: the clock of this host. */
  readonly clock?: Options['clock'];
}

/** The client of the exchange. Throws where a base address is not allowed: https, or http to this host only. */
export function createClient({ clock, nonce = 'increasing', ...options }: ClientOptions): Client {
  return createWith({ ...options, nonce, clock: clock ?? createSystemClock() });
}

export { createSystemClock } from '../clock.ts';
export type { CallOptions } from '../exchange/call.ts';
export type { Client, OrderHistoryOptions } from '../exchange/client.ts';
export {
  ApiError,
  ArgumentError,
  ERROR_CODES,
  NetworkError,
  NonceError,
  NotFoundError,
  ProtocolError,
  PublicRefusedError,
  RefusedError,
  ServerError,
  ThrottledError,
  TimeoutError,
  UnauthorisedError,
  UnknownOutcomeError,
} from '../exchange/errors.ts';
export type {
  Code,
  Codes,
  Hashrate,
  HashratePoint,
  MiningPool,
  NewAddress,
  OpenReply,
  Order,
} from '../exchange/replies.ts';
export type {
  CodesRequest,
  HashrateRequest,
  KillSwitchRequest,
  NewAddressRequest,
  OrderHistoryRequest,
  StockMarketOrderRequest,
  WithdrawPayRequest,
} from '../exchange/requests.ts';
export type { Clock } from '../ports.ts';
