import type { Readable } from 'node:stream';
import type { Clock } from '../ports.ts';
import type { ServiceManager } from '../telemetry/notify-socket.ts';

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

/** What each of them means, in the words of the manual. */
export const MEANINGS = {
  0: 'done; for `run`: a clean stop',
  64: 'the command line makes no sense',
  69: 'an address cannot be reached, no daemon answers, it is impossible as things stand, or `exchange` cannot listen',
  70: 'an internal error, all timers were left alone',
  75: 'stopped, but a timer that was to be deleted may stand or have fired',
  77: 'the exchange refuses the key (`check-config --live`), or the daemon refuses the token',
  78: 'the configuration, or an address to listen on, cannot be used',
} as const satisfies Record<ExitCode, string>;

export type Signal = 'SIGTERM' | 'SIGINT' | 'SIGHUP' | 'SIGUSR2';

/** What a command may see of the process. Built by `main.ts`, which names `process`. */
export interface Edge {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** Writes one line to standard output, or to standard error. */
  readonly out: (line: string) => void;
  readonly err: (line: string) => void;
  /** Standard error is a terminal, which is where the log of `exec` goes. */
  readonly errorTerminal: boolean;
  /** There where standard output is a terminal: colours and progress are welcome. */
  readonly screen?: {
    /** Characters per line and lines, as they are now. */
    readonly size: () => { readonly columns: number; readonly rows: number };
    /** Writes the text as it is, without a line break. */
    readonly write: (text: string) => void;
  };
  /** There where somebody sits at standard input and reads standard error: the line typed, or null (Ctrl-C, Ctrl-D). */
  readonly ask?: (question: string) => Promise<string | null>;
  /** Standard input to its end; null where it is longer than `mostBytes` or cannot be read. */
  readonly input: (mostBytes: number) => Promise<Buffer | null>;
  /** The reader of standard output has gone away. */
  readonly readerGone: () => boolean;
  /** Whoever supervises this process and wants to be told how it is; null where nobody does. */
  readonly serviceManager: () => ServiceManager | null;
  /** This is process 1 of a container: orphans come to it, and it does not reap them. */
  readonly isInit: boolean;
  /** A terminal's Ctrl-C reaches the children of this process as well. */
  readonly sharesTerminal: boolean;
  /** Who runs this, as a daemon is told: `uid 1000, pid 42`. */
  readonly sender: string;
  readonly nodeVersion: string;
  readonly nodePath: string;
  /** The number of each signal of this system, by its name. */
  readonly signalNumbers: Readonly<Record<string, number>>;
  /** Sends a signal to every process of the group that `leader` began; false where there is none left. */
  readonly signalGroup: (leader: number, signal: Signal | 'SIGKILL') => boolean;
  readonly onSignal: (signal: Signal, run: () => void) => void;
  /** Told of uncaught errors and unhandled rejections, once. */
  readonly onCrash: (run: (error: unknown) => void) => void;
  /** Sets the exit code and lets the event loop run empty. */
  readonly finish: (code: ExitCode) => void;
  /** Called once right before the process ends by `exitNow` or by itself. A signal that kills comes without it. */
  readonly onExit: (run: () => void) => void;
  /** Ends the process, whatever is open, also where a thread hangs. `exec` passes its bot's code on. */
  readonly exitNow: (code: number) => void;
}

/** Ends a command with the exit code; every line of the message, if any, goes to standard error after its name. */
export class CommandError extends Error {
  override readonly name: string = 'CommandError';
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message = '') {
    super(message);
    this.exitCode = exitCode;
  }
}

/** What the command line says makes no sense. */
export const misuse = (message: string) => new CommandError(EXIT.usage, message);

/** What configuration or environment say cannot be used. */
export const misconfigured = (message: string) => new CommandError(EXIT.config, message);

export const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** The value of `look`, or `otherwise` where it throws. */
export function tryOr<T>(look: () => T, otherwise: T): T {
  try {
    return look();
  } catch {
    return otherwise;
  }
}

/** All that comes; null where it is longer than `mostBytes`. Rejects where it breaks off. */
export async function readAtMost(stream: Readable, mostBytes: number): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > mostBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** `timeout` and some supervisors signal a process and its group: the same signal comes twice within milliseconds. */
const SAME_SIGNAL_MS = 1000;

/** Calls `run` at SIGINT and at SIGTERM. The same signal again within a second does not count. */
export function onStopSignal({ clock, onSignal }: Edge, run: (signal: 'SIGINT' | 'SIGTERM') => void): void {
  let last = { signal: '', monoMs: 0 };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    onSignal(signal, () => {
      const { monoMs } = clock.now();
      if (last.signal === signal && monoMs - last.monoMs < SAME_SIGNAL_MS) return;
      last = { signal, monoMs };
      run(signal);
    });
  }
}

export function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve));
}

/** Looks again and again until it is so, for `withinMs` at most; whether it is. */
export async function waitUntil(
  wait: { readonly clock: Clock; readonly withinMs: number; readonly everyMs: number },
  isSo: (leftMs: number) => boolean | Promise<boolean>,
): Promise<boolean> {
  const { clock, withinMs, everyMs } = wait;
  const untilMs = clock.now().monoMs + withinMs;
  for (;;) {
    if (await isSo(Math.max(0, untilMs - clock.now().monoMs))) return true;
    if (clock.now().monoMs >= untilMs) return false;
    await pause(clock, everyMs);
  }
}
