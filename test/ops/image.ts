import { execFile, execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { ContainerOptions } from './container.ts';

/** What the image tells whoever runs it. */
interface ImageConfig {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly WorkingDir: string;
  readonly StopSignal: string;
  readonly ExposedPorts: Readonly<Record<string, unknown>>;
  readonly Labels: Readonly<Record<string, string>>;
  readonly Healthcheck: {
    readonly Test: readonly string[];
    readonly Timeout: number;
    readonly Interval: number;
  };
}

export interface Image {
  readonly config: ImageConfig;
  /** What a container of it is without further flags: its file system, user and environment. */
  readonly container: Pick<ContainerOptions, 'root' | 'uid' | 'gid' | 'env'>;
  /** The file system of a container of this image. */
  readonly root: string;
  /** Writes every layer and the configuration, as a registry would get them, into a directory. */
  readonly export: (directory: string) => Promise<void>;
}

/** Builds the Dockerfile from `context`, on bases that are made from what this host has: nothing can be pulled here. */
export async function buildImage(
  directory: string,
  context: string,
  args: Readonly<Record<string, string>>,
): Promise<Image> {
  // Debian's buildah on a storage of its own.
  const storage = ['--root', join(directory, 'storage'), '--runroot', join(directory, 'run')];
  const env = { PATH: process.env['PATH'], HOME: directory, TMPDIR: directory };
  const buildah = async (...words: readonly string[]): Promise<string> => {
    const all = [...storage, '--storage-driver', 'vfs', ...words];
    const { stdout } = await promisify(execFile)('buildah', all, { env, maxBuffer: 1 << 26 });
    return stdout.trim();
  };
  const base = async (name: string, fill: (root: string) => void) => {
    const root = join(directory, name);
    mkdirSync(root, { recursive: true });
    fill(root);
    writeFileSync(join(root, 'Dockerfile'), 'FROM scratch\nCOPY . /\n');
    await buildah('bud', ...BUILD, '--tag', `localhost/${name}`, root);
    return `localhost/${name}`;
  };
  const values = {
    BUILD_IMAGE: await base('builder', fillBuilder),
    RUNTIME_IMAGE: await base('runtime', fillRuntime),
    ...args,
  };
  const given = Object.entries(values).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]);
  const tag = 'localhost/killswitchd';
  await buildah('bud', ...BUILD, ...npmOfThisHost(directory), ...given, '--tag', tag, context);
  const inspected = JSON.parse(await buildah('inspect', '--type', 'image', tag)) as {
    Docker: { config: ImageConfig };
  };
  const { config } = inspected.Docker;
  const root = await buildah('mount', await buildah('from', '--pull-never', tag));
  const [uid = 0, gid = 0] = config.User.split(':').map(Number);
  return {
    config,
    root,
    container: {
      root,
      uid,
      gid,
      env: Object.fromEntries(config.Env.map((entry) => entry.split(/=(.*)/s).slice(0, 2))),
    },
    export: async (to) => void (await buildah('push', tag, `oci:${to}:killswitchd`)),
  };
}

/** The format matters: the other one, OCI, has no HEALTHCHECK. */
const BUILD = ['--isolation', 'chroot', '--pull-never', '--format', 'docker', '--quiet'];

const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const BUILDER_HOME = '/tmp/builder';
const NODE = realpathSync(process.execPath);

function fillRuntime(root: string): void {
  addProgram(root, NODE, '/nodejs/bin/node');
  addPeople(root);
}

function fillBuilder(root: string): void {
  addProgram(root, NODE, '/usr/local/bin/node');
  addProgram(root, '/bin/sh', '/bin/sh');
  addProgram(root, '/usr/bin/env', '/usr/bin/env');
  addProgram(root, '/usr/bin/tini-static', '/usr/bin/tini-static');
  const npm = realpathSync(execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim());
  const modules = join(root, 'usr/local/lib/node_modules/npm');
  cpSync(dirname(dirname(npm)), modules, { recursive: true });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/local/bin/npm'));
  addPeople(root);
}

/** A program with the libraries that it is linked with. */
function addProgram(root: string, from: string, to: string): void {
  // It fails for one that is linked with none.
  const { stdout } = spawnSync('/usr/bin/ldd', [realpathSync(from)], { encoding: 'utf8' });
  const libraries = stdout.match(/\/\S+(?= \()/g) ?? [];
  for (const [source, target] of [[from, to] as const, ...libraries.map((path) => [path, path] as const)]) {
    const place = join(root, target);
    mkdirSync(dirname(place), { recursive: true });
    if (!existsSync(place)) cpSync(realpathSync(source), place);
  }
}

function addPeople(root: string): void {
  for (const folder of ['etc', BUILDER_HOME]) mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, 'etc/passwd'), `root:x:0:0::${BUILDER_HOME}:\nnonroot:x:65532:65532::/tmp:\n`);
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\nnonroot:x:65532:\n');
}

/** How npm of this host reaches its registry, for the time of the build only: mounted, so that no layer has it. */
function npmOfThisHost(directory: string): string[] {
  const asked = (key: string) => spawnSync('npm', ['config', 'get', key], { encoding: 'utf8' }).stdout.trim();
  const files = [asked('globalconfig'), asked('userconfig')].filter((file) => existsSync(file));
  const settings = files.map((file) => readFileSync(file, 'utf8'));
  const mounts = [`${join(directory, 'npmrc')}:${BUILDER_HOME}/.npmrc:ro`];
  const cache = asked('cache');
  if (existsSync(cache)) mounts.push(`${cache}:${BUILDER_HOME}/.npm:rw`);
  if (existsSync(CERTIFICATES)) {
    mounts.push(`${CERTIFICATES}:${BUILDER_HOME}/certificates:ro`);
    settings.push(`cafile=${BUILDER_HOME}/certificates`);
  }
  const text = [...settings, 'prefer-offline=true', ''].join('\n');
  writeFileSync(join(directory, 'npmrc'), text, { mode: 0o600 });
  return mounts.flatMap((mount) => ['--volume', mount]);
}
