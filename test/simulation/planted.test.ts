import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PLANTED, plant } from './planted.ts';
import { WIDER } from './wider.ts';

/** A planted bug that this many seeds do not show is one that the simulation would not find either. */
const SEEDS = 300;

/** What the first seed says that breaks a promise; how many seeds held where none does. */
function findIn(folder: string, wider: boolean): Promise<string> {
  const args = [
    join(folder, 'test/simulation/main.ts'),
    'simulate',
    '--first',
    ...(wider ? ['--wider'] : []),
  ];
  return new Promise((resolve) => {
    execFile(process.execPath, [...args, '--seed', '1', '--seeds', String(SEEDS)], (_error, out, err) =>
      resolve(out + err),
    );
  });
}

describe(`the simulation finds within ${SEEDS} seeds that`, { concurrent: true }, () => {
  it.each(PLANTED.filter(({ wider }) => WIDER || wider !== true))(
    '$name',
    { timeout: 120_000 },
    async (bug) => {
      const folder = plant(bug);
      try {
        expect(await findIn(folder, bug.wider === true)).toMatch(
          /^seed \d+: (\d+ [a-z ]+|uncaught error), at /,
        );
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );
});
