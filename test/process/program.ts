import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** The folder that the program is started in, as `npm start` does. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The file that is started: all in one file where `bundle.ts` has made one, else the sources. */
export const MAIN = process.env['TEST_PROGRAM'] ?? join(ROOT, 'src/main.ts');

/** Compiled code is kept between the many starts of a test run: a start then costs half as much. */
const COMPILE_CACHE = join(tmpdir(), 'killswitchd-process-tests');

export interface RunOptions {
  /** Replaces the environment, but for PATH. */
  readonly env?: Readonly<Record<string, string>>;
  /** A command that starts the program and becomes it: `ip netns exec NAME`, `prlimit ...`. */
  readonly prefix?: readonly string[];
  /** The folder that it is started in; that of the repository unless given. */
  readonly cwd?: string;
  /** Options of Node; those of every start that is shipped unless given. */
  readonly nodeOptions?: readonly string[];
  /** A descriptor that takes the place of standard output; a pipe that is read where it is not given. */
  readonly stdout?: number;
  /** A socket for standard error, as journald's is, that nobody reads. */
  readonly stderr?: 'unread';
  /** Starts as on a machine that never ran the program before. */
  readonly cold?: boolean;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The real program as a process of its own. */
export type Program = ReturnType<typeof runProgram>;

/** The tests judge by the exchange's event log, not by when they wake up. */
export { sleep };

/** Asks `probe` until it gives something; rejects after `withinMs`. */
export async function eventually<T extends NonNullable<unknown>>(
  what: string,
  withinMs: number,
  probe: () => T | null | undefined | false | Promise<T | null | undefined | false>,
): Promise<T> {
  const untilMs = performance.now() + withinMs;
  for (;;) {
    const found = await probe();
    if (found) return found;
    if (performance.now() > untilMs) throw new Error(`${what}: not within ${withinMs} ms`);
    await sleep(50);
  }
}

/** A port that is free now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Starts `killswitchd` with these arguments. */
export function runProgram(args: readonly string[], options: RunOptions = {}) {
  const { prefix = [], nodeOptions = ['--disable-sigusr1'] } = options;
  const command = [...prefix, process.execPath, ...nodeOptions, MAIN, ...args];
  const child = spawn(command[0] ?? '', command.slice(1), {
    cwd: options.cwd ?? ROOT,
    env: {
      PATH: process.env['PATH'],
      ...(options.cold === true ? {} : { NODE_COMPILE_CACHE: COMPILE_CACHE }),
      ...options.env,
    },
    // Node makes its pipes of sockets.
    stdio: ['ignore', options.stdout ?? 'pipe', 'pipe'],
  });
  running.add(child);
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  const readStderr = () =>
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
  if (options.stderr === 'unread') child.once('exit', readStderr);
  else readStderr();
  child.once('exit', () => running.delete(child));
  const closed = once(child, 'close').then((): Exit => ({ code: child.exitCode, signal: child.signalCode }));
  const outputs = { stdout: () => stdout, stderr: () => stderr };
  return {
    pid: child.pid ?? 0,
    ...outputs,
    hasExited: () => !running.has(child),
    /** It wrote something, or has ended; always so where some of its output is not read here. */
    isUp: () =>
      !running.has(child) || stdout + stderr !== '' || (options.stdout ?? options.stderr) !== undefined,
    /** Sends a signal to this process and to nobody else. */
    signal: (signal: NodeJS.Signals) => void child.kill(signal),
    /** Resolves when the process has ended and everything it wrote was read. */
    exit: (withinMs = 15_000): Promise<Exit> =>
      Promise.race([
        closed,
        sleep(withinMs).then(() => {
          const what = `killswitchd ${args[0]} did not end within ${withinMs} ms`;
          throw new Error(`${what}. It said:\n${said(outputs)}`);
        }),
      ]),
    /** Closes the reading end of its standard output, as a reader does that dies. */
    closeStdout: () => void child.stdout?.destroy(),
  };
}

/** Asks the program to end; the exit code. */
export async function endBy(program: Program, signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
  program.signal(signal);
  return (await program.exit()).code;
}

/** A start costs a second of computing: those of one test file follow each other, so that nobody running starves. */
let lastStart: Promise<unknown> = Promise.resolve();

/** Starts a program when the one before it is up, which shows in its first line, and at the latest after 5 s. */
export function startInTurn<P extends Program>(start: () => P): Promise<P> {
  const started = lastStart.then(start);
  lastStart = started
    .then((program) => eventually('a first line', 5000, () => program.isUp()))
    .catch(() => undefined);
  return started;
}

/** The end of what a process wrote, for the message of a failing test. */
export function said(program: Pick<Program, 'stdout' | 'stderr'>): string {
  return `${program.stdout().slice(-3000)}\n${program.stderr().slice(-1500)}`;
}
