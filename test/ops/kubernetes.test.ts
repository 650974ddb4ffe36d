import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { TARGET_LABELS } from '../deploy/promql.ts';
import { readDeployed } from '../deploy/rules.ts';
import {
  containersOf,
  daemonOf,
  environmentOf,
  imageDefaults,
  KUBERNETES,
  type Labels,
  type Manifest,
  only,
  type Probe,
  podOf,
  render,
  VERSION,
  workloadOf,
} from './manifests.ts';
import { scratch } from './scratch.ts';
import { misfits } from './upstream-types.ts';

const directory = scratch();
/** What each overlay holds beside its workload. */
const OVERLAYS = {
  fleet: ['ConfigMap', 'NetworkPolicy', 'PodDisruptionBudget', 'Service'],
  sidecar: ['ConfigMap', 'NetworkPolicy'],
  standalone: ['ConfigMap', 'NetworkPolicy'],
  trial: ['ConfigMap', 'NetworkPolicy', 'Secret'],
} as const;
type Overlay = keyof typeof OVERLAYS;
const NAMES = Object.keys(OVERLAYS) as Overlay[];
const rendered = new Map(NAMES.map((name) => [name, render(join(KUBERNETES, 'overlays', name))]));
const manifestsOf = (overlay: Overlay): Manifest[] => rendered.get(overlay) ?? [];
const podIn = (overlay: Overlay) => podOf(manifestsOf(overlay));

interface FileConfig {
  readonly exchange: { readonly baseUrls: readonly string[] };
  readonly shutdown: { readonly budgetSeconds: number };
  readonly reload: { readonly pollSeconds: number };
  readonly shard?: { readonly count: number };
}
const configOf = (overlay: Overlay): FileConfig =>
  parse(only(manifestsOf(overlay), 'ConfigMap').data?.['killswitchd.yaml'] ?? '') as FileConfig;

/** The one way in which policy and pod monitor select pods: by a label that is there. */
interface Selector {
  readonly matchExpressions: readonly { readonly key: string; readonly operator: string }[];
}
const selects = ({ matchExpressions }: Selector, labels: Labels): boolean =>
  matchExpressions.every(({ key, operator }) => operator === 'Exists' && key in labels);

const monitors = render(join(KUBERNETES, 'pod-monitor'));
const monitor = only(monitors, 'PodMonitor').spec as unknown as {
  readonly selector: Selector;
  readonly podMetricsEndpoints: readonly Readonly<Record<string, unknown>>[];
};

it('every folder of deploy/kubernetes is one that these tests render, and every file is used in it', () => {
  const files = readdirSync(KUBERNETES, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(KUBERNETES.length + 1));
  const kustomizations = files.filter((file) => file.endsWith('/kustomization.yaml'));
  const folders = ['components/network-policy', 'components/sidecar', 'pod-monitor'];
  folders.push(...NAMES.map((name) => `overlays/${name}`));
  expect(kustomizations.map(dirname).toSorted()).toEqual(folders.toSorted());
  const rows = [
    ...readDeployed('README.md').matchAll(/^\| `((?:components|overlays|pod-monitor)[\w/-]*)` /gm),
  ];
  expect(rows.map(([, folder = '']) => folder).toSorted()).toEqual(folders.toSorted());
  const text = kustomizations.map((file) => readFileSync(join(KUBERNETES, file), 'utf8')).join('');
  const others = files.filter((file) => !kustomizations.includes(file));
  expect(others.filter((file) => !text.includes(file.slice(dirname(file).length + 1)))).toEqual([]);
});

