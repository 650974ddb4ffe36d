import { afterAll, describe, expect, it } from 'vitest';
import type { Plan } from './plan.ts';
import { readKeptPlan } from './plan-reader.ts';
import { PLANTED, type PlantedBug, plant, RULES, SEEDS } from './planted.ts';
import { planOf } from './shapes.ts';
import { ask, startThread } from './threads.ts';

// A bug whose text has moved would end the thread, and each hunt would wait for it.
for (const bug of PLANTED) plant(bug);

const thread = startThread();
afterAll(() => thread.terminate());

/** The plan that is known to show the bug, and then, since a change of the sources may have another one show it, all seeds. */
function* plansFor({ shownBy }: PlantedBug): Generator<readonly [number | string, Plan]> {
  yield [shownBy, typeof shownBy === 'number' ? planOf(shownBy) : readKeptPlan(shownBy)];
  for (let seed = 1; seed <= SEEDS; seed += 1) yield [seed, planOf(seed)];
}

/** The first promise that the bug breaks: what it is known by, or else what breaks first in all seeds. */
async function hunt(bug: PlantedBug): Promise<string> {
  let isKnown = true;
  for (const [where, plan] of plansFor(bug)) {
    const { violation } = await ask(thread, { plan, planted: bug.name });
    const broken = violation === null ? '' : `${violation.invariant}: ${violation.text}`;
    if (isKnown ? broken.includes(bug.says) : broken !== '') {
      if (!isKnown) console.log(`"${bug.name}" is shown by ${where}`);
      return broken;
    }
    isKnown = false;
  }
  return 'nothing';
}

describe(`the simulation finds within ${SEEDS} seeds that`, () => {
  it.each(PLANTED)('$name', { timeout: 120_000 }, async (bug) => {
    const broken = await hunt(bug);
    expect(broken).toMatch(/^\d+ [a-z ]+: /);
    expect(broken).toContain(bug.says);
  });
});

it.each(RULES)('`npm run rule-cost` finds what it takes out: $name', (rule) => {
  expect(plant(rule).size).toBeGreaterThan(0);
});
