import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Scope } from '../process/harness.ts';
import { eventually, ROOT } from '../process/program.ts';

export type Started = ReturnType<typeof startProcess>;

/** A folder that is removed with the test. */
export function folderFor({ onTestFinished }: Scope): string {
  const folder = mkdtempSync(join(tmpdir(), 'killswitchd-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts a process of one test or block; killed by its number when that ends. */
export function startProcess(
  { onTestFinished }: Scope,
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
) {
  const child = spawn(command, args, {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const ended = new Promise<readonly [number | null, NodeJS.Signals | null]>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve([code, signal]));
  });
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await ended;
  });
  return {
    pid: child.pid ?? 0,
    child,
    /** Everything that it wrote to either output. */
    output: () => output,
    signal: (signal: NodeJS.Signals) => void child.kill(signal),
    /** Resolves with exit code and signal when it has ended. */
    ended,
  };
}

/** Resolves when `holds` does; rejects after 15 s. */
export const until = (what: string, holds: () => boolean): Promise<true> => eventually(what, 15_000, holds);
