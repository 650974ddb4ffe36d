import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { ROOT } from '../process/program.ts';
import { commandsUnder } from './deploy-guide.ts';
import {
  containersOf,
  daemonOf,
  environmentOf,
  imageDefaults,
  KUBERNETES,
  type Manifest,
  manifestsIn,
  podOf,
  render,
  workloadOf,
} from './manifests.ts';
import { scratch } from './scratch.ts';
import { misfits } from './upstream-types.ts';

const directory = scratch('guide');
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
const guide = readFileSync(join(ROOT, 'deploy/README.md'), 'utf8');
const run = (program: string, ...args: readonly string[]) =>
  execFileSync(program, args, { encoding: 'utf8', cwd: ROOT, stdio: 'pipe' });
/** What the program of this repository says. */
const killswitchd = (...args: readonly string[]) => run(process.execPath, 'src/main.ts', ...args);

/** What a shell asked of `docker` and `kubectl`, and what it would have sent to the cluster. */
interface Asked {
  readonly calls: readonly (readonly string[])[];
  readonly manifests: readonly Manifest[];
}

/** Runs commands as they stand, with stand-ins for Docker and the cluster; `apply -k` renders as the real one. */
function follow(commands: readonly string[], cwd = ROOT): Asked {
  const own = mkdtempSync(join(directory, 'bin-'));
  const real = run('sh', '-c', 'command -v kubectl').trim();
  const apply = `[ "$1" = apply ] || exit 0
    while [ "$1" != -k ]; do shift; done
    ${real} kustomize "$2" >> "${own}/applied"`;
  for (const [name, then] of Object.entries({ docker: '', sleep: '', kubectl: apply })) {
    const record = `{ printf '%s\\n' ${name} "$@"; echo; } >> "${own}/calls"`;
    writeFileSync(join(own, name), `#!/bin/sh\n${record}\n${then}\n`, { mode: 0o755 });
  }
  const env = { PATH: `${own}:${process.env['PATH']}` };
  execFileSync('sh', ['-eu', '-c', commands.join('\n')], { cwd, stdio: 'pipe', env });
  const calls = readFileSync(join(own, 'calls'), 'utf8').trimEnd().split('\n\n');
  const applied = statSync(join(own, 'applied'), { throwIfNoEntry: false });
  return {
    calls: calls.map((call) => call.split('\n')),
    manifests: applied === undefined ? [] : manifestsIn(readFileSync(join(own, 'applied'), 'utf8')),
  };
}

/** The words that stand behind a flag. */
const behind = ({ calls }: Pick<Asked, 'calls'>, flag: string): string[] =>
  calls.flatMap((call) => call.filter((_, at) => call[at - 1] === flag));
/** The calls in which a word stands. */
const callsWith = ({ calls }: Asked, word: string) => calls.filter((call) => call.includes(word));

/** Flags of Docker, which has no package here, that the guide uses. */
const DOCKER_FLAGS: Readonly<Record<string, RegExp>> = {
  build: /^--(tag|build-arg)$/,
  run: /^--(rm|detach|name|network|read-only|cap-drop|security-opt|stop-timeout|tmpfs|env)$/,
  compose: /^--(profile|build)$/,
};

it('every flag of the guide is one that Docker or kubectl has', () => {
  const everywhere = run('kubectl', 'options');
  const lines = [...guide.matchAll(/^(docker|kubectl) (?:[^\n\\]|\\\n)*/gm)];
  const strange = lines.flatMap(([line]) => {
    const [program, ...words] = line.split(/\s+/);
    const flagsIn = (its: readonly string[]) => its.flatMap((word) => /^--?[a-z][a-z-]*/.exec(word) ?? []);
    if (program === 'docker') {
      const image = words.findIndex((word) => word.startsWith('killswitchd:'));
      const its = image > 0 && words[0] !== 'build' ? words.slice(0, image) : words;
      if (words[0] === 'exec') return [];
      return flagsIn(its).filter((flag) => DOCKER_FLAGS[words[0] ?? '']?.test(flag) !== true);
    }
    const [own = ''] = words.join(' ').split(' -- ');
    const [command = ''] = /^(create secret \w+|create \w+|rollout \w+|[\w-]+)/.exec(own) ?? [];
    const known = `${run('kubectl', ...command.split(' '), '--help')}${everywhere}`;
    return flagsIn(own.split(' ')).filter((flag) => !new RegExp(`(^|[\\s,])${flag}[=,: ]`, 'm').test(known));
  });
  expect(lines.length).toBeGreaterThan(15);
  expect(strange).toEqual([]);
});

