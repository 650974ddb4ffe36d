import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { EnvironmentSchema } from '../../src/config/environment.ts';
import { ROOT } from '../process/program.ts';
import {
  containersOf,
  daemonOf,
  environmentOf,
  imageDefaults,
  KUBERNETES,
  type Labels,
  type Manifest,
  notRestricted,
  only,
  type PodSpec,
  type Probe,
  podOf,
  render,
  workloadOf,
} from './manifests.ts';
import { misfits } from './upstream-types.ts';

const directory = mkdtempSync(join(tmpdir(), 'killswitchd-manifests-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const OVERLAYS = ['fleet', 'sidecar', 'standalone', 'trial'];
/** What each holds beside its workload. */
const OTHER_KINDS: Readonly<Record<string, readonly string[]>> = {
  fleet: ['ConfigMap', 'NetworkPolicy', 'PodDisruptionBudget', 'Service'],
  sidecar: ['ConfigMap', 'NetworkPolicy'],
  standalone: ['ConfigMap', 'NetworkPolicy'],
  trial: ['ConfigMap', 'NetworkPolicy', 'Secret'],
};
const rendered = new Map(OVERLAYS.map((name) => [name, render(join(KUBERNETES, 'overlays', name))]));
const manifestsOf = (overlay: string): Manifest[] => rendered.get(overlay) ?? [];
const podIn = (overlay: string): PodSpec => podOf(manifestsOf(overlay));
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };

interface FileConfig {
  readonly shutdown: { readonly budgetSeconds: number };
  readonly reload: { readonly pollSeconds: number };
  readonly shard?: { readonly count: number };
}
const configOf = (overlay: string): FileConfig =>
  parse(only(manifestsOf(overlay), 'ConfigMap').data?.['killswitchd.yaml'] ?? '') as FileConfig;

it('every file of deploy/kubernetes is one that these tests render', () => {
  const files = readdirSync(KUBERNETES, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(KUBERNETES.length + 1));
  expect(files.sort()).toEqual([
    'components/network-policy/kustomization.yaml',
    'components/network-policy/network-policy.yaml',
    'components/sidecar/kustomization.yaml',
    'components/sidecar/sidecar.yaml',
    'overlays/fleet/disruption.yaml',
    'overlays/fleet/fleet.yaml',
    'overlays/fleet/killswitchd.yaml',
    'overlays/fleet/kustomization.yaml',
    'overlays/sidecar/bot.yaml',
    'overlays/sidecar/killswitchd.yaml',
    'overlays/sidecar/kustomization.yaml',
    'overlays/standalone/deployment.yaml',
    'overlays/standalone/killswitchd.yaml',
    'overlays/standalone/kustomization.yaml',
    'overlays/trial/exchange.yaml',
    'overlays/trial/killswitchd.yaml',
    'overlays/trial/kustomization.yaml',
    'pod-monitor/kustomization.yaml',
    'pod-monitor/pod-monitor.yaml',
  ]);
});

describe.each(OVERLAYS)('overlay %s', (overlay) => {
  const manifests = manifestsOf(overlay);
  const pod = podIn(overlay);
  const daemon = daemonOf(pod);
  const env = environmentOf(daemon, 'killswitchd-0');
  const mountOf = (path: string) =>
    daemon.volumeMounts?.find(({ mountPath }) => path.startsWith(`${mountPath}/`));
  const volumeAt = (path: string) => pod.volumes.find(({ name }) => name === mountOf(path)?.name);

  it('finds its own pods, and replaces them in a way that there is', () => {
    const { kind, metadata, spec } = workloadOf(manifests);
    const { selector, strategy, updateStrategy, template } = spec;
    expect(selector?.matchLabels).toEqual(metadata.labels);
    expect(template.metadata.labels).toMatchObject(selector?.matchLabels ?? {});
    expect(Object.keys(metadata.labels ?? {})).toEqual([
      'app.kubernetes.io/instance',
      'app.kubernetes.io/name',
    ]);
    // Never two on one account.
    expect([strategy, updateStrategy]).toEqual(
      kind === 'Deployment' ? [{ type: 'Recreate' }, undefined] : [undefined, { type: 'RollingUpdate' }],
    );
    const [first] = containersOf(pod).slice(-1);
    const shown = template.metadata.annotations ?? {};
    expect(shown).toEqual(
      overlay === 'sidecar' || overlay === 'trial'
        ? { 'kubectl.kubernetes.io/default-container': first?.name }
        : {},
    );
  });

  it('fits the published types of Kubernetes', { timeout: 30_000 }, async () => {
    expect(await misfits(manifests, directory)).toEqual([]);
    const others = manifests.filter(({ kind }) => kind !== workloadOf(manifests).kind);
    expect(others.map(({ kind }) => kind).sort()).toEqual(OTHER_KINDS[overlay]);
  });

  it('is admitted where pods must be restricted', () => {
    expect(notRestricted({ ...pod })).toEqual([]);
    expect(
      containersOf(pod).map(({ securityContext }) => securityContext.readOnlyRootFilesystem),
    ).not.toContain(undefined);
    expect(pod.automountServiceAccountToken).toBe(false);
    expect([pod.securityContext.runAsUser, pod.securityContext.runAsGroup]).toEqual(imageDefaults().user);
  });

  it('starts the image of this version by its own entry point, and nothing that the image lacks', () => {
    expect(new Set(containersOf(pod).map(({ image }) => image))).toEqual(new Set([`killswitchd:${version}`]));
    expect(daemon.args).toEqual(imageDefaults().command);
    expect(daemon.command).toBeUndefined();
  });

  it('sets only variables that the program knows', () => {
    const names = containersOf(pod).flatMap(({ env: variables = [] }) => variables.map(({ name }) => name));
    expect(names.filter((name) => !(name in EnvironmentSchema.properties))).toEqual([]);
  });

  it('gives key and secret as files, which only its own group reads, and never as a value', () => {
    for (const name of ['KILLSWITCHD_API_KEY_FILE', 'KILLSWITCHD_API_SECRET_FILE']) {
      expect(mountOf(env[name] ?? '')).toMatchObject({ readOnly: true });
    }
    const secrets = pod.volumes.flatMap(({ secret }) => secret ?? []);
    expect(secrets).toEqual([{ secretName: 'killswitchd-api', defaultMode: 0o440 }]);
    expect(pod.securityContext.fsGroup).toBe(pod.securityContext.runAsGroup);
    expect(Object.keys(env).filter((name) => /_(KEY|SECRET|TOKEN)$/.test(name))).toEqual([]);
    expect(JSON.stringify(manifests)).not.toContain('secretKeyRef');
  });

  it('reads its configuration from the ConfigMap that stands beside it, as it changes', () => {
    const file = env['KILLSWITCHD_CONFIG'] ?? '';
    const { metadata, data = {} } = only(manifests, 'ConfigMap');
    expect(volumeAt(file)?.configMap).toEqual({ name: metadata.name });
    expect(Object.keys(data)).toEqual([file.slice(`${mountOf(file)?.mountPath}/`.length)]);
    expect(configOf(overlay).reload.pollSeconds).toBeGreaterThan(0);
    const mounts = containersOf(pod).flatMap(({ volumeMounts = [] }) => volumeMounts);
    expect(mounts.filter(({ subPath }) => subPath !== undefined)).toEqual([]);
    expect(mounts.filter(({ name }) => pod.volumes.every((volume) => volume.name !== name))).toEqual([]);
  });

  it('has its control socket where it may write, in memory and of a limited size', () => {
    const socket = (env['KILLSWITCHD_CONTROL_LISTEN'] ?? '').replace(/^unix:/, '');
    expect(volumeAt(socket)?.emptyDir).toEqual({ medium: 'Memory', sizeLimit: '1Mi' });
    expect(mountOf(socket)?.readOnly).toBeUndefined();
  });

  it('is probed over http at the port that it listens on, at every address of the pod', () => {
    const [port, ...more] = daemon.ports ?? [];
    expect(more).toEqual([]);
    expect(port).toMatchObject({ protocol: 'TCP' });
    expect(env['KILLSWITCHD_WEB_LISTEN']).toBe(`0.0.0.0:${port?.containerPort}`);
    const probes = [daemon.readinessProbe, daemon.livenessProbe].filter((probe) => probe !== undefined);
    expect(probes.map(({ httpGet }) => httpGet.port)).toEqual(probes.map(() => port?.name));
    expect(daemon.livenessProbe?.httpGet.path).toBe('/livez');
    // Beside its bot it has none: an exchange that is away must not take the bot out of its Service. Elsewhere a dead bot
    // must not hold up a rollout.
    const path = overlay === 'sidecar' || overlay === 'trial' ? undefined : '/readyz?exclude=bots';
    expect(daemon.readinessProbe?.httpGet.path).toBe(path);
    expect(probes.every(({ timeoutSeconds }: Probe) => timeoutSeconds >= 2)).toBe(true);
  });

  it('is bounded in memory and not in time on the processor', () => {
    for (const { resources } of containersOf(pod)) {
      expect(Object.keys(resources.limits)).toEqual(['memory']);
      expect(Object.keys(resources.requests).sort()).toEqual(['cpu', 'memory']);
    }
  });

  it('has the time for a clean stop, and no hook that runs before the bot has ended', () => {
    const { budgetSeconds } = configOf(overlay).shutdown;
    // Half a minute for the bot, as Kubernetes gives where nothing is said; listeners and log close within 3 s.
    const botSeconds = overlay === 'sidecar' || overlay === 'trial' ? 30 : 0;
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(botSeconds + budgetSeconds + 5);
    expect(JSON.stringify(pod)).not.toMatch(/preStop|postStart/);
  });
});

describe('the sidecar', () => {
  const pod = podIn('sidecar');
  const daemon = daemonOf(pod);
  const [bot] = pod.containers;

  it('starts before the bot, holds it back until all is armed, and waits for that as long as it takes', () => {
    expect(pod.initContainers?.map(({ name, restartPolicy }) => [name, restartPolicy])).toEqual([
      ['killswitchd', 'Always'],
      ['killswitchd-armed', undefined],
    ]);
    const [, armed] = pod.initContainers ?? [];
    expect(armed?.args).toEqual(['healthcheck', '--ready', '--exclude', 'bots', '--wait', '86400']);
    // It would hold up the liveness probe: a daemon that hangs at its start would never be started again.
    expect(daemon.startupProbe).toBeUndefined();
    expect(daemon.livenessProbe?.initialDelaySeconds).toBeLessThanOrEqual(10);
  });

  it('is one user with the bot, and shares its control socket with it', () => {
    expect(
      containersOf(pod).filter(({ securityContext }) => securityContext.runAsUser !== undefined),
    ).toEqual([]);
    expect(pod.securityContext).toEqual({ runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532 });
    const socket = environmentOf(daemon, '')['KILLSWITCHD_CONTROL_LISTEN'];
    expect(environmentOf(bot ?? daemon, '')['KILLSWITCHD_CONTROL']).toBe(socket);
    expect(daemon.volumeMounts).toEqual(expect.arrayContaining([...(bot?.volumeMounts ?? [])]));
  });

  it('guards a sample bot that is in the image', () => {
    const [node, flag, script = ''] = bot?.command ?? [];
    expect([node, flag]).toEqual([imageDefaults().program[0], '--disable-sigusr1']);
    expect(readFileSync(join(ROOT, script.replace('/app/', '')), 'utf8')).toContain('KILLSWITCHD_CONTROL');
    expect(bot?.image).toBe(daemon.image);
  });
});

describe('the fleet', () => {
  const manifests = manifestsOf('fleet');
  const { spec } = only(manifests, 'StatefulSet');

  it('has as many pods as shards, none of which waits for another', () => {
    expect(spec).toMatchObject({ replicas: configOf('fleet').shard?.count, podManagementPolicy: 'Parallel' });
  });

  it('gives each pod its own number, and its own key alone: the others are not in its container', () => {
    const pod = podIn('fleet');
    const daemon = daemonOf(pod);
    const env = environmentOf(daemon, 'killswitchd-2');
    expect(env['KILLSWITCHD_SHARD_INDEX']).toBe('killswitchd-2');
    expect(env['KILLSWITCHD_API_KEY_FILE']).toBe('/run/secrets/killswitchd/killswitchd-2.api-key');
    expect(env['KILLSWITCHD_API_SECRET_FILE']).toBe('/run/secrets/killswitchd/killswitchd-2.api-secret');
    const kinds = daemon.volumeMounts?.map(({ name }) => pod.volumes.find((volume) => volume.name === name));
    expect(kinds?.filter((volume) => volume?.secret !== undefined)).toEqual([]);
  });

  it('keeps its pods apart: by node and by zone, as far as there are several', () => {
    const { affinity, topologySpreadConstraints } = podIn('fleet') as PodSpec & Record<string, unknown>;
    const labelSelector = { matchLabels: spec.selector?.matchLabels };
    expect(topologySpreadConstraints).toEqual([
      {
        maxSkew: 1,
        topologyKey: 'topology.kubernetes.io/zone',
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector,
      },
    ]);
    const podAffinityTerm = { topologyKey: 'kubernetes.io/hostname', labelSelector };
    expect(affinity).toEqual({
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm }],
      },
    });
  });

  it('is what its service and its disruption budget select', () => {
    const { labels } = spec.template.metadata;
    const service = only(manifests, 'Service');
    expect(spec).toMatchObject({ serviceName: service.metadata.name });
    expect(service.metadata.labels).toEqual(only(manifests, 'StatefulSet').metadata.labels);
    for (const { spec: selecting } of [service, only(manifests, 'PodDisruptionBudget')]) {
      const { selector } = selecting as unknown as { selector: Labels & { matchLabels?: Labels } };
      expect(labels).toMatchObject(selector.matchLabels ?? selector);
    }
    expect(service.spec).toMatchObject({ ports: [{ targetPort: 'killswitchd', port: 17477 }] });
  });
});

