#!/usr/bin/env node
import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import type { Edge, ExitCode } from './cli/edge.ts';
import { runProgram } from './cli/program.ts';
import { isoTime } from './clock.ts';

/**
 * How often, 10 ms at a time, a reader that is slow is waited for in all: long for what a command was asked for, short
 * for last words, which must hold up neither a stop nor a second signal.
 */
const patience = { out: 3000, err: 20 };

/** Writes all of the line without ever throwing: a reader that went away must not take the daemon with it. */
function writeLine(descriptor: number, line: string, reader: 'out' | 'err'): void {
  let rest = Buffer.from(`${line}\n`, 'utf8');
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(descriptor, rest));
    } catch (error) {
      // Nobody reads any more, and there is nobody to tell.
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) return;
      if (patience[reader] <= 0) return;
      patience[reader] -= 1;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  }
}

const edge: Edge = {
  env: process.env,
  out: (line) => writeLine(1, line, 'out'),
  err: (line) => writeLine(2, line, 'err'),
  // Asking the stream instead would make the descriptor non-blocking.
  terminal: isatty(1),
  nodeVersion: process.versions.node,
  isoTime,
  onSignal(signal, run) {
    process.on(signal, run);
    return () => process.off(signal, run);
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
  exitNow(code: ExitCode) {
    process.exit(code);
  },
};

await runProgram(process.argv, edge);
