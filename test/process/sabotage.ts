import { execFileSync } from 'node:child_process';
import { readFile, readFileSync } from 'node:fs';

/**
 * What can be done to a daemon from within. This module is loaded into it before everything else (`--import`); at
 * SIGUSR2 it does what stands in the file that the variable SABOTAGE names.
 */
export type Sabotage =
  /** Something keeps the event loop for so long. */
  | { readonly kind: 'block'; readonly ms: number }
  /** Every thread of libuv waits for a pipe that nobody writes, as for a file system that is dead. */
  | { readonly kind: 'hang-threads'; readonly pipe: string }
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
