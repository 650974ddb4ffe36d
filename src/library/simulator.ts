/**
 * What `import ... from 'killswitchd/simulator'` gives: the simulated exchange, for the tests of other people's bots.
 * An entry file of its own, as `client.ts` beside it says, so that who wants the client loads no HTTP server.
 */
import Type, { type TProperties, type TSchema } from 'typebox';
import { createSystemClock } from '../clock.ts';
import { ArgumentError } from '../exchange/errors.ts';
import { checkNames, checkShape } from '../exchange/validate.ts';
import { PROFILES } from '../simulator/answer.ts';
import { OPERATION_NAMES, whole } from '../simulator/faults.ts';
import {
  SetupError,
  type SimulatedServer,
  type SimulatedServerOptions,
  startSimulatedServer,
} from '../simulator/server.ts';
import { type ExchangeOptions, PERMISSIONS, type Rounding } from '../simulator/state.ts';

/** Default: the clock of this host, and any free port of 127.0.0.1. */
export type SimulatorOptions = Partial<SimulatedServerOptions>;

const oneOf = (values: readonly string[]) => Type.Enum([...values], { description: values.join(', ') });
const flag = Type.Boolean({ description: 'true or false' });
const number = Type.Number({ description: 'a number' });
const text = Type.String({ minLength: 1, description: 'a text that is not empty' });
const texts = Type.Array(text);
const decimal = Type.String({ pattern: '^\\d+(\\.\\d+)?$' });
const price = Type.String({ pattern: '^(?=.*[1-9])\\d+(\\.\\d+)?$' });
const digits = whole(0);
const listOf = (required: TProperties, optional: TProperties = {}) => {
  const description = `a list of objects with ${Object.keys(required).join(', ')}`;
  const { properties } = Type.Partial(Type.Object(optional));
  return Type.Array(Type.Object({ ...required, ...properties }), { description });
};
const byName = (value: TSchema, description: string) => Type.Record(Type.String(), value, { description });
const TERMS = { price, minAmount: decimal, minTotal: decimal, feeRate: decimal };
const LIMITS = Object.fromEntries(
  OPERATION_NAMES.map((name) => [name, Type.Object({ requests: whole(0), windowMs: whole(1) })]),
);

/** The types have each option named here. */
const EXCHANGE = Type.Object({
  profile: oneOf(PROFILES),
  keys: listOf({ key: text, secret: text, account: text }, { permissions: Type.Array(oneOf(PERMISSIONS)) }),
  tokens: listOf({ token: text, account: text }),
  markets: Type.Union([texts, Type.Literal('any')], { description: 'a list of names, or any' }),
  startTimeRounding: oneOf(['floor', 'round', 'ceil'] satisfies Rounding[]),
  cancellationDelayMs: whole(0),
  limits: Type.Partial(Type.Object(LIMITS), {
    description: 'by operation an object with requests and windowMs, whole numbers of at least 0 and 1',
  }),
  checkSignatures: flag,
  eventCapacity: whole(1),
  seed: number,
  balances: byName(byName(decimal, ''), 'by account and currency a decimal as text, such as "0.5"'),
  terms: byName(
    Type.Partial(Type.Object({ ...TERMS, stockPrecision: digits, moneyPrecision: digits })),
    `by market ${Object.keys(TERMS).join(', ')} as decimal texts, price above 0, stockPrecision, moneyPrecision`,
  ),
  assets: listOf(
    {
      ticker: text,
      canDeposit: flag,
      networks: texts,
      providers: texts,
      precision: digits,
      withdrawFee: decimal,
      minDeposit: decimal,
    },
    { hasDefaultNetwork: flag, addressTypes: texts, hasMemo: flag },
  ),
  codes: whole(0),
  newAddresses: Type.Union([flag, texts], { description: 'true, false or a list of accounts' }),
} satisfies Record<keyof ExchangeOptions, TSchema>);
const OPTIONS = Type.Object({
  clock: Type.Unknown(),
  listen: Type.Object({ host: text, port: whole(0, 65_535) }, { description: 'an object with host, port' }),
  exchange: Type.Unknown(),
  orders: Type.Unknown(),
  seed: number,
  clockOffsetMs: number,
  time: oneOf(['running', 'manual']),
  setup: listOf({ path: text, body: Type.Unknown() }),
  token: text,
} satisfies Record<keyof SimulatorOptions, TSchema>);

const ORDERS = '/simulator/orders';

/**
 * Starts a simulated exchange over HTTP, with `demo-key` and `demo-secret` unless told otherwise. Rejects with an
 * ArgumentError where an option is not known or allowed, and with Node's error where the address cannot be listened on.
 * `close` it when the test ends.
 */
export async function startExchange(options: SimulatorOptions = {}): Promise<SimulatedServer> {
  checkShape('startExchange', 'options', options, Type.Partial(OPTIONS));
  const { exchange = {}, listen = { host: '127.0.0.1', port: 0 }, orders, setup = [] } = options;
  checkShape('exchange', 'exchange', exchange, Type.Partial(EXCHANGE));
  checkNames('limits', 'limits', exchange.limits ?? {}, OPERATION_NAMES);
  const first = orders === undefined ? [] : [{ path: ORDERS, body: orders }];
  const all = { clock: createSystemClock(), ...options, listen, orders: [], setup: [...first, ...setup] };
  return startSimulatedServer(all).catch((error: unknown) => {
    throw error instanceof SetupError && error.path === ORDERS
      ? new ArgumentError('orders', `orders: ${error.message}`)
      : error;
  });
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
export { createSimulatedExchange, type SimulatedExchange } from '../simulator/simulated-exchange.ts';
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
export { DEMO_KEY, DEMO_TOKEN } from '../simulator/state.ts';
export type { JournalledRequest, RequestBody } from '../simulator/traffic.ts';
