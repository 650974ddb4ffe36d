#!/usr/bin/env node
import { writeSync } from 'node:fs';
import type { Edge, ExitCode } from './cli/edge.ts';
import { runProgram } from './cli/program.ts';
import { isoTime } from './clock.ts';

/** Writes without ever throwing: a reader that went away must not take the daemon with it. */
function writeLine(descriptor: number, line: string): void {
  try {
    writeSync(descriptor, `${line}\n`);
  } catch {
    // Nobody reads any more; there is nobody to tell.
  }
}

const edge: Edge = {
  env: process.env,
  out: (line) => writeLine(1, line),
  err: (line) => writeLine(2, line),
  terminal: process.stdout.isTTY === true,
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
