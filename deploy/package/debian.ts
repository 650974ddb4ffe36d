import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';

// `npm run package`: the Debian package, out of the bundle and the Node of this repository.

const ROOT = join(import.meta.dirname, '../..');
const TREE = join(ROOT, 'build/debian');
const HOME = '/usr/lib/killswitchd';
const { version, homepage } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  version: string;
  homepage: string;
};

const MAINTAINER = `killswitchd <maintainers@${new URL(homepage).hostname}>`;

const read = (name: string) => readFileSync(join(ROOT, name), 'utf8');
/** The files of `deploy/systemd` name the folder of the archive, and its documents in the place of the manual. */
const moved = (name: string) =>
  read(`deploy/systemd/${name}`)
    .replace('file:///opt/killswitchd/README.md', 'man:killswitchd(1)')
    .replace('docs/configuration.md', 'man killswitchd.yaml')
    .replaceAll('/opt/killswitchd', HOME);

function put(path: string, content: string | Uint8Array, mode = 0o644): void {
  const target = join(TREE, path);
  mkdirSync(dirname(target), { recursive: true, mode: 0o755 });
  writeFileSync(target, content, { mode });
}
const zipped = (text: string) => gzipSync(text, { level: 9 });

process.umask(0o022);
rmSync(TREE, { recursive: true, force: true });
cpSync(join(ROOT, 'build/bundle'), join(TREE, HOME), { recursive: true });
put(`${HOME}/bin/node`, readFileSync(join(ROOT, 'node_modules/node/bin/node')), 0o755);
for (const name of ['killswitchd', 'notify-fd']) put(`${HOME}/bin/${name}`, moved(name), 0o755);
mkdirSync(join(TREE, 'usr/bin'));
symlinkSync(`../lib/killswitchd/bin/killswitchd`, join(TREE, 'usr/bin/killswitchd'));

for (const unit of ['killswitchd@.service', 'killswitchd-exchange.service'])
  put(`usr/lib/systemd/system/${unit}`, moved(unit));
put('usr/lib/sysusers.d/killswitchd.conf', moved('killswitchd.sysusers'));
put('usr/lib/tmpfiles.d/killswitchd.conf', read('deploy/package/debian/tmpfiles'));
put('etc/killswitchd/main.yaml', moved('main.yaml'));

for (const page of readdirSync(join(ROOT, 'dist/man')))
  put(`usr/share/man/man${page.at(-1)}/${page}.gz`, zipped(read(`dist/man/${page}`)));
const completions = {
  'killswitchd.bash': 'usr/share/bash-completion/completions/killswitchd',
  _killswitchd: 'usr/share/zsh/vendor-completions/_killswitchd',
  'killswitchd.fish': 'usr/share/fish/vendor_completions.d/killswitchd.fish',
};
for (const [name, path] of Object.entries(completions)) put(path, read(`dist/completions/${name}`));

const documents = 'usr/share/doc/killswitchd';
put(`${documents}/README.md.gz`, zipped(read('README.md')));
put(`${documents}/CHANGELOG.md.gz`, zipped(read('CHANGELOG.md')));
const date = execFileSync('date', ['-R'], { encoding: 'utf8' });
const entry = `killswitchd (${version}) stable; urgency=medium\n\n  * See CHANGELOG.md.gz.\n\n -- ${MAINTAINER}  ${date}`;
put(`${documents}/changelog.gz`, zipped(entry));
put(`${documents}/examples/trading-bot.service`, moved('trading-bot.service'));
put(`${documents}/examples/killswitchd.example.yaml`, read('config/killswitchd.example.yaml'));
put(
  `${documents}/copyright`,
  [
    'Copyright 2026 the authors of killswitchd.',
    'killswitchd is licensed under the Apache License 2.0, see /usr/share/common-licenses/Apache-2.0.',
    `Node, at ${HOME}/bin/node, is licensed under the MIT license and those of its parts, see`,
    `https://github.com/nodejs/node/blob/v${process.versions.node}/LICENSE.`,
    `The packages that are part of the program, with their licenses: ${HOME}/dist/licenses.txt.\n`,
  ].join('\n'),
);
put('usr/share/lintian/overrides/killswitchd', read('deploy/package/debian/lintian-overrides'));

const kib = execFileSync('du', ['-sk', TREE], { encoding: 'utf8' }).split('\t')[0] ?? '0';
put(
  'DEBIAN/control',
  read('deploy/package/debian/control')
    .replace('MAINTAINER', MAINTAINER)
    .replace('HOMEPAGE', homepage)
    .replace('VERSION', version)
    .replace('SIZE', kib),
);
put('DEBIAN/conffiles', '/etc/killswitchd/main.yaml\n');
for (const script of ['postinst', 'prerm', 'postrm'])
  put(`DEBIAN/${script}`, read(`deploy/package/debian/${script}`), 0o755);
const sums = execFileSync(
  'bash',
  ['-c', 'find . -type f ! -path "./DEBIAN/*" -printf "%P\\0" | sort -z | xargs -0 md5sum'],
  {
    cwd: TREE,
  },
);
put('DEBIAN/md5sums', sums);
const file = join(ROOT, `build/killswitchd_${version}_amd64.deb`);
execFileSync('dpkg-deb', ['--root-owner-group', '-Zxz', '-z1', '--build', TREE, file], { stdio: 'inherit' });
