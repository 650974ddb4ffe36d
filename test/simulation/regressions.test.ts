import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { KEPT_PLANS, readKeptPlan } from './plan-reader.ts';
import { runPlan } from './run.ts';

const FILES = readdirSync(KEPT_PLANS).filter((name) => name.endsWith('.json'));

describe('a plan that once broke a promise', () => {
  it.each(FILES)('keeps every promise now: %s', (name) => {
    const plan = readKeptPlan(name);
    expect(plan.found).toMatch(/^[A-Z].*\.$/);
    expect(runPlan(plan).violation).toBeNull();
  });
});
