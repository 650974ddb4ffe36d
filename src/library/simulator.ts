/**
 * What `import ... from 'killswitchd/simulator'` gives: the simulated exchange, for the tests of other people's bots.
 * An entry file of its own, as `client.ts` beside it says, so that who wants the client loads no HTTP server.
 */
import { createSystemClock } from '../clock.ts';
import { breach, checkNames } from '../exchange/validate.ts';
import { PROFILES } from '../simulator/answer.ts';
import {
  type SimulatedServer,
  type SimulatedServerOptions,
  startSimulatedServer,
} from '../simulator/server.ts';
import type { ExchangeOptions } from '../simulator/state.ts';

/** Default: the clock of this host, and any free port of 127.0.0.1. */
export type SimulatorOptions = Partial<SimulatedServerOptions>;

/** The types have each option named here. */
const OPTIONS = Object.keys({
  clock: true,
  listen: true,
  exchange: true,
  orders: true,
  seed: true,
  clockOffsetMs: true,
  time: true,
  setup: true,
  token: true,
} satisfies Record<keyof SimulatorOptions, true>);
const OF_EXCHANGE = Object.keys({
  profile: true,
  keys: true,
  tokens: true,
  markets: true,
  startTimeRounding: true,
  cancellationDelayMs: true,
  limits: true,
  checkSignatures: true,
  eventCapacity: true,
  seed: true,
  balances: true,
  terms: true,
  assets: true,
  codes: true,
  newAddresses: true,
} satisfies Record<keyof ExchangeOptions, true>);

/**
 * Starts a simulated exchange over HTTP, with `demo-key` and `demo-secret` unless told otherwise. Rejects with an
 * ArgumentError where an option is not known or allowed, and with Node's error where the address cannot be listened on.
 * `close` it when the test ends.
 */
export async function startExchange(options: SimulatorOptions = {}): Promise<SimulatedServer> {
  checkNames('startExchange', 'options', options, OPTIONS);
  const { exchange = {}, time = 'running', listen = { host: '127.0.0.1', port: 0 } } = options;
  checkNames('exchange', 'exchange', exchange, OF_EXCHANGE);
  checkNames('listen', 'listen', listen, ['host', 'port']);
  const { profile = 'documented' } = exchange;
  if (!['running', 'manual'].includes(time)) throw breach('time', time, 'running, manual');
  if (!PROFILES.includes(profile)) throw breach('profile', profile, PROFILES.join(', '));
  return startSimulatedServer({ clock: createSystemClock(), ...options, listen });
}

export { encodePayload, signPayload } from '../exchange/sign.ts';
export type { Profile, Reply } from '../simulator/answer.ts';
export type { EventBody, EventLog, ExchangeEvent, Journal } from '../simulator/event-log.ts';
export type { ActiveFault, Fault, FaultKind } from '../simulator/faults.ts';
export type {
  Amounts,
  Asset,
  Books,
  DepositAddress,
  KillSwitchTimer,
  MarketOrder,
  OrderRequest,
  RestingOrder,
  Withdrawal,
} from '../simulator/holdings.ts';
export type { MarketTerms } from '../simulator/markets.ts';
export type { RequestTarget } from '../simulator/operations.ts';
export { SetupError, type SimulatedServer, type SimulatedServerOptions } from '../simulator/server.ts';
export {
  createSimulatedExchange,
  DEMO_KEY,
  DEMO_TOKEN,
  type SimulatedExchange,
} from '../simulator/simulated-exchange.ts';
export type {
  AccessToken,
  ApiKey,
  ExchangeOptions,
  ExchangeRequest,
  Headers,
  Permission,
  RateLimit,
  Rounding,
} from '../simulator/state.ts';
export type { JournalledRequest, RequestBody } from '../simulator/traffic.ts';
