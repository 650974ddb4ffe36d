import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import type { Cores } from './machine.ts';
import { nowMs } from './protocol.ts';

/** One process that the bench started. */
export interface Running {
  readonly pid: number;
  readonly child: ChildProcess;
  readonly startedAt: number;
  readonly log: () => string;
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
}

interface SpawnOptions {
  readonly cores: Cores;
  readonly on: keyof Cores;
  readonly logFile: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Opens a channel for `process.send`; a subject that is measured has none. */
  readonly channel?: boolean;
}

const started = new Set<Running>();
let over = false;

/** Starts Node with these arguments on its core. It ends with the bench. */
export function startNode(args: readonly string[], options: SpawnOptions): Running {
  if (over) throw new Error('the bench is over: nothing is started any more');
  const { cores, on, logFile, env, channel = false } = options;
  const core = cores[on];
  const pinned = core === null ? [] : ['taskset', '-c', core];
  const [command = '', ...rest] = [...pinned, process.execPath, ...args];
  const log = openSync(logFile, 'w', 0o600);
  const startedAt = nowMs();
  const { PATH = '', HOME = '/' } = process.env;
  const child = spawn(command, rest, {
    stdio: ['ignore', log, log, ...(channel ? (['ipc'] as const) : [])],
    env: { PATH, HOME, NODE_ENV: 'production', ...env },
  });
  closeSync(log);
  const { pid } = child;
  if (pid === undefined) throw new Error(`${command} could not be started`);
  const ended = once(child, 'exit').then(([code, signal]) => (code ?? signal) as Awaited<Running['ended']>);
  const running = { pid, child, startedAt, log: () => readFileSync(logFile, 'utf8'), ended };
  started.add(running);
  void ended.then(() => started.delete(running));
  return running;
}

/** Rejects with its last words once the process has ended. */
async function mourn({ ended, log }: Running): Promise<never> {
  const how = await ended;
  throw new Error(`a process ended (${how}):\n${log().slice(-2000)}`);
}

/** What is done with a process. Throws where it ends meanwhile. */
export function whileAlive<T>(running: Running, work: Promise<T>): Promise<T> {
  return Promise.race([work, mourn(running)]);
}

/** The next message over the channel of a process. Throws where it ends instead. */
export async function messageOf<T>(running: Running): Promise<T> {
  const [message] = await whileAlive(running, once(running.child, 'message'));
  return message as T;
}

/** Ends a process without asking it. */
export async function kill({ child, ended }: Running): Promise<void> {
  child.kill('SIGKILL');
  await ended;
}

/** Ends whatever still runs, for good: what is being measured fails by that, and starts nothing any more. */
export async function endAll(): Promise<void> {
  over = true;
  await Promise.all([...started].map(kill));
}
