/** A table as the formatter wants it: every column as wide as its widest cell. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, ...rows].map((row) => row.map((cell) => cell.replaceAll('|', '\\|')));
  const widths = head.map((_, column) => Math.max(3, ...lines.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `| ${widths.map((width, column) => (cells[column] ?? '').padEnd(width)).join(' | ')} |`;
  const [first = [], ...others] = lines;
  const rule = widths.map((width) => '-'.repeat(width));
  return [first, rule, ...others].map(line).join('\n');
}

/** The texts one after the other, in lines of at most 120 characters. */
export function paragraph(texts: readonly string[]): string {
  const lines = [''];
  for (const word of `${texts.join('; ')}.`.split(' ')) {
    const line = `${lines.at(-1)} ${word}`.trimStart();
    if (line.length <= 120) lines[lines.length - 1] = line;
    else lines.push(word);
  }
  return lines.join('\n');
}

export const code = (text: string): string => `\`${text}\``;

/** What stands between `<!-- generated: NAME -->` and `<!-- /generated -->`, by name. */
export function generatedBlocks(markdown: string): ReadonlyMap<string, string> {
  const blocks = new Map<string, string>();
  for (const [, name = '', content = ''] of markdown.matchAll(BLOCK)) blocks.set(name, content.trim());
  return blocks;
}

/** The document with every generated block replaced; blocks that `contentOf` does not know stay as they are. */
export function withGenerated(markdown: string, contentOf: (name: string) => string | undefined): string {
  return markdown.replaceAll(BLOCK, (block: string, name: string) => {
    const content = contentOf(name);
    return content === undefined ? block : generatedBlock(name, content);
  });
}

export const generatedBlock = (name: string, content: string): string =>
  `<!-- generated: ${name} -->\n\n${content}\n\n<!-- /generated -->`;

const BLOCK = /<!-- generated: ([^>]+?) -->\n([\s\S]*?)<!-- \/generated -->/g;

/** The document without its code blocks, which have rules of their own. Lines keep their numbers. */
export function withoutCode(markdown: string): string {
  return markdown.replaceAll(/^```[\s\S]*?^```/gm, (block) => block.replaceAll(/[^\n]/g, ''));
}

/** The anchors of a document's headings, as the usual forges make them. */
export function anchorsOf(markdown: string): string[] {
  return [...withoutCode(markdown).matchAll(/^#{1,6} (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

/** Targets of the links of a document, without those of images from elsewhere. */
export function linksOf(markdown: string): string[] {
  return [...withoutCode(markdown).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
}

/** The texts in backticks outside of code blocks. */
export function inlineCodeOf(markdown: string): string[] {
  return [...withoutCode(markdown).matchAll(/`([^`\n]+)`/g)].map(([, text = '']) => text);
}

/** The contents of the code blocks of one language. */
export function codeBlocksOf(markdown: string, language: string): string[] {
  return [...markdown.matchAll(/^```(\w*)\n([\s\S]*?)^```/gm)]
    .filter(([, found]) => found === language)
    .map(([, , content = '']) => content);
}
