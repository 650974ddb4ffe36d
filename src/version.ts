import { readFileSync } from 'node:fs';

/** The folder of the package: beside `src` or `dist`, also where the program is bundled. */
export const PACKAGE = new URL('../', import.meta.url);

const manifest = JSON.parse(readFileSync(new URL('package.json', PACKAGE), 'utf8')) as { version: string };

/** The version of this program, from the `package.json` beside `src` or `dist`. */
export const VERSION: string = manifest.version;

/** The commit that `dist` was built from, as the build wrote it down; `unknown` where nothing was built. */
export const REVISION: string = readRevision();

function readRevision(): string {
  try {
    return readFileSync(new URL('revision.txt', import.meta.url), 'utf8').trim() || 'unknown';
  } catch {
    return 'unknown';
  }
}
