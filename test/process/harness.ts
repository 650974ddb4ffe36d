import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'vitest';
import { type DaemonOptions, type DaemonProcess, runDaemon } from './daemon.ts';
import { type Program, type RunOptions, runProgram } from './program.ts';
import { connectTo, type ExchangeProcess } from './simulated-exchange.ts';

/** What one test starts; it all ends with the test. */
export interface Stage {
  /** A directory of this test alone. */
  readonly directory: string;
  /** Runs any command of the program. */
  readonly run: (args: readonly string[], options?: RunOptions) => Program;
  /** Starts a simulated exchange with no orders in its books, and waits for it. */
  readonly exchange: (args?: readonly string[], options?: RunOptions) => Promise<ExchangeProcess>;
  /** Starts the daemon; a second one gets a directory of its own. */
  readonly daemon: (options: DaemonOptions) => DaemonProcess;
}

/** Sets the stage of one test: whatever it starts is killed, by its process id, when the test ends. */
export function stageFor({ onTestFinished }: Pick<TestContext, 'onTestFinished'>): Stage {
  const directory = mkdtempSync(join(tmpdir(), 'killswitchd-'));
  const started: Program[] = [];
  const keep = <P extends Program>(program: P): P => {
    started.push(program);
    return program;
  };
  onTestFinished(async () => {
    for (const program of started) program.signal('SIGKILL');
    await Promise.all(started.map((program) => program.exit()));
    rmSync(directory, { recursive: true, force: true });
  });
  return {
    directory,
    run: (args, options) => keep(runProgram(args, options)),
    exchange: (args = ['--listen', '127.0.0.1:0'], options = {}) =>
      connectTo(keep(runProgram(['exchange', '--orders', 'none', ...args], options))),
    daemon: (options) => keep(runDaemon(mkdtempSync(join(directory, 'daemon-')), options)),
  };
}
