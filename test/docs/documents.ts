import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from '../process/program.ts';

/** Path of every document, from the root of the repository. */
export const DOCUMENTS: readonly string[] = [
  ...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
  'deploy/README.md',
];

/** A file of the repository, by its path from the root. */
export const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

export const write = (path: string, content: string): void => writeFileSync(join(ROOT, path), content);

/** The path that a link in a document leads to, from the root of the repository. */
export const resolveLink = (from: string, target: string): string => join(dirname(from), target);

/** Whether the path is there; `*` in its last part stands for anything. */
export function isThere(path: string): boolean {
  if (!path.includes('*')) return existsSync(join(ROOT, path));
  const folder = join(ROOT, dirname(path));
  const [before = '', after = ''] = path.slice(path.lastIndexOf('/') + 1).split('*');
  return (
    existsSync(folder) && readdirSync(folder).some((name) => name.startsWith(before) && name.endsWith(after))
  );
}
