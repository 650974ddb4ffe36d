import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { read } from '../docs/documents.ts';
import { codeBlocksOf } from '../docs/markdown.ts';
import { scratch } from './scratch.ts';
import { cloneWithPackages, runHere } from './systemd-host.ts';

const folder = scratch();
const prefix = join(folder, 'prefix');
const installed = join(prefix, 'lib/node_modules/killswitchd');
/** The Node that npm of this machine runs on: not the one that the tests run on. */
const nodeOfNpm = execFileSync('bash', ['-c', 'PATH=${PATH//node_modules/none}; command -v node'], {
  encoding: 'utf8',
}).trim();

/** The installed command, by a Node that is first in the PATH. */
function command(node: string, ...args: readonly string[]) {
  const bin = mkdtempSync(join(folder, 'bin-'));
  symlinkSync(node, join(bin, 'node'));
  const env = { PATH: `${bin}:/usr/bin:/bin`, HOME: folder };
  const options = { env, encoding: 'utf8', timeout: 60_000 } as const;
  const { status, stdout, stderr } = spawnSync(join(prefix, 'bin/killswitchd'), args, options);
  return { status, stdout, stderr };
}

beforeAll(async () => {
  const clone = cloneWithPackages(join(folder, 'clone'));
  const [shown = ''] = codeBlocksOf(read('README.md'), 'sh').filter((text) => text.includes('npm pack'));
  await runHere('bash', ['-euc', shown.replace(' -g ', ` -g --prefix ${prefix} `)], clone);
}, 300_000);

describe('the package, installed as the README says', () => {
  it('has a command that guards a sample bot as it lies in node_modules', () => {
    expect(command(process.execPath, 'version')).toMatchObject({ status: 0, stderr: '' });
    const config = join(folder, 'killswitchd.yaml');
    const control = { listen: [`unix:${folder}/control.sock`] };
    const content = { markets: ['BTC_USDT'], liveness: { mode: 'beat' }, web: { listen: [] }, control };
    writeFileSync(config, JSON.stringify(content));
    for (const [language, name] of [
      [process.execPath, 'bot.js'],
      ['python3', 'bot.py'],
    ] as const) {
      const timed = ['timeout', '-s', 'TERM', '5', language, join(installed, 'config/clients', name)];
      const args = ['exec', '--embedded-exchange', '--config', config, '--', ...timed];
      const ran = command(process.execPath, ...args);
      expect(ran.stdout, ran.stderr).toMatch(/^armed: orders may go out$/m);
      expect(ran.stdout).toMatch(/^goodbye$/m);
    }
  });

  it('says one sentence to an older Node, and ends with 78', () => {
    const version = execFileSync(nodeOfNpm, ['-p', 'process.versions.node'], { encoding: 'utf8' }).trim();
    const [major = 0, minor = 0] = version.split('.').map(Number);
    const tooOld = major < 24 || (major === 24 && minor < 12);
    for (const args of [['run'], ['--help'], ['exec', '--', 'true']]) {
      const { status, stderr } = command(nodeOfNpm, ...args);
      const wanted = `killswitchd needs Node 24.12 or later, and this is Node ${version}.\n`;
      expect([status === 78, stderr === wanted]).toEqual([tooOld, tooOld]);
    }
  });
});