/** The files of `kubectl create secret --from-file`. */
const secretFiles = (asked: Asked): string[] =>
  callsWith(asked, 'secret').flatMap((call) =>
    call.flatMap((word) => /^--from-file=(.*)$/.exec(word)?.[1] ?? []),
  );

/** The files that a daemon reads its key and secret from, by their names in the Secret. */
const secretsRead = (manifests: readonly Manifest[], pod: string): string[] =>
  Object.entries(environmentOf(daemonOf(podOf(manifests)), pod))
    .filter(([name]) => /API_(KEY|SECRET)_FILE$/.test(name))
    .map(([, file]) => file.slice(file.lastIndexOf('/') + 1));

it('image: builds with arguments that the Dockerfile has, and runs what is in it', () => {
  const commands = commandsUnder('## Image').join('\n').replace('$(git rev-parse HEAD)', 'abc');
  const { calls } = follow([commands]);
  const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');
  const section = guide.slice(guide.indexOf('\n## Image\n'), guide.indexOf('\n## Kubernetes\n'));
  const { program, user } = imageDefaults();
  expect(behind({ calls }, '--build-arg')).toEqual(['REVISION=abc']);
  expect(dockerfile).toMatch(/^ARG REVISION=/m);
  const images = [...dockerfile.matchAll(/^ARG (\w+_IMAGE)=/gm)].map(([, name]) => name);
  expect(images).toEqual([...new Set(section.match(/\b[A-Z]+_IMAGE\b/g))]);
  expect(section).toContain(`Node at \`${program[0]}\``);
  expect(new Set(section.match(/(?<=\buser )\d+/g))).toEqual(new Set([String(user[0])]));
  const runs = calls.filter((call) => call[1] === 'run');
  for (const call of runs) {
    const [command = '--help', ...args] = call.slice(call.indexOf(`killswitchd:${version}`) + 1);
    const help = killswitchd(command, '--help');
    for (const flag of args.filter((arg) => arg.startsWith('--'))) expect(help).toContain(`${flag} `);
  }
  const [listen] = behind({ calls }, '--listen');
  expect(behind({ calls }, '--env')).toContain(`KILLSWITCHD_BASE_URL=http://${listen}`);
  const containers = behind({ calls }, '--name');
  expect(behind({ calls }, '--network')).toEqual([`container:${containers[0]}`]);
  const touched = calls.filter(([, verb = '']) => ['exec', 'stop', 'logs'].includes(verb));
  expect(new Set(touched.map(([, , name]) => name))).toEqual(new Set([containers[1]]));
  // Docker gives that many seconds; the program takes 8 where nothing is said.
  expect(Number(behind({ calls }, '--stop-timeout')[0])).toBeGreaterThan(8 + 2);
  const named = calls.flat().filter((word) => word.startsWith('killswitchd:'));
  expect(new Set(named)).toEqual(new Set([`killswitchd:${version}`]));
  expect(touched[0]?.slice(1, 5)).toEqual(['exec', containers[1], ...program]);
});

/** The one label by which Kubernetes refuses pods that are not restricted. */
const RESTRICTED = 'pod-security.kubernetes.io/enforce=restricted';

it('trial: applies what is rendered, and asks pods and containers that are in it', () => {
  const asked = follow(commandsUnder('### Try it'));
  const { calls, manifests } = asked;
  expect(manifests).toEqual(render(join(KUBERNETES, 'overlays/trial')));
  const { kind, metadata } = workloadOf(manifests);
  const targets = calls.flatMap((call) => call.filter((word) => word.startsWith('deployment/')));
  expect(new Set(targets)).toEqual(new Set([`${kind.toLowerCase()}/${metadata.name}`]));
  const there = containersOf(podOf(manifests)).map(({ name }) => name);
  expect(behind(asked, '-c').filter((name) => !there.includes(name))).toEqual([]);
  expect(callsWith(asked, 'exec')[0]?.slice(-3)).toEqual([...imageDefaults().program, 'status']);
  const port = daemonOf(podOf(manifests)).ports?.[0]?.containerPort;
  expect(callsWith(asked, 'port-forward')[0]?.at(-1)).toBe(String(port));
  expect(callsWith(asked, 'label')[0]?.at(-1)).toBe(RESTRICTED);
  expect(new Set(behind(asked, '--namespace'))).toEqual(new Set(['trading']));
});

