import { execFile } from 'node:child_process';
import { fstatSync, writeSync } from 'node:fs';
import { promisify } from 'node:util';

export type ServiceManager = NonNullable<ReturnType<typeof findServiceManager>>;

interface ProcessFacts {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly pid: number;
  /** CLOCK_MONOTONIC in microseconds, as the manager reads it. */
  readonly monotonicUs: () => bigint;
}

/** The variables of the protocol. They are meant for one process: a child that kept them could speak in its name. */
export const NOTIFY_VARIABLES: readonly string[] =
  'NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID LISTEN_FDS LISTEN_FDNAMES LISTEN_PID'.split(' ');

/** Name of the descriptor, as `OpenFile=/run/systemd/notify:notify` and `deploy/systemd/notify-fd` hand it over. */
const FD_NAME = 'notify';
const FIRST_FD = 3;

/**
 * How the service manager is reached, by sd_notify(3); null where there is none.
 *
 * Node opens no datagram socket of the Unix kind. A connected one that was handed over costs one system call per
 * message, and the message comes from this process. Without it, the program systemd-notify is started for each message,
 * which takes the loop 2 ms in a small process and 15 ms in one of 250 MB.
 */
export function findServiceManager({ env, pid, monotonicUs }: ProcessFacts) {
  const descriptor = findDescriptor(env, pid);
  const socket = env['NOTIFY_SOCKET'];
  if (descriptor === null && (socket === undefined || socket === '')) return null;
  return {
    /** Sends one message, lines of `NAME=value`, after those before it. Never blocks; rejects where it cannot be sent. */
    tell:
      descriptor === null
        ? createCommand(env)
        : async (message: string) => void writeSync(descriptor, message),
    /** It ends the process when it heard no `WATCHDOG=1` for this long; null where it does not watch. */
    watchdogMs: watchdogOf(env, pid),
    monotonicUs,
  };
}

function findDescriptor(env: ProcessFacts['env'], pid: number): number | null {
  if (env['LISTEN_PID'] !== String(pid)) return null;
  const index = (env['LISTEN_FDNAMES'] ?? '').split(':').indexOf(FD_NAME);
  if (index < 0 || index >= Number(env['LISTEN_FDS'])) return null;
  try {
    return fstatSync(FIRST_FD + index).isSocket() ? FIRST_FD + index : null;
  } catch {
    return null;
  }
}

function watchdogOf(env: ProcessFacts['env'], pid: number): number | null {
  const watched = env['WATCHDOG_PID'];
  const us = Number(env['WATCHDOG_USEC']);
  if ((watched !== undefined && watched !== String(pid)) || !(us > 0)) return null;
  return us / 1000;
}

const run = promisify(execFile);
/** A manager that does not answer keeps the command waiting for so long. */
const COMMAND_MS = 5000;

/** One command at a time, so that messages arrive in their order. Pings do not queue: the next one comes soon. */
function createCommand({ PATH, NOTIFY_SOCKET }: ProcessFacts['env']) {
  const limit = { env: { PATH, NOTIFY_SOCKET }, timeout: COMMAND_MS, killSignal: 'SIGKILL' } as const;
  let waiting = 0;
  let last: Promise<unknown> = Promise.resolve();
  return async (message: string): Promise<void> => {
    if (waiting > 0 && message.startsWith('WATCHDOG=1')) return;
    waiting += 1;
    const sent = last.then(() => run('systemd-notify', message.split('\n'), limit));
    last = sent
      .catch(() => {})
      .finally(() => {
        waiting -= 1;
      });
    await sent;
  };
}
