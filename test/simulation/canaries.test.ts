import { describe, expect, test } from 'vitest';
import { FLAWS } from '../../src/core/flaws.ts';
import { planOf } from '../../src/simulation/swarm.ts';
import { runPlan } from '../../src/simulation/world.ts';

/** A planted bug that this many seeds do not show is one that the simulation would not find either. */
const SEEDS = 300;

/** The first seed whose run breaks a promise with the bug planted, and how; null where none does. */
function find(flaw: (typeof FLAWS)[number]): { seed: number; how: string } | null {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const [first] = runPlan(planOf(seed), { flaw }).violations;
    if (first !== undefined) return { seed, how: `${first.invariant}: ${first.text}` };
  }
  return null;
}

describe('the simulation finds a bug that is planted on purpose', () => {
  const table: string[] = [];
  test.each(FLAWS)(`within ${SEEDS} seeds: %s`, { timeout: 120_000 }, (flaw) => {
    const found = find(flaw);
    table.push(
      `${flaw.padEnd(30)} seed ${String(found?.seed ?? '-').padStart(3)}  ${found?.how ?? 'not found'}`,
    );
    if (table.length === FLAWS.length) process.stdout.write(`${table.join('\n')}\n`);
    expect(found).not.toBeNull();
  });
});
