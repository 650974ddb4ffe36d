import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from './program.ts';

/** Runs the program in a Node that says that it is `version`. */
function runAs(version: string, args: readonly string[]) {
  const script = `Object.defineProperty(process.versions, 'node', { value: '${version}' })`;
  const preload = ['--import', `data:text/javascript,${encodeURIComponent(script)}`];
  const options = { encoding: 'utf8', timeout: 10_000 } as const;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [...preload, join(ROOT, 'src/main.ts'), ...args],
    options,
  );
  return { status, stdout, stderr };
}

test.each([
  ['20.20.2', ['version']],
  ['24.11.1', ['exec', '--', 'true']],
  ['23.0.0', ['--help']],
])('Node %s is too old for %j: one sentence, and 78', (version, args) => {
  const stderr = `killswitchd needs Node 24.12 or later, and this is Node ${version}.\n`;
  expect(runAs(version, args)).toEqual({ status: 78, stdout: '', stderr });
});

test.each(['24.12.0', '25.0.0'])('Node %s will do', (version) => {
  expect(runAs(version, ['version'])).toMatchObject({ status: 0, stderr: '' });
});

test('the oldest Node is the one that package.json names', () => {
  const { engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    engines: { node: string };
  };
  expect(engines.node).toBe('>=24.12');
});
