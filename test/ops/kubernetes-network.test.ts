import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { TARGET_LABELS } from '../deploy/promql.ts';
import { readDeployed } from '../deploy/rules.ts';
import {
  daemonOf,
  KUBERNETES,
  type Labels,
  type Manifest,
  only,
  podOf,
  render,
  workloadOf,
} from './manifests.ts';
import { misfits } from './upstream-types.ts';

interface Selector {
  readonly matchExpressions: readonly { readonly key: string; readonly operator: string }[];
}
interface Relabeling {
  readonly sourceLabels: readonly string[];
  readonly targetLabel: string;
}
interface Endpoint {
  readonly port: string;
  readonly path: string;
  readonly interval: string;
  readonly scrapeTimeout: string;
  readonly relabelings: readonly Relabeling[];
}

const selects = ({ matchExpressions }: Selector, labels: Labels): boolean =>
  matchExpressions.every(({ key, operator }) => operator === 'Exists' && key in labels);

const monitors = render(join(KUBERNETES, 'pod-monitor'));
const monitor = only(monitors, 'PodMonitor').spec as unknown as {
  readonly selector: Selector;
  readonly podMetricsEndpoints: readonly Endpoint[];
};

describe.each(['fleet', 'sidecar', 'standalone', 'trial'])('overlay %s', (overlay) => {
  const manifests: Manifest[] = render(join(KUBERNETES, 'overlays', overlay));
  const { labels } = workloadOf(manifests).spec.template.metadata;
  const daemon = daemonOf(podOf(manifests));

  it('lets Prometheus in, and out what asks for names, the exchange and the bots of the namespace', () => {
    const { podSelector, ...rules } = only(manifests, 'NetworkPolicy').spec as unknown as {
      podSelector: Selector;
    };
    expect(selects(podSelector, labels)).toBe(true);
    // The label that Kubernetes itself gives to every namespace.
    const from = (name: string) => [
      { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } } },
    ];
    const tcp = (port: number | undefined) => ({ protocol: 'TCP', port });
    const config = only(manifests, 'ConfigMap').data?.['killswitchd.yaml'] ?? '';
    const { exchange } = parse(config) as { exchange: { baseUrls: string[] } };
    const [{ protocol, hostname } = new URL('about:blank')] = exchange.baseUrls.map((url) => new URL(url));
    // In the trial the exchange is in the pod, and no policy is asked.
    expect(protocol === 'https:' || hostname === '127.0.0.1').toBe(true);
    expect(rules).toEqual({
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ from: from('monitoring'), ports: [tcp(daemon.ports?.[0]?.containerPort)] }],
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
    const [endpoint, ...more] = monitor.podMetricsEndpoints;
    expect(more).toEqual([]);
    expect(endpoint).toMatchObject({ port: daemon.ports?.[0]?.name, path: '/metrics' });
    expect(endpoint?.relabelings).toEqual([
      { sourceLabels: ['__meta_kubernetes_pod_label_app_kubernetes_io_instance'], targetLabel: 'account' },
    ]);
    expect(TARGET_LABELS).toContain('account');
    expect(labels['app.kubernetes.io/instance']).toBeDefined();
    expect(readDeployed('README.md')).toContain('`app.kubernetes.io/instance`');
  });
});

it('the pod monitor asks as often as the scrape job for Kubernetes', () => {
  const { scrape_configs } = parse(readDeployed('prometheus/scrape-kubernetes.yaml')) as {
    scrape_configs: { scrape_interval: string; scrape_timeout: string }[];
  };
  expect(monitor.podMetricsEndpoints.map(({ interval, scrapeTimeout }) => [interval, scrapeTimeout])).toEqual(
    scrape_configs.map((job) => [job.scrape_interval, job.scrape_timeout]),
  );
});

it('the pod monitor fits the published type of the Prometheus operator', { timeout: 30_000 }, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'killswitchd-monitor-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  expect(await misfits(monitors, directory)).toEqual([]);
});
