import { readFileSync } from 'node:fs';

// Says which addresses of package.json are placeholders: those below the reserved domain `.example`. Before the package
// is built that is a line; `npm publish` runs it with --refuse, and stops there.

const { homepage, repository } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  readonly homepage: string;
  readonly repository: { readonly url: string };
};
const found = Object.entries({ homepage, 'repository.url': repository.url }).filter(([, address]) =>
  new URL(address.replace(/^git\+/, '')).hostname.endsWith('.example'),
);
for (const [key, address] of found)
  console.error(`package.json: ${key} is a placeholder, ${address}; write your own before you publish`);
if (found.length > 0 && process.argv.includes('--refuse')) process.exit(1);
