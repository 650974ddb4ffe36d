import Type, { type Static, type TProperties, type TSchema } from 'typebox';
import { ORDER_TYPES } from '../../src/core/events.ts';

/** What a fault strikes, and so what its `target` is an index of. */
export type Struck =
  /** Requests on the wire: of one market, or with -1 of all and the pings too. */
  | 'requests'
  | 'base'
  | 'daemon'
  | 'bot'
  | 'market'
  /** The exchange as a whole; the target is always -1. */
  | 'exchange';

/**
 * What can go wrong, or is done on purpose while it does, and what it strikes. All of it is data: a failing run is a
 * list of these.
 */
export const FAULTS = {
  'lose-request': 'requests',
  'lose-reply': 'requests',
  delay: 'requests',
  duplicate: 'requests',
  'black-hole': 'requests',
  'refuse-connections': 'requests',
  'reset-before': 'requests',
  'reset-after': 'requests',
  'slow-body': 'requests',
  'cut-off': 'requests',
  'error-in-200': 'requests',
  'bad-request': 'requests',
  unauthorised: 'requests',
  'throttled-page': 'requests',
  'throttled-json': 'requests',
  'server-error': 'requests',
  'gateway-page': 'requests',
  unacknowledged: 'requests',
  lie: 'requests',
  'forget-timers': 'exchange',
  'server-clock-step': 'exchange',
  'wall-step': 'daemon',
  stall: 'daemon',
  suspend: 'daemon',
  crash: 'daemon',
  terminate: 'daemon',
  'bot-silent': 'bot',
  'bot-goodbye': 'bot',
  'actor-deletes': 'market',
  'actor-changes': 'market',
  /** Every request takes its own time, up to the size: later ones overtake earlier ones. */
  reorder: 'requests',
  /** A 400 with code 9, as for a payload that cannot be read. */
  'bad-payload': 'requests',
  /** A 403: the key may not do this. */
  forbidden: 'requests',
  /** One of several base addresses answers nothing. */
  'base-silent': 'base',
  /** One of several base addresses refuses connections. */
  'base-refuses': 'base',
  /** Somebody else uses up this share of the exchange's limit. */
  neighbour: 'exchange',
  'bot-fails': 'bot',
  /** The bot beats and falls silent in turns of the size. */
  'bot-flaps': 'bot',
  /** A reload gives the market another timeout: the size. */
  'reload-timeout': 'market',
  /** A reload takes the market out, and another one brings it back. */
  'reload-remove': 'market',
  /**
   * Reloads give the market to one daemon alone, and later back to all; with a single one, to nobody in the run. Which
   * one it is follows from the share; the others learn of it one after the other within the size.
   */
  'reload-moves': 'market',
  'operator-pauses': 'market',
  'operator-disarms': 'market',
  'operator-trips': 'market',
  /** Short stalls of the size, one after the other, with half as long between them. */
  stutters: 'daemon',
  /** The exchange has closed the connections that were idle: a request has to open one before it can leave. */
  reconnect: 'requests',
  /** The exchange carries it out, and a gateway answers 429 with a page of its own. */
  'unacknowledged-page': 'requests',
  /**
   * The next request within the length has to open a connection, and the host stands still for the size meanwhile. With
   * a share below a half it sleeps.
   */
  'halts-connecting': 'daemon',
  /** SIGTERM, and the next life begins the length after the end of this one: requests of the old one may be on their way. */
  restart: 'daemon',
  /** The key is revoked, and the daemon reads another one after the length. */
  'new-key': 'daemon',
  /** A reload gives the daemon a budget of the size, in requests per 10 s, and its old one back. */
  'new-budget': 'daemon',
  /** A gateway's page says 401, 403 or 422, which follows from the size; nothing was carried out. */
  'refusal-page': 'requests',
  /** The exchange grants a shorter timer than it was asked for: the size. */
  'grants-less': 'requests',
  /** One of several base addresses answers later by the size. */
  'base-slow': 'base',
  /** One of several base addresses answers with errors. */
  'base-errors': 'base',
} as const satisfies Readonly<Record<string, Struck>>;
export type FaultKind = keyof typeof FAULTS;
export const FAULT_KINDS = Object.keys(FAULTS) as readonly FaultKind[];

/** Where a watched bot's signs of life come from. */
export const EVIDENCE_MODES = ['beat', 'file', 'http', 'process'] as const;
export const DAY_MS = 86_400_000;
const MOST_MARKETS = 1000;
const MOST_DAEMONS = 8;
/** Two clocks drift apart by at most this: what belief gives away on both sides. */
export const DRIFT_PPM = 200;

const number = (minimum: number, maximum: number) => Type.Number({ minimum, maximum });
const whole = (minimum: number, maximum: number) => Type.Integer({ minimum, maximum });
const oneOf = <const Words extends readonly string[]>(...words: Words) =>
  Type.Unsafe<Words[number]>({ enum: words });
const list = <Item extends TSchema>(items: Item, minItems: number, maxItems: number, uniqueItems = false) =>
  Type.Unsafe<readonly Static<Item>[]>({ type: 'array', items, minItems, maxItems, uniqueItems });
