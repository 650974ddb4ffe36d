import { read } from './documents.ts';
import { codeBlocksOf } from './markdown.ts';

/** The blocks of one recipe of docs/recipes.md in a language. */
export function recipe(heading: string, language: string): readonly string[] {
  const section = read('docs/recipes.md')
    .split(/^## /m)
    .find((text) => text.startsWith(`${heading}\n`));
  if (section === undefined) throw new Error(`docs/recipes.md has no section ${heading}`);
  return codeBlocksOf(section, language);
}
