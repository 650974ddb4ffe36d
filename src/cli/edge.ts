import type { Cancel } from '../ports.ts';

/** Exit codes of the program; the table in `docs/commands.md`. */
export const EXIT = {
  ok: 0,
  usage: 64,
  unreachable: 69,
  internal: 70,
  unconfirmed: 75,
  refused: 77,
  config: 78,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** What a command may see of the process. Built by `main.ts`, the only file that names `process`. */
export interface Edge {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes one line to standard output. */
  readonly out: (line: string) => void;
  /** Writes one line to standard error. */
  readonly err: (line: string) => void;
  /** Standard output is a terminal: colours and progress are welcome. */
  readonly terminal: boolean;
  readonly nodeVersion: string;
  /** A moment in Unix milliseconds as ISO 8601, UTC. */
  readonly isoTime: (wallMs: number) => string;
  readonly onSignal: (signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP', run: () => void) => Cancel;
  /** Told of uncaught errors and unhandled rejections, once. */
  readonly onCrash: (run: (error: unknown) => void) => Cancel;
  /** Sets the exit code and lets the event loop run empty. */
  readonly finish: (code: ExitCode) => void;
  /** Ends the process now, whatever is still open. */
  readonly exitNow: (code: ExitCode) => void;
}
