import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Scope } from './harness.ts';
import { ROOT } from './program.ts';

/** A command as a person starts it, on a terminal of its own; killed with the test. */
export function onTerminal(
  { onTestFinished }: Scope,
  command: readonly string[],
  env: Readonly<Record<string, string>> = {},
) {
  const line = `exec ${command.map((word) => `'${word}'`).join(' ')}`;
  const child = spawn('script', ['-qefc', line, '/dev/null'], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let shown = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
  });
  return {
    pid: child.pid ?? 0,
    shown: () => shown,
    type: (keys: string) => void child.stdin.write(keys),
    /** Resolves with the exit code of the command. */
    ended: once(child, 'close').then(() => child.exitCode),
  };
}