it('everything fits the published types of Kubernetes and of the Prometheus operator, and a mistake would not', {
  timeout: 90_000,
}, async () => {
  expect(await misfits([...[...rendered.values()].flat(), ...monitors], directory)).toEqual([]);
  const text = JSON.stringify(manifestsOf('standalone'))
    .replaceAll('timeoutSeconds', 'timeoutSecond')
    .replaceAll('"failureThreshold":3', '"failureThreshold":"3"');
  const found = (await misfits(JSON.parse(text) as Manifest[], directory)).join('\n');
  expect(found).toContain(`'"timeoutSecond"' does not exist`);
  expect(found).toMatch(/'string' is not assignable to type 'number/);
});

describe.each(NAMES)('overlay %s', (overlay) => {
  const manifests = manifestsOf(overlay);
  const pod = podIn(overlay);
  const daemon = daemonOf(pod);
  const env = environmentOf(daemon, 'killswitchd-0');
  const { labels, annotations = {} } = workloadOf(manifests).spec.template.metadata;
  /** Whether the daemon stands beside its bot. */
  const isBeside = overlay === 'sidecar' || overlay === 'trial';
  it('finds its own pods, and replaces them in a way that there is', () => {
    const { kind, metadata, spec } = workloadOf(manifests);
    const others = manifests.filter((manifest) => manifest.kind !== kind);
    expect(others.map((manifest) => manifest.kind).sort()).toEqual(OVERLAYS[overlay]);
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
    const { user } = imageDefaults();
    expect(pod.securityContext).toMatchObject({ runAsUser: user[0], runAsGroup: user[1] });
    expect(pod.automountServiceAccountToken).toBe(false);
    expect(['hostNetwork', 'hostPID', 'hostIPC'].filter((field) => field in pod)).toEqual([]);
    expect(pod.volumes.filter((volume) => 'hostPath' in volume)).toEqual([]);
    for (const { name, securityContext } of containersOf(pod)) {
      const { readOnlyRootFilesystem, ...rest } = { ...pod.securityContext, ...securityContext };
      expect(readOnlyRootFilesystem, name).toBeDefined();
      expect(rest.privileged ?? false, name).toBe(false);
      expect(rest, name).toMatchObject({
        runAsNonRoot: true,
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'] },
        seccompProfile: { type: 'RuntimeDefault' },
      });
      expect(rest.runAsUser, name).not.toBe(0);
      expect(rest.capabilities, name).not.toHaveProperty('add');
    }
  });

  it('starts the image of this version by its own entry point', () => {
    expect(new Set(containersOf(pod).map(({ image }) => image))).toEqual(new Set([`killswitchd:${VERSION}`]));
    expect([daemon.command, daemon.args]).toEqual([undefined, imageDefaults().command]);
  });

  it('gives key and secret as files, which only its own group reads, and never as a value', () => {
    const secrets = pod.volumes.flatMap(({ secret }) => secret ?? []);
    expect(secrets).toEqual([{ secretName: 'killswitchd-api', defaultMode: 0o440 }]);
    expect(pod.securityContext.fsGroup).toBe(pod.securityContext.runAsGroup);
    expect(Object.keys(env).filter((name) => /_(KEY|SECRET|TOKEN)$/.test(name))).toEqual([]);
    expect(JSON.stringify(manifests)).not.toContain('secretKeyRef');
  });

  // That the paths of the variables are those of the mounts is seen in `image.test.ts`, which runs these pods.
  it('reads its configuration again as it changes, and has its control socket in memory', () => {
    expect(configOf(overlay).reload.pollSeconds).toBeGreaterThan(0);
    // A file that is mounted by a subPath never changes.
    expect(JSON.stringify(pod)).not.toContain('subPath');
    const sockets = pod.volumes.flatMap(({ emptyDir }) => emptyDir ?? []);
    expect(sockets).toContainEqual({ medium: 'Memory', sizeLimit: '1Mi' });
  });

  it('is probed over http at the port that it listens on, at every address of the pod', () => {
    const { ports = [], readinessProbe, livenessProbe } = daemon;
    expect(ports).toMatchObject([{ protocol: 'TCP' }]);
    expect(env['KILLSWITCHD_WEB_LISTEN']).toBe(`0.0.0.0:${ports[0]?.containerPort}`);
    for (const { httpGet, timeoutSeconds } of [readinessProbe, livenessProbe].flatMap((one) => one ?? [])) {
      expect(httpGet.port).toBe(ports[0]?.name);
      expect(timeoutSeconds).toBeGreaterThanOrEqual(2);
    }
    expect(livenessProbe?.httpGet.path).toBe('/livez');
    // Beside its bot it has none: an exchange that is away must not take the bot out of its Service. Elsewhere a dead bot
    // must not hold up a rollout.
    expect(readinessProbe?.httpGet.path).toBe(isBeside ? undefined : '/readyz?exclude=bots');
  });

  it('is killed where it hangs, and has the rest of the time of a timer of 30 s to start again', () => {
    const probe: Partial<Probe> = daemon.livenessProbe ?? {};
    const { periodSeconds = 10, timeoutSeconds = 1, failureThreshold = 3 } = probe;
    // A loop that hangs hears no SIGTERM: what the probe says is added, and what the pod says where it says nothing.
    const graceSeconds = probe.terminationGracePeriodSeconds ?? pod.terminationGracePeriodSeconds;
    const killedAfterSeconds = periodSeconds * failureThreshold + timeoutSeconds + graceSeconds;
    // Its last renewal may be 3 s older than the hang, and the start takes some seconds.
    expect(killedAfterSeconds).toBeLessThanOrEqual(30 - 3 - 5);
    const row = `hangs | the kubelet kills it with SIGKILL, at the latest after ${killedAfterSeconds} s`;
    expect(readDeployed('README.md').replaceAll(/ +/g, ' ')).toContain(row);
  });

  it('is bounded in memory and not in time on the processor, and has the time for a clean stop', () => {
    for (const { resources } of containersOf(pod)) {
      expect(Object.keys(resources.limits)).toEqual(['memory']);
      expect(Object.keys(resources.requests).sort()).toEqual(['cpu', 'memory']);
    }
    // Half a minute for the bot, as Kubernetes gives where nothing is said; listeners and log close within 3 s.
    const leastSeconds = (isBeside ? 30 : 0) + configOf(overlay).shutdown.budgetSeconds + 5;
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(leastSeconds);
    // No hook runs before the bot has ended.
    expect(JSON.stringify(pod)).not.toMatch(/preStop|postStart/);
  });

  it('lets Prometheus in, and out what asks for names, the exchange and the bots of the namespace', () => {
    const { podSelector, ...rules } = only(manifests, 'NetworkPolicy').spec as unknown as {
      podSelector: Selector;
    };
    expect(selects(podSelector, labels)).toBe(true);
    // In the trial the exchange is in the pod, and no policy is asked.
    for (const url of configOf(overlay).exchange.baseUrls)
      expect(url).toMatch(/^https:|^http:\/\/127\.0\.0\.1/);
    const tcp = (port: number | undefined) => ({ protocol: 'TCP', port });
    // The label that Kubernetes itself gives to every namespace.
    const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } };
    expect(rules).toEqual({
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ from: [{ namespaceSelector }], ports: [tcp(daemon.ports?.[0]?.containerPort)] }],
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
    const relabelings = [{ sourceLabels: [account], targetLabel: 'account' }];
    const { scrape_configs } = parse(readDeployed('prometheus/scrape-kubernetes.yaml')) as {
      scrape_configs: { scrape_interval: string; scrape_timeout: string }[];
    };
    expect(monitor.podMetricsEndpoints).toMatchObject(
      scrape_configs.map(({ scrape_interval: interval, scrape_timeout: scrapeTimeout }) => {
        return { port: daemon.ports?.[0]?.name, path: '/metrics', relabelings, interval, scrapeTimeout };
      }),
    );
    expect(TARGET_LABELS).toContain('account');
    expect(labels['app.kubernetes.io/instance']).toBeDefined();
    expect(readDeployed('README.md')).toContain('`app.kubernetes.io/instance`');
  });
});

