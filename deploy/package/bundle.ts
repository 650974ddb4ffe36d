import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { billOf } from './sbom.ts';

// `npm run bundle`: what the Debian package and the image carry, in the layout of the npm package, with the program and
// all of its dependencies in a few files, of which each command loads those that it needs.

const ROOT = join(import.meta.dirname, '../..');
const BUNDLE = join(ROOT, 'build/bundle');

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license: string;
}
const manifestOf = (folder: string) =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;

rmSync(BUNDLE, { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: ROOT,
  entryPoints: { main: 'src/main.ts', 'library/bot': 'src/library/bot.ts' },
  outdir: join(BUNDLE, 'dist'),
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node24.12',
  sourcemap: true,
  sourcesContent: false,
  splitting: true,
  minifyWhitespace: true,
  metafile: true,
  logLevel: 'warning',
  // Dependencies that are CommonJS call it for the modules of Node.
  banner: {
    js: "import { createRequire as createRequireOfBundle } from 'node:module';\nconst require = createRequireOfBundle(import.meta.url);",
  },
});

/** The folders of the packages that are in it. */
const folders = [
  ...new Set(
    Object.values(metafile.outputs)
      .flatMap(({ inputs }) => Object.entries(inputs))
      .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
      .flatMap(([path]) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []),
  ),
].sort();
const identify = ({ name, version }: Manifest) => `${name}@${version}`;
const bundled = new Set(folders.map((folder) => identify(manifestOf(join(ROOT, folder)))));

const write = (name: string, text: string) => writeFileSync(join(BUNDLE, name), text);
write('dist/sbom.cdx.json', `${JSON.stringify(billOf(bundled), null, 2)}\n`);

const licenses = folders.map((folder) => {
  const path = join(ROOT, folder);
  const { license, ...manifest } = manifestOf(path);
  const file = readdirSync(path).find((name) => /^licen[cs]e/i.test(name));
  const text = file === undefined ? '' : readFileSync(join(path, file), 'utf8');
  return `${identify({ license, ...manifest })} (${license})\n\n${text.trim()}\n`;
});
write('dist/licenses.txt', licenses.join(`\n${'-'.repeat(80)}\n\n`));

const { name, version, license } = manifestOf(ROOT);
const exports = { './bot': './dist/library/bot.js' };
write('package.json', `${JSON.stringify({ name, version, license, type: 'module', exports }, null, 2)}\n`);
const built = join(ROOT, 'dist/revision.txt');
write(
  'dist/revision.txt',
  existsSync(built) ? readFileSync(built, 'utf8') : `${process.env['REVISION'] ?? 'unknown'}\n`,
);
mkdirSync(join(BUNDLE, 'clients/python'), { recursive: true });
cpSync(join(ROOT, 'clients/python/killswitchd.py'), join(BUNDLE, 'clients/python/killswitchd.py'));
cpSync(join(ROOT, 'config'), join(BUNDLE, 'config'), {
  recursive: true,
  filter: (path) => !path.includes('__pycache__'),
});
// Whatever the umask was: another user reads it, and nothing of it is started by its name.
for (const entry of readdirSync(BUNDLE, { recursive: true, withFileTypes: true }))
  chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644);
