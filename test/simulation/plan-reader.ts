import { ORDER_TYPES } from '../../src/core/events.ts';
import { isMarketName } from '../../src/simulator/markets.ts';
import { nearest, suggest } from '../../src/util/nearest.ts';
import { EVIDENCE_MODES, FAULT_KINDS, FAULTS, type Fault, type Plan, REQUEST_LIFETIME_MS } from './plan.ts';

/** The plan that a text from outside holds, or a sentence that says what is wrong with it. */
export type ParsedPlan =
  | { readonly ok: true; readonly plan: Plan }
  | { readonly ok: false; readonly problem: string };

interface Field {
  readonly allowed: string;
  readonly fits: (value: unknown) => boolean;
  readonly optional?: true;
}
type Fields = Readonly<Record<string, Field>>;

const DAY_MS = 86_400_000;
const MOST_MARKETS = 1000;
const MOST_DAEMONS = 8;
/** Two clocks drift apart by at most this: what belief gives away on both sides. */
const DRIFT_PPM = 200;

const number = (low: number, high: number): Field => ({
  allowed: `a number from ${low} to ${high}`,
  fits: (value) => typeof value === 'number' && value >= low && value <= high,
});
const whole = (low: number, high: number): Field => ({
  allowed: `a whole number from ${low} to ${high}`,
  fits: (value) => Number.isSafeInteger(value) && Number(value) >= low && Number(value) <= high,
});
const oneOf = (...words: readonly string[]): Field => ({
  allowed: words.join(', '),
  fits: (value) => words.some((word) => word === value),
});
const BOOLEAN: Field = { allowed: 'true or false', fits: (value) => typeof value === 'boolean' };
const list = (least: number, most: number): Field => ({
  allowed: `a list of ${least} to ${most}`,
  fits: (value) => Array.isArray(value) && value.length >= least && value.length <= most,
});

const PLAN_FIELDS: Fields = {
  found: { allowed: 'a sentence', fits: (value) => typeof value === 'string', optional: true },
  seed: whole(0, 2 ** 32 - 1),
  faultyMs: number(1, DAY_MS),
  markets: list(1, MOST_MARKETS),
  daemons: list(1, MOST_DAEMONS),
  bots: whole(1, MOST_MARKETS),
  bases: whole(1, 4),
  nonce: oneOf('increasing', 'window'),
  watched: BOOLEAN,
  evidence: { ...oneOf(...EVIDENCE_MODES), optional: true },
  onStale: oneOf('expire', 'trip'),
  onLapse: { ...oneOf('rearm', 'hold'), optional: true },
  roundTripMs: number(0.1, 2000),
  profile: oneOf('documented', 'live'),
  rounding: oneOf('floor', 'round', 'ceil'),
  cancellationDelayMs: number(0, 60_000),
  serverDriftPpm: number(-DRIFT_PPM, DRIFT_PPM),
  budgetRequests: whole(1, 10_000),
  limitRequests: whole(1, 10_000),
  faults: list(0, 10_000),
};
const MARKET_FIELDS: Fields = {
  market: {
    allowed: 'a name of the form BASE_QUOTE',
    fits: (value) => typeof value === 'string' && isMarketName(value),
  },
  timeoutSeconds: whole(5, 600),
  types: { allowed: `null or a list of ${ORDER_TYPES.join(', ')}`, fits: isTypes },
  bot: whole(0, MOST_MARKETS - 1),
  renewEverySeconds: { ...number(1, 200), optional: true },
};
const DAEMON_FIELDS: Fields = {
  startMs: number(0, DAY_MS),
  driftPpm: number(-DRIFT_PPM, DRIFT_PPM),
  wallOffsetMs: number(-DAY_MS, DAY_MS),
  policy: oneOf('delete', 'keep', 'handoff'),
  key: whole(0, MOST_DAEMONS - 1),
};
const FAULT_FIELDS: Fields = {
  kind: oneOf(...FAULT_KINDS),
  atMs: number(0, DAY_MS),
  forMs: number(0, DAY_MS),
  share: number(0, 2),
  sizeMs: number(-DAY_MS, DAY_MS),
  target: whole(-1, MOST_MARKETS - 1),
};

/** Reads a plan in the form of the type `Plan`: every field given, none unknown, every target within range. */
export function parsePlan(input: unknown): ParsedPlan {
  const problem = findProblem(input);
  return problem === null ? { ok: true, plan: input as Plan } : { ok: false, problem };
}

