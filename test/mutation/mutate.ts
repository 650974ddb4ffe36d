import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { startVitest } from 'vitest/node';
import { mutation, ROOT } from './plugin.ts';

const all = readdirSync(join(ROOT, 'src/core')).map((name) => `src/core/${name}`);
const quickly = process.argv.includes('--quick');
const asked = process.argv.slice(2).filter((word) => word !== '--quick');
const files = asked.length === 0 ? all : asked;
const unknown = files.filter((file) => !all.includes(file));
if (unknown.length > 0) throw new Error(`no file of the core: ${unknown.join(', ')}`);

await startVitest(
  [],
  {
    config: false,
    root: ROOT,
    include: ['test/mutation/mutants.run.ts'],
    env: { MUTATED: files.join(','), MUTATE_QUICKLY: quickly ? 'yes' : 'no' },
    maxWorkers: 1,
    testTimeout: 0,
    watch: false,
    fsModuleCache: false,
    disableConsoleIntercept: true,
    dangerouslyIgnoreUnhandledErrors: true,
  },
  { plugins: [mutation(files)] },
);
