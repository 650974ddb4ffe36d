import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Larger than everything else that is installed here: so it is fetched where it is wanted alone. */
export const CCXT = 'ccxt@4.5.84';

/** Installs a package into a folder of its own, unless `signal` ends that. */
export async function npmInstall(folder: string, name: string, signal?: AbortSignal): Promise<void> {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"private":true}');
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', '--prefer-offline'];
  await promisify(execFile)('npm', ['install', ...quiet, name], { cwd: folder, ...(signal && { signal }) });
}
