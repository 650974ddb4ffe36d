import './node-version.ts';
import { accessSync, constants as files, writeSync } from 'node:fs';
import { constants } from 'node:os';
import { isatty } from 'node:tty';
import { readAtMost, tryOr, waitUntil } from './cli/edge.ts';
import { runProgram } from './cli/program.ts';
import { createSystemClock } from './clock.ts';
import { findServiceManager } from './telemetry/notify-socket.ts';
import { openNonBlocking } from './telemetry/output.ts';
import { codeOf } from './util/text.ts';

process.title = 'killswitchd';
// For whoever starts Node without --disable-sigusr1: its debugger gives the secret to every user of the host.
process.on('SIGUSR1', () => {});

/** As it was given: what this process sets for itself concerns neither a command nor a bot under `exec`. */
const env = { ...process.env };
// Each look at a file of a dead file system holds a thread. libuv has four, and reads this number when it makes them, at
// their first work.
process.env['UV_THREADPOOL_SIZE'] ??= '64';

const clock = createSystemClock();
/** `patience`: how many times 10 ms a slow reader is waited for. Last words must hold up neither a stop nor a second signal. */
const stdout = { descriptor: 1, patience: 3000, isGone: false };
/** A terminal that is stopped must not hold the last words of a daemon. */
const stderr = { descriptor: openNonBlocking(2), patience: 20, isGone: false };

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

/** Writes all of the text without ever throwing: a reader that went away must not take the daemon with it. */
function write(stream: typeof stdout, text: string): void {
  let rest = Buffer.from(text, 'utf8');
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(stream.descriptor, rest));
    } catch (error) {
      // Nobody reads any more, and there is nobody to tell.
      stream.isGone ||= codeOf(error) !== 'EAGAIN';
      if (stream.isGone || stream.patience <= 0) return;
      stream.patience -= 1;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  }
}

/** Null where nothing was typed before the end of the input or Ctrl-C. */
async function ask(question: string): Promise<string | null> {
  const { createInterface } = await import('node:readline');
  const reader = createInterface({ input: process.stdin, output: process.stderr, prompt: question });
  reader.prompt();
  const typed = await reader[Symbol.asyncIterator]().next();
  reader.close();
  if (typed.done === true) write(stderr, '\n');
  return typed.done === true ? null : typed.value;
}

/** Under sudo the number of the caller says more than that of root. */
const sudo = env['SUDO_UID'] === undefined ? '' : `, sudo by uid ${env['SUDO_UID']}`;

// Asking the stream instead would make the descriptor non-blocking.
const [isInput, isOutput, isError] = [isatty(0), isatty(1), isatty(2)];
await runProgram(process.argv, {
  env,
  clock,
  out: (line) => write(stdout, `${line}\n`),
  err: (line) => write(stderr, `${line}\n`),
  errorTerminal: isError,
  ...(isOutput && {
    screen: {
      size: () => ({ columns: process.stdout.columns || 80, rows: process.stdout.rows || 24 }),
      write: (text) => write(stdout, text),
    },
  }),
  ...(isInput && isError && { ask }),
  input: (mostBytes) => readAtMost(process.stdin, mostBytes).catch(() => null),
  readerGone: () => stdout.isGone,
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
