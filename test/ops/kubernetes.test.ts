import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { EnvironmentSchema } from '../../src/config/environment.ts';
import { TARGET_LABELS } from '../deploy/promql.ts';
import { readDeployed } from '../deploy/rules.ts';
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
  podOf,
  render,
  workloadOf,
} from './manifests.ts';
import { scratch } from './scratch.ts';
import { misfits } from './upstream-types.ts';

const directory = scratch('manifests');
const OVERLAYS = ['fleet', 'sidecar', 'standalone', 'trial'];
/** Those in which the daemon stands beside its bot. */
const BESIDE = ['sidecar', 'trial'];
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
  readonly exchange: { readonly baseUrls: readonly string[] };
  readonly shutdown: { readonly budgetSeconds: number };
  readonly reload: { readonly pollSeconds: number };
  readonly shard?: { readonly count: number };
}
const configOf = (overlay: string): FileConfig =>
  parse(only(manifestsOf(overlay), 'ConfigMap').data?.['killswitchd.yaml'] ?? '') as FileConfig;

interface Selector {
  readonly matchExpressions: readonly { readonly key: string; readonly operator: string }[];
}
const selects = ({ matchExpressions }: Selector, labels: Labels): boolean =>
  matchExpressions.every(({ key, operator }) => operator === 'Exists' && key in labels);

const monitors = render(join(KUBERNETES, 'pod-monitor'));
const monitor = only(monitors, 'PodMonitor').spec as unknown as {
  readonly selector: Selector;
  readonly podMetricsEndpoints: readonly {
    readonly interval: string;
    readonly scrapeTimeout: string;
    readonly relabelings: unknown;
  }[];
};

it('every folder of deploy/kubernetes is one that these tests render, and every file is used in it', () => {
  const files = readdirSync(KUBERNETES, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(KUBERNETES.length + 1));
  const kustomizations = files.filter((file) => file.endsWith('/kustomization.yaml'));
  const folders = ['components/network-policy', 'components/sidecar', 'pod-monitor'];
  folders.push(...OVERLAYS.map((name) => `overlays/${name}`));
  expect(kustomizations.map(dirname).toSorted()).toEqual(folders.toSorted());
  const text = kustomizations.map((file) => readFileSync(join(KUBERNETES, file), 'utf8')).join('');
  const others = files.filter((file) => !kustomizations.includes(file));
  expect(others.filter((file) => !text.includes(file.slice(dirname(file).length + 1)))).toEqual([]);
});

it('everything fits the published types of Kubernetes and of the Prometheus operator', {
  timeout: 60_000,
}, async () => {
  expect(await misfits([...[...rendered.values()].flat(), ...monitors], directory)).toEqual([]);
});

