import { read } from '../docs/documents.ts';

/** The commands that `deploy/README.md` shows under a heading, block by block. */
export function commandsUnder(heading: string): readonly string[] {
  const guide = read('deploy/README.md');
  const at = guide.indexOf(`\n${heading}\n`);
  if (at < 0) throw new Error(`deploy/README.md has no heading ${heading}`);
  const [section = ''] = guide.slice(at + heading.length + 2).split(/^#{1,3} /m);
  return [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, commands = '']) => commands);
}
