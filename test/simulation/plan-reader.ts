import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { ORDER_TYPES } from '../../src/core/events.ts';
import { isMarketName } from '../../src/simulator/markets.ts';
import { EVIDENCE_MODES, FAULT_KINDS, FAULTS, type Fault, type Plan, REQUEST_LIFETIME_MS } from './plan.ts';

/** The plan that a text from outside holds, or a sentence that says what is wrong with it. */
export type ParsedPlan =
  | { readonly ok: true; readonly plan: Plan }
  | { readonly ok: false; readonly problem: string };

const DAY_MS = 86_400_000;
const MOST_MARKETS = 1000;
const MOST_DAEMONS = 8;
/** Two clocks drift apart by at most this: what belief gives away on both sides. */
const DRIFT_PPM = 200;

const number = (minimum: number, maximum: number) => ({ type: 'number', minimum, maximum });
const whole = (minimum: number, maximum: number) => ({ type: 'integer', minimum, maximum });
const oneOf = (...words: readonly string[]) => ({ enum: words });
const list = (items: object, minItems: number, maxItems: number) => ({
  type: 'array',
  items,
  minItems,
  maxItems,
});
/** Every field is given, but for these, and none is unknown. */
const record = (properties: object, ...optional: readonly string[]) => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
  additionalProperties: false,
});

const MARKET = record(
  {
    market: { type: 'string', format: 'market' },
    timeoutSeconds: whole(5, 600),
    types: {
      anyOf: [{ type: 'null' }, { ...list(oneOf(...ORDER_TYPES), 1, ORDER_TYPES.length), uniqueItems: true }],
    },
    bot: whole(0, MOST_MARKETS - 1),
    renewEverySeconds: number(1, 200),
  },
  'renewEverySeconds',
);
const DAEMON = record({
  startMs: number(0, DAY_MS),
  driftPpm: number(-DRIFT_PPM, DRIFT_PPM),
  wallOffsetMs: number(-DAY_MS, DAY_MS),
  policy: oneOf('delete', 'keep', 'handoff'),
  key: whole(0, MOST_DAEMONS - 1),
});
const FAULT = record({
  kind: oneOf(...FAULT_KINDS),
  atMs: number(0, DAY_MS),
  forMs: number(0, DAY_MS),
  share: number(0, 2),
  sizeMs: number(-DAY_MS, DAY_MS),
  target: whole(-1, MOST_MARKETS - 1),
});
const PLAN = record(
  {
    found: { type: 'string' },
    seed: whole(0, 2 ** 32 - 1),
    faultyMs: number(1, DAY_MS),
    markets: list(MARKET, 1, MOST_MARKETS),
    daemons: list(DAEMON, 1, MOST_DAEMONS),
    bots: whole(1, MOST_MARKETS),
    bases: whole(1, 4),
    nonce: oneOf('increasing', 'window'),
    watched: { type: 'boolean' },
    evidence: oneOf(...EVIDENCE_MODES),
    onStale: oneOf('expire', 'trip'),
    onLapse: oneOf('rearm', 'hold'),
    roundTripMs: number(0.1, 2000),
    profile: oneOf('documented', 'live'),
    rounding: oneOf('floor', 'round', 'ceil'),
    cancellationDelayMs: number(0, 60_000),
    serverDriftPpm: number(-DRIFT_PPM, DRIFT_PPM),
    budgetRequests: whole(1, 10_000),
    limitRequests: whole(1, 10_000),
    faults: list(FAULT, 0, 10_000),
  },
  'found',
  'evidence',
  'onLapse',
);
const isPlan = new Ajv({ formats: { market: isMarketName } }).compile<Plan>(PLAN);

/** Reads a plan in the form of the type `Plan`: every field given, none unknown, every target within range. */
export function parsePlan(input: unknown): ParsedPlan {
  if (!isPlan(input)) return { ok: false, problem: describeMisfit() };
  const problem = findContradiction(input);
  return problem === null ? { ok: true, plan: input } : { ok: false, problem };
}

function describeMisfit(): string {
  const [wrong] = isPlan.errors ?? [];
  const more = wrong?.params.allowedValues?.join(', ') ?? wrong?.params.additionalProperty;
  return `plan${wrong?.instancePath} ${wrong?.message}${more === undefined ? '' : `: ${more}`}`;
}

/** What fits by itself and not together. */
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
  const counts = {
    requests: plan.markets.length,
    market: plan.markets.length,
    daemon: plan.daemons.length,
    bot: plan.bots,
    base: plan.bases,
    exchange: 0,
  };
  if (target >= least && target < counts[struck]) return null;
  return `target must be from ${least} to ${counts[struck] - 1}`;
}

/** The folder of the plans that once broke a promise. */
export const KEPT_PLANS = new URL('plans/', import.meta.url);

/** One of them, by its file. Throws where it is no plan. */
export function readKeptPlan(name: string): Plan {
  const parsed = parsePlan(JSON.parse(readFileSync(new URL(name, KEPT_PLANS), 'utf8')));
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.plan;
}