describe.each(OVERLAYS)('overlay %s', (overlay) => {
  const manifests = manifestsOf(overlay);
  const pod = podIn(overlay);
  const daemon = daemonOf(pod);
  const env = environmentOf(daemon, 'killswitchd-0');
  const { labels, annotations = {} } = workloadOf(manifests).spec.template.metadata;
  const isBeside = BESIDE.includes(overlay);
  const mountOf = (path: string) =>
    daemon.volumeMounts?.find(({ mountPath }) => path.startsWith(`${mountPath}/`));
  const volumeAt = (path: string) => pod.volumes.find(({ name }) => name === mountOf(path)?.name);

  it('finds its own pods, and replaces them in a way that there is', () => {
    const { kind, metadata, spec } = workloadOf(manifests);
    const others = manifests.filter((manifest) => manifest.kind !== kind);
    expect(others.map((manifest) => manifest.kind).sort()).toEqual(OTHER_KINDS[overlay]);
    expect(spec.selector?.matchLabels).toEqual(metadata.labels);
    expect(labels).toMatchObject(spec.selector?.matchLabels ?? {});
    const names = ['app.kubernetes.io/instance', 'app.kubernetes.io/name'];
    expect(Object.keys(metadata.labels ?? {})).toEqual(names);
    // Never two on one account.
    expect([spec.strategy, spec.updateStrategy]).toEqual(
      kind === 'Deployment' ? [{ type: 'Recreate' }, undefined] : [undefined, { type: 'RollingUpdate' }],
    );
    const last = containersOf(pod).at(-1)?.name;
    expect(annotations).toEqual(isBeside ? { 'kubectl.kubernetes.io/default-container': last } : {});
  });

  it('is admitted where pods must be restricted', () => {
    expect(notRestricted({ ...pod })).toEqual([]);
    const roots = containersOf(pod).map(({ securityContext }) => securityContext.readOnlyRootFilesystem);
    expect(roots).not.toContain(undefined);
    expect(pod.automountServiceAccountToken).toBe(false);
    expect([pod.securityContext.runAsUser, pod.securityContext.runAsGroup]).toEqual(imageDefaults().user);
  });

  it('starts the image of this version by its own entry point, with variables that the program knows', () => {
    expect(new Set(containersOf(pod).map(({ image }) => image))).toEqual(new Set([`killswitchd:${version}`]));
    expect([daemon.command, daemon.args]).toEqual([undefined, imageDefaults().command]);
    const names = containersOf(pod).flatMap(({ env: variables = [] }) => variables.map(({ name }) => name));
    expect(names.filter((name) => !(name in EnvironmentSchema.properties))).toEqual([]);
  });

  it('gives key and secret as files, which only its own group reads, and never as a value', () => {
    for (const name of ['KILLSWITCHD_API_KEY_FILE', 'KILLSWITCHD_API_SECRET_FILE'])
      expect(mountOf(env[name] ?? '')).toMatchObject({ readOnly: true });
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
    expect(daemon.readinessProbe?.httpGet.path).toBe(isBeside ? undefined : '/readyz?exclude=bots');
    expect(probes.every(({ timeoutSeconds }) => timeoutSeconds >= 2)).toBe(true);
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
    const leastSeconds = (isBeside ? 30 : 0) + budgetSeconds + 5;
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(leastSeconds);
    expect(JSON.stringify(pod)).not.toMatch(/preStop|postStart/);
  });

  it('lets Prometheus in, and out what asks for names, the exchange and the bots of the namespace', () => {
    const { podSelector, ...rules } = only(manifests, 'NetworkPolicy').spec as unknown as {
      podSelector: Selector;
    };
    expect(selects(podSelector, labels)).toBe(true);
    const tcp = (port: number | undefined) => ({ protocol: 'TCP', port });
    const [{ protocol, hostname } = new URL('about:blank')] = configOf(overlay).exchange.baseUrls.map(
      (url) => new URL(url),
    );
    // In the trial the exchange is in the pod, and no policy is asked.
    expect(protocol === 'https:' || hostname === '127.0.0.1').toBe(true);
    // The label that Kubernetes itself gives to every namespace.
    const monitoring = { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } };
    expect(rules).toEqual({
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        { from: [{ namespaceSelector: monitoring }], ports: [tcp(daemon.ports?.[0]?.containerPort)] },
      ],
      egress: [
        // At any address: NodeLocal DNS answers at one of the node, which no selector names.
        { ports: [{ protocol: 'UDP', port: 53 }, tcp(53)] },
        { ports: [tcp(443)] },
        { to: [{ podSelector: {} }] },
      ],
    });
  });

  it('is found by the pod monitor at its port, under the label that the rules go by', () => {
    expect(selects(monitor.selector, labels)).toBe(true);
    const account = '__meta_kubernetes_pod_label_app_kubernetes_io_instance';
    expect(monitor.podMetricsEndpoints).toEqual([
      expect.objectContaining({
        port: daemon.ports?.[0]?.name,
        path: '/metrics',
        relabelings: [{ sourceLabels: [account], targetLabel: 'account' }],
      }),
    ]);
    expect(TARGET_LABELS).toContain('account');
    expect(labels['app.kubernetes.io/instance']).toBeDefined();
  });
});

