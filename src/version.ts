import { existsSync, readFileSync } from 'node:fs';

/** The folder of the package: beside `src` or `dist`, also where the program is bundled. */
export const PACKAGE = new URL('../', import.meta.url);

const { version } = JSON.parse(readFileSync(new URL('package.json', PACKAGE), 'utf8')) as { version: string };
export const VERSION: string = version;

const built = new URL('revision.txt', import.meta.url);
/** The commit that `dist` was built from, as the build wrote it down; `unknown` where nothing was built. */
export const REVISION = (existsSync(built) && readFileSync(built, 'utf8').trim()) || 'unknown';
