import { relative, resolve } from 'node:path';
import type { Plugin } from 'vite';
import { countLoops, instrument } from './instrument.ts';

export const ROOT = resolve(import.meta.dirname, '../..');
const IDS_PER_FILE = 10_000;
const COLLECT = resolve(import.meta.dirname, 'collect.ts');

/** Puts the mutants of `files` into them, loop counters into all the rest, and `collect.ts` in the place of vitest. */
export function mutation(files: readonly string[]): Plugin {
  return {
    name: 'mutation',
    enforce: 'pre',
    transform(source, id) {
      const file = relative(ROOT, id);
      if (!/^(src|test)\/.*\.ts$/.test(file) || file.startsWith('test/mutation/')) return null;
      const place = files.indexOf(file);
      if (place < 0) {
        // vitest hands itself over without asking any plugin.
        const kept = source.replace(/from 'vitest';/, `from '${COLLECT}';`);
        return { code: countLoops(file, kept), map: null };
      }
      return { code: instrument(file, source, (place + 1) * IDS_PER_FILE).code, map: null };
    },
  };
}
