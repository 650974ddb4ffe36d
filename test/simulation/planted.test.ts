import { execFile } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PLANTED, plant, RULES } from './planted.ts';

/** A planted bug that this many seeds do not show is one that the simulation would not find either. */
const SEEDS = 300;

/** What the first of these seeds, or the kept plan, says that breaks a promise. */
function findIn(folder: string, first: number | string, seeds: number): Promise<string> {
  const range = ['--seed', String(first), '--seeds', String(seeds), '--first', '--jobs', '1'];
  const plan = ['--plan', join(folder, 'test/simulation/plans', String(first))];
  const args = ['simulate', ...(typeof first === 'number' ? range : plan)];
  return new Promise((resolve) => {
    execFile(process.execPath, [join(folder, 'test/simulation/main.ts'), ...args], (_error, out, err) =>
      resolve(out + err),
    );
  });
}

const BROKEN = /^(seed \d+:|BROKEN) \d+ [a-z ]+/m;

describe(`the simulation finds within ${SEEDS} seeds that`, { concurrent: true }, () => {
  it.each(PLANTED)('$name', { timeout: 120_000 }, async (bug) => {
    const folder = plant(bug);
    try {
      // A change of the sources may have another seed show it: only then all of them are run.
      const known = await findIn(folder, bug.shownBy, 1);
      if (BROKEN.test(known) && known.includes(bug.says)) return;
      const found = await findIn(folder, 1, SEEDS);
      expect(found).toMatch(BROKEN);
      expect(found).toContain(bug.says);
      console.log(`"${bug.name}" is shown by ${found}`);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

it('every rule that `npm run rule-cost` takes out stands where it looks for it', () => {
  const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
  const misplaced = RULES.flatMap(({ edits }) =>
    edits.filter(({ file, find }) => read(file).split(find).length !== 2),
  );
  expect(misplaced).toEqual([]);
});
