import { readFileSync } from 'node:fs';

/** The folder of the package: beside `src` or `dist`, also where the program is bundled. */
export const PACKAGE = new URL('../', import.meta.url);

const { version } = JSON.parse(readFileSync(new URL('package.json', PACKAGE), 'utf8')) as { version: string };
export const VERSION: string = version;

/** The commit that `dist` was built from, as the build wrote it down; `unknown` where that is not to be read. */
export let REVISION = 'unknown';
try {
  REVISION = readFileSync(new URL('revision.txt', import.meta.url), 'utf8').trim() || REVISION;
} catch {
  // Nothing was built, or by another user.
}
