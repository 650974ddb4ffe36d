import { read } from './documents.ts';
import { codeBlocksOf } from './markdown.ts';

/** The code blocks of one language that a document has between a heading and the next one. */
function blocksUnder(path: string, heading: string, language: string): readonly string[] {
  const text = read(path);
  const at = text.indexOf(`\n${heading}\n`);
  if (at < 0) throw new Error(`${path} has no heading ${heading}`);
  const [section = ''] = text.slice(at + heading.length + 2).split(/^#{2,3} /m);
  return codeBlocksOf(section, language);
}

export const recipe = (heading: string, language: string) =>
  blocksUnder('docs/recipes.md', `## ${heading}`, language);

/** What the guide shows under a heading, such as `## Image`: commands, block by block, or another language. */
export const guideUnder = (heading: string, language = 'sh') =>
  blocksUnder('deploy/README.md', heading, language);