it('the pod monitor asks as often as the scrape job for Kubernetes', () => {
  const { scrape_configs } = parse(readDeployed('prometheus/scrape-kubernetes.yaml')) as {
    scrape_configs: { scrape_interval: string; scrape_timeout: string }[];
  };
  expect(monitor.podMetricsEndpoints.map(({ interval, scrapeTimeout }) => [interval, scrapeTimeout])).toEqual(
    scrape_configs.map((job) => [job.scrape_interval, job.scrape_timeout]),
  );
  expect(readDeployed('README.md')).toContain('`app.kubernetes.io/instance`');
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

  it('is one user with the bot, a sample of the image, and shares its control socket with it', () => {
    const users = containersOf(pod).map(({ securityContext }) => securityContext.runAsUser);
    expect(users.filter((user) => user !== undefined)).toEqual([]);
    expect(pod.securityContext).toEqual({ runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532 });
    const socket = environmentOf(daemon, '')['KILLSWITCHD_CONTROL_LISTEN'];
    expect(environmentOf(bot ?? daemon, '')['KILLSWITCHD_CONTROL']).toBe(socket);
    expect(daemon.volumeMounts).toEqual(expect.arrayContaining([...(bot?.volumeMounts ?? [])]));
    const [node, flag, script = ''] = bot?.command ?? [];
    expect([node, flag]).toEqual([imageDefaults().program[0], '--disable-sigusr1']);
    expect(readFileSync(join(ROOT, script.replace('/app/', '')), 'utf8')).toContain('KILLSWITCHD_CONTROL');
  });
});

