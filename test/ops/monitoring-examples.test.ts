import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { deployed, readDeployed } from '../deploy/rules.ts';

const run = (command: string, ...args: readonly string[]): string =>
  execFileSync(command, args, { encoding: 'utf8', stdio: 'pipe' });

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'killswitchd-examples-'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test('the configuration of Prometheus, and that of Alertmanager, are taken by their own checks', () => {
  expect(run('promtool', 'check', 'config', deployed('prometheus/prometheus.yaml'))).toContain('SUCCESS');
  expect(run('amtool', 'check-config', deployed('prometheus/alertmanager.yaml'))).toContain('SUCCESS');
});

test('a page goes to the pager, and everything else to the tickets', () => {
  const routed = (...labels: readonly string[]) =>
    run(
      'amtool',
      'config',
      'routes',
      'test',
      '--config.file',
      deployed('prometheus/alertmanager.yaml'),
      ...labels,
    ).trim();
  expect(routed('alertname=KillswitchDown', 'severity=critical')).toBe('pager');
  expect(routed('alertname=KillswitchOutage', 'severity=warning')).toBe('tickets');
  expect(routed('alertname=KillswitchWatchdog', 'severity=info')).toBe('watchdog');
  expect(routed('alertname=SomethingElse', 'severity=critical')).toBe('tickets');
});

describe('the scrape job for Kubernetes', () => {
  interface Job {
    readonly job_name: string;
    readonly [key: string]: unknown;
  }
  interface Discovered {
    readonly labels: Readonly<Record<string, string>>;
  }

  /** What becomes of a pod's container, with its labels handed over instead of discovered. */
  function discovered(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    const [found] = (parse(readDeployed('prometheus/scrape-kubernetes.yaml')) as { scrape_configs: Job[] })
      .scrape_configs;
    const { kubernetes_sd_configs: discovery, ...job } = found ?? { job_name: '' };
    expect(discovery).toEqual([{ role: 'pod' }]);
    const meta = Object.fromEntries(
      Object.entries(labels).map(([name, value]) => [`__meta_kubernetes_${name}`, value]),
    );
    const file = join(directory, 'kubernetes.yaml');
    const scraped = { ...job, static_configs: [{ targets: ['10.1.2.3:17477'], labels: meta }] };
    writeFileSync(file, stringify({ scrape_configs: [scraped] }));
    const said = run('promtool', 'check', 'service-discovery', '--timeout=1s', file, job.job_name);
    const [target] = JSON.parse(said.slice(said.indexOf('['))) as Discovered[];
    return target?.labels ?? {};
  }

  const SIDECAR = {
    pod_container_port_name: 'killswitchd',
    pod_container_init: 'true',
    pod_phase: 'Running',
    namespace: 'trading',
    pod_name: 'maker-5f7c-abcde',
    pod_node_name: 'node-3',
    pod_label_app_kubernetes_io_instance: 'maker',
  };

  test('takes a sidecar, with the labels that the rules rely on', () => {
    expect(discovered(SIDECAR)).toMatchObject({
      job: 'killswitchd',
      instance: '10.1.2.3:17477',
      namespace: 'trading',
      pod: 'maker-5f7c-abcde',
      node: 'node-3',
      account: 'maker',
    });
  });

  test('leaves other containers and pods that have ended alone', () => {
    expect(discovered({ ...SIDECAR, pod_container_port_name: 'http' })).toEqual({});
    expect(discovered({ ...SIDECAR, pod_phase: 'Succeeded' })).toEqual({});
    expect(discovered({ ...SIDECAR, pod_phase: 'Failed' })).toEqual({});
  });
});

test('the commands of deploy/README.md put the files where Debian and Grafana look for them', () => {
  const guide = readDeployed('README.md');
  const ours = guide.slice(guide.indexOf('\n## Prometheus and Alertmanager\n'));
  const commands = [...ours.matchAll(/^(install|promtool check|amtool check-config) .*$/gm)];
  const script = commands.map(([line]) => line.replaceAll(/ \/(etc|var)\//g, ` ${directory}/$1/`));
  expect(script).toHaveLength(8);
  const folders = [
    'etc/prometheus',
    'etc/grafana/provisioning/dashboards',
    'etc/grafana/provisioning/datasources',
  ];
  for (const folder of folders) mkdirSync(join(directory, folder), { recursive: true });
  execFileSync('sh', ['-ec', script.join('\n')], { cwd: deployed('..'), stdio: 'pipe' });
  const { providers } = parse(
    readFileSync(join(directory, 'etc/grafana/provisioning/dashboards/killswitchd.yaml'), 'utf8'),
  ) as { providers: { options: { path: string } }[] };
  const dashboards = providers.flatMap(({ options }) => readdirSync(join(directory, options.path)));
  expect(dashboards).toEqual(['killswitchd-bot.json', 'killswitchd-fleet.json']);
});