it('every folder is named with what it is, and the component by the annotation that it asks for', () => {
  const rows = [...guide.matchAll(/^\| `((?:components|overlays|pod-monitor)[\w/-]*)` /gm)];
  const folders = readdirSync(KUBERNETES, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('/kustomization.yaml'))
    .map((path) => dirname(path));
  expect(rows.map(([, folder = '']) => folder).toSorted()).toEqual(folders.toSorted());
  const component = readFileSync(join(KUBERNETES, 'components/sidecar/kustomization.yaml'), 'utf8');
  const { patches } = parse(component) as { patches: { target: { annotationSelector: string } }[] };
  const annotation = patches[0]?.target.annotationSelector.split('=')[0];
  expect(new Set(guide.match(/(?<![\w/.-])killswitchd\/[a-z]+/g))).toEqual(new Set([annotation]));
});

it('own bot: what is written down gives the daemon its socket, configuration and secret', async () => {
  const own = mkdtempSync(join(directory, 'own-'));
  cpSync(join(ROOT, 'deploy'), join(own, 'deploy'), { recursive: true });
  mkdirSync(join(own, 'my-bot'));
  const section = guide.slice(guide.indexOf('### Your own bot'));
  const shown = parse(/^```yaml\n(.*?)^```$/ms.exec(section)?.[1] ?? '') as {
    metadata: object;
    spec: { template: object };
  };
  const labels = { app: 'maker' };
  const template = { ...shown.spec.template, metadata: { labels } };
  const bot = {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { ...shown.metadata, name: 'maker' },
    spec: { selector: { matchLabels: labels }, serviceName: 'maker', template },
  };
  writeFileSync(join(own, 'my-bot/bot.yaml'), JSON.stringify(bot));
  const asked = follow(commandsUnder('### Your own bot'), own);
  const { manifests } = asked;
  const pod = podOf(manifests);
  const daemon = daemonOf(pod);
  expect(await misfits(manifests, directory)).toEqual([]);
  expect(daemon.image).toBe(`registry.example/killswitchd:${version}`);
  expect(pod.volumes.map(({ name }) => name)).toContain('killswitchd-control');
  const [container] = pod.containers;
  const socket = environmentOf(daemon, '')['KILLSWITCHD_CONTROL_LISTEN'];
  expect(environmentOf(container ?? daemon, '')['KILLSWITCHD_CONTROL']).toBe(socket);
  expect(daemon.volumeMounts).toEqual(expect.arrayContaining([...(container?.volumeMounts ?? [])]));
  expect(callsWith(asked, 'label')[0]?.at(-1)).toBe(RESTRICTED);
  expect(secretFiles(asked)).toEqual(secretsRead(manifests, 'maker-0'));
  const mounted = pod.volumes.find(({ secret }) => secret)?.secret?.secretName;
  expect(callsWith(asked, 'secret')[0]).toContain(mounted);
  const { NODE_ENV: _, ...env } = imageDefaults().env;
  const key = { KILLSWITCHD_API_KEY: 'a-key', KILLSWITCHD_API_SECRET: 'a-secret' };
  const control = { KILLSWITCHD_CONTROL_LISTEN: `unix:${join(own, 'control.sock')}` };
  const args = ['src/main.ts', 'check-config', '--config', join(own, 'my-bot/killswitchd.yaml')];
  execFileSync(process.execPath, args, { cwd: ROOT, stdio: 'pipe', env: { ...env, ...key, ...control } });
});

it('fleet: makes a key and a secret for each of its pods', () => {
  const asked = follow(commandsUnder('### Standalone and fleet'));
  const { manifests } = asked;
  const { metadata, spec } = workloadOf(manifests);
  const pods = Array.from({ length: spec.replicas ?? 0 }, (_, index) => `${metadata.name}-${index}`);
  expect(secretFiles(asked)).toEqual(pods.flatMap((pod) => secretsRead(manifests, pod)));
  const [mounted] = podOf(manifests).volumes.flatMap(({ secret }) => secret?.secretName ?? []);
  expect(callsWith(asked, 'secret')[0]).toContain(mounted);
});
