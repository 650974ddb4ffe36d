import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { EnvironmentSchema } from '../../src/config/environment.ts';
import { ROOT } from '../process/program.ts';
import { commandsUnder } from './deploy-guide.ts';
import {
  containersOf,
  daemonOf,
  environmentOf,
  imageDefaults,
  KUBERNETES,
  type Manifest,
  podOf,
  render,
  workloadOf,
} from './manifests.ts';
import { misfits } from './upstream-types.ts';

const directory = mkdtempSync(join(tmpdir(), 'killswitchd-guide-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
const guide = readFileSync(join(ROOT, 'deploy/README.md'), 'utf8');

/** What a shell asked of `docker` and `kubectl`, and what it would have sent to the cluster. */
interface Asked {
  readonly calls: readonly (readonly string[])[];
  readonly applied: readonly (readonly Manifest[])[];
}

/** Runs commands as they stand, with stand-ins for Docker and the cluster; `apply -k` renders as the real one. */
function follow(commands: string, cwd: string): Asked {
  const own = mkdtempSync(join(directory, 'bin-'));
  const real = execFileSync('sh', ['-c', 'command -v kubectl'], { encoding: 'utf8' }).trim();
  const program = (name: string, then: string) => {
    const file = join(own, name);
    const record = `{ printf '%s\\n' ${name} "$@"; echo; } >> "${own}/calls"`;
    writeFileSync(file, `#!/bin/sh\n${record}\n${then}\n`);
    chmodSync(file, 0o755);
  };
  program('docker', ':');
  program('sleep', ':');
  program(
    'kubectl',
    `[ "$1" = apply ] || exit 0
    while [ "$1" != -k ]; do shift; done
    ${real} kustomize "$2" > "$(mktemp "${own}/applied.XXXXXX")"`,
  );
  execFileSync('sh', ['-eu', '-c', commands], {
    cwd,
    stdio: 'pipe',
    env: { PATH: `${own}:${process.env['PATH']}` },
  });
  const calls = readFileSync(join(own, 'calls'), 'utf8').trimEnd().split('\n\n');
  const files = execFileSync('sh', ['-c', 'ls -tr applied.* 2>/dev/null || true'], {
    cwd: own,
    encoding: 'utf8',
  });
  return {
    calls: calls.map((call) => call.split('\n')),
    applied: files
      .split('\n')
      .filter((name) => name !== '')
      .map((name) =>
        parseAllDocuments(readFileSync(join(own, name), 'utf8'), { version: '1.1' }).map(
          (document) => document.toJS() as Manifest,
        ),
      ),
  };
}

/** Flags of Docker, which has no package here, that the guide uses. */
const DOCKER_FLAGS = [
  '--tag',
  '--build-arg',
  '--rm',
  '--detach',
  '--name',
  '--network',
  '--read-only',
  '--cap-drop',
  '--security-opt',
  '--stop-timeout',
  '--tmpfs',
  '--env',
  '--profile',
  '--build',
];

/** Commands of kubectl that are two words. */
const LONGER = new Set(['create', 'rollout']);

it('every flag of the guide is one that Docker or kubectl has', () => {
  const kubectl = (...args: readonly string[]) => execFileSync('kubectl', args, { encoding: 'utf8' });
  const everywhere = kubectl('options');
  const lines = [...guide.matchAll(/^(docker|kubectl) (?:[^\n\\]|\\\n)*/gm)].map(([line]) =>
    line.split(/\s+/),
  );
  const strange = lines.flatMap(([program, ...words]) => {
    const image = words.findIndex((word) => word.startsWith('killswitchd:'));
    const its = program === 'docker' && image > 0 && words[0] !== 'build' ? words.slice(0, image) : words;
    const own = its.includes('--') ? its.slice(0, its.indexOf('--')) : its;
    const flags = own.flatMap((word) => /^--?[a-z][a-z-]*/.exec(word) ?? []);
    if (program === 'docker') {
      return words[0] === 'exec' ? [] : flags.filter((flag) => !DOCKER_FLAGS.includes(flag));
    }
    const command = own.slice(
      0,
      own.join(' ').startsWith('create secret') ? 3 : LONGER.has(own[0] ?? '') ? 2 : 1,
    );
    const known = `${kubectl(...command, '--help')}${everywhere}`;
    return flags.filter((flag) => !new RegExp(`(^|[\\s,])${flag}[=,: ]`, 'm').test(known));
  });
  expect(lines.length).toBeGreaterThan(15);
  expect(strange).toEqual([]);
});

/** What the program of this repository says. */
const killswitchd = (...args: readonly string[]): string =>
  execFileSync(process.execPath, [join(ROOT, 'src/main.ts'), ...args], { encoding: 'utf8' });

/** The files of `kubectl create secret --from-file`. */
const secretFiles = ({ calls }: Asked): string[] =>
  calls
    .filter((call) => call.includes('secret'))
    .flatMap((call) => call.flatMap((word) => /^--from-file=(.*)$/.exec(word)?.[1] ?? []));

/** The files that a daemon reads its key and secret from, by their names in the Secret. */
const secretsRead = (manifests: readonly Manifest[], pod: string): string[] =>
  Object.entries(environmentOf(daemonOf(podOf(manifests)), pod))
    .filter(([name]) => /API_(KEY|SECRET)_FILE$/.test(name))
    .map(([, file]) => file.slice(file.lastIndexOf('/') + 1));

it('image: builds with arguments that the Dockerfile has, and runs what is in it with variables that it knows', () => {
  const { calls } = follow(
    commandsUnder('## Image').join('\n').replace('$(git rev-parse HEAD)', 'abc'),
    ROOT,
  );
  const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');
  const words = calls.flat();
  const named = words.flatMap((word, at) => (words[at - 1] === '--build-arg' ? [word.split('=')[0]] : []));
  expect(named).toEqual(['REVISION']);
  for (const name of [...named, 'BUILD_IMAGE', 'RUNTIME_IMAGE'])
    expect(dockerfile).toMatch(new RegExp(`^ARG ${name}=`, 'm'));
  const section = guide.slice(guide.indexOf('\n## Image\n'), guide.indexOf('\n## Kubernetes\n'));
  const args = new Set(section.match(/\b[A-Z]+_IMAGE\b/g));
  expect([...dockerfile.matchAll(/^ARG (\w+_IMAGE)=/gm)].map(([, name]) => name)).toEqual([...args]);
  const { program, user } = imageDefaults();
  expect(section).toContain(`Node at \`${program[0]}\``);
  expect(new Set(section.match(/(?<=\buser )\d+/g))).toEqual(new Set([String(user[0])]));
  const variables = words.flatMap((word, at) =>
    words[at - 1] === '--env' ? [word.split('=')[0] ?? ''] : [],
  );
  expect(variables.length).toBeGreaterThan(3);
  expect(variables.filter((name) => !(name in EnvironmentSchema.properties))).toEqual([]);
  const runs = calls.filter((call) => call[1] === 'run');
  const after = (flag: string) =>
    runs.flatMap((call) => call.flatMap((word, at) => (call[at - 1] === flag ? [word] : [])));
  for (const call of runs) {
    const [command = '--help', ...args] = call.slice(
      call.findIndex((word) => word.startsWith('killswitchd:')) + 1,
    );
    const help = killswitchd(command, '--help');
    for (const flag of args.filter((arg) => arg.startsWith('--'))) expect(help).toContain(`${flag} `);
  }
  expect(after('--env')).toContain(`KILLSWITCHD_BASE_URL=http://${after('--listen')[0]}`);
  const containers = after('--name');
  expect(after('--network')).toEqual([`container:${containers[0]}`]);
  const touched = calls.filter(([, verb = '']) => ['exec', 'stop', 'logs'].includes(verb));
  expect(touched.map(([, , name]) => name)).toEqual(touched.map(() => containers[1]));
  // Docker gives that many seconds; the program takes 8 where nothing is said.
  expect(Number(after('--stop-timeout')[0])).toBeGreaterThan(8 + 2);
  const images = words.filter((word) => word.startsWith('killswitchd:'));
  expect(new Set(images)).toEqual(new Set([`killswitchd:${version}`]));
  const exec = calls.find((call) => call[1] === 'exec') ?? [];
  expect(exec.slice(3, 5)).toEqual(imageDefaults().program);
});

it('trial: applies what is rendered, and asks pods and containers that are in it', () => {
  const asked = follow(commandsUnder('### Try it').join('\n'), ROOT);
  const [manifests = []] = asked.applied;
  expect(manifests).toEqual(render(join(KUBERNETES, 'overlays/trial')));
  const { kind, metadata } = workloadOf(manifests);
  const targets = asked.calls.flatMap((call) => call.filter((word) => word.startsWith('deployment/')));
  expect(new Set(targets)).toEqual(new Set([`${kind.toLowerCase()}/${metadata.name}`]));
  const containers = asked.calls.flatMap((call) =>
    call.flatMap((word, at) => (call[at - 1] === '-c' ? [word] : [])),
  );
  const there = containersOf(podOf(manifests)).map(({ name }) => name);
  expect(containers.filter((name) => !there.includes(name))).toEqual([]);
  expect(asked.calls.find((call) => call.includes('exec'))?.slice(-3)).toEqual([
    ...imageDefaults().program,
    'status',
  ]);
  const forwarded = asked.calls.find((call) => call.includes('port-forward'))?.at(-1);
  expect(forwarded).toBe(String(daemonOf(podOf(manifests)).ports?.[0]?.containerPort));
  // The one label by which Kubernetes refuses pods that are not restricted.
  const labelled = asked.calls.find((call) => call.includes('label'))?.at(-1);
  expect(labelled).toBe('pod-security.kubernetes.io/enforce=restricted');
  const namespaces = asked.calls.flatMap((call) =>
    call.flatMap((word, at) => (call[at - 1] === '--namespace' ? [word] : [])),
  );
  expect(new Set(namespaces)).toEqual(new Set(['trading']));
});

it('every folder is named with what it is, and the component by the annotation that it asks for', () => {
  const rows = [...guide.matchAll(/^\| `((?:components|overlays|pod-monitor)[\w/-]*)` /gm)];
  const folders = readdirSync(KUBERNETES, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('/kustomization.yaml'))
    .map((path) => dirname(path));
  expect(rows.map(([, folder = '']) => folder).toSorted()).toEqual(folders.toSorted());
  const component = parse(
    readFileSync(join(KUBERNETES, 'components/sidecar/kustomization.yaml'), 'utf8'),
  ) as {
    patches: { target: { annotationSelector: string } }[];
  };
  const [annotation] = component.patches.map(({ target }) => target.annotationSelector.split('=')[0]);
  const named = guide.match(/(?<![\w/.-])killswitchd\/[a-z]+/g);
  expect(new Set(named)).toEqual(new Set([annotation]));
});

it('own bot: what is written down gives the daemon its socket, configuration and secret', async () => {
  const own = mkdtempSync(join(directory, 'own-'));
  cpSync(join(ROOT, 'deploy'), join(own, 'deploy'), { recursive: true });
  mkdirSync(join(own, 'my-bot'));
  const section = guide.slice(guide.indexOf('### Your own bot'));
  const shown = parse(/^```yaml\n(.*?)^```$/ms.exec(section)?.[1] ?? '') as {
    metadata: object;
    spec: { template: { spec: { containers: object[] } } };
  };
  const { template } = shown.spec;
  const labels = { app: 'maker' };
  const bot = {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { ...shown.metadata, name: 'maker' },
    spec: {
      selector: { matchLabels: labels },
      serviceName: 'maker',
      template: { ...template, metadata: { labels } },
    },
  };
  writeFileSync(join(own, 'my-bot/bot.yaml'), JSON.stringify(bot));
  const asked = follow(commandsUnder('### Your own bot').join('\n'), own);
  const [manifests = []] = asked.applied;
  const pod = podOf(manifests);
  const daemon = daemonOf(pod);
  expect(await misfits(manifests, directory)).toEqual([]);
  expect(daemon.image).toBe(`registry.example/killswitchd:${version}`);
  expect(pod.volumes.map(({ name }) => name)).toContain('killswitchd-control');
  const [container] = pod.containers;
  const socket = environmentOf(daemon, '')['KILLSWITCHD_CONTROL_LISTEN'];
  expect(environmentOf(container ?? daemon, '')['KILLSWITCHD_CONTROL']).toBe(socket);
  expect(daemon.volumeMounts).toEqual(expect.arrayContaining([...(container?.volumeMounts ?? [])]));
  const labelled = asked.calls.find((call) => call.includes('label'))?.at(-1);
  expect(labelled).toBe('pod-security.kubernetes.io/enforce=restricted');
  expect(secretFiles(asked)).toEqual(secretsRead(manifests, 'maker-0'));
  expect(asked.calls.find((call) => call.includes('secret'))).toContain(
    pod.volumes.find(({ secret }) => secret)?.secret?.secretName,
  );
  const args = ['src/main.ts', 'check-config', '--config', join(own, 'my-bot/killswitchd.yaml')];
  const { NODE_ENV: _, ...env } = imageDefaults().env;
  execFileSync(process.execPath, args, {
    cwd: ROOT,
    stdio: 'pipe',
    env: {
      ...env,
      KILLSWITCHD_API_KEY: 'a-key',
      KILLSWITCHD_API_SECRET: 'a-secret',
      KILLSWITCHD_CONTROL_LISTEN: `unix:${join(own, 'control.sock')}`,
    },
  });
});

it('fleet: makes a key and a secret for each of its pods', () => {
  const asked = follow(commandsUnder('### Standalone and fleet').join('\n'), ROOT);
  const [manifests = []] = asked.applied;
  const { metadata, spec } = workloadOf(manifests);
  const pods = Array.from({ length: spec.replicas ?? 0 }, (_, index) => `${metadata.name}-${index}`);
  expect(secretFiles(asked)).toEqual(pods.flatMap((pod) => secretsRead(manifests, pod)));
  const [mounted] = podOf(manifests).volumes.flatMap(({ secret }) => secret?.secretName ?? []);
  expect(asked.calls.find((call) => call.includes('secret'))).toContain(mounted);
});
