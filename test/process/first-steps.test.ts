import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { codeBlocksOf } from '../docs/markdown.ts';
import { startProcess } from '../liveness/started.ts';
import { stageFor } from './harness.ts';
import { eventually, MAIN, ROOT } from './program.ts';

test('the command that README shows after the demo guards a bot that beats', async (context) => {
  const blocks = codeBlocksOf(readFileSync(join(ROOT, 'README.md'), 'utf8'), 'sh');
  const block = blocks.find((text) => text.includes('--embedded-exchange'));
  const [, line = ''] = /^npm run killswitchd -- (.*)/.exec(block?.replaceAll('\\\n', '') ?? '') ?? [];
  const env = { KILLSWITCHD_WEB_LISTEN: '127.0.0.1:0', PATH: process.env['PATH'] ?? '' };
  const guarded = startProcess(context, process.execPath, [MAIN, ...line.split(/\s+/)], env);
  await eventually('an armed bot', 60_000, () =>
    guarded.output().includes('armed: orders may go out') ? true : null,
  );
  guarded.signal('SIGTERM');
  expect(await guarded.ended).toEqual([0, null]);
  expect(guarded.output()).toMatch(/^goodbye$/m);
}, 120_000);

test('the log is text with UTC times on a terminal', async (context) => {
  const args = '--embedded-exchange --markets BTC_USDT --liveness-mode none --web-listen 127.0.0.1:0';
  const terminal = spawn(
    'script',
    ['-qfc', `exec "${process.execPath}" "${MAIN}" run ${args}`, '/dev/null'],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  context.onTestFinished(() => void terminal.kill('SIGKILL'));
  let output = '';
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const ended = once(terminal, 'close');
  await eventually('an armed timer', 60_000, () => (output.includes('is armed') ? true : null));
  terminal.stdin.write('\u0003');
  await ended;
  const lines = output.replace('^C', '').trim().split(/\r?\n/);
  expect(lines.filter((line) => !/^\d\d:\d\d:\d\dZ {2}\S/.test(line))).toEqual([]);
  expect(lines.at(-1)).toContain('Stopped.');
}, 120_000);

test('run without a file says so, and names killswitchd.yaml where it lies here', (context) => {
  const { directory } = stageFor(context);
  const run = () => {
    const { status, stderr } = spawnSync(process.execPath, [MAIN, 'run'], {
      cwd: directory,
      env: { PATH: process.env['PATH'] },
      encoding: 'utf8',
    });
    return [status, stderr.split('\n')[0]];
  };
  expect(run()).toEqual([78, expect.stringMatching(/^No configuration file is named; write --config FILE/)]);
  writeFileSync(join(directory, 'killswitchd.yaml'), 'markets: [BTC_USDT]\n');
  expect(run()).toEqual([
    78,
    'No configuration file is named; ./killswitchd.yaml lies here: write --config ./killswitchd.yaml.',
  ]);
});
