import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'vitest';
import { type DaemonOptions, type DaemonProcess, runDaemon } from './daemon.ts';
import { type Program, type RunOptions, runProgram, startInTurn } from './program.ts';
import { connectTo, type ExchangeProcess } from './simulated-exchange.ts';

/** What one test starts; it all ends with the test. */
export interface Stage {
  /** A directory of this test alone. */
  readonly directory: string;
  /** Runs any command of the program. */
  readonly run: (args: readonly string[], options?: RunOptions) => Promise<Program>;
  /** Starts a simulated exchange with no orders in its books, and waits for it. */
  readonly exchange: (args?: readonly string[], options?: RunOptions) => Promise<ExchangeProcess>;
  /** Starts the daemon and does not wait for more than its process. */
  readonly daemon: (options: DaemonOptions) => Promise<DaemonProcess>;
}

/** Sets the stage of one test: whatever it starts is killed, by its process id, when the test ends. */
export function stageFor({ onTestFinished }: Pick<TestContext, 'onTestFinished'>): Stage {
  const directory = mkdtempSync(join(tmpdir(), 'killswitchd-'));
  const started: Program[] = [];
  const start = async <P extends Program>(begin: () => P): Promise<P> => {
    const program = await startInTurn(begin);
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
    run: (args, options) => start(() => runProgram(args, options)),
    exchange: async (args = ['--listen', '127.0.0.1:0'], options = {}) =>
      connectTo(await start(() => runProgram(['exchange', '--orders', 'none', ...args], options))),
    daemon: (options) => start(() => runDaemon(mkdtempSync(join(directory, 'daemon-')), options)),
  };
}
