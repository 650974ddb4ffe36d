import { readFile } from 'node:fs';
import type { LookAtProcess, ProcessState } from './process.ts';

/** Places in /proc/PID/stat after the command's name, which stands in brackets and may hold anything: proc(5). */
const STATE = 0;
const START_TIME = 19;

/** Null where the text is not that of /proc/PID/stat. */
export function readProcStat(text: string): ProcessState | null {
  const nameEnd = text.lastIndexOf(')');
  if (nameEnd === -1) return null;
  const fields = text.slice(nameEnd + 2).split(' ');
  const state = fields[STATE];
  const startedAt = fields[START_TIME];
  if (state === undefined || state.length !== 1 || startedAt === undefined) return null;
  return { state, startedAt };
}

/** Looks at a process through /proc, as Linux has it. */
export const lookAtProc: LookAtProcess = (pid, done) => {
  readFile(`/proc/${pid}/stat`, 'latin1', (error, text) => {
    done(error === null ? readProcStat(text) : null);
  });
};

/**
 * Looks at a process where there is no /proc: `exists` tells whether a signal could be sent to it, as `kill(pid, 0)` does.
 * A stopped process cannot be told from a running one that way.
 */
export function createSignalLook(exists: (pid: number) => boolean): LookAtProcess {
  return (pid, done) => {
    const seen = exists(pid) ? { state: 'R', startedAt: null } : null;
    queueMicrotask(() => done(seen));
  };
}