function findProblem(input: unknown): string | null {
  const wrong = findMisfit('plan', input, PLAN_FIELDS);
  if (wrong !== null) return wrong;
  const plan = input as Plan;
  return (
    findFirst(plan.markets, (market, index) => findMisfit(`markets[${index}]`, market, MARKET_FIELDS)) ??
    findFirst(plan.daemons, (daemon, index) => findMisfit(`daemons[${index}]`, daemon, DAEMON_FIELDS)) ??
    findFirst(plan.faults, (fault, index) => findMisfit(`faults[${index}]`, fault, FAULT_FIELDS)) ??
    findContradiction(plan)
  );
}

function findFirst<Item>(
  items: readonly Item[],
  problemOf: (item: Item, index: number) => string | null,
): string | null {
  for (const [index, item] of items.entries()) {
    const problem = problemOf(item, index);
    if (problem !== null) return problem;
  }
  return null;
}

function findMisfit(place: string, item: unknown, fields: Fields): string | null {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) {
    return `${place} is ${quote(item)}; expected an object with ${Object.keys(fields).join(', ')}`;
  }
  const values: Readonly<Record<string, unknown>> = { ...item };
  const names = Object.keys(fields);
  const unknown = Object.keys(values).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    const meant = nearest(unknown, names);
    const advice = meant === null ? `; allowed: ${names.join(', ')}` : suggest(meant);
    return `${place} has the unknown field "${unknown}"${advice}`;
  }
  for (const [name, field] of Object.entries(fields)) {
    const value = values[name];
    if (value === undefined ? field.optional : field.fits(value)) continue;
    const meant = name === 'kind' && typeof value === 'string' ? nearest(value, FAULT_KINDS) : null;
    const advice = meant === null ? `; expected ${field.allowed}` : suggest(meant);
    return `${place}.${name} is ${quote(value)}${advice}`;
  }
  return null;
}

/** What fits by itself and not together. */
function findContradiction(plan: Plan): string | null {
  const { markets, bots, daemons, faults, serverDriftPpm } = plan;
  const names = new Set<string>();
  const counts = { bot: bots, daemon: daemons.length, market: markets.length, base: plan.bases };
  return (
    findFirst(markets, ({ market, bot }, index) => {
      if (names.has(market)) return `markets[${index}].market is ${quote(market)} for the second time`;
      names.add(market);
      return bot < bots ? null : `markets[${index}].bot is ${bot}; expected one of ${bots} bots, from 0`;
    }) ??
    findFirst(daemons, ({ driftPpm }, index) =>
      Math.abs(driftPpm - serverDriftPpm) <= DRIFT_PPM
        ? null
        : `daemons[${index}].driftPpm is ${driftPpm}; expected at most ${DRIFT_PPM} from serverDriftPpm`,
    ) ??
    findFirst(faults, (fault, index) => findWrongTarget(`faults[${index}]`, fault, counts))
  );
}

function findWrongTarget(
  place: string,
  { kind, target, sizeMs }: Fault,
  counts: Readonly<Record<'bot' | 'daemon' | 'market' | 'base', number>>,
): string | null {
  const struck = FAULTS[kind];
  if (kind === 'reload-timeout' && (sizeMs < 5000 || sizeMs > 600_000))
    return `${place}.sizeMs is ${sizeMs}; expected a timeout of 5000 to 600000 for ${kind}`;
  if (kind === 'reload-moves' && (sizeMs < 0 || sizeMs > DAY_MS))
    return `${place}.sizeMs is ${sizeMs}; expected a number from 0 to ${DAY_MS} for ${kind}`;
  const delays = struck === 'requests' && (sizeMs < 0 || sizeMs > REQUEST_LIFETIME_MS);
  if (delays) return `${place}.sizeMs is ${sizeMs}; expected a number from 0 to ${REQUEST_LIFETIME_MS}`;
  if (struck === 'exchange')
    return target === -1 ? null : `${place}.target is ${target}; expected -1 for ${kind}`;
  const count = counts[struck === 'requests' ? 'market' : struck];
  const least = struck === 'requests' ? -1 : 0;
  if (target >= least && target < count) return null;
  return `${place}.target is ${target}; expected a whole number from ${least} to ${count - 1} for ${kind}`;
}

function isTypes(value: unknown): boolean {
  if (value === null) return true;
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    new Set(value).size === value.length &&
    value.every((type) => ORDER_TYPES.some((known) => known === type))
  );
}

function quote(value: unknown): string {
  return value === undefined ? 'missing' : JSON.stringify(value).slice(0, 80);
}
