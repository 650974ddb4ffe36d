import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { readProc } from '../bench/machine.ts';
import { startProcess, until } from '../liveness/started.ts';
import type { Scope } from '../process/harness.ts';
import { eventually, sleep } from '../process/program.ts';

export interface Mount {
  /** A directory or file of this host. */
  readonly from: string;
  /** Where the container sees it. */
  readonly to: string;
  readonly readOnly: boolean;
}

export interface ContainerOptions {
  /** The directory that the container sees as /. */
  readonly root: string;
  readonly readOnlyRoot?: boolean;
  readonly mounts?: readonly Mount[];
  readonly uid: number;
  readonly gid: number;
  readonly groups?: readonly number[];
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly command: readonly string[];
}

export type Pod = Awaited<ReturnType<typeof startPod>>;
export type Container = ReturnType<Pod['start']>;

/**
 * Containers that share a loopback interface of their own, as those of a pod do: nothing else can reach it. They end with
 * the test. Needs root, and the Debian packages iproute2 and util-linux.
 */
export async function startPod(scope: Scope) {
  const hold = 'ip link set lo up && echo up && exec sleep infinity';
  const holder = startProcess(scope, '/usr/bin/unshare', ['--net', 'sh', '-c', hold]);
  await until('a network', () => holder.output() !== '');
  const inside = `--net=/proc/${holder.pid}/ns/net`;
  return {
    start: (options: ContainerOptions) => startContainer(scope, inside, options),
    /** Asks over http inside the pod; the status is 0, and the body says why, where nothing answered. */
    async ask(address: string, withinMs = 2000) {
      const node = [inside, process.execPath, '-e', ASK, address, `${withinMs}`];
      const { stdout } = await promisify(execFile)('/usr/bin/nsenter', node);
      return JSON.parse(stdout) as { status: number; body: string };
    },
  };
}

const ASK = `
  const [address, withinMs] = process.argv.slice(1);
  fetch(address, { signal: AbortSignal.timeout(Number(withinMs)), redirect: 'manual' })
    .then(async (answer) => ({ status: answer.status, body: await answer.text() }))
    .catch((error) => ({ status: 0, body: String(error.cause ?? error) }))
    .then((answer) => console.log(JSON.stringify(answer)));
`;

/** The mounts are the container's own and vanish with it; so does everything in it with its process 1. */
function isolated(options: ContainerOptions): string[] {
  const { root, mounts = [], uid, gid, groups = [], readOnlyRoot = false, command } = options;
  const script = ['set -e', `mount --bind ${quote(root)} ${quote(root)}`];
  if (readOnlyRoot) script.push(`mount -o remount,bind,ro ${quote(root)}`);
  for (const { from, to, readOnly } of mounts) {
    addMountPoint(join(root, to), statSync(from).isDirectory());
    const place = quote(join(root, to));
    script.push(`mount --bind ${quote(from)} ${place}`);
    if (readOnly) script.push(`mount -o remount,bind,ro ${place}`);
  }
  script.push(`mount -t proc proc ${quote(join(root, 'proc'))}`);
  const user = [`--userspec=${uid}:${gid}`, `--groups=${[gid, ...groups].join(',')}`];
  script.push(`exec /usr/sbin/chroot ${user.join(' ')} ${quote(root)} "$@"`);
  mkdirSync(join(root, 'proc'), { recursive: true });
  const enter = ['/usr/bin/setpriv', '--no-new-privs', '/usr/bin/unshare', '--mount', '--pid', '--fork'];
  return [...enter, '/bin/sh', '-c', script.join('\n'), 'sh', ...command];
}

/** As an engine makes it in the container. */
function addMountPoint(path: string, isFolder: boolean): void {
  if (existsSync(path)) return;
  mkdirSync(isFolder ? path : dirname(path), { recursive: true });
  if (!isFolder) writeFileSync(path, '');
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** A process that sees itself as number 1, without capabilities and with no way to more rights. */
function startContainer(scope: Scope, inside: string, options: ContainerOptions) {
  const { env, command } = options;
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const args = [inside, '/usr/bin/env', '-i', ...variables, ...isolated(options)];
  const { child, pid, output, ended } = startProcess(scope, '/usr/bin/nsenter', args);
  // Process 1 takes everything in its container along; who started it ends by itself then.
  scope.onTestFinished(() => {
    const first = childOf(pid);
    if (first > 0) process.kill(first, 'SIGKILL');
  });
  return {
    output,
    hasExited: () => child.exitCode !== null || child.signalCode !== null,
    /** Sends a signal to process 1 of the container. */
    async signal(signal: NodeJS.Signals) {
      process.kill(await eventually('process 1', 10_000, () => firstProcess(pid, command[0] ?? '')), signal);
    },
    /** The exit code; rejects after `withinMs`. */
    exit: (withinMs = 20_000): Promise<number | null> =>
      Promise.race([
        ended.then(([code]) => code),
        sleep(withinMs).then(() => {
          const late = `${command.join(' ')} did not end within ${withinMs} ms`;
          throw new Error(`${late}. It said:\n${output().slice(-3000)}`);
        }),
      ]),
  };
}

/** 0 where there is none. */
const childOf = (parent: number) => Number(readProc(`${parent}/task/${parent}/children`).trim());

/** The child that `unshare` forked, once it runs the command and no longer what prepares it. */
function firstProcess(parent: number, command: string): number | null {
  const pid = childOf(parent);
  return readProc(`${pid}/cmdline`).split('\0')[0] === command ? pid : null;
}
