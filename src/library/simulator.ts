/**
 * What `import ... from 'killswitchd/simulator'` gives: the simulated exchange, for the tests of other people's bots.
 * An entry file of its own, as `client.ts` beside it says, so that who wants the client loads no HTTP server.
 */
import { createSystemClock } from '../clock.ts';
import {
  type SimulatedServer,
  type SimulatedServerOptions,
  startSimulatedServer,
} from '../simulator/server.ts';

/** Default: the clock of this host, and any free port of 127.0.0.1. */
export type SimulatorOptions = Partial<SimulatedServerOptions>;

/**
 * Starts a simulated exchange over HTTP, with `demo-key` and `demo-secret` unless told otherwise. Rejects with Node's
 * error where the address cannot be listened on. `close` it when the test ends.
 */
export function startExchange(options: SimulatorOptions = {}): Promise<SimulatedServer> {
  const listen = { host: '127.0.0.1', port: 0 };
  return startSimulatedServer({ clock: createSystemClock(), listen, ...options });
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
