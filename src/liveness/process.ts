import { readdirSync, readFileSync } from 'node:fs';
import type { Cancel, Hear } from '../ports.ts';
import { createProblems, type Looking, startRounds } from './rounds.ts';

/** A process as the operating system shows it. */
export interface ProcessState {
  /** One letter as in /proc/PID/stat: R runs, S and D wait, T and t are stopped, Z and X are dead. */
  readonly state: string;
  /** Differs between two processes that had the same number; null where the system does not tell. */
  readonly startedAt: string | null;
}

/** Looks at a process and calls `done` exactly once, never synchronously; null where there is none to be seen. */
export type LookAtProcess = (pid: number, done: (seen: ProcessState | null) => void) => void;

interface ProcessEvidenceOptions extends Looking {
  /** All bots of the configuration in force: they share the one child. */
  readonly bots: () => readonly string[];
  /** Null where its end alone counts. */
  readonly look: LookAtProcess | null;
}

interface Child {
  readonly pid: number;
  busy: boolean;
  startedAt: string | null;
}

/** Running, or waiting for something to do: alive. Stopped, traced and dead ones give no evidence. */
const ALIVE: ReadonlySet<string> = new Set(['R', 'S', 'D']);
const STOPPED: ReadonlySet<string> = new Set(['T', 't']);
/** Dead, and waiting for somebody to ask how they ended. */
export const GONE: ReadonlySet<string> = new Set(['Z', 'X']);

/**
 * Evidence by the state of a child process. A look that finds it running dates a beat to when the look was begun. It
 * tells nothing about what the process does: a loop that hangs looks alive. At most one look is under way.
 */
export function createProcessEvidence(options: ProcessEvidenceOptions) {
  const { clock, bots, probeEveryMs, look } = options;
  let child: Child | null = null;
  let listener: Hear | null = null;
  const problems = createProblems(options.onProblem);

  function lookAtChild(): void {
    const seen = child;
    if (look === null || seen === null || seen.busy || listener === null) return;
    const begunMs = clock.now().monoMs;
    seen.busy = true;
    look(seen.pid, (found) => {
      seen.busy = false;
      if (child !== seen || listener === null) return;
      seen.startedAt ??= found?.startedAt ?? null;
      const problem = problemOf(seen, found);
      const agoMs = clock.now().monoMs - begunMs;
      for (const bot of bots()) {
        problems.say(bot, problem);
        if (problem === null) listener(bot, 'beat', agoMs);
      }
    });
  }
  return {
    start(hear: Hear): Cancel {
      listener = hear;
      const cancel = look === null ? null : startRounds(clock, probeEveryMs, lookAtChild);
      return () => {
        cancel?.();
        listener = null;
      };
    },
    began: (pid: number): void => {
      child = { pid, busy: false, startedAt: null };
      // At once, so that the start time that is kept is the child's own.
      lookAtChild();
    },
    /** The child has ended, by a signal where `code` is null: what is still seen under its number counts no more. */
    ended: (code: number | null): void => {
      if (child === null) return;
      child = null;
      for (const bot of bots()) listener?.(bot, code === 0 ? 'goodbye' : 'fail', 0);
    },
  };
}

/** Null where the look is evidence. */
function problemOf({ pid, startedAt }: Child, found: ProcessState | null): string | null {
  if (found === null) return `process ${pid} cannot be seen`;
  if (found.startedAt !== startedAt) return `process ${pid} is another one than the bot`;
  if (ALIVE.has(found.state)) return null;
  const what = STOPPED.has(found.state) ? 'is stopped' : 'is not running';
  return `process ${pid} ${what} (state ${found.state})`;
}

/** Places in /proc/PID/stat after the command's name, which stands in brackets and may hold anything: proc(5). */
const STATE = 0;
const GROUP = 2;
const SESSION = 3;
const START_TIME = 19;

/** A process, or one thread of it, with its group and session. */
interface ProcStat extends ProcessState {
  readonly group: number;
  readonly session: number;
}

/** Null where the text is not that of /proc/PID/stat. */
export function readProcStat(text: string): ProcStat | null {
  const nameEnd = text.lastIndexOf(')');
  if (nameEnd === -1) return null;
  const fields = text.slice(nameEnd + 2).split(' ');
  const state = fields[STATE];
  const startedAt = fields[START_TIME];
  if (state === undefined || state.length !== 1 || startedAt === undefined) return null;
  return { state, startedAt, group: Number(fields[GROUP]), session: Number(fields[SESSION]) };
}

/** A process as /proc shows it; null where there is none. Reading /proc never waits for a disk, and needs no thread that may hang. */
export function readProc(pid: number): ProcStat | null {
  const seen = readStat(`/proc/${pid}`);
  return seen !== null && GONE.has(seen.state) ? { ...seen, state: stateOfThreads(pid) ?? seen.state } : seen;
}

/** The state of a process is that of its main thread, which may end before the others; null where all have ended. */
function stateOfThreads(pid: number): string | null {
  const folder = `/proc/${pid}/task`;
  try {
    const states = readdirSync(folder).map((thread) => readStat(`${folder}/${thread}`)?.state ?? 'X');
    return states.find((state) => !GONE.has(state)) ?? null;
  } catch {
    return null;
  }
}

function readStat(folder: string): ProcStat | null {
  try {
    return readProcStat(readFileSync(`${folder}/stat`, 'latin1'));
  } catch {
    return null;
  }
}

export const lookAtProc: LookAtProcess = (pid, done) => {
  const seen = readProc(pid);
  queueMicrotask(() => done(seen));
};

/** Where there is no /proc: `exists` is as `kill(pid, 0)`. A stopped process cannot be told from a running one. */
export function createSignalLook(exists: (pid: number) => boolean): LookAtProcess {
  return (pid, done) => {
    const seen = exists(pid) ? { state: 'R', startedAt: null } : null;
    queueMicrotask(() => done(seen));
  };
}