const record = <Fields extends TProperties>(fields: Fields) =>
  Type.Object(fields, { additionalProperties: false });

/** One fault. Moments and lengths in true milliseconds since the start of the run. */
const FAULT = record({
  kind: oneOf(...FAULT_KINDS),
  atMs: number(0, DAY_MS),
  forMs: number(0, DAY_MS),
  /** Share of the requests that it hits, 0 to 1; of a neighbour the share of the limit, 0 to 2. */
  share: number(0, 2),
  /** Size where it has one: a delay, a step of a clock; milliseconds. */
  sizeMs: number(-DAY_MS, DAY_MS),
  /** Index of what it strikes; -1 for all requests, and for the exchange. */
  target: whole(-1, MOST_MARKETS - 1),
});
export interface Fault extends Readonly<Static<typeof FAULT>> {}

const MARKET = record({
  market: Type.String({ format: 'market' }),
  timeoutSeconds: whole(5, 600),
  types: Type.Union([Type.Null(), list(oneOf(...ORDER_TYPES), 1, ORDER_TYPES.length, true)]),
  bot: whole(0, MOST_MARKETS - 1),
  renewEverySeconds: Type.Optional(number(1, 200)),
});
export interface PlannedMarket extends Readonly<Static<typeof MARKET>> {}

const DAEMON = record({
  startMs: number(0, DAY_MS),
  driftPpm: number(-DRIFT_PPM, DRIFT_PPM),
  wallOffsetMs: number(-DAY_MS, DAY_MS),
  policy: oneOf('delete', 'keep', 'handoff'),
  /** Index of its API key: daemons with the same one were started twice. */
  key: whole(0, MOST_DAEMONS - 1),
});
export interface PlannedDaemon extends Readonly<Static<typeof DAEMON>> {}

/** A whole run as data: equal plans give byte-identical runs. Every field is given but for the optional ones, none is unknown. */
export const PLAN = record({
  /** What this plan found, in a sentence; for plans that are kept. */
  found: Type.Optional(Type.String()),
  seed: whole(0, 2 ** 32 - 1),
  /** Faults happen until here; after it everything must come right again. */
  faultyMs: number(1, DAY_MS),
  markets: list(MARKET, 1, MOST_MARKETS),
  daemons: list(DAEMON, 1, MOST_DAEMONS),
  bots: whole(1, MOST_MARKETS),
  /** Base addresses; more than one serve the same account. */
  bases: whole(1, 4),
  nonce: oneOf('increasing', 'window'),
  /** Most requests in flight at a time in a nonce window; 64 where it is not given. */
  connections: Type.Optional(whole(1, 1024)),
  watched: Type.Boolean(),
  /** How the bots are watched; `beat` where it is not given. */
  evidence: Type.Optional(oneOf(...EVIDENCE_MODES)),
  onStale: oneOf('expire', 'trip'),
  /** `rearm` where it is not given. */
  onLapse: Type.Optional(oneOf('rearm', 'hold')),
  roundTripMs: number(0.1, 2000),
  profile: oneOf('documented', 'live'),
  rounding: oneOf('floor', 'round', 'ceil'),
  cancellationDelayMs: number(0, 60_000),
  serverDriftPpm: number(-DRIFT_PPM, DRIFT_PPM),
  /** Requests per 10 s that a daemon may write. */
  budgetRequests: whole(1, 10_000),
  /** Requests per 10 s that the exchange takes from all of them together. */
  limitRequests: whole(1, 10_000),
  faults: list(FAULT, 0, 10_000),
});
export interface Plan extends Readonly<Static<typeof PLAN>> {}

/** Longest time that a request travels in a simulated network: what `requestLifetimeSeconds` promises. */
export const REQUEST_LIFETIME_MS = 10_000;

/** Do several daemons of the plan use one API key? */
export function sharesKeys({ daemons }: Plan): boolean {
  return new Set(daemons.map(({ key }) => key)).size < daemons.length;
}

/** What the configuration calls a bot of the plan. */
export function botName(bot: number): string {
  return `bot-${bot}`;
}

const LINE_WIDTH = 110;

/** A plan as JSON for a file: a line for each field, market, daemon and fault, as the formatter would set it. */
export function printPlan(plan: Plan): string {
  const fields = Object.entries(plan).map(([name, value]) => {
    const start = `  ${JSON.stringify(name)}: `;
    if (!Array.isArray(value)) return start + JSON.stringify(value);
    const items = value.map(printItem);
    const line = `${start}[${items.join(', ')}]`;
    return line.length < LINE_WIDTH ? line : `${start}[\n    ${items.join(',\n    ')}\n  ]`;
  });
  return `{\n${fields.join(',\n')}\n}\n`;
}

/** Names hold no brackets: a space beside one is of the layout. */
function printItem(item: object): string {
  return JSON.stringify(item, null, 1)
    .replaceAll(/\n */g, ' ')
    .replaceAll(/(?<=\[) | (?=\])/g, '');
}
