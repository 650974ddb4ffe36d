import type { OrderType } from '../../src/core/events.ts';

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

/** One fault. Moments and lengths in true milliseconds since the start of the run. */
export interface Fault {
  readonly kind: FaultKind;
  readonly atMs: number;
  readonly forMs: number;
  /** Share of the requests that it hits, 0 to 1; of a neighbour the share of the limit, 0 to 2. */
  readonly share: number;
  /** Size where it has one: a delay, a step of a clock; milliseconds. */
  readonly sizeMs: number;
  /** Index of what it strikes; -1 for all requests, and for the exchange. */
  readonly target: number;
}

export interface PlannedMarket {
  readonly market: string;
  readonly timeoutSeconds: number;
  readonly types: readonly OrderType[] | null;
  readonly bot: number;
  readonly renewEverySeconds?: number;
}

export interface PlannedDaemon {
  readonly startMs: number;
  readonly driftPpm: number;
  readonly wallOffsetMs: number;
  readonly policy: 'delete' | 'keep' | 'handoff';
  /** Index of its API key: daemons with the same one were started twice. */
  readonly key: number;
}

/** Where a watched bot's signs of life come from. */
export const EVIDENCE_MODES = ['beat', 'file', 'http', 'process'] as const;
export type EvidenceMode = (typeof EVIDENCE_MODES)[number];

/** A whole run as data: equal plans give byte-identical runs. */
export interface Plan {
  /** What this plan found, in a sentence; for plans that are kept. */
  readonly found?: string;
  readonly seed: number;
  /** Faults happen until here; after it everything must come right again. */
  readonly faultyMs: number;
  readonly markets: readonly PlannedMarket[];
  readonly daemons: readonly PlannedDaemon[];
  readonly bots: number;
  /** Base addresses; more than one serve the same account. */
  readonly bases: number;
  readonly nonce: 'increasing' | 'window';
  readonly watched: boolean;
  /** How the bots are watched; `beat` where it is not given. */
  readonly evidence?: EvidenceMode;
  readonly onStale: 'expire' | 'trip';
  /** `rearm` where it is not given. */
  readonly onLapse?: 'rearm' | 'hold';
  readonly roundTripMs: number;
  readonly profile: 'documented' | 'live';
  readonly rounding: 'floor' | 'round' | 'ceil';
  readonly cancellationDelayMs: number;
  readonly serverDriftPpm: number;
  /** Requests per 10 s that a daemon may write. */
  readonly budgetRequests: number;
  /** Requests per 10 s that the exchange takes from all of them together. */
  readonly limitRequests: number;
  readonly faults: readonly Fault[];
}

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
  const fields = Object.entries(plan).map(([name, value]) =>
    printField(`  ${JSON.stringify(name)}: `, value),
  );
  return `{\n${fields.join(',\n')}\n}\n`;
}

function printField(start: string, value: unknown): string {
  if (!Array.isArray(value)) return `${start}${JSON.stringify(value)}`;
  const items = value.map(printItem);
  const line = `${start}[${items.join(', ')}]`;
  if (line.length < LINE_WIDTH) return line;
  return `${start}[\n${items.map((item) => `    ${item}`).join(',\n')}\n  ]`;
}

function printItem(item: object): string {
  const members = Object.entries(item).map(
    ([name, value]) => `${JSON.stringify(name)}: ${printValue(value)}`,
  );
  return `{ ${members.join(', ')} }`;
}

function printValue(value: unknown): string {
  return Array.isArray(value)
    ? `[${value.map((one) => JSON.stringify(one)).join(', ')}]`
    : JSON.stringify(value);
}
