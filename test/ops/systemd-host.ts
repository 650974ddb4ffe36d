import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { folderFor, startProcess } from '../liveness/started.ts';
import type { Scope } from '../process/harness.ts';
import { eventually, ROOT } from '../process/program.ts';

/** What a command on the host came to. */
interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export type DebianHost = Awaited<ReturnType<typeof bootDebian>>;

/**
 * The environment of somebody at a shell: what npm and vitest tell those that they start is not theirs. Packages come
 * from the cache that the installation of this repository has filled, where they are there.
 */
const ENV = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(npm_|NODE_(?!EXTRA_CA_CERTS)|VITEST|INIT_CWD$)/.test(name),
    ),
  ),
  npm_config_prefer_offline: 'true',
  npm_config_audit: 'false',
};

/** Runs a command of this machine to its end, with `cwd` as its folder; throws with what it said where it fails. */
export function runHere(program: string, args: readonly string[], cwd = tmpdir()): Promise<unknown> {
  return promisify(execFile)(program, args, { maxBuffer: 64 * 1024 * 1024, cwd, env: ENV });
}

/** Systems are kept between runs: making one takes a minute. */
const CACHE = join(tmpdir(), 'killswitchd-ops-debian');
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The release of this machine, from where this machine has its own packages as far as that is known. */
async function makeSystem(): Promise<string> {
  const release = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
  const asked = ['indextargets', '--format', '$(RELEASE) $(COMPONENT) $(SITE)'];
  const targets = execFileSync('apt-get', asked, { encoding: 'utf8' }).split('\n');
  const mirror = targets.flatMap((line) => line.split(`${release} main `).slice(1)).slice(0, 1);
  if (release === undefined) throw new Error('this is no Debian: /etc/os-release names no VERSION_CODENAME');
  mkdirSync(CACHE, { recursive: true });
  await runHere('flock', [CACHE, 'sh', '-euc', MAKE, 'sh', CACHE, release, ...mirror]);
  return join(CACHE, release);
}

/** Whoever asks second waits and finds it made. It becomes the root directory of other users too. */
const MAKE = `cd "$1"; shift
test ! -e "$1" || exit 0
half=$(mktemp -d "$PWD/half-XXXXXX")
trap 'rm -rf "$half"' EXIT
release=$1; shift
debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus "$release" "$half" "$@"
chmod 755 "$half"
mv "$half" "$release"`;

/**
 * Boots a fresh Debian in a container, with systemd as its first process, loopback as its only network, and nothing
 * installed. It is shut down and removed where the scope ends. Needs root, and the Debian packages debootstrap and systemd-container.
 */
export async function bootDebian(scope: Scope) {
  const folder = folderFor(scope);
  const root = join(folder, 'root');
  await runHere('cp', ['-a', await makeSystem(), root]);
  const machine = basename(folder);
  const groups = groupsFor(machine);
  const enter = groups.map((group) => `mkdir ${group}; echo $$ > ${group}/cgroup.procs; `).join('');
  const flags = ['--quiet', '--register=no', '--keep-unit', '--private-network', '--link-journal=no'];
  const nspawn = ['systemd-nspawn', ...flags, '--console=pipe', '-M', machine, '-D', root, '--boot'];
  const container = startProcess(scope, 'sh', ['-euc', `${enter}exec "$@"`, 'sh', ...nspawn]);
  // The container dies with it.
  const kill = () => container.signal('SIGKILL');
  process.on('exit', kill);
  scope.onTestFinished(async () => {
    container.signal('SIGTERM');
    const late = setTimeout(kill, 30_000);
    await container.ended;
    clearTimeout(late);
    process.off('exit', kill);
    // A control group is removed from its leaves up.
    spawnSync('find', [...groups, '-depth', '-type', 'd', '-delete']);
  });
  const ensureUp = () => {
    const { exitCode, signalCode } = container.child;
    if (exitCode !== null || signalCode !== null)
      throw new Error(`the container ended:\n${container.output()}`);
  };
  const leader = await eventually('the first process of the container', 60_000, () => {
    ensureUp();
    return findLeader(container.pid);
  });
  /** Runs a shell script as root there. Rejects only where it does not end within `withinMs`. */
  const run = (script: string, withinMs = 60_000) => runInside(leader, script, withinMs);
  await eventually('a system that runs', 180_000, async () => {
    ensureUp();
    return (await run('systemctl is-system-running')).stdout.trim() === 'running';
  });
  return {
    /** Its root directory, seen from here. */
    root,
    run,
    /** The same, and throws where it fails. The standard output, without the last line break. */
    async must(script: string, withinMs?: number) {
      const { code, stdout, stderr } = await run(script, withinMs);
      if (code !== 0) throw new Error(`${script}\nended with ${code}:\n${stdout}${stderr}`);
      return stdout.trimEnd();
    },
  };
}

/** Control groups below those of this process: systemd-nspawn has the same names for each container of one group. */
function groupsFor(name: string): string[] {
  const mounted = ['/sys/fs/cgroup/unified', '/sys/fs/cgroup'].find((place) => existsSync(place)) ?? '';
  const own = readFileSync('/proc/self/cgroup', 'utf8');
  return [...own.matchAll(/^\d+:(name=systemd)?:(.*)$/gm)].map(([, systemd, path = '']) =>
    join(systemd === undefined ? mounted : '/sys/fs/cgroup/systemd', path, name),
  );
}

/** The child that has become systemd; null before it has. */
function findLeader(pid: number): number | null {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    const found = children.find((child) => readFileSync(`/proc/${child}/comm`, 'utf8') === 'systemd\n');
    return found === undefined ? null : Number(found);
  } catch {
    return null;
  }
}

function runInside(leader: number, script: string, withinMs: number): Promise<Ran> {
  const command = ['-t', String(leader), '-a', 'env', '-i', `PATH=${PATH}`, 'sh', '-ec', script];
  const options = { timeout: withinMs, killSignal: 'SIGKILL', maxBuffer: 64 * 1024 * 1024 } as const;
  return new Promise((resolve, reject) => {
    execFile('nsenter', command, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : error.code;
      if (typeof code === 'number') resolve({ code, stdout, stderr });
      else reject(new Error(`${script}\ndid not end within ${withinMs} ms:\n${stdout}${stderr}`));
    });
  });
}

/** The tracked files of this repository, and those that will be, in a folder of their own: a clean clone. */
export function cloneTo(folder: string): string {
  const list = ['-c', 'safe.directory=*', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  for (const path of execFileSync('git', list, { cwd: ROOT, encoding: 'utf8' }).split('\0')) {
    if (path !== '' && existsSync(join(ROOT, path))) cpSync(join(ROOT, path), join(folder, path));
  }
  return folder;
}

/** The same, with the packages that are installed here. */
export function cloneWithPackages(folder: string): string {
  const clone = cloneTo(folder);
  symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
  return clone;
}