describe('the fleet', () => {
  const manifests = manifestsOf('fleet');
  const { spec } = only(manifests, 'StatefulSet');
  const pod = podIn('fleet');

  it('has a pod for each shard, none of which waits for another, with its own number and its own key alone', () => {
    expect(spec).toMatchObject({ replicas: configOf('fleet').shard?.count, podManagementPolicy: 'Parallel' });
    const daemon = daemonOf(pod);
    expect(environmentOf(daemon, 'killswitchd-2')).toMatchObject({
      KILLSWITCHD_SHARD_INDEX: 'killswitchd-2',
      KILLSWITCHD_API_KEY_FILE: '/run/secrets/killswitchd/killswitchd-2.api-key',
      KILLSWITCHD_API_SECRET_FILE: '/run/secrets/killswitchd/killswitchd-2.api-secret',
    });
    // The others are not in its container.
    const kinds = daemon.volumeMounts?.map(({ name }) => pod.volumes.find((volume) => volume.name === name));
    expect(kinds?.filter((volume) => volume?.secret !== undefined)).toEqual([]);
  });

  it('keeps its pods apart: by node and by zone, as far as there are several', () => {
    const labelSelector = { matchLabels: spec.selector?.matchLabels };
    const topologyKey = 'topology.kubernetes.io/zone';
    const podAffinityTerm = { topologyKey: 'kubernetes.io/hostname', labelSelector };
    expect(pod).toMatchObject({
      topologySpreadConstraints: [
        { maxSkew: 1, topologyKey, whenUnsatisfiable: 'ScheduleAnyway', labelSelector },
      ],
      affinity: {
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm }],
        },
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

it('the trial is the sidecar with an exchange that starts before it, and the only secret that stands in a file', () => {
  const pod = podIn('trial');
  const [exchange, ...others] = pod.initContainers ?? [];
  expect([exchange?.name, exchange?.restartPolicy]).toEqual(['exchange', 'Always']);
  expect({ ...pod, initContainers: others }).toEqual(podIn('sidecar'));
  expect(configOf('trial').exchange.baseUrls).toContain(`http://${exchange?.args?.at(-1)}`);
  const secret = only(manifestsOf('trial'), 'Secret');
  const env = environmentOf(daemonOf(pod), '');
  expect(pod.volumes.map(({ secret: from }) => from?.secretName)).toContain(secret.metadata.name);
  expect(Object.keys(secret.data ?? {}).map((key) => `/run/secrets/killswitchd/${key}`)).toEqual([
    env['KILLSWITCHD_API_KEY_FILE'],
    env['KILLSWITCHD_API_SECRET_FILE'],
  ]);
});

describe('the component', () => {
  /** Renders manifests of somebody else with the component. */
  const renderWithComponent = (resource: object): Manifest[] => {
    const own = mkdtempSync(join(directory, 'own-'));
    cpSync(KUBERNETES, join(own, 'kubernetes'), { recursive: true });
    mkdirSync(join(own, 'bot'));
    writeFileSync(join(own, 'bot/bot.json'), JSON.stringify(resource));
    const kustomization = { resources: ['bot.json'], components: ['../kubernetes/components/sidecar'] };
    writeFileSync(join(own, 'bot/kustomization.yaml'), JSON.stringify(kustomization));
    return render(join(own, 'bot'));
  };
  const data = { name: 'data', mountPath: '/data', subPath: 'maker' };
  const botSpec = {
    terminationGracePeriodSeconds: 120,
    securityContext: { supplementalGroups: [7] },
    initContainers: [{ name: 'migrate', image: 'bot' }],
    containers: [
      { name: 'maker', image: 'bot', volumeMounts: [data] },
      { name: 'logger', image: 'logger', stdin: true },
    ],
    volumes: [
      { name: 'data', emptyDir: {} },
      { name: 'rules', configMap: { name: 'rules', items: [{ key: 'a', path: 'b' }] } },
    ],
  };
  const workload = (kind: string, annotations: Labels) => ({
    apiVersion: 'apps/v1',
    kind,
    metadata: { name: 'maker', annotations },
    spec: { template: { metadata: { labels: { app: 'maker' } }, spec: botSpec } },
  });

  it.each(['Deployment', 'StatefulSet'])(
    'adds the daemon to a %s that asks for it, and keeps what it has',
    (kind) => {
      const sidecar = podIn('sidecar');
      const asking = workload(kind, { 'killswitchd/sidecar': 'true' });
      const { metadata, spec } = only(renderWithComponent(asking), kind);
      const pod = spec.template.spec;
      expect(pod.terminationGracePeriodSeconds).toBe(120);
      // The daemon first, as deploy/README.md says.
      const names = ['killswitchd', 'killswitchd-armed', 'migrate'];
      expect(pod.initContainers?.map(({ name }) => name)).toEqual(names);
      expect(pod.containers).toEqual(botSpec.containers);
      expect(pod.volumes).toEqual([...sidecar.volumes, ...botSpec.volumes]);
      expect(pod.securityContext).toEqual({ ...sidecar.securityContext, ...botSpec.securityContext });
      expect(metadata).toEqual(asking.metadata);
      expect(daemonOf(pod)).toEqual({ ...daemonOf(sidecar), image: 'killswitchd' });
      expect(spec.template.metadata.labels).toEqual({ app: 'maker', 'killswitchd/daemon': 'sidecar' });
    },
  );

  it.each([{ team: 'market-making' }, { 'killswitchd/sidecar': 'false' }])(
    'leaves a workload alone that has %j',
    (annotations) => {
      const other = workload('Deployment', annotations);
      expect(renderWithComponent(other)).toEqual([other]);
    },
  );
});

describe('these tests notice', () => {
  it('a field that is mistyped, and one of another type', { timeout: 60_000 }, async () => {
    const text = JSON.stringify(manifestsOf('standalone'));
    const changes = {
      timeoutSeconds: 'timeoutSecond',
      '"periodSeconds":5': '"periodSeconds":"5"',
      '"egress"': '"egres"',
      '"selector":': '"selectors":',
    };
    const changed = Object.entries(changes).map(
      ([from, to]) => JSON.parse(text.replaceAll(from, to)) as Manifest[],
    );
    const found = (await misfits(changed.flat(), directory)).join('\n');
    for (const name of ['timeoutSecond', 'egres', 'selectors'])
      expect(found).toContain(`'"${name}"' does not exist`);
    expect(found).toMatch(/'string' is not assignable to type 'number/);
  });

  it('a pod that would not be admitted', () => {
    const pod = podIn('standalone');
    const refused = (change: object) => {
      const containers = pod.containers.map((own) => ({
        ...own,
        securityContext: { ...own.securityContext, ...change },
      }));
      return notRestricted({ ...pod, containers });
    };
    expect(refused({ capabilities: { drop: ['NET_RAW'] } })).toEqual(['killswitchd: capabilities']);
    expect(refused({ runAsUser: 0 })).toEqual(['killswitchd: runAsUser']);
    const name = 'allowPrivilegeEscalation';
    expect(refused({ [name]: undefined })).toEqual([`killswitchd: ${name}`]);
    expect(notRestricted({ ...pod, hostNetwork: true })).toEqual(['hostNetwork']);
    const onHost = [{ name: 'host', hostPath: { path: '/' } } as never];
    expect(notRestricted({ ...pod, volumes: onHost })).toEqual(['host']);
  });
});
