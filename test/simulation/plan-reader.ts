import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import Type, { type Static, type TProperties, type TSchema } from 'typebox';
import { ORDER_TYPES } from '../../src/core/events.ts';
import { isMarketName } from '../../src/simulator/markets.ts';
import { DRIFT_PPM, EVIDENCE_MODES, FAULT_KINDS, FAULTS, REQUEST_LIFETIME_MS } from './plan.ts';

const DAY_MS = 86_400_000;
const MOST_MARKETS = 1000;
const MOST_DAEMONS = 8;

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
  share: number(0, 2), // Of the requests that it hits, 0 to 1; of a neighbour the share of the limit.
  sizeMs: number(-DAY_MS, DAY_MS), // Where it has one: a delay, a step of a clock.
  target: whole(-1, MOST_MARKETS - 1), // Index of what it strikes; -1 for all requests, and for the exchange.
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
  key: whole(0, MOST_DAEMONS - 1), // Index of its API key: daemons with the same one were started twice.
});
export interface PlannedDaemon extends Readonly<Static<typeof DAEMON>> {}

/** A whole run as data: equal plans give byte-identical runs. */
const PLAN = record({
  found: Type.Optional(Type.String()), // What it found, in a sentence; for plans that are kept.
  seed: whole(0, 2 ** 32 - 1),
  faultyMs: number(1, DAY_MS), // Faults happen until here; after it everything must come right again.
  markets: list(MARKET, 1, MOST_MARKETS),
  daemons: list(DAEMON, 1, MOST_DAEMONS),
  bots: whole(1, MOST_MARKETS),
  bases: whole(1, 4), // Base addresses; more than one serve the same account.
  nonce: oneOf('increasing', 'window'),
  connections: Type.Optional(whole(1, 1024)), // Most requests in flight in a nonce window; 64 where not given.
  watched: Type.Boolean(),
  evidence: Type.Optional(oneOf(...EVIDENCE_MODES)), // How the bots are watched; `beat` where it is not given.
  onStale: oneOf('expire', 'trip'),
  onLapse: Type.Optional(oneOf('rearm', 'hold')), // `rearm` where it is not given.
  stopSeconds: Type.Optional(number(1, 300)), // What a stop may take; 8 where it is not given.
  roundTripMs: number(0.1, 2000),
  profile: oneOf('documented', 'live'),
  rounding: oneOf('floor', 'round', 'ceil'),
  cancellationDelayMs: number(0, 60_000),
  serverDriftPpm: number(-DRIFT_PPM, DRIFT_PPM),
  budgetRequests: whole(1, 10_000), // In 10 s, that a daemon may write.
  limitRequests: whole(1, 10_000), // In 10 s, that the exchange takes from all of them together.
  faults: list(FAULT, 0, 10_000),
});
export interface Plan extends Readonly<Static<typeof PLAN>> {}

const isPlan = new Ajv({ formats: { market: isMarketName } }).compile<Plan>(PLAN);

/** Reads a plan: every field given, none unknown, every target within range. Or says in a sentence what is wrong. */
export function parsePlan(input: unknown): Plan | string {
  if (isPlan(input)) return findContradiction(input) ?? input;
  const [wrong] = isPlan.errors ?? [];
  const more = wrong?.params.allowedValues?.join(', ') ?? wrong?.params.additionalProperty;
  return `plan${wrong?.instancePath} ${wrong?.message}${more === undefined ? '' : `: ${more}`}`;
}

function findContradiction(plan: Plan): string | null {
  const { markets, bots, daemons, faults, serverDriftPpm } = plan;
  const names = markets.map(({ market }) => market);
  const twice = names.findIndex((name, place) => names.indexOf(name) < place);
  if (twice >= 0) return `plan/markets/${twice} has the name of another market: ${names[twice]}`;
  const botless = markets.findIndex(({ bot }) => bot >= bots);
  if (botless >= 0) return `plan/markets/${botless}/bot must be < ${bots}`;
  const drifting = daemons.findIndex(({ driftPpm }) => Math.abs(driftPpm - serverDriftPpm) > DRIFT_PPM);
  if (drifting >= 0) return `plan/daemons/${drifting}/driftPpm must be within ${DRIFT_PPM} of serverDriftPpm`;
  for (const [place, fault] of faults.entries()) {
    const problem = findMisdirection(plan, fault);
    if (problem !== null) return `plan/faults/${place}/${problem} for ${fault.kind}`;
  }
  return null;
}

/** The sizes that make sense, where not all of them do. */
const SIZES_MS: Partial<Record<Fault['kind'], readonly [least: number, most: number]>> = {
  'reload-timeout': [5000, 600_000],
  'reload-moves': [0, DAY_MS],
  'grants-less': [0, DAY_MS],
};

function findMisdirection(plan: Plan, { kind, target, sizeMs }: Fault): string | null {
  const struck = FAULTS[kind];
  const sizes = SIZES_MS[kind] ?? (struck === 'requests' ? [0, REQUEST_LIFETIME_MS] : null);
  if (sizes !== null && (sizeMs < sizes[0] || sizeMs > sizes[1]))
    return `sizeMs must be from ${sizes[0]} to ${sizes[1]}`;
  const least = struck === 'requests' || struck === 'exchange' ? -1 : 0;
  const { markets, daemons, bots: bot, bases: base } = plan;
  const ofMarkets = { requests: markets.length, market: markets.length };
  const most = { ...ofMarkets, daemon: daemons.length, bot, base, exchange: 0 }[struck] - 1;
  return target >= least && target <= most ? null : `target must be from ${least} to ${most}`;
}

/** The folder of the plans that once broke a promise. */
export const KEPT_PLANS = new URL('plans/', import.meta.url);

export function readKeptPlan(name: string): Plan {
  const plan = parsePlan(JSON.parse(readFileSync(new URL(name, KEPT_PLANS), 'utf8')));
  if (typeof plan === 'string') throw new Error(plan);
  return plan;
}