it('the trial brings an exchange that starts before the daemon, and the only secret that stands in a file', () => {
  const pod = podIn('trial');
  expect(pod.initContainers?.map(({ name, restartPolicy }) => [name, restartPolicy])).toEqual([
    ['exchange', 'Always'],
    ['killswitchd', 'Always'],
    ['killswitchd-armed', undefined],
  ]);
  const [exchange] = pod.initContainers ?? [];
  const config = only(manifestsOf('trial'), 'ConfigMap').data?.['killswitchd.yaml'];
  expect(config).toContain(`http://${exchange?.args?.at(-1)}`);
  expect({ ...pod, initContainers: pod.initContainers?.slice(1) }).toEqual(podIn('sidecar'));
  const secret = only(manifestsOf('trial'), 'Secret');
  const env = environmentOf(daemonOf(pod), '');
  expect(pod.volumes.map(({ secret: from }) => from?.secretName)).toContain(secret.metadata.name);
  expect(Object.keys(secret.data ?? {}).map((key) => `/run/secrets/killswitchd/${key}`)).toEqual([
    env['KILLSWITCHD_API_KEY_FILE'],
    env['KILLSWITCHD_API_SECRET_FILE'],
  ]);
  const secrets = [...rendered].filter(([, manifests]) => manifests.some(({ kind }) => kind === 'Secret'));
  expect(secrets.map(([name]) => name)).toEqual(['trial']);
});
