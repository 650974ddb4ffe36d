import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { ROOT } from './program.ts';

/**
 * Puts the program and its dependencies into one file. Tests start it hundreds of times: from one file a start takes half
 * of the processor time. In the layout of the package the program finds its version and its example files.
 */
export async function setup(): Promise<void> {
  const folder = join(ROOT, 'build/program');
  mkdirSync(folder, { recursive: true });
  for (const name of ['package.json', 'config']) {
    rmSync(join(folder, name), { force: true });
    symlinkSync(join(ROOT, name), join(folder, name));
  }
  const program = join(folder, 'dist/main.js');
  await build({
    absWorkingDir: ROOT,
    entryPoints: ['src/main.ts'],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24.12',
    logLevel: 'warning',
    // Dependencies that are CommonJS call it for the modules of Node.
    banner: {
      js: "import { createRequire as createRequireOfBundle } from 'node:module';\nconst require = createRequireOfBundle(import.meta.url);",
    },
  });
  process.env['TEST_PROGRAM'] = program;
}
