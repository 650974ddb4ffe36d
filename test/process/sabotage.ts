import { execFileSync } from 'node:child_process';
import fs, { readFile, readFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

/**
 * What can be done to a daemon from within. This module is loaded into it before everything else (`--import`); at
 * SIGUSR2 it does what stands in the file that the variable SABOTAGE names.
 */
export type Sabotage =
  /** Something keeps the event loop for so long. */
  | { readonly kind: 'block'; readonly ms: number }
  /** Every thread of libuv waits for a pipe that nobody writes, as for a file system that is dead. */
  | { readonly kind: 'hang-threads'; readonly pipe: string }
  /** The file system of this folder no longer answers whoever waits for it, and answers threads. */
  | { readonly kind: 'hang-waiting'; readonly folder: string }
  /** A fault of the program itself: an error that nobody catches, or a promise that nobody handles. */
  | { readonly kind: 'throw' | 'reject' };

function carryOut(sabotage: Sabotage): void {
  switch (sabotage.kind) {
    case 'block':
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, sabotage.ms);
      return;
    case 'hang-threads':
      execFileSync('mkfifo', [sabotage.pipe]);
      for (let thread = 0; thread < 64; thread += 1) readFile(sabotage.pipe, () => undefined);
      return;
    case 'hang-waiting':
      for (const name of ['openSync', 'statSync', 'lstatSync', 'readFileSync'] as const) {
        const real = fs[name] as (...given: readonly unknown[]) => unknown;
        const hung = (...given: readonly unknown[]) => {
          if (String(given[0]).startsWith(sabotage.folder)) carryOut({ kind: 'block', ms: 60_000 });
          return real(...given);
        };
        Object.assign(fs, { [name]: hung });
      }
      syncBuiltinESMExports();
      return;
    case 'throw':
      setTimeout(() => {
        throw new Error('a fault that a test planted');
      });
      return;
    case 'reject':
      void Promise.reject(new Error('a fault that a test planted'));
  }
}

process.on('SIGUSR2', () =>
  carryOut(JSON.parse(readFileSync(process.env['SABOTAGE'] ?? '', 'utf8')) as Sabotage),
);
