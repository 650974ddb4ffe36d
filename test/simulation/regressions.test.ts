import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parsePlan } from './plan-reader.ts';
import { runPlan } from './run.ts';

const FOLDER = new URL('plans/', import.meta.url);
const FILES = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));

function planIn(name: string) {
  const parsed = parsePlan(JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8')));
  if (!parsed.ok) throw new Error(parsed.problem);
  expect(parsed.plan.found).toMatch(/^[A-Z].*\.$/);
  return parsed.plan;
}

describe('a plan that once broke a promise', () => {
  it.each(FILES)('keeps every promise now: %s', (name) => {
    expect(runPlan(planIn(name)).violations).toEqual([]);
  });

  it('is kept for every fault that was found', () => {
    expect(FILES.length).toBeGreaterThan(15);
  });
});
