import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { isMarketName } from '../../src/simulator/markets.ts';
import { DAY_MS, DRIFT_PPM, FAULTS, type Fault, PLAN, type Plan, REQUEST_LIFETIME_MS } from './plan.ts';

/** The plan that a text from outside holds, or a sentence that says what is wrong with it. */
export type ParsedPlan =
  | { readonly ok: true; readonly plan: Plan }
  | { readonly ok: false; readonly problem: string };

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
