import './node-version.ts';
import { accessSync, constants as files } from 'node:fs';
import { constants } from 'node:os';
import { isatty } from 'node:tty';
import { readAtMost, tryOr, waitUntil } from './cli/edge.ts';
import { runProgram } from './cli/program.ts';
import { createSystemClock } from './clock.ts';
import { findServiceManager } from './telemetry/notify-socket.ts';
import { createWriter, openNonBlocking } from './telemetry/output.ts';

process.title = 'killswitchd';
// For whoever starts Node without --disable-sigusr1: its debugger gives the secret to every user of the host.
process.on('SIGUSR1', () => {});

/** As it was given: what this process sets for itself concerns neither a command nor a bot under `exec`. */
const env = { ...process.env };
// Each look at a file of a dead file system holds a thread. libuv has four, and reads this number when it makes them, at
// their first work.
process.env['UV_THREADPOOL_SIZE'] ??= '64';

const clock = createSystemClock();
/** Somebody may hold the terminal for a while, again and again. */
const stdout = createWriter(1, 3000, true);
/** Last words must hold up neither a stop nor a second signal, also where the terminal is stopped. */
const stderr = createWriter(openNonBlocking(2), 20, false);

const whenExiting: (() => void)[] = [];
function beforeExit(): void {
  for (const run of whenExiting.splice(0)) run();
}
process.on('exit', beforeExit);

/** Work of libuv's threads, as Node names it. Any of these may hang: on a dead file system, or a terminal that is stopped. */
const WORK_OF_THREADS = /^(FSReq|FileHandle|GetAddrInfo|GetNameInfo)/;

let isEnding = false;
/** The first code counts. A signal that comes while the end waits finds its listener, and changes nothing. */
function exitNow(code: number): void {
  if (isEnding) return;
  isEnding = true;
  beforeExit();
  const isIdle = () => !process.getActiveResourcesInfo().some((name) => WORK_OF_THREADS.test(name));
  // For the last write of the log, for example. What takes longer hangs.
  void waitUntil({ clock, withinMs: 200, everyMs: 5 }, isIdle).then((hasEnded) => {
    if (!hasEnded) replaceProcess(code);
    process.exit(code);
  });
}

/**
 * Node waits for its threads at the end, without a limit. Where one hangs, the process is replaced by one that has no
 * others: the kernel ends all threads for it. Listeners do not survive that: a signal in the few hundredths of a second
 * that it lives ends it. SIGUSR1 may have come before and wait, and stays shut out.
 */
function replaceProcess(code: number): void {
  // The first is there also after an update that took the file of this Node away. What cannot be started would end in a
  // core, which holds the secret.
  const node = ['/proc/self/exe', process.execPath].find((file) =>
    tryOr(() => accessSync(file, files.X_OK) === undefined, false),
  );
  if (node === undefined) process.kill(process.pid, 'SIGKILL');
  else process.execve?.(node, [node, '--disable-sigusr1', '-e', `process.exit(${code})`], {});
}

/** Null where nothing was typed before the end of the input or Ctrl-C. */
async function ask(question: string): Promise<string | null> {
  const { createInterface } = await import('node:readline');
  const reader = createInterface({ input: process.stdin, output: process.stderr, prompt: question });
  reader.prompt();
  const typed = await reader[Symbol.asyncIterator]().next();
  reader.close();
  if (typed.done === true) stderr.write('\n');
  return typed.done === true ? null : typed.value;
}

/** Under sudo the number of the caller says more than that of root. */
const sudo = env['SUDO_UID'] === undefined ? '' : `, sudo by uid ${env['SUDO_UID']}`;

// Asking the stream instead would make the descriptor non-blocking.
const [isInput, isOutput, isError] = [isatty(0), isatty(1), isatty(2)];
await runProgram(process.argv, {
  env,
  clock,
  out: (line) => stdout.write(`${line}\n`),
  err: (line) => stderr.write(`${line}\n`),
  errorTerminal: isError,
  ...(isOutput && {
    screen: {
      size: () => ({ columns: process.stdout.columns || 80, rows: process.stdout.rows || 24 }),
      write: stdout.write,
    },
  }),
  ...(isInput && isError && { ask }),
  input: (mostBytes) => readAtMost(process.stdin, mostBytes).catch(() => null),
  readerGone: stdout.isGone,
  serviceManager: () =>
    findServiceManager({ env, pid: process.pid, monotonicUs: () => process.hrtime.bigint() / 1000n }),
  isInit: process.pid === 1,
  sharesTerminal: isInput || isOutput || isError,
  sender: `uid ${process.getuid?.() ?? 'unknown'}, pid ${process.pid}${sudo}`,
  nodeVersion: process.versions.node,
  nodePath: process.execPath,
  signalNumbers: constants.signals,
  onSignal: (signal, run) => void process.on(signal, run),
  signalGroup: (leader, signal) => tryOr(() => process.kill(-leader, signal), false),
  onCrash: (run) => void process.on('uncaughtException', run).on('unhandledRejection', run),
  finish(code) {
    process.exitCode = code;
  },
  onExit: (run) => void whenExiting.push(run),
  exitNow,
});