it('the sidecar starts before the bot, one user with it, and holds it back until all is armed', () => {
  const pod = podIn('sidecar');
  const daemon = daemonOf(pod);
  const [first, armed] = pod.initContainers ?? [];
  expect([first?.name, first?.restartPolicy]).toEqual(['killswitchd', 'Always']);
  expect([armed?.name, armed?.restartPolicy]).toEqual(['killswitchd-armed', undefined]);
  expect(armed?.args).toEqual(['healthcheck', '--ready', '--exclude', 'bots', '--wait', '86400']);
  // It would hold up the liveness probe: a daemon that hangs at its start would never be started again.
  expect(daemon.startupProbe).toBeUndefined();
  expect(daemon.livenessProbe?.initialDelaySeconds).toBeLessThanOrEqual(10);
  const users = containersOf(pod).map(({ securityContext }) => securityContext.runAsUser);
  expect(users.filter((user) => user !== undefined)).toEqual([]);
});

describe('the fleet', () => {
  const manifests = manifestsOf('fleet');
  const { spec } = only(manifests, 'StatefulSet');
  const pod = podIn('fleet');

  it('has a pod for each shard, none of which waits for another, with no key of another in its container', () => {
    expect(spec).toMatchObject({ replicas: configOf('fleet').shard?.count, podManagementPolicy: 'Parallel' });
    const daemon = daemonOf(pod);
    // The others are not in its container.
    const kinds = daemon.volumeMounts?.map(({ name }) => pod.volumes.find((volume) => volume.name === name));
    expect(kinds?.filter((volume) => volume?.secret !== undefined)).toEqual([]);
  });

  it('keeps its pods apart by node and by zone, and is what its service and its disruption budget select', () => {
    const labelSelector = { matchLabels: spec.selector?.matchLabels };
    const topologyKey = 'topology.kubernetes.io/zone';
    const preferred = {
      weight: 100,
      podAffinityTerm: { topologyKey: 'kubernetes.io/hostname', labelSelector },
    };
    expect(pod).toMatchObject({
      topologySpreadConstraints: [{ topologyKey, whenUnsatisfiable: 'ScheduleAnyway', labelSelector }],
      affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [preferred] } },
    });
    const service = only(manifests, 'Service');
    expect(spec).toMatchObject({ serviceName: service.metadata.name });
    for (const { spec: selecting } of [service, only(manifests, 'PodDisruptionBudget')]) {
      const { selector } = selecting as unknown as { selector: Labels & { matchLabels?: Labels } };
      expect(spec.template.metadata.labels).toMatchObject(selector.matchLabels ?? selector);
    }
    expect(service.spec).toMatchObject({ ports: [{ targetPort: 'killswitchd', port: 17477 }] });
  });
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
    volumes: [{ name: 'rules', configMap: { name: 'rules', items: [{ key: 'a', path: 'b' }] } }],
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
      // The daemon first, as deploy/README.md says.
      const names = ['killswitchd', 'killswitchd-armed', 'migrate'];
      expect(pod.initContainers?.map(({ name }) => name)).toEqual(names);
      expect(daemonOf(pod)).toEqual({ ...daemonOf(sidecar), image: 'killswitchd' });
      const { initContainers: _, ...kept } = pod;
      expect(kept).toEqual({
        ...botSpec,
        initContainers: undefined,
        volumes: [...sidecar.volumes, ...botSpec.volumes],
        securityContext: { ...sidecar.securityContext, ...botSpec.securityContext },
      });
      expect(metadata).toEqual(asking.metadata);
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
