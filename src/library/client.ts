/**
 * What `import ... from 'killswitchd'` gives: the client of the nine operations, for programs of other people. The
 * package has one entry file per export, because what stands inside may move and a user's imports may not; nothing in
 * here imports it.
 */
import { createSystemClock } from '../clock.ts';
import { type Environment, readSecrets, revealCredentials } from '../config/secrets.ts';
import { type Client, createClient as create, type ClientOptions as Options } from '../exchange/client.ts';
import { ArgumentError } from '../exchange/errors.ts';
import { breach, checkNames } from '../exchange/validate.ts';

export interface ClientOptions extends Omit<Options, 'clock' | 'nonce' | 'transport'> {
  /** Default `increasing`: each request waits for the one before it. `window`: many at a time. */
  readonly nonce?: Options['nonce'];
  /** Default: the clock of this host. */
  readonly clock?: Options['clock'];
}

/** The type has each option named here. */
const OPTIONS = Object.keys({
  bases: true,
  allowPlainHttp: true,
  credentials: true,
  hidden: true,
  accessToken: true,
  nonce: true,
  clock: true,
  budget: true,
  connections: true,
  ca: true,
  userAgent: true,
  timeoutMs: true,
  requestLifetimeMs: true,
} satisfies Record<keyof ClientOptions, true>);

/**
 * The client of the exchange. Throws where a base address is not allowed: https, or http to this host only unless
 * `allowPlainHttp` is true.
 */
export function createClient(options: ClientOptions): Client {
  checkNames('createClient', 'options', options, OPTIONS);
  return create({
    ...options,
    nonce: options.nonce ?? 'increasing',
    clock: options.clock ?? createSystemClock(),
  });
}

const BASE = 'KILLSWITCHD_BASE_URL';

/**
 * A client by the environment that the daemon and its commands read: `KILLSWITCHD_BASE_URL`, and key and secret in
 * `KILLSWITCHD_API_KEY` and `KILLSWITCHD_API_SECRET` or in the files that these names with `_FILE` say. Files are read
 * anew for every request, so that a key can be changed meanwhile. `options` go before the environment. Throws an
 * ArgumentError that names what is missing or wrong, and shows no secret.
 */
export function createClientFromEnvironment(env: Environment, options: Partial<ClientOptions> = {}): Client {
  const base = env[BASE];
  const bases = options.bases ?? (base === undefined ? [] : [base]);
  if (bases.length === 0) throw breach(BASE, undefined, 'https://HOST[:PORT]');
  const credentials = () => {
    const read = readSecrets(env, { demo: false });
    if (read.kind === 'invalid') throw new ArgumentError('env', read.problems.join('; '));
    return revealCredentials(read.secrets);
  };
  if (options.credentials === undefined) credentials();
  try {
    return createClient({ credentials, ...options, bases });
  } catch (error) {
    const isFromHere =
      options.bases === undefined && error instanceof ArgumentError && error.argument === 'bases';
    throw isFromHere ? new ArgumentError(BASE, `${BASE}: ${error.message}`) : error;
  }
}

export { createSystemClock } from '../clock.ts';
export type { Environment } from '../config/secrets.ts';
export type { FailureReason, OrderType, ServerTimer } from '../core/events.ts';
export type { Instant } from '../core/time.ts';
export type { CallOptions } from '../exchange/call.ts';
export type { Client, OrderHistoryOptions } from '../exchange/client.ts';
// All of it is for programs.
export * from '../exchange/errors.ts';
export type { Credentials } from '../exchange/exchange.ts';
export type { Limit } from '../exchange/operations.ts';
export type {
  AddressType,
  AmountUnit,
  Code,
  Codes,
  CodesRequest,
  Hashrate,
  HashratePoint,
  HashrateRequest,
  KillSwitchRequest,
  MiningPool,
  NewAddress,
  NewAddressRequest,
  OpenReply,
  Order,
  OrderHistoryRequest,
  SelfTradeMode,
  Side,
  StockMarketOrderRequest,
  WithdrawPayRequest,
} from '../exchange/schemas.ts';
export type { NonceMode } from '../exchange/sign.ts';
export type { Cancel, Clock } from '../ports.ts';
