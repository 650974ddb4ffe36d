import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { KEPT_PLANS, parsePlan, readKeptPlan } from './plan-reader.ts';
import { runPlan } from './run.ts';
import { planOf } from './shapes.ts';

const FILES = readdirSync(KEPT_PLANS).filter((name) => name.endsWith('.json'));

describe('a plan that once broke a promise', () => {
  it.each(FILES)('keeps every promise now: %s', (name) => {
    const plan = readKeptPlan(name);
    expect(plan.found).toMatch(/^[A-Z].*\.$/);
    expect(runPlan(plan).violation).toBeNull();
  });
});

it('a plan of any seed is read back as it was written', () => {
  for (let seed = 1; seed <= 300; seed += 1) {
    const plan = planOf(seed);
    expect(parsePlan(JSON.parse(JSON.stringify(plan)))).toEqual(plan);
  }
});
