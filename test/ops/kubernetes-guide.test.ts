import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { read } from '../docs/documents.ts';
import { guideUnder } from '../docs/sections.ts';
import { ROOT } from '../process/program.ts';
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
  VERSION,
  workloadOf,
} from './manifests.ts';
import { scratch } from './scratch.ts';
import { misfits } from './upstream-types.ts';

const directory = scratch();
const guide = read('deploy/README.md');
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
const DOCKER_FLAGS =
  /^--(tag|build-arg|rm|detach|name|network|read-only|cap-drop|security-opt|stop-timeout|tmpfs|env|profile|build)$/;

it('every flag of the guide is one that Docker or kubectl has', () => {
  const everywhere = run('kubectl', 'options');
  const lines = [...guide.matchAll(/^(docker|kubectl) ((?:[^\n\\]|\\\n)*)/gm)];
  const strange = lines.flatMap(([, program, words = '']) => {
    // What stands behind the name of an image, or behind `--`, is for a program in a container.
    const [own = ''] = words.replaceAll('\\\n', ' ').split(/ killswitchd:\S+ | -- /);
    const flags = own.split(/\s+/).flatMap((word) => /^--?[a-z][a-z-]*/.exec(word) ?? []);
    if (program === 'docker')
      return own.startsWith('exec') ? [] : flags.filter((flag) => !DOCKER_FLAGS.test(flag));
    const [command = ''] = /^(create secret \w+|create \w+|rollout \w+|[\w-]+)/.exec(own) ?? [];
    const known = `${run('kubectl', ...command.split(' '), '--help')}${everywhere}`;
    return flags.filter((flag) => !new RegExp(`(^|[\\s,])${flag}[=,: ]`, 'm').test(known));
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
  const asked = follow([guideUnder('## Image').join('\n').replace('$(git rev-parse HEAD)', 'abc')]);
  const { calls } = asked;
  const dockerfile = read('Dockerfile');
  const section = guide.slice(guide.indexOf('\n## Image\n'), guide.indexOf('\n## Kubernetes\n'));
  const { program } = imageDefaults();
  expect(behind(asked, '--build-arg')).toEqual(['REVISION=abc']);
  expect(dockerfile).toMatch(/^ARG REVISION=/m);
  const images = [...dockerfile.matchAll(/^ARG (\w+_IMAGE)=/gm)].map(([, name]) => name);
  expect(images).toEqual([...new Set(section.match(/\b[A-Z]+_IMAGE\b/g))]);
  for (const call of calls.filter(([, verb]) => verb === 'run')) {
    const [command = '--help', ...args] = call.slice(call.indexOf(`killswitchd:${VERSION}`) + 1);
    const help = killswitchd(command, '--help');
    for (const flag of args.filter((arg) => arg.startsWith('--'))) expect(help).toContain(`${flag} `);
  }
  expect(behind(asked, '--env')).toContain(`KILLSWITCHD_BASE_URL=http://${behind(asked, '--listen')[0]}`);
  const [exchange, daemon] = behind(asked, '--name');
  expect(behind(asked, '--network')).toEqual([`container:${exchange}`]);
  const touched = calls.filter(([, verb = '']) => ['exec', 'stop', 'logs'].includes(verb));
  expect(new Set(touched.map(([, , name]) => name))).toEqual(new Set([daemon]));
  expect(touched[0]?.slice(1, 5)).toEqual(['exec', daemon, ...program]);
  // Docker gives that many seconds; the program takes 8 where nothing is said.
  expect(Number(behind(asked, '--stop-timeout')[0])).toBeGreaterThan(8 + 2);
  const named = calls.flat().filter((word) => word.startsWith('killswitchd:'));
  expect(new Set(named)).toEqual(new Set([`killswitchd:${VERSION}`]));
});

/** The one label by which Kubernetes refuses pods that are not restricted. */
const RESTRICTED = 'pod-security.kubernetes.io/enforce=restricted';

it('trial: applies what is rendered, and asks pods and containers that are in it', () => {
  const asked = follow(guideUnder('### Try it'));
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

it('own bot: what is written down gives the daemon its socket, configuration and secret', async () => {
  const own = mkdtempSync(join(directory, 'own-'));
  cpSync(join(ROOT, 'deploy'), join(own, 'deploy'), { recursive: true });
  mkdirSync(join(own, 'my-bot'));
  const shown = parse(guideUnder('### Your own bot', 'yaml')[0] ?? '') as {
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
  const asked = follow(guideUnder('### Your own bot'), own);
  const { manifests } = asked;
  const pod = podOf(manifests);
  const daemon = daemonOf(pod);
  expect(await misfits(manifests, directory)).toEqual([]);
  expect(daemon.image).toBe(`registry.example/killswitchd:${VERSION}`);
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
  const asked = follow(guideUnder('### Standalone and fleet'));
  const { manifests } = asked;
  const { metadata, spec } = workloadOf(manifests);
  const pods = Array.from({ length: spec.replicas ?? 0 }, (_, index) => `${metadata.name}-${index}`);
  expect(secretFiles(asked)).toEqual(pods.flatMap((pod) => secretsRead(manifests, pod)));
  const [mounted] = podOf(manifests).volumes.flatMap(({ secret }) => secret?.secretName ?? []);
  expect(callsWith(asked, 'secret')[0]).toContain(mounted);
});

it('fleet: the patch for the address of its messages mounts the Secret where the guide says that it is', async () => {
  const own = mkdtempSync(join(directory, 'own-'));
  cpSync(KUBERNETES, join(own, 'kubernetes'), { recursive: true });
  mkdirSync(join(own, 'fleet'));
  const [patches = ''] = guideUnder('### Standalone and fleet', 'yaml');
  writeFileSync(
    join(own, 'fleet/kustomization.yaml'),
    `resources: [../kubernetes/overlays/fleet]\n${patches}`,
  );
  const manifests = render(join(own, 'fleet'));
  expect(await misfits(manifests, directory)).toEqual([]);
  const pod = podOf(manifests);
  const [volume] = pod.volumes.filter(({ secret }) => secret?.secretName === 'killswitchd-notify');
  const mount = daemonOf(pod).volumeMounts?.find(({ name }) => name === volume?.name);
  expect(guide).toContain(`notify: { urlFile: ${mount?.mountPath}/url }`);
});
