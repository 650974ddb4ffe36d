#!/usr/bin/env node
import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import type { Edge, ExitCode, Screen } from './cli/edge.ts';
import { runProgram } from './cli/program.ts';
import { isoTime } from './clock.ts';
import { findServiceManager } from './telemetry/notify-socket.ts';

/**
 * How often, 10 ms at a time, a reader that is slow is waited for in all: long for what a command was asked for, short
 * for last words, which must hold up neither a stop nor a second signal.
 */
const patience = { out: 3000, err: 20 };

let outIsGone = false;

/** Writes all of the text without ever throwing: a reader that went away must not take the daemon with it. */
function write(descriptor: number, text: string, reader: 'out' | 'err'): void {
  let rest = Buffer.from(text, 'utf8');
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(descriptor, rest));
    } catch (error) {
      // Nobody reads any more, and there is nobody to tell.
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) {
        outIsGone ||= reader === 'out';
        return;
      }
      if (patience[reader] <= 0) return;
      patience[reader] -= 1;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  }
}

/** Null where nothing was typed before the end of the input or Ctrl-C. */
async function ask(question: string): Promise<string | null> {
  const { createInterface } = await import('node:readline');
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  return new Promise((resolve) => {
    const onClose = () => {
      write(2, '\n', 'err');
      resolve(null);
    };
    reader.once('close', onClose);
    reader.question(question, (answer) => {
      reader.off('close', onClose);
      reader.close();
      resolve(answer);
    });
  });
}

async function input(mostBytes: number): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > mostBytes) return null;
      chunks.push(chunk);
    }
  } catch {
    return null;
  }
  return Buffer.concat(chunks);
}

const screen: Screen = {
  size: () => ({ columns: process.stdout.columns || 80, rows: process.stdout.rows || 24 }),
  write: (text) => write(1, text, 'out'),
};

// Asking the stream instead would make the descriptor non-blocking.
const terminal = isatty(1);
const edge: Edge = {
  env: process.env,
  out: (line) => write(1, `${line}\n`, 'out'),
  err: (line) => write(2, `${line}\n`, 'err'),
  terminal,
  ...(terminal ? { screen } : {}),
  ...(isatty(0) && isatty(2) ? { ask } : {}),
  input,
  readerGone: () => outIsGone,
  serviceManager: () =>
    findServiceManager({
      env: process.env,
      pid: process.pid,
      monotonicUs: () => process.hrtime.bigint() / 1000n,
    }),
  sharesTerminal: [0, 1, 2].some((descriptor) => isatty(descriptor)),
  nodeVersion: process.versions.node,
  nodePath: process.execPath,
  isoTime,
  onSignal(signal, run) {
    process.on(signal, run);
    return () => process.off(signal, run);
  },
  signalGroup(leader, signal) {
    try {
      return process.kill(-leader, signal);
    } catch {
      return false;
    }
  },
  onCrash(run) {
    process.on('uncaughtException', run);
    process.on('unhandledRejection', run);
    return () => {
      process.off('uncaughtException', run);
      process.off('unhandledRejection', run);
    };
  },
  finish(code: ExitCode) {
    process.exitCode = code;
  },
  exitNow(code: number) {
    process.exit(code);
  },
};

await runProgram(process.argv, edge);
