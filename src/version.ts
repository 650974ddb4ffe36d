import { readFileSync } from 'node:fs';

/** The folder of the package: beside `src` or `dist`, also where the program is bundled. */
export const PACKAGE = new URL('../', import.meta.url);

/** The version of this program, from the `package.json` beside `src` or `dist`. */
export const VERSION: string = readVersion();

/** The commit that `dist` was built from, as the build wrote it down; `unknown` where nothing was built. */
export const REVISION: string = readRevision();

function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('package.json', PACKAGE), 'utf8'));
  const isManifest = typeof manifest === 'object' && manifest !== null && 'version' in manifest;
  return isManifest ? String(manifest.version) : 'unknown';
}

function readRevision(): string {
  try {
    const text = readFileSync(new URL('revision.txt', import.meta.url), 'utf8').trim();
    return text === '' ? 'unknown' : text;
  } catch {
    return 'unknown';
  }
}
