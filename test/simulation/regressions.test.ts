import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parsePlan } from './plan-reader.ts';
import { runPlan } from './run.ts';
import { WIDER } from './wider.ts';

const FOLDER = new URL('plans/', import.meta.url);
const FILES = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));

const known = new URL('known/', FOLDER);

function planIn(name: string, folder: URL) {
  const parsed = parsePlan(JSON.parse(readFileSync(new URL(name, folder), 'utf8')));
  if (!parsed.ok) throw new Error(parsed.problem);
  expect(parsed.plan.found).toMatch(/^[A-Z].*\.$/);
  return parsed.plan;
}

describe('a plan that once broke a promise', () => {
  it.each(FILES)('keeps every promise now: %s', (name) => {
    expect(runPlan(planIn(name, FOLDER)).violations).toEqual([]);
  });

  it.each(readdirSync(known))(
    'that is judged wider keeps every promise once that is asked for: %s',
    (name) => {
      const plan = planIn(name, known);
      expect(WIDER ? runPlan(plan).violations : []).toEqual([]);
    },
  );

  it('is kept for every fault that was found', () => {
    expect(FILES.length).toBeGreaterThan(15);
  });
});
